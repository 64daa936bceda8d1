"""What torsion may be made of: each term a column or two, linear in its coefficient.

Of a joint with the spring k between motor and link, k (q_m - q) = u - J q_m'' - b q_m' - c sign(q_m'). So torsion has a
part in the motor's torque u, the compliance 1/k, and parts in acceleration, velocity and direction of motion. Encoders
add their own: a link encoder that is read later than the motor's makes a torsion of delay times velocity, next to which
b / k may be nothing, and one whose disc is off centre errs once per turn. The torque of a neighbour may bend bearings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.optimize import minimize_scalar

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.estimation.estimate import Jackknife, time_blocks
from dynid_ros.model.parameter_words import prismatic_unit
from dynid_ros.recording import Recording
from dynid_ros.signals import LowPass, choose_cutoff, filtered_motion, resample, sample_times

# Errors of an encoder's lines: torsion that repeats with the joint's angle, many times per turn.


MOST = 3
FEWEST_PERIODS = 10
"""Within the way of the joint."""
FASTEST = 0.8
"""Highest frequency at the joint's usual top speed, in parts of half the rate: above, samples mistake it."""
GAIN = 0.1
"""Part of the mean square that each half of the record must lose when predicted from the other."""
OVERSAMPLED = 4
"""Frequencies of the periodogram per its resolution."""


@dataclass(frozen=True)
class Ripple:
    """Amplitude times cos(frequency * x + phase) of what the link encoder reads, x.

    The phase belongs to the encoder's zero: it holds for other recordings as long as that stays where it was.

    Attributes:
        frequency: rad/rad, periods per turn.
        amplitude: rad.
        phase: rad.
        error: standard error of the amplitude, rad; NaN where not known.
    """

    frequency: float
    amplitude: float
    phase: float
    error: float = np.nan

    def values(self, angle: NDArray) -> NDArray:
        """(M,) rad at angles (M,), rad."""
        return self.amplitude * np.cos(self.frequency * angle + self.phase)


def find_ripples(angle: NDArray, rest: NDArray, speed: NDArray, rate: float, runs: NDArray) -> tuple[Ripple, ...]:
    """Ripples that each run predicts in all others, as the encoders were on again; of one run each half the other.

    Args:
        angle: (N,) as the link encoder reads it, rad.
        rest: (N,) what other terms leave of the torsion, rad; without each run's mean.
        speed: (N,) rad/s.
        rate: of the samples, Hz.
        runs: (N,) run of each sample, those of a run together and in order of time.
    """
    way, top = float(np.ptp(angle)), float(np.quantile(np.abs(speed), 0.95))
    if not way > 0 or not top > 0:
        return ()
    limits = FEWEST_PERIODS * 2 * np.pi / way, FASTEST * np.pi * rate / top
    parts = [runs == run for run in np.unique(runs)]
    if len(parts) == 1:
        first = np.arange(len(angle)) < len(angle) // 2
        parts = [first, ~first]
    blocks = time_blocks(runs)
    kept = [blocks != block for block in np.unique(blocks)]
    found: list[Ripple] = []
    for _ in range(MOST if limits[0] < limits[1] else 0):
        ripple = _strongest(limits, angle, rest)
        if not _predicts(ripple.frequency, angle, rest, parts):
            break
        sizes = [abs(_vector(ripple.frequency, angle[own], rest[own])) for own in kept]
        found.append(replace(ripple, error=float(Jackknife(np.array(sizes)[:, None]).standard_errors[0])))
        rest = rest - ripple.values(angle)
    return tuple(found)


def _strongest(limits: tuple[float, float], angle: NDArray, rest: NDArray) -> Ripple:
    """Ripple of the largest amplitude between two frequencies: by a periodogram over the angle, then refined."""
    width = 0.5 / limits[1]
    sums = np.bincount(((angle - angle.min()) / width).astype(int), rest)
    length = next_fast_len(OVERSAMPLED * len(sums), real=True)
    frequencies = 2 * np.pi * np.fft.rfftfreq(length, width)
    power = np.where((frequencies > limits[0]) & (frequencies < limits[1]), np.abs(np.fft.rfft(sums, length)), 0.0)
    peak, step = frequencies[np.argmax(power)], frequencies[1]
    best = minimize_scalar(
        lambda w: -abs(_vector(w, angle, rest)), bounds=(peak - 2 * step, peak + 2 * step), method="bounded"
    )
    vector = _vector(float(best.x), angle, rest)
    return Ripple(float(best.x), float(abs(vector)), float(np.angle(vector)))


