"""Equations over windows: the truth solves them, in N m, and accelerations are not used."""

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record

from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.integral_equations import IntegralEquations
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals

SIGNALS = LinkSignals(7.0, 17.5)
DRIVE = Drive(rotor=0.3, smoothing=0.3)
FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.3)
MOTION = Fourier(3, size=0.5)


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(FRICTION,)] * 3)


@pytest.mark.parametrize("rate", [50.0, 500.0])
def test_truth_solves_them(columns, rate):
    recordings = [record(chain(), motion, DRIVE, rate=rate, noise=0.0) for motion in (MOTION, Fourier(3, 1, size=0.5))]
    blocks = list(IntegralEquations(SIGNALS, recordings).blocks(columns))
    value = np.zeros(columns.size)
    value[columns.chosen([0, 0, 0])] = [
        *columns.base.project(chain().parameters),
        *np.tile([1.0, 0.5, 0.2, 0.3], 3),
    ]
    for number, recording in enumerate(recordings):
        own = [block for block in blocks if block.recording == number]
        torque = np.concatenate([block.torque for block in own])
        for j, columns_of in enumerate(columns.of_joint):
            predicted = np.concatenate([block.rows[j] @ value[columns_of] for block in own])
            size = np.sqrt(np.mean(torque[:, j] ** 2))
            assert np.sqrt(np.mean((predicted - torque[:, j]) ** 2)) < 2e-3 * size
            # Means over a window, not impulses.
            assert size == pytest.approx(np.sqrt(np.mean(recording.torque[:, j] ** 2)), rel=0.1)


def test_windows_stand_where_their_samples_are(columns):
    recording = record(chain(), MOTION, DRIVE, rate=200.0, noise=0.0)
    equations = IntegralEquations(SIGNALS, [recording])
    blocks = list(equations.blocks(columns))
    time = np.concatenate([block.time for block in blocks])
    torque = np.concatenate([block.torque for block in blocks])
    assert np.all(np.diff(time) > 0)
    np.testing.assert_allclose(np.diff(time), 0.07, atol=0.01)  # windows of 1/7 s overlap by half
    recorded = np.column_stack([np.interp(time, recording.time, column) for column in recording.torque.T])
    assert np.sqrt(np.mean((torque - recorded) ** 2)) < 0.05 * np.sqrt(np.mean(recorded**2))
    filtered = LinkEquations(SIGNALS, [recording])
    assert 0.2 < len(time) / filtered.n_samples < 5
    factors = equations.factors(columns)
    assert factors.counts.sum() == len(time)


def test_segments_shorter_than_a_window_are_left_out(columns):
    whole = record(chain(), MOTION, DRIVE, rate=200.0, noise=0.0)
    keep = (whole.time < 10) | (whole.time > 11)
    torque = np.where(((whole.time > 12) & (whole.time < 12.3))[:, None], np.nan, whole.torque)
    split = type(whole)(whole.joint_names, whole.time, whole.position, whole.velocity, torque).slice(keep)
    blocks = list(IntegralEquations(LinkSignals(1.0, 17.5), [split]).blocks(columns))
    time = np.concatenate([block.time for block in blocks])
    assert len(time) > 10
    assert not np.any((time > 9.6) & (time < 12.6))
