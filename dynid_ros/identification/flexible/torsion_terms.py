"""Terms of torsion, each a column or two, linear in its coefficient.

For a spring k between motor and link, k (q_m - q) = u - J q_m'' - b q_m' - c sign(q_m'). Torsion therefore has a part
in the motor's torque u with the compliance 1/k, and parts in acceleration, velocity and direction of motion. Encoders
contribute too. A link encoder that is read later than the motor's adds delay times velocity, which may exceed b / k,
and an eccentric disc adds an error once per turn. The torque of a neighbour may bend bearings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.optimize import minimize_scalar

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.estimation.covariance import Jackknife, time_blocks
from dynid_ros.model.base_parameters import prismatic_unit
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import resample_channels
from dynid_ros.signals import LowPass, choose_cutoff, filtered_motion

# Errors of an encoder's lines: torsion that repeats with the joint's angle, many times per turn.


MAX_RIPPLES = 3
MIN_RIPPLE_PERIODS = 10
"""Smallest number of periods within the range of the joint."""
MAX_RIPPLE_FREQUENCY_OF_NYQUIST = 0.8
"""Highest frequency of a ripple at the joint's usual top speed, in parts of half the rate: no aliasing."""
MIN_RIPPLE_GAIN = 0.1
"""Part of the mean square that a ripple must take off each half of the record when predicted from the other."""
OVERSAMPLED = 4
"""Frequencies of the periodogram per resolution."""


@dataclass(frozen=True)
class Ripple:
    """Error of the link encoder, amplitude * cos(frequency * x + phase) over its reading x.

    The phase belongs to the encoder's zero. It holds for other recordings as long as the zero stays.

    Attributes:
        frequency: Periods per turn, rad/rad; for a slide rad/m.
        amplitude: Amplitude, rad or m.
        phase: Phase, rad.
        error: Standard error of the amplitude; NaN where unknown.
    """

    frequency: float
    amplitude: float
    phase: float
    error: float = np.nan

    def values(self, angle: NDArray) -> NDArray:
        """Return the error (M,) at readings (M,)."""
        return self.amplitude * np.cos(self.frequency * angle + self.phase)


def find_ripples(angle: NDArray, rest: NDArray, speed: NDArray, rate: float, runs: NDArray) -> tuple[Ripple, ...]:
    """Return the ripples that each run predicts in all others; of a single run each half predicts the other.

    Args:
        angle: Readings (N,) of the link encoder, rad or m.
        rest: Residuals (N,) of the torsion, without each run's mean.
        speed: Velocities (N,).
        rate: Sampling rate, Hz.
        runs: Run (N,) of each sample; the samples of a run are contiguous and in order of time.
    """
    travel = float(np.ptp(angle))
    top = float(np.quantile(np.abs(speed), 0.95))
    if not travel > 0 or not top > 0:
        return ()
    limits = MIN_RIPPLE_PERIODS * 2 * np.pi / travel, MAX_RIPPLE_FREQUENCY_OF_NYQUIST * np.pi * rate / top
    parts = [runs == run for run in np.unique(runs)]
    if len(parts) == 1:
        first = np.arange(len(angle)) < len(angle) // 2
        parts = [first, ~first]
    blocks = time_blocks(runs)
    kept = [blocks != block for block in np.unique(blocks)]
    found: list[Ripple] = []
    for _ in range(MAX_RIPPLES if limits[0] < limits[1] else 0):
        ripple = _strongest(limits, angle, rest)
        if not _predicts(ripple.frequency, angle, rest, parts):
            break
        sizes = [abs(_vector(ripple.frequency, angle[own], rest[own])) for own in kept]
        found.append(replace(ripple, error=float(Jackknife(np.array(sizes)[:, None]).standard_errors[0])))
        rest = rest - ripple.values(angle)
    return tuple(found)


def _strongest(limits: tuple[float, float], angle: NDArray, rest: NDArray) -> Ripple:
    """Return the ripple of the largest amplitude between two frequencies, by a periodogram over the angle."""
    width = 0.5 / limits[1]
    sums = np.bincount(((angle - angle.min()) / width).astype(int), rest)
    length = next_fast_len(OVERSAMPLED * len(sums), real=True)
    frequencies = 2 * np.pi * np.fft.rfftfreq(length, width)
    power = np.where((frequencies > limits[0]) & (frequencies < limits[1]), np.abs(np.fft.rfft(sums, length)), 0.0)
    peak = frequencies[np.argmax(power)]
    step = frequencies[1]
    best = minimize_scalar(
        lambda w: -abs(_vector(w, angle, rest)), bounds=(peak - 2 * step, peak + 2 * step), method="bounded"
    )
    vector = _vector(float(best.x), angle, rest)
    return Ripple(float(best.x), float(abs(vector)), float(np.angle(vector)))


