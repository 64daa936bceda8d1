"""Filtered equations in blocks: against the same filter on the whole recording, and against torques from Pinocchio."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals import LowPass

SIGNALS = LinkSignals(7.0, 17.5)
DRIVE = Drive(rotor=0.3, smoothing=0.1)
FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.1)
SIZE = 0.5


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(FRICTION,)] * 3)


def run(rate=200.0, duration=12.0, seed=0, noise=0.0):
    return record(chain(), Fourier(3, seed, size=SIZE), DRIVE, rate=rate, duration=duration, noise=noise, seed=seed)


def gathered(equations: LinkEquations, columns: LinkColumns):
    """Time, speed, rows per joint and torque of all blocks, and how many blocks."""
    blocks = list(equations.blocks(columns))
    rows = [np.concatenate(parts) for parts in zip(*(block.rows for block in blocks), strict=True)]
    time, speed, torque = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("time", "speed", "torque")
    )
    return time, speed, rows, torque, len(blocks)


@pytest.mark.parametrize(("rate", "duration"), [(50.0, 60.0), (200.0, 30.0), (1000.0, 8.0), (5000.0, 4.0)])
def test_blocks_are_the_whole_recording_filtered_at_once(columns, rate, duration):
    recording = run(rate, duration)
    equations = LinkEquations(SIGNALS, [recording])
    time, _, rows, torque, count = gathered(equations, columns)
    assert count > 1
    (part,) = SIGNALS.segments(recording)
    low_pass = LowPass(SIGNALS.cutoff, part.rate)
    np.testing.assert_array_equal(time, part.time[low_pass.kept(len(part.time))])
    np.testing.assert_allclose(np.diff(time), low_pass.decimation / part.rate)  # phase is kept from block to block
    assert len(time) == equations.n_samples == equations.sizes[0]
    whole = [low_pass.reduce(matrix) for matrix in columns.rows(*part.motion)]
    for found, expected in zip([*rows, torque], [*whole, low_pass.reduce(part.torque)], strict=True):
        scale = np.sqrt(np.mean(expected**2, axis=0))
        assert np.max(np.abs(found - expected) / np.where(scale > 0, scale, 1.0)) < 1e-4


def test_truth_solves_the_equations(columns):
    time, _, rows, torque, _ = gathered(LinkEquations(SIGNALS, [run(500.0)]), columns)
    truth = np.concatenate([columns.base.project(chain().parameters), np.tile([1.0, 0.5, 0.2, 0.3], 3)])
    value = np.zeros(columns.size)
    value[columns.chosen([0, 0, 0])] = truth
    for j, (matrix, own) in enumerate(zip(rows, columns.of_joint, strict=True)):
        error = np.sqrt(np.mean((matrix @ value[own] - torque[:, j]) ** 2))
        assert error < 2e-3 * np.sqrt(np.mean(torque[:, j] ** 2))
    assert len(time) > 300


def test_several_recordings_and_gaps(columns):
    first, second = run(200.0, 10.0), run(100.0, 15.0, seed=1)
    torque = second.torque.copy()
    torque[700:760] = np.nan
    second = replace(second, torque=torque)
    together = LinkEquations(SIGNALS, [first, second])
    alone = [LinkEquations(SIGNALS, [recording]) for recording in (first, second)]
    assert list(together.sizes) == [equations.n_samples for equations in alone]
    assert together.spans == [equations.spans[0] for equations in alone]
    blocks = list(together.blocks(columns))
    assert sorted({block.recording for block in blocks}) == [0, 1]
    for number, equations in enumerate(alone):
        own = np.concatenate([block.torque for block in blocks if block.recording == number])
        np.testing.assert_allclose(own, gathered(equations, columns)[3], atol=1e-9)
    time = np.concatenate([block.time for block in blocks if block.recording == 1])
    assert not np.any((time > 6.9) & (time < 7.7))
    squares = sum(np.sum(part.motion.velocity**2, axis=0) for part in together.segments)
    np.testing.assert_allclose(together.speed_rms**2, squares / sum(len(part.time) for part in together.segments))


def test_two_fifths_of_the_samples_are_fast(columns):
    equations = LinkEquations(SIGNALS, [run(200.0, 20.0)])
    _, speed, _, _, _ = gathered(equations, columns)
    assert np.mean(speed >= equations.fast) == pytest.approx(0.4, abs=0.02)
    assert speed.min() >= 0
    locked = record(chain(), Fourier(3, size=SIZE, still=(0,)), DRIVE, position_noise=1e-5)
    assert np.isfinite(gathered(LinkEquations(SIGNALS, [locked]), columns)[1]).all()


def test_recordings_too_short_for_the_low_pass():
    short = run(200.0, 0.9)
    slow = LinkSignals(1.0, 17.5)
    with pytest.raises(IdentificationError, match=r"run_0: the longest stretch of motion is 0\.\d+ s, all of which"):
        LinkEquations(slow, [short])
    equations = LinkEquations(slow, [short, run(200.0, 20.0, seed=1)])
    assert equations.sizes[0] == 0 < equations.sizes[1]


def test_memory_of_the_blocks_does_not_grow(columns):
    peaks = []
    for duration in (15.0, 45.0):
        time = np.arange(0, duration, 1e-3)
        q, _, _ = Fourier(3, size=SIZE)(time)
        recording = replace(run(1000.0, 1.0), time=time, position=q, velocity=q, torque=np.cos(q))
        equations = LinkEquations(SIGNALS, [recording])
        tracemalloc.start()
        for _ in equations.blocks(columns):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
