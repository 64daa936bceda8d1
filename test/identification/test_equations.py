"""Filtered equations in blocks, against the same filter on the whole recording and against torques from Pinocchio."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record, rigid_torque

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.identification.equations import LinkEquations, MotionKinds, SampleEquations, TorqueColumns
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals import LowPass
from dynid_ros.signals.driver_filter import DriverFilter, Passage

SAMPLE_EQUATIONS_FRICTION = JointFriction(offset=True, smoothing=0.02)


def samples(size: int) -> list[np.ndarray]:
    """Return q, qd, qdd and torque (N, n) of the chain, with friction."""
    motion = Fourier(3, size=0.5)(np.arange(size) / 50)
    return [*motion, rigid_torque(chain(), *motion) + Drive().torque(*motion[1:])]


def test_sample_equations_keep_the_order_of_the_samples():
    arrays = samples(2000)
    columns = LinkColumns(chain(), [(SAMPLE_EQUATIONS_FRICTION,)] * 3)
    equations = SampleEquations(chain(), *arrays)
    blocks = list(equations.blocks(columns))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate([block.torque for block in blocks]), arrays[3])
    np.testing.assert_array_equal(np.concatenate([block.time for block in blocks]), np.arange(2000))
    np.testing.assert_allclose(equations.speed_rms, np.sqrt(np.mean(arrays[1] ** 2, axis=0)))
    truth = np.zeros(columns.size)
    truth[columns.chosen(columns.first)] = [*columns.base.project(chain().parameters), *np.tile([1.0, 0.5, 0.2], 3)]
    for block in blocks:
        for j, (rows, column_indices) in enumerate(zip(block.rows, columns.of_joint, strict=True)):
            np.testing.assert_allclose(rows @ truth[column_indices], block.torque[:, j], atol=1e-8)


@pytest.mark.parametrize("name", ["q", "qd", "qdd", "torque"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_refuses_non_finite_samples(name, value):
    arrays = dict(zip(("q", "qd", "qdd", "torque"), samples(2000), strict=True))
    arrays[name] = arrays[name].copy()
    arrays[name][1503, 1] = value
    with pytest.raises(IdentificationError, match=f"{name} of joint_2 is {value} in sample 1503"):
        SampleEquations(chain(), **arrays)


def test_refuses_arrays_of_wrong_shape():
    q, qd, qdd, torque = samples(50)
    with pytest.raises(IdentificationError, match="q has no samples"):
        SampleEquations(chain(), q[:0], qd[:0], qdd[:0], torque[:0])
    with pytest.raises(ModelError, match=r"qd has shape \(50, 2\)"):
        SampleEquations(chain(), q, qd[:, :2], qdd, torque)
    with pytest.raises(ModelError, match=r"torque has shape \(49, 3\)"):
        SampleEquations(chain(), q, qd, qdd, torque[:-1])


def test_memory_of_factors_is_independent_of_the_number_of_samples():
    columns = LinkColumns(chain(), [(SAMPLE_EQUATIONS_FRICTION,)] * 3)
    peaks = []
    for size in (10_000, 50_000):
        q, qd, qdd = Fourier(3, size=0.5)(np.arange(size) / 1000)
        torque = np.cos(q)
        tracemalloc.start()
        factors = SampleEquations(chain(), q, qd, qdd, torque).factors(columns)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert factors.counts.sum() == size
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 20e6


def motion(time: np.ndarray, n: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity (N, n) of random harmonics with a period of 10 s."""
    rng = np.random.default_rng(seed)
    rate = 0.2 * np.pi * np.arange(1, 6)
    size = rng.normal(size=(5, n))
    phase = rng.normal(size=(5, n))
    angle = rate[:, None] * time[:, None, None] + phase
    return np.sum(size * np.sin(angle), axis=1), np.sum(size * rate[:, None] * np.cos(angle), axis=1)


def test_repeated_motion_is_of_the_same_kind():
    time = np.arange(0, 10, 0.03)
    one = MotionKinds([motion(np.arange(0, 25, 0.03))])
    np.testing.assert_array_equal(one.of(*motion(time)), one.of(*motion(time + 20)))
    kinds = MotionKinds([motion(time), motion(time[100:250]), motion(time, seed=1)])
    np.testing.assert_array_equal(kinds.of(*motion(time))[100:250], kinds.of(*motion(time[100:250])))
    assert len(np.intersect1d(kinds.of(*motion(time)), kinds.of(*motion(time, seed=1)))) < 10


