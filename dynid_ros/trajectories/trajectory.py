"""A planned motion of all joints over time, its YAML file, and minimum-jerk moves."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import MEGABYTE, csv_line, parse_yaml, read_text, write_atomically

if TYPE_CHECKING:
    from scipy.interpolate import BPoly

MAX_FILE_BYTES = 50 * MEGABYTE
TRAJECTORY_FORMAT = "dynid-trajectory/1"
FIELDS = ("time", "position", "velocity", "acceleration")
MAX_DURATION_S = 8 * 3600.0
"""Longest duration of a motion, s: a working day."""
MIN_RELATIVE_JERK_JUMP = 0.01
"""Smallest discontinuity of the jerk at a sample that counts as a jump, over the joint's largest jerk."""
MIN_JUMP_DISPLACEMENT = 1e-9
"""Smallest displacement, rad or m, that a jump of the jerk causes within a sampling period; rounding causes less."""
JOIN_TOLERANCE = 1e-9
"""Largest difference of position or velocity between parts that are joined, rad or m (per s)."""
MIN_LAST_INTERVAL_S = 1e-6
"""Shortest interval before the last sample, s."""
PEAK_VELOCITY = 15 / 8
"""Largest velocity of a minimum-jerk move, in Δ/T (at the middle)."""
PEAK_ACCELERATION = 10 / np.sqrt(3)
"""Largest acceleration of a minimum-jerk move, in Δ/T² (at s = (3 ∓ √3)/6)."""
PEAK_JERK = 60.0
"""Largest jerk of a minimum-jerk move, in Δ/T³ (at both ends)."""


