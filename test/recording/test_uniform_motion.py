"""Motion and torque at a uniform rate: cutoff frequencies, gaps, jitter, rests, and refusals."""

from dataclasses import replace

import numpy as np
import pytest
from link_problems import Fourier

from dynid_ros.errors import DynidError, IdentificationError, RecordingError
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals, joint_motions, motion_rows, require_torque
from dynid_ros.signals import LowPass, Motion, filtered_motion

SAMPLE_RATE_HZ = 200.0


def relative_rms_error(values: np.ndarray, true: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean((values - true) ** 2, axis=0) / np.mean(true**2, axis=0))


def test_motion_is_accurate_up_to_the_ends():
    low_pass = LowPass(17.5, SAMPLE_RATE_HZ)
    truth = Fourier(3)(np.arange(0, 10, 1 / SAMPLE_RATE_HZ))
    position = truth[0] + 1e-5 * np.random.default_rng(0).normal(size=truth[0].shape)
    (motion,) = joint_motions([position], low_pass)
    plain = filtered_motion(position, low_pass)
    ends = np.r_[0 : low_pass.edge, len(position) - low_pass.edge : len(position)]
    for values, true, limit in zip(motion, truth, (1e-4, 1e-3, 0.02), strict=True):
        assert np.all(
            relative_rms_error(values[low_pass.edge : -low_pass.edge], true[low_pass.edge : -low_pass.edge]) < limit
        )
    assert np.all(relative_rms_error(motion.velocity[ends], truth[1][ends]) < 0.005)
    assert np.all(relative_rms_error(motion.acceleration[ends], truth[2][ends]) < 0.1)
    assert np.all(relative_rms_error(plain.acceleration[ends], truth[2][ends]) > 0.15)  # without extrapolation


@pytest.mark.parametrize("size", [7, 8, 20, 100])
def test_short_segments_keep_their_length(size):
    q, qd, _ = Fourier(2, base=0.5)(np.arange(size) / SAMPLE_RATE_HZ)
    (motion,) = joint_motions([q], LowPass(10, SAMPLE_RATE_HZ))
    assert [values.shape for values in motion] == [(size, 2)] * 3
    assert np.all(relative_rms_error(motion.velocity, qd) < 0.1)


def test_joint_at_rest_has_zero_velocity():
    rng = np.random.default_rng(1)
    q, _, _ = Fourier(3, still=(1,))(np.arange(0, 6, 1 / SAMPLE_RATE_HZ))
    noisy = q + 1e-4 * rng.normal(size=q.shape)
    motions = joint_motions([noisy[:500], noisy[600:]], LowPass(15, SAMPLE_RATE_HZ))
    for motion in motions:
        assert not motion.velocity[:, 1].any()
        assert not motion.acceleration[:, 1].any()
        np.testing.assert_allclose(motion.position[:, 1], q[0, 1], atol=1e-4)
        assert np.ptp(motion.position[:, 1]) == 0
        assert np.all(motion.velocity[:, [0, 2]].std(axis=0) > 0.1)


def test_joint_that_moves_in_another_segment_is_not_at_rest():
    q, _, _ = Fourier(2)(np.arange(0, 6, 1 / SAMPLE_RATE_HZ))
    held = q.copy()
    held[:600, 1] = held[600, 1]
    first, second = joint_motions([held[:600], held[600:]], LowPass(15, SAMPLE_RATE_HZ))
    assert second.velocity[:, 1].std() > 0.1
    np.testing.assert_allclose(first.velocity[:, 1], 0, atol=1e-9)


def test_motion_lasts_from_first_start_to_last_stop():
    time = np.arange(0, 20, 1 / SAMPLE_RATE_HZ)
    ramp = np.clip(time - 4.0, 0.0, 5.0)
    returning = 0.3 * np.clip(time - 12.0, 0.0, 3.0) * (time < 15.0)
    still = 1e-3 * np.sin(50 * time)  # noise of a joint at rest
    position = np.stack([ramp, returning, still], axis=1)
    rows = motion_rows(Motion(position, 0 * position, 0 * position))
    assert time[rows][0] == pytest.approx(4.0 + 0.01 * 5.0, abs=2 / SAMPLE_RATE_HZ)
    assert time[rows][-1] == pytest.approx(15.0, abs=2 / SAMPLE_RATE_HZ)
    assert motion_rows(Motion(still[:, None], still[:, None], still[:, None])) == slice(0, 0)