def _predicts(frequency: float, angle: NDArray, rest: NDArray, parts: Sequence[NDArray]) -> bool:
    """Whether the ripple of all other parts, phase included, takes enough off each part (N,) bool."""
    for unseen in parts:
        vector = _vector(frequency, angle[~unseen], rest[~unseen])
        guess = Ripple(frequency, float(abs(vector)), float(np.angle(vector))).values(angle[unseen])
        if not np.var(rest[unseen] - guess) < (1 - GAIN) * np.var(rest[unseen]):
            return False
    return True


def _vector(frequency: float, angle: NDArray, rest: NDArray) -> complex:
    """Amplitude and phase of cos(frequency * angle) in `rest` by least squares."""
    basis = np.column_stack([np.cos(frequency * angle), np.sin(frequency * angle), np.ones(len(angle))])
    cos, sin = np.linalg.lstsq(basis, rest, rcond=None)[0][:2]
    return complex(cos, -sin)


# A recording with motor and link positions as uniform, filtered signals.


CUTOFFS = (5.0, 10.0)
"""Lowest and highest cut-off, Hz: friction reverses faster than the motion; above, a torque that vibrates is mostly
noise compared with the torsion that it makes."""
HIGHEST = 0.3
"""Highest cut-off, in parts of half the rate."""
MOTION_OVER_TERMS = 2.5
"""Motion is filtered less than the terms, which are functions of it: torsion, torque and terms pass one filter."""


@dataclass(frozen=True, eq=False)
class TorsionRun:
    """Signals of a recording on a uniform grid; (M, n) each, NaN in columns that were not recorded.

    Attributes:
        time: (M,) s.
        rate: Hz.
        position: of the motors, seen through the gears, filtered for differentiation, rad.
        velocity: rad/s.
        acceleration: rad/s^2.
        torque: of the motors, times the gear ratio, as recorded, N m.
        link: position of the links as recorded, rad; NaN where there is no link encoder.
        torsion: motor less link position as recorded, rad.
        low_pass: for torsion and all its terms.
        settled: samples that are far enough from the ends.
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
    """Signals of a recording, low-pass filtered at `cutoff`, Hz.

    Raises:
        IdentificationError: gaps, or a recording that is too short for the filter.
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
    """Cut-off for all recordings, Hz: what the fastest motion needs, within limits.

    Raises:
        IdentificationError: no joint moves.
    """
    found, highest = [], np.inf
    for recording in recordings:
        _, rate, values = _uniform(recording, recording.position)
        highest = min(highest, HIGHEST * rate / 2)
        try:
            found.append(choose_cutoff(values, rate).low_pass.cutoff)
        except RecordingError as error:
            raise IdentificationError(f"{recording.source}: {error}") from error
    return float(min(np.clip(max(found), *CUTOFFS), highest))


def _uniform(recording: Recording, values: NDArray) -> tuple[NDArray, float, NDArray]:
    """Times (M,), rate and values (M, k) of a recording without gaps."""
    try:
        series = resample(sample_times(recording.time, recording.position).time, values)
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error
    if len(series.segments) > 1:
        raise IdentificationError(
            f"{recording.source}: samples are missing from {series.gaps[0, 0]:.3f} to {series.gaps[0, 1]:.3f} s; "
            "give the parts before and after as recordings of their own"
        )
    return series.segments[0].time, series.rate, series.segments[0].values


ECCENTRICITY = 2e-4
"""Expected size of a once-per-turn error of encoders, rad: 20 um on a radius of 100 mm. Over part of a turn sine and
cosine fit anything smooth, and go astray beyond it; so they are drawn to zero by what is usual."""
TURNING = 0.02
"""Speed at which the direction of friction reverses, in parts of the joint's highest."""
ALWAYS = ("velocity",)
DRIVE = ("velocity", "torque", "acceleration", "coulomb")
"""What every flexible drive has, whether or not it shows in the prediction."""


@dataclass(frozen=True)
class Term:
    """One or more columns that come together.

    Attributes:
        name: of the term.
        unit: of its coefficients.
        size: expected size of each coefficient, which draws it to zero; infinite: nothing is expected.
        parts: what its columns are called, where there are several.
        neighbour: joint whose torque it is, counted from 0; None: the joint's own term.
    """

    name: str
    unit: str
    size: float = np.inf
    parts: tuple[str, ...] = ()
    neighbour: int | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each column."""
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
    """(M, k) columns of the terms, low-pass filtered; `fastest` speed of the joint in what was fitted, rad/s."""
    q, qd, qdd, u = (x[:, joint] for x in (run.position, run.velocity, run.acceleration, run.torque))
    direction = np.tanh(qd / (TURNING * fastest))
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
    """Numbers of the columns of the term of this name."""
    owner = np.repeat([term.name for term in terms], [len(term.labels) for term in terms])
    return np.flatnonzero(owner == name)