@contextmanager
def open_document(path: str | Path, kind: str, form: str) -> Iterator[dict]:
    """Yield the content of a YAML file of the format `form`; errors inside the block get the name of the file."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
        content = _parse_rows(text) or parse_yaml(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrajectoryError(f"cannot read {kind} '{path}' ({reason}); give one that was planned here") from error
    if not isinstance(content, dict) or content.get("format") != form:
        raise TrajectoryError(f"'{path}' is not a {kind}: expected 'format: {form}'")
    try:
        yield content
    except KeyError as error:
        raise TrajectoryError(f"{kind} '{path}' lacks the entry {error}") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else "an entry is of another kind"
        raise TrajectoryError(f"{kind} '{path}' is malformed: {reason}; give one that was planned here") from error
    except TrajectoryError as error:
        raise TrajectoryError(f"{kind} '{path}': {error}") from error


_ROWS = re.compile(r"(.*?\n)time:(.*?)\nposition:(.*?)\nvelocity:(.*?)\nacceleration:(.*)", re.DOTALL)
"""Layout of the files that `Trajectory.save` writes: a head, then a list for each field."""


def _parse_rows(text: str) -> dict | None:
    """Parse the rows of numbers in a file of `Trajectory.save` as JSON, three times faster than as YAML.

    Any other layout gives None, and the YAML parser then reads or refuses it.
    """
    parts = _ROWS.fullmatch(text)
    if parts is None:
        return None
    try:
        head = parse_yaml(parts[1])
        fields = {name: _parse_list(part) for name, part in zip(FIELDS, parts.groups()[1:], strict=True)}
    except (ValueError, RecursionError):
        return None
    return {**head, **fields} if isinstance(head, dict) and not head.keys() & fields.keys() else None


def _parse_list(text: str) -> list:
    """Parse a flow list, or a block list whose entries are flow lists; raise `ValueError` for other text."""
    if text.startswith("\n- "):
        rows = text[3:].rstrip().split("\n- ")
        if text.count("[") != len(rows):
            raise ValueError("expected one list of numbers in each row")
        text = f"[{','.join(rows)}]"
    return json.loads(text, parse_int=float, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"'{name}' is no number in YAML")


def check_duration(duration: float) -> None:
    """Raise a `TrajectoryError` for a duration, s, of more than a working day."""
    if not duration <= MAX_DURATION_S:
        raise TrajectoryError(
            f"a motion of {duration:.3g} s takes more than {MAX_DURATION_S / 3600:g} h; move faster, rest for less "
            "time, or give fewer poses"
        )


@dataclass(frozen=True)
class Trajectory:
    """N samples of n joints, joined by quintics that match position, velocity and acceleration at both samples.

    `joint_trajectory_controller` interpolates points in this way too. A minimum-jerk move needs only two samples.

    Attributes:
        joint_names: n names.
        time: (N,) strictly increasing from 0, s.
        position: (N, n) rad or m.
        velocity: (N, n) per s.
        acceleration: (N, n) per s².

    Raises:
        TrajectoryError: shapes do not match, or time does not increase from 0 or exceeds a working day.
    """

    joint_names: tuple[str, ...]
    time: NDArray
    position: NDArray
    velocity: NDArray
    acceleration: NDArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        for field in FIELDS:
            object.__setattr__(self, field, np.array(getattr(self, field), dtype=float))
        if self.time.ndim != 1 or len(self.time) < 2:
            raise TrajectoryError(f"a trajectory needs at least two samples in time, got shape {self.time.shape}")
        shape = (len(self.time), len(self.joint_names))
        for field in FIELDS[1:]:
            if getattr(self, field).shape != shape:
                raise TrajectoryError(
                    f"{field} has shape {getattr(self, field).shape}; expected {shape}, samples by joints"
                )
        if self.time[0] != 0.0 or not np.all(np.diff(self.time) > 0):
            raise TrajectoryError("the time of a trajectory must increase strictly from 0")
        check_duration(self.duration)

    @property
    def n_samples(self) -> int:
        """Number of samples N."""
        return len(self.time)

    @property
    def duration(self) -> float:
        """Time of the last sample, s."""
        return float(self.time[-1])

    def at(self, time: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
        """Return position, velocity and acceleration, each (M, n), at times (M,), or each (n,) at a scalar time.

        Before and after the motion, the arm rests in the end poses.
        """
        time = np.asarray(time, dtype=float)
        inside = np.clip(time, 0.0, self.duration)
        displacement, velocity, acceleration = (spline(inside) for spline in self._splines)
        before = np.clip(np.searchsorted(self.time, inside, side="right") - 1, 0, self.n_samples - 2)
        position = self.position[before] + displacement
        outside = (inside != time)[..., np.newaxis]
        return position, np.where(outside, 0.0, velocity), np.where(outside, 0.0, acceleration)

    def jerk(self, time: ArrayLike) -> NDArray:
        """Return the jerk (M, n), per s³, at times (M,); at a sample with a jump of the jerk, the value after it."""
        time = np.asarray(time, dtype=float)
        outside = (time < 0.0) | (time > self.duration)
        return np.where(outside[..., np.newaxis], 0.0, self._jerk_spline(np.clip(time, 0.0, self.duration)))

    def jerk_peaks(self) -> tuple[NDArray, NDArray]:
        """Return time and value of the largest jerk between two samples, each (N − 1, n)."""
        # Between two samples the jerk is a parabola, with its coefficients in the Bernstein basis.
        start, middle, end = self._jerk_spline.c
        curvature = start - 2 * middle + end
        vertex = np.clip((start - middle) / np.where(curvature == 0.0, 1.0, curvature), 0.0, 1.0)
        places = np.stack([np.zeros_like(vertex), vertex, np.ones_like(vertex)])
        values = (1 - places) ** 2 * start + 2 * places * (1 - places) * middle + places**2 * end
        largest = np.argmax(np.abs(values), axis=0)[np.newaxis]
        place, peak = (np.take_along_axis(choices, largest, 0)[0] for choices in (places, values))
        return self.time[:-1, np.newaxis] + place * np.diff(self.time)[:, np.newaxis], peak

    @cached_property
    def _jerk_spline(self) -> BPoly:
        return self._splines[2].derivative()

    @cached_property
    def _splines(self) -> tuple[BPoly, BPoly, BPoly]:
        from scipy.interpolate import BPoly  # noqa: PLC0415 - it takes long to load, and a check plans no motion

        # The splines are of displacements from the sample before, so that rounding does not move an arm at rest.
        step = np.diff(self.time)[:, np.newaxis]
        change = np.diff(self.position, axis=0)
        control = []  # coefficients of the quintics in the Bernstein basis, three at each end
        for sign, end, place in ((1, slice(None, -1), 0.0 * change), (-1, slice(1, None), change)):
            slope = sign * step / 5 * self.velocity[end]
            control += [place, place + slope, place + 2 * slope + step**2 / 20 * self.acceleration[end]][::sign]
        position = BPoly(np.array(control), self.time)
        velocity = position.derivative()
        return position, velocity, velocity.derivative()

    def sample(self, rate: float) -> Trajectory:
        """Sample the motion at `rate` samples per second, and at its end.

        Samples with a jump of the jerk, as at the start or end of a move, are kept unless another one is nearer than
        1 / `rate`; regular samples close to them are omitted. A quintic across the jump would need more jerk than the
        motion.

        Raises:
            TrajectoryError: the rate, Hz, is not positive.
        """
        if not rate > 0:
            raise TrajectoryError(f"the sampling rate must be positive, got {rate:g} Hz")
        time = np.arange(np.ceil(self.duration * rate)) / rate
        corners = self._corners(1.0 / rate)
        bounds = np.concatenate([[-np.inf], corners, [np.inf]])
        after = np.searchsorted(bounds, time)
        time = time[np.minimum(time - bounds[after - 1], bounds[after] - time) > 0.5 / rate]
        time = time[self.duration - time >= MIN_LAST_INTERVAL_S]
        time = np.unique(np.concatenate([[0.0], time, corners, [self.duration]]))
        return Trajectory(self.joint_names, time, *self.at(time))

    def _corners(self, separation: float) -> NDArray:
        """Return the times of the samples with a jump of the jerk, at least `separation` (s) from each other."""
        start, _, end = self._jerk_spline.c
        jump = np.abs(start[1:] - end[:-1])
        largest = np.maximum(np.abs(start).max(axis=0), np.abs(end).max(axis=0))
        jumps = np.any(
            jump > np.maximum(MIN_RELATIVE_JERK_JUMP * largest, MIN_JUMP_DISPLACEMENT / separation**3), axis=1
        )
        corners = np.concatenate([[0.0], self.time[1:-1][jumps], [self.duration]])
        gaps = np.diff(corners) >= separation
        return corners[1:-1][gaps[:-1] & gaps[1:]]

    def select(self, joint_names: Sequence[str]) -> Trajectory:
        """Return the motion of the named joints, in their order.

        Raises:
            TrajectoryError: the motion lacks a joint.
        """
        missing = [name for name in joint_names if name not in self.joint_names]
        if missing:
            raise TrajectoryError(f"no joint {', '.join(missing)}; the trajectory moves {', '.join(self.joint_names)}")
        columns = [self.joint_names.index(name) for name in joint_names]
        fields = (self.position[:, columns], self.velocity[:, columns], self.acceleration[:, columns])
        return Trajectory(tuple(joint_names), self.time, *fields)

    @staticmethod
    def join(parts: Sequence[Trajectory]) -> Trajectory:
        """Join motions; each must start with the last pose and velocity of the motion before.

        Raises:
            TrajectoryError: the joints differ, or a part does not start where the part before ends; the message has
                part, joint and both values.
        """
        first = parts[0]
        start = 0.0
        fields = [[getattr(first, field)] for field in FIELDS]
        for number, (before, part) in enumerate(pairwise(parts), start=1):
            if part.joint_names != first.joint_names:
                raise TrajectoryError(
                    f"part {number} moves {part.joint_names}, the parts before it {first.joint_names}"
                )
            for field, unit in (("position", "rad or m"), ("velocity", "per s")):
                end = getattr(before, field)[-1]
                begin = getattr(part, field)[0]
                joint = int(np.argmax(np.abs(end - begin)))
                if not np.allclose(end, begin, rtol=0.0, atol=JOIN_TOLERANCE):
                    raise TrajectoryError(
                        f"part {number} starts at {field} {begin[joint]:.6g} {unit} of joint "
                        f"'{first.joint_names[joint]}', but the part before it ends at {end[joint]:.6g}"
                    )
            start += before.duration
            fields[0].append(part.time[1:] + start)
            for values, field in zip(fields[1:], FIELDS[1:], strict=True):
                values.append(getattr(part, field)[1:])
        return Trajectory(first.joint_names, *(np.concatenate(values) for values in fields))

    def save(self, path: str | Path) -> Path:
        """Write the samples as YAML, atomically; return the path."""
        head = {"format": TRAJECTORY_FORMAT, "joint_names": list(self.joint_names)}
        text = yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=math.inf)
        lines = [f"{text}time: {_flow_list(self.time)}"]
        for field in FIELDS[1:]:
            lines += [f"{field}:", *(f"- {_flow_list(row)}" for row in getattr(self, field))]
        return write_atomically(path, "\n".join(lines) + "\n")

    @staticmethod
    def read(path: str | Path) -> Trajectory:
        """Read a file written by `save`.

        Raises:
            TrajectoryError: the file cannot be read, is not safe YAML, or is not a trajectory.
        """
        with open_document(path, "trajectory", TRAJECTORY_FORMAT) as content:
            fields = (content[field] for field in FIELDS)
            names = content["joint_names"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TrajectoryError(f"joint_names is {names!r}; expected a list of names")
            return Trajectory(tuple(names), *fields)

    def write_csv(self, path: str | Path) -> Path:
        """Write a table with t, then position, velocity and acceleration of each joint; return the path."""
        header = ["t", *(f"{joint}_{field}" for field in FIELDS[1:] for joint in self.joint_names)]
        table = np.column_stack([self.time, self.position, self.velocity, self.acceleration])
        rows = [csv_line(header), *(",".join(repr(float(value)) for value in row) for row in table)]
        return write_atomically(path, "\n".join(rows) + "\n")


def _flow_list(values: NDArray) -> str:
    """Format numbers as a YAML list in one line; YAML 1.1 reads a number with exponent but no point as text."""
    numbers = (repr(value) for value in values.tolist())
    return f"[{', '.join(n if '.' in n else n.replace('e', '.0e') for n in numbers)}]"


def minimum_jerk(
    start: ArrayLike, goal: ArrayLike, duration: float, time: ArrayLike
) -> tuple[NDArray, NDArray, NDArray]:
    """Return position, velocity and acceleration, each (M, n), of a minimum-jerk move from rest to rest.

    q(t) = q0 + Δ (10 s³ − 15 s⁴ + 6 s⁵) with s = t / T and Δ = q1 − q0 (Flash and Hogan 1985).

    Args:
        start: (n,) q0, rad or m.
        goal: (n,) q1, rad or m.
        duration: duration T of the move, s.
        time: (M,) times t, s.
    """
    start = np.asarray(start, dtype=float)
    delta = np.asarray(goal, dtype=float) - start
    s = np.clip(np.asarray(time, dtype=float) / duration, 0.0, 1.0)[..., np.newaxis]
    position = start + delta * s**3 * (10 - 15 * s + 6 * s**2)
    velocity = delta / duration * 30 * s**2 * (1 - s) ** 2
    acceleration = delta / duration**2 * 60 * s * (1 - s) * (1 - 2 * s)
    return position, velocity, acceleration


def shortest_duration(
    displacement: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike = np.inf
) -> float:
    """Return the shortest duration (s) of a minimum-jerk move.

    Args:
        displacement: (n,) rad or m.
        velocity: limit, one value or (n,), per s.
        acceleration: limit, per s².
        jerk: limit, per s³.
    """
    distance = np.abs(np.asarray(displacement, dtype=float))
    by_velocity = PEAK_VELOCITY * distance / np.asarray(velocity, dtype=float)
    by_acceleration = np.sqrt(PEAK_ACCELERATION * distance / np.asarray(acceleration, dtype=float))
    by_jerk = np.cbrt(PEAK_JERK * distance / np.asarray(jerk, dtype=float))
    return float(np.max([by_velocity, by_acceleration, by_jerk]))


def move(joint_names: Sequence[str], start: ArrayLike, goal: ArrayLike, duration: float) -> Trajectory:
    """Return a minimum-jerk move, or a rest if `goal` equals `start`.

    Args:
        joint_names: n names.
        start: (n,) rad or m.
        goal: (n,) rad or m.
        duration: duration of the move, s.

    Raises:
        TrajectoryError: the duration is not positive, or more than a working day.
    """
    if not duration > 0:
        raise TrajectoryError(f"a move needs a positive duration, got {duration:g} s")
    check_duration(duration)
    return Trajectory(tuple(joint_names), [0.0, duration], *minimum_jerk(start, goal, duration, [0.0, duration]))  # type: ignore[arg-type]