NAMES = ("a", "b", "c")
MOTION = Fourier(3)


def make_recording(time: np.ndarray, motion: Fourier = MOTION, noise: float = 0.0, torque=None) -> Recording:
    """Return positions of a motion; the torque is linear in time, so that each sample identifies its time."""
    q, _, _ = motion(time)
    q = q + noise * np.random.default_rng(0).normal(size=q.shape)
    torque = np.outer(time, [1.0, 2.0, 3.0]) if torque is None else torque
    return Recording(NAMES, time, q, np.full_like(q, np.nan), torque, source="run")


def sample_times(rate: float, duration: float = 10.0) -> np.ndarray:
    return np.arange(0, duration, 1 / rate)


class TestChoice:
    def test_slow_motion_has_the_minimum_cutoff(self):
        signals = LinkSignals.choose([make_recording(sample_times(100), noise=1e-5)])
        assert (signals.cutoff, signals.motion_cutoff) == (7.0, 17.5)
        assert "noise prevails" in signals.reason
        assert "Torque reaches beyond the motion" in signals.reason

    def test_cutoff_follows_fast_motion(self):
        fast = Fourier(3, base=2.0, harmonics=4, size=0.05)
        signals = LinkSignals.choose([make_recording(sample_times(500), fast, noise=1e-6)])
        assert 8 < signals.cutoff <= 20
        assert signals.motion_cutoff == pytest.approx(2.5 * signals.cutoff)

    def test_cutoff_excludes_vibration(self):
        shaking = Fourier(3, base=15.0, harmonics=3, size=0.01)
        signals = LinkSignals.choose([make_recording(sample_times(1000), shaking, noise=1e-7)])
        assert signals.cutoff == 20
        assert "Links bend" in signals.reason

    def test_low_sample_rate_limits_both_cutoffs(self):
        signals = LinkSignals.choose([make_recording(sample_times(20, 30), noise=1e-5)])
        assert (signals.cutoff, signals.motion_cutoff) == pytest.approx((4, 8))
        assert "20 samples per second" in signals.reason

    def test_cutoffs_of_several_recordings(self):
        slow = make_recording(sample_times(100), noise=1e-5)
        fast = make_recording(sample_times(500), Fourier(3, base=2.0, harmonics=4, size=0.05), noise=1e-6)
        together = LinkSignals.choose([slow, fast])
        assert together.cutoff == LinkSignals.choose([fast]).cutoff
        assert together.motion_cutoff <= 0.8 * 50

    def test_uses_configured_cutoffs(self):
        signals = LinkSignals.choose([make_recording(sample_times(100))], cutoff=3.0, motion_cutoff=11.0)
        assert signals == LinkSignals(3.0, 11.0, "given")

    @pytest.mark.parametrize(
        ("cutoffs", "words"),
        [
            ((0.0, None), r"cutoff is 0 Hz; expected one above 0 and up to 40 Hz.*100 Hz"),
            ((41.0, None), r"cutoff is 41 Hz"),
            ((5.0, 41.0), r"motion_cutoff is 41 Hz"),
            ((5.0, 0.0), r"motion_cutoff is 0 Hz"),
            ((np.nan, None), r"cutoff is nan"),
            ((10.0, 5.0), r"motion_cutoff is 5 Hz, below the cutoff of 10 Hz"),
            ((None, 3.0), r"motion_cutoff is 3 Hz, below the cutoff of 7 Hz"),
        ],
    )
    def test_refuses_impossible_cutoffs(self, cutoffs, words):
        with pytest.raises(IdentificationError, match=words):
            LinkSignals.choose([make_recording(sample_times(100), noise=1e-5)], *cutoffs)

    @pytest.mark.parametrize("noise", [0.0, 1e-5])
    def test_refuses_recordings_without_motion(self, noise):
        rest = make_recording(sample_times(100), Fourier(3, still=(0, 1, 2)), noise)
        with pytest.raises(IdentificationError, match="run: no joint moves"):
            LinkSignals.choose([rest])
        with pytest.raises(IdentificationError, match="run: all joints are at rest"):
            LinkSignals(5.0, 12.0).segments(rest)