def _predicts(frequency: float, angle: NDArray, rest: NDArray, parts: Sequence[NDArray]) -> bool:
    """Return whether the ripple of all other parts, phase included, reduces the residual of each part, a mask (N,)."""
    for unseen in parts:
        vector = _vector(frequency, angle[~unseen], rest[~unseen])
        guess = Ripple(frequency, float(abs(vector)), float(np.angle(vector))).values(angle[unseen])
        if not np.var(rest[unseen] - guess) < (1 - MIN_RIPPLE_GAIN) * np.var(rest[unseen]):
            return False
    return True


def _vector(frequency: float, angle: NDArray, rest: NDArray) -> complex:
    """Return amplitude and phase of cos(frequency * angle) in `rest` by least squares."""
    basis = np.column_stack([np.cos(frequency * angle), np.sin(frequency * angle), np.ones(len(angle))])
    cos, sin = np.linalg.lstsq(basis, rest, rcond=None)[0][:2]
    return complex(cos, -sin)


# A recording with motor and link positions as uniform, filtered signals.


CUTOFF_RANGE_HZ = (5.0, 10.0)
"""Lowest and highest cutoff frequency, Hz: friction reverses faster than the motion, and at higher frequencies a
vibrating torque is mostly noise compared with the torsion that it causes."""
MAX_CUTOFF_OF_NYQUIST = 0.3
"""Highest cutoff frequency, in parts of half the sampling rate."""
MOTION_OVER_TERMS = 2.5
"""Cutoff frequency of the motion over that of torsion, torque and terms, which are functions of the motion."""


@dataclass(frozen=True, eq=False)
class TorsionRun:
    """Signals of a recording on a uniform grid, (M, n) each; NaN in columns that were not recorded.

    Attributes:
        time: Times (M,), s.
        rate: Sampling rate, Hz.
        position: Motor positions seen through the gears, filtered for differentiation.
        torque: Motor torques times the gear ratio, as recorded.
        link: Link positions as recorded; NaN without a link encoder.
        torsion: Motor minus link position as recorded.
        low_pass: Low-pass for torsion and all terms.
        settled: Samples that are far enough from the ends.
    """

    time: NDArray
    rate: float
    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    torque: NDArray
    link: NDArray
    torsion: NDArray
    low_pass: LowPass
    settled: slice


def torsion_run(recording: Recording, cutoff: float) -> TorsionRun:
    """Return the signals of a recording with the low-pass of a cutoff frequency, Hz.

    Raises:
        IdentificationError: Samples are missing, or the recording is too short for the filter.
    """
    n = recording.n_joints
    link = np.full_like(recording.position, np.nan) if recording.link_position is None else recording.link_position
    series = np.hstack([recording.position, recording.torque, link])
    grid, rate, values = _uniform(recording, series)
    try:
        low_pass = LowPass(cutoff, rate)
        kept = low_pass.kept(len(values))
        motion = filtered_motion(values[:, :n], LowPass(MOTION_OVER_TERMS * cutoff, rate))
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error
    settled = slice(kept.start, kept.stop)
    position, torque, link = np.split(values, 3, axis=1)
    return TorsionRun(grid, rate, *motion, torque, link, position - link, low_pass, settled)


def torsion_cutoff(recordings: tuple[Recording, ...]) -> float:
    """Return the cutoff frequency for all recordings, Hz, by the fastest motion.

    Raises:
        IdentificationError: No joint moves.
    """
    found = []
    highest = np.inf
    for recording in recordings:
        _, rate, values = _uniform(recording, recording.position)
        highest = min(highest, MAX_CUTOFF_OF_NYQUIST * rate / 2)
        try:
            found.append(choose_cutoff(values, rate).low_pass.cutoff)
        except RecordingError as error:
            raise IdentificationError(f"{recording.source}: {error}") from error
    return float(min(np.clip(max(found), *CUTOFF_RANGE_HZ), highest))