def test_kinds_are_contiguous_in_time():
    kind = MotionKinds([motion(np.arange(0, 10, 0.03))]).of(*motion(np.arange(0, 10, 0.03)))
    assert len(np.unique(kind)) == 10
    assert np.count_nonzero(np.diff(kind)) < 30, "motion rarely returns to a kind within a period"


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_kinds_are_independent_of_units(unit):
    time = np.arange(0, 10, 0.03)
    position, velocity = motion(time)
    scale = np.array([1.0, unit, 1.0])
    one = MotionKinds([(position, velocity)]).of(position, velocity)
    other = MotionKinds([(position * scale, velocity * scale)]).of(position * scale, velocity * scale)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 5, 10, 25, 99])
def test_number_of_kinds_is_limited_by_the_samples(size):
    one = motion(np.arange(size) * 0.1)
    kind = MotionKinds([one]).of(*one)
    assert len(kind) == size
    assert 1 <= len(np.unique(kind)) <= max(1, size // 10)


def test_joint_at_rest_does_not_change_the_kinds():
    time = np.arange(0, 10, 0.03)
    position, velocity = motion(time)
    position[:, 1] = 0.7
    velocity[:, 1] = 0.0
    assert len(np.unique(MotionKinds([(position, velocity)]).of(position, velocity))) == 10
    assert np.all(MotionKinds([(0 * position, 0 * velocity)]).of(0 * position, 0 * velocity) == 0)


def test_long_recordings_have_as_many_kinds():
    time = np.arange(0, 2000, 0.01)
    position, velocity = motion(time)
    kind = MotionKinds([(position, velocity)]).of(position, velocity)
    assert len(np.unique(kind)) == 10
    assert np.mean(kind[:1000] == kind[-1000:]) > 0.99


SIGNALS = LinkSignals(7.0, 17.5)
DRIVE = Drive(rotor=0.3, smoothing=0.1)
FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.1)
SIZE = 0.5


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(FRICTION,)] * 3)


def run(rate=200.0, duration=12.0, seed=0, noise=0.0):
    return record(chain(), Fourier(3, seed, size=SIZE), DRIVE, rate=rate, duration=duration, noise=noise, seed=seed)


def concatenate_blocks(equations: LinkEquations, columns: LinkColumns):
    """Return time, speed, rows by joint and torque of all blocks, and the number of blocks."""
    blocks = list(equations.blocks(columns))
    rows = [np.concatenate(parts) for parts in zip(*(block.rows for block in blocks), strict=True)]
    time, speed, torque = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("time", "speed", "torque")
    )
    return time, speed, rows, torque, len(blocks)


@pytest.mark.parametrize(("rate", "duration"), [(50.0, 60.0), (200.0, 30.0), (1000.0, 8.0), (5000.0, 4.0)])
def test_blocks_equal_the_recording_filtered_as_a_whole(columns, rate, duration):
    recording = run(rate, duration)
    equations = LinkEquations(SIGNALS, [recording])
    time, _, rows, torque, count = concatenate_blocks(equations, columns)
    assert count > 1
    (part,) = SIGNALS.segments(recording)
    low_pass = LowPass(SIGNALS.cutoff, part.rate)
    np.testing.assert_array_equal(time, part.time[low_pass.kept(len(part.time))])
    np.testing.assert_allclose(
        np.diff(time), low_pass.decimation / part.rate
    )  # the phase continues from block to block
    assert len(time) == equations.n_samples == equations.sizes[0]
    whole = [low_pass.reduce(matrix) for matrix in columns.rows(*part.motion)]
    for filtered, expected in zip([*rows, torque], [*whole, low_pass.reduce(part.torque)], strict=True):
        scale = np.sqrt(np.mean(expected**2, axis=0))
        assert np.max(np.abs(filtered - expected) / np.where(scale > 0, scale, 1.0)) < 1e-4


def test_true_parameters_solve_the_equations(columns):
    time, _, rows, torque, _ = concatenate_blocks(LinkEquations(SIGNALS, [run(500.0)]), columns)
    truth = np.concatenate([columns.base.project(chain().parameters), np.tile([1.0, 0.5, 0.2, 0.3], 3)])
    value = np.zeros(columns.size)
    value[columns.chosen(columns.first)] = truth
    for j, (matrix, column_indices) in enumerate(zip(rows, columns.of_joint, strict=True)):
        error = np.sqrt(np.mean((matrix @ value[column_indices] - torque[:, j]) ** 2))
        assert error < 2e-3 * np.sqrt(np.mean(torque[:, j] ** 2))
    assert len(time) > 300


def test_recordings_and_gaps_are_separate(columns):
    first = run(200.0, 10.0)
    second = run(100.0, 15.0, seed=1)
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
        block_torque = np.concatenate([block.torque for block in blocks if block.recording == number])
        np.testing.assert_allclose(block_torque, concatenate_blocks(equations, columns)[3], atol=1e-9)
    time = np.concatenate([block.time for block in blocks if block.recording == 1])
    assert not np.any((time > 6.9) & (time < 7.7))
    squares = sum(np.sum(part.motion.velocity**2, axis=0) for part in together.segments)
    np.testing.assert_allclose(together.speed_rms**2, squares / sum(len(part.time) for part in together.segments))