class TestMotionAtSamples:
    @pytest.mark.parametrize(("rate", "acceleration"), [(50.0, 0.04), (100.0, 0.01), (1000.0, 0.02), (5000.0, 0.02)])
    def test_motion_at_samples_equals_the_truth(self, rate, acceleration):
        time = sample_times(rate, 4)
        motion = LinkSignals(7.0, 17.5).motion_at_samples(make_recording(time, noise=1e-6))
        for values, true, limit in zip(motion, MOTION(time), (1e-4, 1e-3, acceleration), strict=True):
            error = np.sqrt(np.mean((values - true) ** 2, axis=0) / np.mean(true**2, axis=0))
            assert np.all(error < limit)

    def test_tolerates_uneven_exact_stamps(self):
        rng = np.random.default_rng(0)
        time = sample_times(200, 10) + rng.uniform(-1e-3, 1e-3, 2000)
        motion = LinkSignals(7.0, 17.5).motion_at_samples(make_recording(time))
        _, qd, qdd = MOTION(time)
        assert np.max(np.abs(motion.velocity - qd)) < 0.005
        assert np.max(np.abs(motion.acceleration - qdd)[40:-40]) < 0.03

    def test_tolerates_stamps_of_a_late_logger(self):
        rng = np.random.default_rng(1)
        true = sample_times(200, 10)
        late = np.maximum.accumulate(true + rng.uniform(0, 1.5e-3, 2000))
        motion = LinkSignals(7.0, 17.5).motion_at_samples(replace(make_recording(true), time=late))
        _, qd, qdd = MOTION(true)
        assert np.max(np.abs(motion.velocity - qd)) < 0.01
        assert np.max(np.abs(motion.acceleration - qdd)[40:-40]) < 0.1

    def test_tolerates_repeated_samples(self):
        time = sample_times(400, 10)
        _, qd, _ = MOTION(time)
        whole = make_recording(time)
        held = replace(
            whole, position=whole.position[::4].repeat(4, axis=0), torque=whole.torque[::4].repeat(4, axis=0)
        )
        motion = LinkSignals(7.0, 17.5).motion_at_samples(held)
        assert np.max(np.abs(motion.velocity - qd)[20:-20]) < 0.01

    def test_tolerates_missing_samples_and_gaps(self):
        rng = np.random.default_rng(2)
        time = sample_times(200, 12)
        kept = rng.random(len(time)) > 0.1
        kept[800:1200] = False
        kept[1000] = True  # a single sample in the gap
        time = time[kept]
        motion = LinkSignals(7.0, 17.5).motion_at_samples(make_recording(time))
        q, qd, qdd = MOTION(time)
        alone = time == 5.0
        assert np.max(np.abs(motion.velocity - qd)[~alone]) < 0.02
        inside = (np.abs(time - 4.0) > 0.15) & (np.abs(time - 6.0) > 0.15) & ~alone
        assert np.max(np.abs(motion.acceleration - qdd)[inside][40:-40]) < 0.1
        assert all(np.isfinite(values).all() for values in motion)
        np.testing.assert_array_equal(motion.position[alone], q[alone])

    def test_refuses_few_samples_and_low_rates(self):
        signals = LinkSignals(7.0, 17.5)
        with pytest.raises(IdentificationError, match="run: only 5 samples"):
            signals.motion_at_samples(make_recording(sample_times(100, 0.05)))
        with pytest.raises(IdentificationError, match="run: 30 samples per second are too few"):
            signals.motion_at_samples(make_recording(sample_times(30)))
        apart = np.concatenate([start + np.arange(4) / 100 for start in range(9)])
        with pytest.raises(DynidError, match="run: no 7 samples follow each other"):
            signals.motion_at_samples(make_recording(apart))