def _uniform(recording: Recording, values: NDArray) -> tuple[NDArray, float, NDArray]:
    """Return times (M,), sampling rate and values (M, k) of a recording without gaps."""
    try:
        series = resample_channels(recording, values)
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error
    if len(series.segments) > 1:
        raise IdentificationError(
            f"{recording.source}: samples are missing from {series.gaps[0, 0]:.3f} to {series.gaps[0, 1]:.3f} s; "
            "give the parts before and after as recordings of their own"
        )
    return series.segments[0].time, series.rate, series.segments[0].values


ECCENTRICITY = 2e-4
"""Expected size of a once-per-turn error of encoders, rad: 20 µm on a radius of 100 mm. Over part of a turn sine and
cosine fit anything smooth and are wrong beyond it, so they are drawn to zero by the usual size."""
REVERSAL_SPEED_FRACTION = 0.02
"""Speed at which the direction of friction reverses, in parts of the joint's highest."""
ALWAYS = ("velocity",)
DRIVE = ("velocity", "torque", "acceleration", "coulomb")
"""Terms of every flexible drive, whether or not they improve the prediction."""


@dataclass(frozen=True)
class Term:
    """One or more columns that are chosen together.

    Attributes:
        size: Expected size of each coefficient, which draws it to zero; infinite: no expectation.
        parts: Names of its columns, where there are several.
        neighbour: Number of the joint whose torque it is; None: the joint's own term.
    """

    name: str
    unit: str
    size: float = np.inf
    parts: tuple[str, ...] = ()
    neighbour: int | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"{self.name}_{part}" for part in self.parts) or (self.name,)


OWN = (
    Term("velocity", "s"),
    Term("torque", "rad/(N m)"),
    Term("acceleration", "s^2"),
    Term("coulomb", "rad"),
    Term("eccentricity", "rad", size=ECCENTRICITY, parts=("sin", "cos")),
)


def joint_terms(
    joint: int, run: TorsionRun, joint_names: Sequence[str], prismatic: Collection[str], *, neighbours: bool
) -> tuple[Term, ...]:
    """Return the terms of a joint in the order of its columns: its own, and if wanted the torques of its neighbours.

    A prismatic joint has no eccentricity: its encoder is no disc that turns with the joint.
    """
    slides = joint_names[joint] in prismatic
    terms = [replace(term, unit=prismatic_unit(term.unit)) for term in OWN if not term.parts] if slides else list(OWN)
    if neighbours:
        beside = [j for j in (joint - 1, joint + 1) if 0 <= j < len(joint_names) and np.isfinite(run.torque[0, j])]
        terms += [neighbour_term(joint_names, j, joint_names[joint], prismatic) for j in beside]
    return tuple(terms)


def neighbour_term(joint_names: Sequence[str], neighbour: int, joint: str, prismatic: Collection[str]) -> Term:
    """Return the term of a neighbour's torque, which bends a joint."""
    position = "m" if joint in prismatic else "rad"
    effort = "N" if joint_names[neighbour] in prismatic else "(N m)"
    return Term(f"torque of {joint_names[neighbour]}", f"{position}/{effort}", neighbour=neighbour)


def columns(run: TorsionRun, joint: int, terms: Sequence[Term], fastest: float) -> NDArray:
    """Return the low-pass filtered columns (M, k) of the terms.

    Args:
        run: Signals.
        joint: Number of the joint.
        terms: Terms in the order of their columns.
        fastest: Highest speed of the joint in the fitted recordings.
    """
    q, qd, qdd, u = (x[:, joint] for x in (run.position, run.velocity, run.acceleration, run.torque))
    direction = np.tanh(qd / (REVERSAL_SPEED_FRACTION * fastest))
    own = {
        "velocity": (qd,),
        "torque": (u,),
        "acceleration": (qdd,),
        "coulomb": (direction,),
        "eccentricity": (np.sin(q), np.cos(q)),
    }
    found = [own[t.name] if t.neighbour is None else (run.torque[:, t.neighbour],) for t in terms]
    return run.low_pass.filter(np.stack([column for group in found for column in group], axis=1))


def columns_of(terms: Sequence[Term], name: str) -> NDArray:
    """Return the numbers of the columns of a term."""
    owner = np.repeat([term.name for term in terms], [len(term.labels) for term in terms])
    return np.flatnonzero(owner == name)
