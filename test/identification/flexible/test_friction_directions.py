"""Directions of friction: worked out by hand, and beside scipy's integration with a narrow tanh for a sign."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from dynid_ros.identification.flexible.friction_directions import LinearMotion, march

DRY_FRICTION_STEP, MARCH = 0.004, 0.001


def motion(time, mass, damping, stiffness, force, coulomb):
    """Constant matrices (n, n), force (N, n)."""
    constant = [np.tile(np.asarray(matrix, dtype=float), (len(time), 1, 1)) for matrix in (mass, damping, stiffness)]
    return LinearMotion(*constant, force, np.asarray(coulomb, dtype=float), DRY_FRICTION_STEP)


def directions(motion, start, longest_step):
    marched = march(motion, start, longest_step)
    return marched.averaged(marched.used)


def by_scipy(time, mass, damping, stiffness, force, coulomb, width):
    """Directions (N, n) averaged over the sample around each time, and velocities (N, n), from rest at zero."""
    spline, n = CubicSpline(time, force), len(coulomb)
    inverse, parts = np.linalg.inv(mass), 40
    fine = np.linspace(time[0], time[-1], parts * (len(time) - 1) + 1)

    def derivative(t, state):
        q, qd = state[:n], state[n:]
        through = damping @ qd + stiffness @ q + coulomb * np.tanh(qd / width)
        return np.concatenate([qd, inverse @ (spline(t) - through)])

    solved = solve_ivp(derivative, fine[[0, -1]], np.zeros(2 * n), "LSODA", fine, rtol=1e-8, atol=1e-11)
    velocity = solved.y[n:].T
    sense = np.tanh(velocity / width)
    around = np.arange(-parts // 2, parts // 2 + 1)
    rows = np.clip(parts * np.arange(len(time))[:, None] + around, 0, len(fine) - 1)
    return sense[rows].mean(axis=1), velocity[::parts]


def test_a_mass_sticks_until_the_ramp_reaches_friction():
    """By hand: at rest under a force of 4 t N and friction of 2 N, it lets go at 0.5 s, and friction is the force."""
    time = DRY_FRICTION_STEP * np.arange(250)
    sense = directions(motion(time, [[1.0]], [[0.0]], [[0.0]], 4.0 * time[:, None], [2.0]), np.zeros((2, 1)), MARCH)[
        :, 0
    ]
    expected = np.minimum(2.0 * time, 1.0)
    np.testing.assert_allclose(sense[1:], expected[1:], atol=0.01)


def test_a_mass_that_sticks_has_the_friction_of_its_sample():
    """By hand: a force of 1.5 sin(2 π 12 t) N against 2 N; the mean over a sample alone would be 0.4 % too small."""
    time = DRY_FRICTION_STEP * np.arange(250)
    force = 1.5 * np.sin(2.0 * np.pi * 12.0 * time)[:, None]
    sense = directions(motion(time, [[1.0]], [[0.0]], [[0.0]], force, [2.0]), np.zeros((2, 1)), MARCH)
    peak = np.abs(sense[10:-10]).max()
    assert peak == pytest.approx(0.75, rel=1.5e-3)


def test_a_spring_lets_a_mass_stop_where_friction_can_hold_it():
    """By hand: k = 100 N/m, m = 1 kg, c = 2 N, let go at 0.09 m: half swings about ±0.02 m, ends 0.05 and 0.01 m."""
    time = DRY_FRICTION_STEP * np.arange(400)
    start = np.array([[0.09], [0.0]])
    sense = directions(motion(time, [[1.0]], [[0.0]], [[100.0]], np.zeros((400, 1)), [2.0]), start, MARCH)[:, 0]
    half = np.pi / 10
    first = time < half - 2 * DRY_FRICTION_STEP
    second = (time > half + 2 * DRY_FRICTION_STEP) & (time < 2 * half - 2 * DRY_FRICTION_STEP)
    after = time > 2 * half + 3 * DRY_FRICTION_STEP
    np.testing.assert_allclose(sense[first], -1.0, atol=1e-9)
    np.testing.assert_allclose(sense[second], 1.0, atol=1e-9)
    # At 0.01 m the spring pulls with 1 N: half of what friction can hold.
    np.testing.assert_allclose(sense[after], -0.5, atol=1e-3)


@pytest.mark.parametrize(
    ("mass", "damping", "stiffness", "coulomb", "rate"),
    [
        ([[2.0]], [[1.5]], [[800.0]], [9.0], 2.0),
        ([[2.0]], [[1.5]], [[800.0]], [14.0], 2.0),
        ([[2.0, 0.3], [0.3, 0.4]], [[1.5, 0.0], [0.0, 0.4]], [[800.0, 0.0], [0.0, 500.0]], [9.0, 3.0], 1.5),
    ],
)
def test_directions_are_those_of_scipys_integration(mass, damping, stiffness, coulomb, rate):
    """A sticking link creeps under a tanh; where it moves, and how friction sums up over time, is the same."""
    time = DRY_FRICTION_STEP * np.arange(300)
    n, width = len(coulomb), 1e-3
    phase = 2 * np.pi * rate * time[:, None] * (1 + 0.6 * np.arange(n))
    force = 20.0 * np.sin(phase) + 15.0 * np.sin(2.3 * phase)
    matrices = [np.array(matrix) for matrix in (mass, damping, stiffness)]
    expected, velocity = by_scipy(time, *matrices, force, np.array(coulomb), width)
    found = directions(motion(time, *matrices, force, coulomb), np.zeros((2, n)), MARCH)
    assert np.abs(found).max() < 1.1
    moves = np.abs(velocity) > 0.02
    assert 0.2 < moves.mean() < 0.98
    assert np.abs(found - expected)[moves].mean() < 0.01
    # Impulse of friction, which is what moves a link, in parts of a sample's full friction.
    assert np.abs(np.cumsum(found - expected, axis=0)).max() < 0.8
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.04


def test_a_mass_that_creeps_or_bends_while_it_sticks():
    """By hand: under a force of 4 t N, 2 N of friction, 1 kg, 20 N s/m; either q̇ = w s or q̇ = d ds/dt, and s moves."""
    time, damping, creep, bend = DRY_FRICTION_STEP * np.arange(140), 20.0, 0.02, 0.01
    pulled = motion(time, [[1.0]], [[damping]], [[0.0]], 4.0 * time[:, None], [2.0])
    # 2 s = 4 t - (20 w s + w ds/dt), and 2 s = 4 t - (20 d ds/dt + d d²s/dt²), when they have settled.
    slope = 4.0 / (2.0 + damping * creep)
    crept = slope * time - creep * slope / (2.0 + damping * creep)
    bent = 2.0 * time - damping * bend
    for law, expected in (((creep, 0.0, 0.0), crept), ((0.0, bend, 0.0), bent)):
        soft = pulled._replace(stiction=np.array(law)[:, None])
        sense = directions(soft, np.zeros((2, 1)), MARCH)[:, 0]
        settled = (time > 0.45) & (expected < 0.9)
        np.testing.assert_allclose(sense[settled], expected[settled], atol=0.02)


def test_lead_and_creep_are_mujocos_friction():
    """Of impedance 0.9 and time constant 0.02 s: 1/lead = 2 / (0.95 * 0.02 s), creep = c lead (1 - 0.9) / 0.9 / m."""
    mujoco = pytest.importorskip("mujoco")
    step, each = 1e-4, 40
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step}" gravity="0 0 0" tolerance="1e-14"/><worldbody><body>'
        '<joint type="slide" frictionloss="9" damping="1.5"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
        "</body></worldbody></mujoco>"
    )
    data, time = mujoco.MjData(model), DRY_FRICTION_STEP * np.arange(300)
    fine = step * np.arange(each * (len(time) - 1))
    acting = np.empty(len(fine))
    for k, force in enumerate(20.0 * np.sin(13.0 * fine) + 15.0 * np.sin(29.0 * fine)):
        data.qfrc_applied[0] = force - 800.0 * data.qpos[0]
        mujoco.mj_step(model, data)
        acting[k] = -data.qfrc_constraint[0] / 9.0
    force = (20.0 * np.sin(13.0 * time) + 15.0 * np.sin(29.0 * time))[:, None]
    moved = motion(time, [[2.0]], [[1.5]], [[800.0]], force, [9.0])
    lead = 0.95 * 0.02 / 2
    soft = np.array([[9.0 * lead * 0.1 / 0.9 / 2.0], [0.0], [lead]])
    expected = acting[each // 2 : -each // 2].reshape(-1, each).mean(axis=1)
    errors = [
        np.sqrt(np.mean((directions(moved._replace(stiction=law), np.zeros((2, 1)), MARCH)[1:-1, 0] - expected) ** 2))
        for law in (soft, np.zeros((3, 1)))
    ]
    assert errors[0] < 0.05
    assert errors[0] < 0.2 * errors[1]


@pytest.mark.parametrize("bend", [1e-5, 1e-4])
def test_divided_steps_are_as_exact_as_short_ones(bend):
    """A reversal against an elastic contact takes a few steps; steps are divided around it alone."""
    time = DRY_FRICTION_STEP * np.arange(40)
    swung = motion(time, [[1.0]], [[0.0]], [[0.0]], 20.0 * np.cos(25.0 * time)[:, None], [2.0])
    swung = swung._replace(stiction=np.array([[0.0], [bend], [0.0]]))

    def impulse(step, divisions):
        found = march(swung, np.zeros((2, 1)), step, divisions)
        assert len(found.steps) < 8
        return DRY_FRICTION_STEP * found.averaged(found.used)[5:].sum()

    short = impulse(MARCH / 64, 1)
    assert abs(impulse(MARCH, 8) - short) < 0.2 * abs(impulse(MARCH, 1) - short)