class TestSegments:
    def test_segments_align_torque_and_motion(self):
        time = 100.0 + sample_times(100)
        (segment,) = LinkSignals(7.0, 17.5).segments(make_recording(time))
        np.testing.assert_allclose(segment.torque[:, 1], 2 * segment.time, atol=1e-9)
        np.testing.assert_allclose(segment.motion.position, MOTION(segment.time)[0], atol=1e-4)
        np.testing.assert_allclose(np.diff(segment.time), 1 / segment.rate)
        assert segment.time[0] > 100.05  # the ends are affected by the filter

    def test_omits_rest_at_the_ends_only(self):
        time = sample_times(100, 20)
        q = MOTION(time)[0]
        for part in (slice(0, 400), slice(900, 1100), slice(1700, 2000)):
            q[part] = q[part.start if part.start else part.stop]
        q += 1e-6 * np.random.default_rng(3).normal(size=q.shape)
        (segment,) = LinkSignals(7.0, 17.5).segments(replace(make_recording(time), position=q))
        assert segment.time[0] == pytest.approx(4.0, abs=0.5)
        assert segment.time[-1] == pytest.approx(17.0, abs=0.5)

    def test_omits_rest_at_the_ends_with_a_locked_joint(self):
        time = sample_times(100, 20)
        q = Fourier(3, still=(1,))(time)[0]
        q[:500] = q[500]
        q[1500:] = q[1500]
        q += 1e-5 * np.random.default_rng(4).normal(size=q.shape)
        (segment,) = LinkSignals(7.0, 17.5).segments(replace(make_recording(time), position=q))
        assert segment.time[0] > 4.4
        assert segment.time[-1] < 15.6
        assert not segment.motion.velocity[:, 1].any()

    def test_bridges_or_splits_at_lost_torques(self):
        time = sample_times(100)
        torque = np.outer(time, [1.0, 2.0, 3.0])
        torque[300, 0] = np.nan
        torque[600:640, 2] = np.nan
        first, second = LinkSignals(7.0, 17.5).segments(make_recording(time, torque=torque))
        assert first.time[0] < 3.0 < first.time[-1] <= 5.99 - 0.05
        assert second.time[0] >= 6.4 + 0.05
        for part in (first, second):
            np.testing.assert_allclose(part.torque[:, 2], 3 * part.time, atol=1e-6)

    def test_omits_segments_shorter_than_the_filter(self):
        time = np.concatenate([sample_times(100, 5), 6 + sample_times(100, 0.2), 7 + sample_times(100, 5)])
        segments = LinkSignals(7.0, 17.5).segments(make_recording(time))
        assert [round(segment.time[0]) for segment in segments] == [0, 7]
        with pytest.raises(IdentificationError, match=r"run: no stretch of motion is longer than the 0\.2"):
            LinkSignals(7.0, 17.5).segments(make_recording(sample_times(100, 0.2)))


class TestRefusals:
    def test_refuses_a_moving_joint_without_torque(self):
        time = sample_times(100)
        torque = np.outer(time, [1.0, 2.0, 3.0])
        torque[:, 1] = np.nan
        for call in (require_torque, LinkSignals(7.0, 17.5).segments):
            with pytest.raises(IdentificationError, match=r"run: no torque of joint\(s\) b;"):
                call(make_recording(time, torque=torque))

    def test_refuses_a_zero_torque_of_a_moving_joint(self):
        time = sample_times(100)
        torque = np.outer(time, [0.0, 2.0, 0.0])
        with pytest.raises(IdentificationError, match=r"torque of joint\(s\) a, c is practically zero in all samples"):
            require_torque(make_recording(time, torque=torque))
        require_torque(make_recording(time, Fourier(3, still=(0, 2)), torque=torque))

    @pytest.mark.parametrize("size", [1e8, 1e10])
    def test_refuses_absurd_values(self, size):
        time = sample_times(100)
        whole = make_recording(time)
        for name, words in (("position", "rad or m"), ("torque", "N m or N")):
            values = getattr(whole, name).copy()
            values[700, 1] = size
            broken = replace(whole, **{name: values})
            with pytest.raises(IdentificationError, match=rf"run: {name} of b is .* at t = 7 s; expected {words}"):
                LinkSignals(7.0, 17.5).segments(broken)
        broken = replace(whole, position=whole.position * size)
        for call in (lambda run: LinkSignals.choose([run]), LinkSignals(7.0, 17.5).motion_at_samples):
            with pytest.raises(IdentificationError, match="run: position of a"):
                call(broken)

    def test_refuses_short_recordings(self):
        for count in (1, 4, 9, 12, 63):
            short = make_recording(sample_times(100)[:count])
            with pytest.raises((IdentificationError, RecordingError), match=r"run: .*record longer"):
                LinkSignals.choose([short])


def test_tolerates_a_logger_faster_than_the_robot():
    """The logger repeats one row in fifty, and the robot's clock lags behind the stamps by then."""
    held = np.floor(np.arange(600) * 0.98 + 0.3).astype(int)
    position, velocity, _ = Fourier(3)(held * 0.034)
    recording = Recording(("a", "b", "c"), np.arange(600) / 30, position, np.full_like(position, np.nan), position + 1)
    motion = LinkSignals(6.0, 12.0).motion_at_samples(recording)
    np.testing.assert_array_less(relative_rms_error(motion.velocity[5:-5], velocity[5:-5]), 0.01)
