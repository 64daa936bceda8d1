"""Recordings as uniformly sampled motion and torque, ready for a regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyfit, polyval
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import MOVED, practically_zero
from dynid_ros.signals import (
    LowPass,
    Motion,
    Resampled,
    choose_cutoff,
    filtered_motion,
    fresh_times,
    resample,
)
from dynid_ros.signals.derivatives import STENCIL
from dynid_ros.signals.driver_filter import DriverFilter

SET_OFF = 0.01
"""Part of its travel by which a joint has set off: noise is less."""


def joint_motions(positions: Sequence[NDArray], low_pass: LowPass) -> list[Motion]:
    """Motion of each of several stretches (M, n) of a recording, M >= 7.

    A joint at standstill throughout does not move at all: its sensor's noise has a direction, and would pass for
        friction
    that is known to be zero, and for poses that distinguish gravity from offset.
    """
    motions = [_continued_motion(stretch, low_pass) for stretch in positions]
    if motions:
        high = np.max([motion.position.max(axis=0) for motion in motions], axis=0)
        low = np.min([motion.position.min(axis=0) for motion in motions], axis=0)
        still = high - low < MOVED
        for motion in motions:
            motion.position[:, still] = (low + high)[still] / 2
            motion.velocity[:, still] = motion.acceleration[:, still] = 0.0
    return motions


def motion_rows(motion: Motion) -> slice:
    """Rows from the first to the last at which a joint is on its way, starts and stops included.

    On its way is a joint that has left where it was at that end of the recording by a part of its travel.
    """
    position = motion.position
    travel = np.ptp(position, axis=0)
    far = np.where(travel > MOVED, SET_OFF * travel, np.inf)
    gone, to_come = (np.any(np.abs(position - end) > far, axis=1) for end in (position[0], position[-1]))
    if not gone.any():
        return slice(0, 0)
    return slice(int(np.argmax(gone)), len(position) - int(np.argmax(to_come[::-1])))


def _continued_motion(position: NDArray, low_pass: LowPass) -> Motion:
    """Motion of positions (M, n) that go on beyond both ends as the cubic that fits best there.

    Continued point-symmetrically, as filters do by themselves, a motion would lose its acceleration at the ends.
    """
    edge = low_pass.edge
    fitted = np.arange(min(len(position), max(edge, STENCIL))) / edge
    beyond = np.arange(-edge, 0) / edge
    before, after = (polyval(beyond, polyfit(fitted, end[: len(fitted)], 3)).T for end in (position, position[::-1]))
    motion = filtered_motion(np.concatenate([before, position, after[::-1]]), low_pass)
    return Motion(*(values[edge : edge + len(position)] for values in motion))


LEAST_CUTOFF = 7.0
"""Torques reach beyond the motion, where friction reverses: with a filter as narrow as slow motion, friction cannot
be distinguished from inertia. From 5 Hz on, a UR10e and a KUKA do not care; a Panda gains up to 10 Hz."""
LARGEST_CUTOFF = 20.0
"""Above, links and gears bend, and a servo that vibrates counts as motion: with a low-pass at the 58 to 78 Hz that its
spectrum asks for, unfiltered torque of a Stäubli TX40 is predicted a quarter to a half worse."""
MOTION_OVER_EQUATIONS = 2.5
"""The motion must come through undamped where the equations are compared."""
HIGHEST = 0.8
"""Highest cut-off, in parts of half the rate."""
FARTHEST, STRONGEST = 1e5, 1e7
"""No joint goes so far, rad or m, or takes such a torque, N m or N."""


@dataclass(frozen=True, eq=False)
class LinkSegment:
    """Motion and torque without a gap.

    Attributes:
        time: (M,) s, uniform.
        motion: position, velocity, acceleration, (M, n) each.
        torque: (M, n), as recorded.
        rate: Hz.
    """

    time: NDArray
    motion: Motion
    torque: NDArray
    rate: float


@dataclass(frozen=True)
class LinkSignals:
    """How recordings are filtered: once chosen, the same for fit, validation and prediction.

    Attributes:
        cutoff: of the low-pass that torque and every column of the regressor pass, Hz.
        motion_cutoff: of the low-pass that positions pass before they are differentiated, Hz.
        reason: why these.
        driver: what the driver had done to the torque; None: nothing.
    """

    cutoff: float
    motion_cutoff: float
    reason: str = "given"
    driver: DriverFilter | None = None

    @classmethod
    def choose(
        cls, recordings: Sequence[Recording], cutoff: float | None = None, motion_cutoff: float | None = None
    ) -> LinkSignals:
        """Cut-offs from the spectra of the motions, where they are not given.

        Raises:
            IdentificationError: no joint moves, or a cut-off is impossible at the rate of the recordings.
            RecordingError: too few samples.
        """
        reason = "given"
        rates, chosen = [], []
        for recording in recordings:
            series = uniform_positions(recording)
            rates.append(series.rate)
            if cutoff is None:
                longest = max((segment.values for segment in series.segments), key=len)
                try:
                    chosen.append(choose_cutoff(longest, series.rate))
                except RecordingError as error:
                    raise IdentificationError(f"{recording.source}: {error}") from error
        highest = HIGHEST * min(rates) / 2
        if cutoff is None:
            widest = max(chosen, key=lambda choice: choice.low_pass.cutoff)
            cutoff, reason = widest.low_pass.cutoff, widest.reason
            if cutoff < LEAST_CUTOFF:
                cutoff = LEAST_CUTOFF
                reason += f" Torque reaches beyond the motion: {cutoff:g} Hz."
            if cutoff > LARGEST_CUTOFF:
                cutoff = LARGEST_CUTOFF
                reason += f" Links bend at such frequencies: {cutoff:g} Hz."
            if cutoff > highest / 2:
                cutoff = highest / 2
                reason += f" {min(rates):.4g} samples per second allow {cutoff:.3g} Hz."
        motion_cutoff = min(MOTION_OVER_EQUATIONS * cutoff, highest) if motion_cutoff is None else motion_cutoff
        for name, value in (("cutoff", cutoff), ("motion_cutoff", motion_cutoff)):
            if not 0 < value <= highest:
                raise IdentificationError(
                    f"{name} is {value:g} Hz; expected one above 0 and up to {highest:.3g} Hz, "
                    f"{100 * HIGHEST:.0f} % of half the slowest recording's rate of {min(rates):.4g} Hz"
                )
        if motion_cutoff < cutoff:
            raise IdentificationError(
                f"motion_cutoff is {motion_cutoff:g} Hz, below the cutoff of {cutoff:g} Hz: torques would be compared "
                "where the motion is damped; raise it, or lower cutoff"
            )
        return cls(float(cutoff), float(motion_cutoff), reason)

    def segments(self, recording: Recording) -> list[LinkSegment]:
        """Uniform segments of a recording, without the standstill at its ends.

        Raises:
            IdentificationError: a joint without torque, no motion, or nothing is left.
        """
        require_torque(recording)
        return self.segments_with(recording, recording.torque)

    def segments_with(self, recording: Recording, channels: NDArray) -> list[LinkSegment]:
        """As `segments`, with other channels (N, c) in place of the torque; NaN where there are none.

        Raises:
            IdentificationError: no motion, or nothing is left.
        """
        n = recording.n_joints
        series = _uniform(recording, np.hstack([recording.position, channels]))
        low_pass = self._motion_filter(series, recording.source)
        edge = low_pass.edge
        parts = [part for part in series.segments if len(part.time) > 2 * edge + STENCIL]
        motions = joint_motions([part.values[:, :n] for part in parts], low_pass)
        if parts and not any(motion.velocity.any() for motion in motions):
            raise IdentificationError(
                f"{recording.source}: all joints are at rest, none covers {MOVED:g} rad or m; record motion"
            )
        found = []
        for part, motion in zip(parts, motions, strict=True):
            moving = motion_rows(motion)
            # The filter spoils its ends; at rest, outside of `moving`, it has nothing to spoil.
            rows = slice(max(moving.start, edge), min(moving.stop, len(part.time) - edge))
            if rows.stop > rows.start:
                chosen = Motion(*(x[rows] for x in motion))
                found.append(LinkSegment(part.time[rows], chosen, part.values[rows, n:], series.rate))
        if not found:
            raise IdentificationError(
                f"{recording.source}: no stretch of motion is longer than the {2 * edge / series.rate:.2g} s "
                f"that a low-pass at {self.motion_cutoff:.3g} Hz spoils; record longer, without gaps"
            )
        return found

    def motion_at_samples(self, recording: Recording) -> Motion:
        """Motion at every recorded sample, (N, n) each, for predictions to be compared.

        Samples alone between gaps have the velocity and acceleration of their neighbours.

        Raises:
            IdentificationError: too few samples, or too slow a recording for the motion cut-off.
        """
        series = uniform_positions(recording)
        low_pass = self._motion_filter(series, recording.source)
        time, _ = _sample_times(recording)
        found = Motion(np.array(recording.position), *(np.full(recording.position.shape, np.nan) for _ in range(2)))
        parts = [part for part in series.segments if len(part.time) >= STENCIL]
        for part, motion in zip(parts, joint_motions([part.values for part in parts], low_pass), strict=True):
            rows = (time >= part.time[0] - series.step / 2) & (time <= part.time[-1] + series.step)
            for target, values in zip(found, motion, strict=True):
                target[rows] = CubicSpline(part.time, values)(time[rows])
        known = np.isfinite(found.velocity).all(axis=1)
        if not known.any():
            raise IdentificationError(
                f"{recording.source}: no {STENCIL} samples follow each other without a gap; record again"
            )
        for values in found[1:]:
            for column in values.T:
                column[~known] = np.interp(time[~known], time[known], column[known])
        return found

    def reported(self, torque: NDArray, rate: float) -> NDArray:
        """(N, …) torque, or columns that make it up, of uniform samples at `rate` Hz, as the driver reports it."""
        return torque if self.driver is None else self.driver.filter(torque, rate)

    def reported_at_samples(self, recording: Recording, torque: NDArray) -> NDArray:
        """(N, n) torque at every recorded sample as the driver reports it."""
        if self.driver is None:
            return torque
        found, series = np.array(torque), _uniform(recording, torque)
        time, _ = _sample_times(recording)
        for part in series.segments:
            rows = (time >= part.time[0] - series.step / 2) & (time <= part.time[-1] + series.step)
            found[rows] = CubicSpline(part.time, self.driver.filter(part.values, series.rate))(time[rows])
        return found

    def settling(self, rate: float) -> int:
        """Samples for which the driver remembers what was before."""
        return 0 if self.driver is None else self.driver.settling(rate)

    def _motion_filter(self, series: Resampled, source: str) -> LowPass:
        if self.motion_cutoff >= series.rate / 2:
            raise IdentificationError(
                f"{source}: {series.rate:.4g} samples per second are too few for the motion cut-off of "
                f"{self.motion_cutoff:.3g} Hz that the model was identified with; record faster"
            )
        return LowPass(self.motion_cutoff, series.rate)


def require_torque(recording: Recording) -> None:
    """Refuse a recording in which a joint has no torque, or practically zero throughout though it moves.

    Raises:
        IdentificationError: names the joints.
    """
    known = np.isfinite(recording.torque).any(axis=0)
    if not known.all():
        lacking = [name for name, some in zip(recording.joint_names, known, strict=True) if not some]
        raise IdentificationError(
            f"{recording.source}: no torque of joint(s) {', '.join(lacking)}; "
            "record effort, or name the topic of the torques"
        )
    dead = practically_zero(recording.torque) & (np.ptp(recording.position, axis=0) > MOVED)
    if dead.any():
        names = [name for name, zero in zip(recording.joint_names, dead, strict=True) if zero]
        raise IdentificationError(
            f"{recording.source}: the torque of joint(s) {', '.join(names)} is practically zero in all samples though "
            "they move; let the driver fill it, or leave these joints out of the model"
        )


def uniform_positions(recording: Recording) -> Resampled:
    """Positions (M, n) on a uniform grid."""
    return _uniform(recording, recording.position)


def _uniform(recording: Recording, values: NDArray) -> Resampled:
    if recording.n_samples < 10:
        raise IdentificationError(f"{recording.source}: only {recording.n_samples} samples; record longer")
    for name, values_, largest, unit in (
        ("position", recording.position, FARTHEST, "rad or m"),
        ("torque", recording.torque, STRONGEST, "N m or N"),
    ):
        if np.nanmax(np.abs(values_), initial=0.0) > largest:
            sample, joint = np.argwhere(np.abs(values_) > largest)[0]
            raise IdentificationError(
                f"{recording.source}: {name} of {recording.joint_names[joint]} is {values_[sample, joint]:g} at "
                f"t = {recording.time[sample]:g} s; expected {unit}: correct the unit, or leave such samples out"
            )
    try:
        time, fresh = _sample_times(recording)
        return resample(time[fresh], values[fresh])
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error


def _sample_times(recording: Recording) -> tuple[NDArray, NDArray]:
    """Times (N,) of the rows, s, and which of them are samples, not repetitions of a logger."""
    logged = np.hstack([recording.position, np.nan_to_num(recording.torque)])
    return fresh_times(recording.time, recording.position, logged)
