"""Static and slow samples of a recording, from which gravity is identified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.recording import Recording
from dynid_ros.settings import setting
from dynid_ros.signals import differentiate
from dynid_ros.signals.spectra import true_runs

DERIVATIVE_WINDOW = 0.1
"""Length of the local fit that gives velocity and acceleration, s."""
STOP_TOLERANCE = 2e-4
"""Distance from its rest, rad or m, within which a joint has arrived; elastic motion under stiction is smaller."""
MIN_LOAD_CHANGE_TRAVEL = 0.02
"""Travel of other joints, rad or m, above which the load of a joint that has stopped may have changed."""
HOLD_TOLERANCE = np.deg2rad(3.0)
"""Largest difference of positions in the same pose: friction shifts a soft servo by one or two degrees between the two
directions of approach."""
MIN_SINGLE_SAMPLES = 6
"""Smallest number of single samples whose noise is estimated; fewer share the noise of the differences."""
SUM = "both approaches, sum"
DIFFERENCE = "both approaches, difference"
SAMPLE_LABELS = (SUM, DIFFERENCE, "one approach", "approach unknown")


@dataclass(frozen=True)
class Samples:
    """Mean values over M short stretches with negligible inertial torque; n joints.

    Attributes:
        position: (M, n) rad or m.
        velocity: (M, n) rad/s or m/s; zero at rest.
        torque: (M, n) N m or N.
        direction: (M, n) sign of the motion that friction opposes: sign of the last approach in a static sample, sign
            of the velocity in a slow sample; 0 if unknown.
        static: (M,) True for a dwell, False for slow motion.
        time: (M,) middle of the stretch, s.
        part: (M,) index of the recording.
    """

    position: NDArray
    velocity: NDArray
    torque: NDArray
    direction: NDArray
    static: NDArray
    time: NDArray
    part: NDArray

    def __len__(self) -> int:
        return len(self.time)

    @property
    def friction_known(self) -> NDArray:
        """Mask (M, n) of the samples whose friction has a known sign, that of the joint's last approach.

        The stiction of a resting joint takes any value within Coulomb friction, depending on its load. If no approach
        of a joint is known, as in a recording of dwells alone, the static samples at each new position count instead.
        """
        known = self.direction != 0
        before = np.vstack([np.full((1, known.shape[1]), np.inf), self.position])[: len(self)]
        before[np.flatnonzero(np.diff(self.part)) + 1] = np.inf
        moved = np.abs(self.position - before) >= SampleRules.minimum_approach
        return np.where(known.any(axis=0), known, moved & self.static[:, None])

    def take(self, rows: Sequence[int] | NDArray) -> Samples:
        """Return the samples of these rows."""
        chosen = np.asarray(rows, int)
        return Samples(**{f.name: getattr(self, f.name)[chosen] for f in fields(Samples)})

    @staticmethod
    def join(parts: Sequence[Samples]) -> Samples:
        """Return the samples of all parts, with `part` numbered in their order."""
        joined = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Samples)}
        joined["part"] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return Samples(**joined)


@dataclass(frozen=True)
class SampleRules:
    """Thresholds of static and slow samples.

    Attributes:
        rest_velocity: velocity below which a joint is at rest, rad/s or m/s.
        minimum_dwell: shortest rest that makes a static sample, s.
        settle_time: time that is left out at both ends of each rest, s.
        minimum_approach: travel in one direction after which friction opposes it, rad or m.
        slow_velocity: largest velocity of a joint in a slow sample, rad/s or m/s.
        slow_acceleration: largest acceleration of a joint in a slow sample, rad/s² or m/s².
        block: length of a slow sample, s.

    Raises:
        IdentificationError: a threshold is not a positive number.
    """

    rest_velocity: float = 0.005
    minimum_dwell: float = 0.25
    settle_time: float = 0.1
    minimum_approach: float = 0.005
    slow_velocity: float = setting(
        0.5, "speed of the fastest joint up to which a sample counts as slow", unit="rad/s or m/s", above=0
    )
    slow_acceleration: float = setting(0.5, "acceleration up to which a sample counts as slow", unit="per s^2", above=0)
    block: float = 0.1

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if not 0.0 < value < np.inf:
                raise IdentificationError(f"{rule.name} is {value:g}; expected a number above zero")


def with_known_torque(recording: Recording) -> Recording:
    """Return the samples in which every torque is known; a separate torque topic may start later or have gaps.

    Raises:
        IdentificationError: there are no such samples.
    """
    known = np.isfinite(recording.torque)
    if not known.all(axis=1).any():
        lacking = [name for name, some in zip(recording.joint_names, known.any(axis=0), strict=True) if not some]
        raise IdentificationError(
            f"{recording.source}: no torque of joint(s) {', '.join(lacking) or 'all at once'}; "
            "record effort, or name the topic of the torques"
        )
    return recording.slice(known.all(axis=1))


def static_samples(recording: Recording, rules: SampleRules) -> Samples:
    """Return one sample for each stretch in which every joint rests (Ma & Hollerbach 1996, section 4, step 1).

    Before a joint moves, its servo loads it against stiction, so the torque changes while the joint still rests. A rest
    before a slow departure is therefore longer than most, and is cut to the median length.
    """
    q = recording.position
    rows = []
    directions = []
    previous_end = 0
    for dwell, end in _rests(recording, rules):
        rows.append(dwell)
        directions.append(
            side_of_approach(q[previous_end : dwell.start], q[dwell].mean(axis=0), rules.minimum_approach)
        )
        previous_end = end
    settled = _settled(recording.torque, rows)
    rows = [row for row, keep in zip(rows, settled, strict=True) if keep]
    return _means(recording, rows, np.zeros_like(q), np.array(directions)[settled], static=True)


def extract_samples(
    recordings: Sequence[Recording], joint_names: Sequence[str], kind: str, rules: SampleRules
) -> Samples:
    """Return the static samples, the slow ones, or both, of recordings with the joints in the given order.

    Args:
        recordings: recordings of the arm.
        joint_names: joints of the model.
        kind: "static", "slow" or "both".
        rules: thresholds of static and slow samples.

    Raises:
        RecordingError: a joint of the model is not in a recording.
        IdentificationError: a recording has no torque, or too few samples.
    """
    selected = [with_known_torque(recording.select(joint_names)) for recording in recordings]
    extractors = [static_samples] if kind in ("static", "both") else []
    extractors += [slow_samples] if kind in ("slow", "both") else []
    return Samples.join([extract(recording, rules) for recording in selected for extract in extractors])


def dwells(recording: Recording, rules: SampleRules) -> list[slice]:
    """Return the rows of each stretch in which every joint rests, without its ends."""
    return [dwell for dwell, _ in _rests(recording, rules)]


def slow_samples(recording: Recording, rules: SampleRules) -> Samples:
    """Return one sample for each block of slow and nearly unaccelerated motion, without rests of all joints."""
    velocity, acceleration = _derivatives(recording)
    speed = np.abs(velocity)
    slow = np.all(speed < rules.slow_velocity, axis=1) & np.all(np.abs(acceleration) < rules.slow_acceleration, axis=1)
    slow &= np.any(speed >= rules.rest_velocity, axis=1)
    rows = []
    for start, end in true_runs(slow):
        edges = np.arange(recording.time[start], recording.time[end - 1], rules.block)
        cuts = start + np.searchsorted(recording.time[start:end], edges)
        rows += [slice(a, b) for a, b in pairwise(cuts) if b - a >= 2]
    directions = np.array([_steady_sign(velocity[row], rules.rest_velocity) for row in rows])
    moving = np.where(speed < rules.rest_velocity, 0.0, velocity)
    return _means(recording, rows, moving, directions, static=False)


def spaced(samples: Samples, spacing: float) -> Samples:
    """Return the samples that follow the previously returned sample by at least `spacing`, s."""
    kept = []
    last = -np.inf
    for m, time in enumerate(samples.time):
        if time - last >= spacing:
            kept.append(m)
            last = time
    return samples.take(kept)


def _rests(recording: Recording, rules: SampleRules) -> list[tuple[slice, int]]:
    """Return for each rest of all joints the rows that are used, without its ends, and the end of the whole rest."""
    velocity, _ = _derivatives(recording)
    time = recording.time
    stretches = true_runs(np.all(np.abs(velocity) < rules.rest_velocity, axis=1))
    rests = [(start, end) for start, end in stretches if time[end - 1] - time[start] >= rules.minimum_dwell]
    usual = np.median([time[end - 1] - time[start] for start, end in rests]) if rests else 0.0
    used = []
    for start, end in rests:
        last = min(time[end - 1], time[start] + usual) - rules.settle_time
        dwell = slice(*np.searchsorted(time, [time[start] + rules.settle_time, last]))
        # If messages were lost, fewer than two samples may be left, which cannot show whether the torque has settled.
        if dwell.stop - dwell.start >= 2:
            used.append((dwell, int(end)))
    return used


def _settled(torque: NDArray, rows: list[slice]) -> NDArray:
    """Return a mask (M,) of the rests whose torque changes from the first half to the second by at most 6 medians."""
    if len(rows) < 3:
        return np.ones(len(rows), bool)
    halves = [[half.mean(axis=0) for half in np.array_split(torque[row], 2)] for row in rows]
    change = np.abs(np.diff(halves, axis=1))[:, 0]
    usual = np.maximum(np.median(change, axis=0), 1e-3 * np.ptp(torque, axis=0))
    return np.all(change <= 6 * usual, axis=1)


def _derivatives(recording: Recording) -> tuple[NDArray, NDArray]:
    """Return velocity and acceleration (N, n) of a recording."""
    if recording.n_samples < 10:
        raise IdentificationError(
            f"{recording.source}: {recording.n_samples} samples are too few to distinguish rest from motion"
        )
    velocity, acceleration = differentiate(recording.time, recording.position, DERIVATIVE_WINDOW)
    return velocity, acceleration


def side_of_approach(path: NDArray, rest: NDArray, minimum: float) -> NDArray:
    """Return the sign (n,) of the last travel of each joint towards its rest.

    Friction keeps this sign. The sign is 0 if other joints moved on after the joint had arrived, because their motion
    changes its load, and stiction follows the load.

    Args:
        path: (N, n) positions before the rest, rad or m.
        rest: (n,) positions at rest.
        minimum: smallest travel that counts, rad or m.
    """
    if not len(path):
        return np.zeros(path.shape[1])
    away = path - rest
    start = _last_beyond(away, minimum)
    arrival = _last_beyond(away, STOP_TOLERANCE)
    last_load_change = _last_beyond(away, MIN_LOAD_CHANGE_TRAVEL).max()
    is_known = (start >= 0) & (arrival >= last_load_change)
    return np.where(is_known, -np.sign(away[start, np.arange(path.shape[1])]), 0.0)


def _last_beyond(away: NDArray, distance: float) -> NDArray:
    """Return for each joint the last row (n,) in which it is at least `distance` away; -1 if there is no such row."""
    far = np.abs(away) >= distance
    return np.where(far.any(axis=0), len(away) - 1 - np.argmax(far[::-1], axis=0), -1)


def _steady_sign(velocity: NDArray, rest: float) -> NDArray:
    """Return the sign (n,) of velocities (N, n) that neither change their sign nor fall below `rest`; otherwise 0."""
    sign = np.sign(velocity)
    return np.where(np.all((sign == sign[0]) & (np.abs(velocity) >= rest), axis=0), sign[0], 0.0)


def _means(recording: Recording, rows: list[slice], velocity: NDArray, direction: NDArray, *, static: bool) -> Samples:
    """Return the means over each slice of rows, as samples of one recording."""
    n = recording.position.shape[1]

    def mean(values: NDArray) -> NDArray:
        return np.array([values[row].mean(axis=0) for row in rows]).reshape(len(rows), n)

    return Samples(
        position=mean(recording.position),
        velocity=mean(velocity),
        torque=mean(recording.torque),
        direction=direction.reshape(len(rows), n),
        static=np.full(len(rows), static),
        time=np.array([recording.time[row].mean() for row in rows]),
        part=np.zeros(len(rows), int),
    )


# Single-joint rotations among static samples.


@dataclass(frozen=True)
class Rotation:
    """Consecutive static samples between which one joint alone moved.

    Attributes:
        joint: index of the joint.
        rows: (K,) rows of the samples.
    """

    joint: int
    rows: NDArray


def rotations(samples: Samples) -> list[Rotation]:
    """Return the single-joint rotations of at least four poses among static samples."""
    result = []
    rows = np.flatnonzero(samples.static)
    start = 0
    while start < len(rows) - 1:
        end, joint = _extend(samples, rows, start)
        if joint is not None and end - start >= 4:
            result.append(Rotation(joint, rows[start:end]))
            start = end
        else:
            start += 1
    return result


def _extend(samples: Samples, rows: NDArray, start: int) -> tuple[int, int | None]:
    """Return the end of the run from `start` in which a single joint moves, and that joint."""
    first = samples.position[rows[start]]
    joint = None
    for end in range(start + 1, len(rows)):
        moved = np.flatnonzero(np.abs(samples.position[rows[end]] - first) > HOLD_TOLERANCE)
        same_part = samples.part[rows[end]] == samples.part[rows[start]]
        if not same_part or len(moved) > 1 or (len(moved) == 1 and joint not in (None, moved[0])):
            return end, joint
        if len(moved) == 1:
            joint = int(moved[0])
    return len(rows), joint


# The two approaches of a pose, from below and from above: their difference contains friction, their sum does not.


@dataclass(frozen=True, eq=False)
class Approaches:
    """Pairs of samples of the same pose, which was approached from both sides.

    The m rows are those of equations, one row per sample and joint. Friction that a model lacks cancels in the sum of a
    pair, which shows gravity. Each joint has its own noise for sums, for differences, and for single samples of known
    and of unknown direction.

    Attributes:
        up, down: (p,) rows of each pair, by the sign of the approach.
        group: (m,) index into `names` of each row's noise, after the rows are combined.
        names: names of the noises.
    """

    up: NDArray
    down: NDArray
    group: NDArray
    names: tuple[str, ...]

    @classmethod
    def among(
        cls,
        samples: Samples,
        sample: NDArray,
        joint: NDArray,
        joint_names: tuple[str, ...],
        state: NDArray | None = None,
    ) -> Approaches:
        """Find the pairs among m rows.

        Args:
            samples: M samples.
            sample: (m,) index of each row's sample.
            joint: (m,) index of each row's joint.
            joint_names: names of all joints.
            state: (M,) state of each sample, such as its load; samples of different states make no pair. None: all
                samples have the same state.
        """
        direction = samples.direction[sample, joint]
        kind = np.where(direction != 0, 2, 3)  # index into SAMPLE_LABELS
        up, down = _partners(samples, sample, joint, np.zeros(len(samples)) if state is None else state)
        kind[up] = 0
        kind[down] = 1
        for j in np.unique(joint[down]):
            single = (joint == j) & (kind == 2)
            if single.sum() < MIN_SINGLE_SAMPLES:
                kind[single] = 1
        keys, group = np.unique(joint * len(SAMPLE_LABELS) + kind, return_inverse=True)
        names = tuple(
            f"{joint_names[key // len(SAMPLE_LABELS)]}, {SAMPLE_LABELS[key % len(SAMPLE_LABELS)]}" for key in keys
        )
        return cls(up, down, group, names)

    def combine(self, values: NDArray) -> NDArray:
        """Return rows (m, …) with each pair replaced by its sum and difference over √2, so that noise stays white."""
        combined = np.array(values, dtype=float)
        first = combined[self.up]
        second = combined[self.down]
        combined[self.up] = (first + second) / np.sqrt(2)
        combined[self.down] = (first - second) / np.sqrt(2)
        return combined


def _partners(samples: Samples, sample: NDArray, joint: NDArray, state: NDArray) -> tuple[NDArray, NDArray]:
    """Return the rows (p,) of static samples that were approached upwards, and their nearest partners (p,)."""
    up = []
    down = []
    position = samples.position
    direction = samples.direction[sample, joint]
    static = samples.static[sample]
    for j, kind in product(np.unique(joint), np.unique(state)):
        is_candidate = (joint == j) & static & (state[sample] == kind)
        falling = list(np.flatnonzero(is_candidate & (direction < 0)))
        for row in np.flatnonzero(is_candidate & (direction > 0)):
            if not falling:
                break
            distance = np.abs(position[sample[falling]] - position[sample[row]]).max(axis=1)
            nearest = int(np.argmin(distance))
            if distance[nearest] < HOLD_TOLERANCE:
                up.append(row)
                down.append(falling.pop(nearest))
    return np.array(up, int), np.array(down, int)