DRIVER_FILTERS = (
    DriverFilter(1.5, 2),
    DriverFilter(1.5, 3, delay=0.02),
    DriverFilter(1.5, 4, zero_phase=True),
    DriverFilter(delay=0.01),
)


@pytest.mark.parametrize("rate", [200.0, 1000.0])
def test_factors_through_filters_equal_those_of_each_filter(columns, rate):
    recording = run(rate, 16.0)
    equations = LinkEquations(SIGNALS, [recording])
    passages = [Passage(driver) for driver in DRIVER_FILTERS]
    no_friction = [np.zeros(len(of_joint), dtype=bool) for of_joint in columns.of_joint]
    together = equations.factors_through(columns, passages, no_friction, max_samples=10_000)
    for driver, factors in zip(DRIVER_FILTERS, together, strict=True):
        expected = LinkEquations(replace(SIGNALS, driver=driver), [recording]).factors(columns)
        assert factors.counts.sum() == expected.counts.sum()
        for joint in range(3):
            gram = expected.sums[joint].sum(axis=0)
            size = np.sqrt(np.diag(gram))
            size[size == 0.0] = 1.0
            assert np.abs((factors.sums[joint].sum(axis=0) - gram) / np.outer(size, size)).max() < 0.02


def test_filters_friction_only_and_thins_long_recordings(columns):
    equations = LinkEquations(SIGNALS, [run(200.0, 60.0)])
    friction = [of_joint >= columns.n_inertial for of_joint in columns.of_joint]
    passages = [Passage(), Passage(DRIVER_FILTERS[0]), Passage(DRIVER_FILTERS[0], of_friction_alone=True)]
    plain, filtered, alone = equations.factors_through(
        columns, passages, friction, max_samples=equations.n_samples // 3
    )
    assert 0.2 < plain.counts.sum() / equations.n_samples < 0.5
    for joint, mask in enumerate(friction):
        columns_of_links = np.flatnonzero(~mask)
        columns_of_friction = np.flatnonzero(mask)
        for columns_of, expected in ((columns_of_links, plain), (columns_of_friction, filtered)):
            block = np.ix_(columns_of, columns_of)
            np.testing.assert_allclose(alone.sums[joint].sum(axis=0)[block], expected.sums[joint].sum(axis=0)[block])


def test_thinned_equations_span_the_recording(columns):
    equations = LinkEquations(SIGNALS, [run(200.0, 120.0)])
    thinned = equations.thinned(equations.n_samples // 4)
    time = concatenate_blocks(equations, columns)[0]
    few, _, rows, torque, _ = concatenate_blocks(thinned, columns)
    assert len(few) == pytest.approx(len(time) / 4, rel=0.2)
    assert np.isin(few, time).all()
    assert few[-1] - few[0] > 0.7 * (time[-1] - time[0])
    assert all(len(joint) == len(torque) for joint in rows)


def test_torque_columns_predict_with_all_columns(columns):
    values = np.random.default_rng(0).normal(size=(columns.size, 2))
    equations = LinkEquations(SIGNALS, [run(1000.0, 8.0)])
    _, _, rows, _, _ = concatenate_blocks(equations, columns)
    _, _, predicted, _, _ = concatenate_blocks(equations, TorqueColumns(columns, values))
    for joint, torques, column_indices in zip(rows, predicted, columns.of_joint, strict=True):
        np.testing.assert_allclose(torques, joint @ values[column_indices], atol=1e-9)


def test_fast_samples_are_two_fifths(columns):
    equations = LinkEquations(SIGNALS, [run(200.0, 20.0)])
    _, speed, _, _, _ = concatenate_blocks(equations, columns)
    assert np.mean(speed >= equations.fast) == pytest.approx(0.4, abs=0.02)
    assert speed.min() >= 0
    locked = record(chain(), Fourier(3, size=SIZE, still=(0,)), DRIVE, position_noise=1e-5)
    assert np.isfinite(concatenate_blocks(LinkEquations(SIGNALS, [locked]), columns)[1]).all()


def test_refuses_recordings_too_short_for_the_low_pass():
    short = run(200.0, 0.9)
    slow = LinkSignals(1.0, 17.5)
    with pytest.raises(IdentificationError, match=r"run_0: the longest stretch of motion is 0\.\d+ s, all of which"):
        LinkEquations(slow, [short])
    equations = LinkEquations(slow, [short, run(200.0, 20.0, seed=1)])
    assert equations.sizes[0] == 0 < equations.sizes[1]


def test_memory_of_blocks_is_independent_of_the_duration(columns):
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
