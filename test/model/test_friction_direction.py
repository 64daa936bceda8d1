"""Friction directions with memory, against Dahl's equation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid_ros.errors import ModelError
from dynid_ros.model import FrictionModel, JointFriction
from dynid_ros.model.friction_terms import FrictionDirection, SlidingMemory, dahl_direction

TIME = np.linspace(0.0, 10.0, 4001)


def position(t):
    """Return a position with several reversals and a dwell from 4 s to 6 s."""
    t = np.where(t < 4.0, t, np.maximum(t - 2.0, 4.0))
    return 0.02 * np.sin(2.1 * t) + 0.004 * np.sin(7.0 * t)


def test_direction_solves_dahls_equation():
    """ds/dt = q̇ / d (1 - s sign q̇) is integrated by another method."""
    length = 3e-3
    rate = np.gradient(position(np.linspace(0, 10, 400_001)), 10 / 400_000)

    def slope(t, s):
        v = rate[round(t / 10 * 400_000)]
        return v / length * (1.0 - s * np.sign(v))

    expected = solve_ivp(slope, (0.0, 10.0), [0.4], t_eval=TIME, max_step=2e-3, rtol=1e-8).y[0]
    np.testing.assert_allclose(dahl_direction(position(TIME), length, 0.4), expected, atol=5e-3)


def test_direction_is_kept_at_standstill_and_saturates():
    direction = dahl_direction(position(TIME), 1e-3)
    dwell = direction[(TIME > 4.0) & (TIME < 6.0)]
    assert np.ptp(dwell) == 0.0
    assert abs(dwell[0]) > 0.99
    creeping = dahl_direction(np.linspace(0.0, 0.01, 100_000), 1e-3)
    assert creeping[-1] == pytest.approx(1.0 - np.exp(-10.0), rel=1e-6)
    assert dahl_direction(np.full(5, 2.0), 1e-3, -0.3).tolist() == [-0.3] * 5


def test_memory_continues_from_part_to_part():
    q = np.column_stack([position(TIME), -position(TIME + 1.0)])
    memory = SlidingMemory([((0,), 1e-3), ((0, 1), 2e-3)])
    whole = SlidingMemory(memory.keys).advance(q)
    parts = [memory.advance(q[part]) for part in (slice(0, 1), slice(1, 1), slice(1, 700), slice(700, None))]
    for key, expected in whole.items():
        np.testing.assert_allclose(np.concatenate([part[key] for part in parts]), expected, atol=1e-14)
    np.testing.assert_allclose(whole[(0, 1), 2e-3], dahl_direction(q.sum(axis=1), 2e-3))


def test_new_runs_start_without_memory():
    q = np.concatenate([position(TIME), 5.0 + position(TIME)])[:, None]
    friction = FrictionModel(JointFriction(sliding_length=1e-3))
    ((key, direction),) = friction.memory(q, starts=[len(TIME)]).items()
    assert key == ((0,), 1e-3)
    np.testing.assert_allclose(direction[: len(TIME)], direction[len(TIME) :], atol=1e-9)
    restored = SlidingMemory([key])
    restored.advance(q[:100])
    restored.restart()
    assert restored.advance(q[50:60])[key][0] == 0.0


def test_refuses_a_sliding_length_without_positions():
    with pytest.raises(ModelError, match="needs positions of consecutive samples"):
        FrictionDirection(sliding_length=1e-3).evaluate(np.zeros(3))
