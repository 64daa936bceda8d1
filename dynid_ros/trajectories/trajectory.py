"""A planned motion of all joints over time, and its YAML file."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BPoly

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import MEGABYTE, csv_line, parse_yaml, read_text, write_atomically

LARGEST_FILE = 50 * MEGABYTE


@contextmanager
def document(path: str | Path, what: str, form: str) -> Iterator[dict]:
    """Content of a safe YAML file of `form`, a `what`; what goes wrong in the block names the file too.

    Raises:
        TrajectoryError: the file cannot be read, is not safe YAML, is not of that format, or lacks or garbles an entry.
    """
    try:
        text = read_text(path, LARGEST_FILE)
        content = _parse_rows(text) or parse_yaml(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrajectoryError(f"cannot read {what} '{path}' ({reason}); give one that was planned here") from error
    if not isinstance(content, dict) or content.get("format") != form:
        raise TrajectoryError(f"'{path}' is not a {what}: expected 'format: {form}'")
    try:
        yield content
    except KeyError as error:
        raise TrajectoryError(f"{what} '{path}' lacks the entry {error}") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else "an entry is of another kind"
        raise TrajectoryError(f"{what} '{path}' is malformed: {reason}; give one that was planned here") from error
    except TrajectoryError as error:
        raise TrajectoryError(f"{what} '{path}': {error}") from error


_ROWS = re.compile(r"(.*?\n)time:(.*?)\nposition:(.*?)\nvelocity:(.*?)\nacceleration:(.*)", re.DOTALL)
"""Layout of the files that `Trajectory.save` writes: a head, then a list for each field."""


def _parse_rows(text: str) -> dict | None:
    """Parse the rows of numbers in a file of `Trajectory.save` as JSON, three times faster than as YAML.

    Returns:
        Content of the file, or None for any other layout, which the YAML parser then reads or refuses.
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
    """Parse a flow list, or a block list whose entries are flow lists.

    Raises:
        ValueError: the text is neither of them.
    """
    if text.startswith("\n- "):
        rows = text[3:].rstrip().split("\n- ")
        if text.count("[") != len(rows):
            raise ValueError("expected one list of numbers in each row")
        text = f"[{','.join(rows)}]"
    return json.loads(text, parse_int=float, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"'{name}' is no number in YAML")


FORMAT = "dynid-trajectory/1"
FIELDS = ("time", "position", "velocity", "acceleration")
LONGEST = 8 * 3600.0
"""s; a working day."""
JUMP = 0.01
"""Part of a joint's largest jerk that counts as a jump."""
ROUNDING = 1e-9
"""What a jump must move a joint between two samples to be more than rounding, rad or m."""


def check_duration(duration: float) -> None:
    """Refuse a motion that takes longer than a working day; `duration` in s."""
    if not duration <= LONGEST:
        raise TrajectoryError(
            f"a motion of {duration:.3g} s takes more than {LONGEST / 3600:g} h; move faster, rest for less time, or "
            "give fewer poses"
        )


@dataclass(frozen=True)
class Trajectory:
    """N samples of n joints, and between them the quintics that meet position, velocity and acceleration at both ends.

    `joint_trajectory_controller` reads such points in the same way. A minimum-jerk move needs two samples only.

    Attributes:
        joint_names: n names.
        time: (N,) strictly increasing from 0, s.
        position: (N, n) rad or m.
        velocity: (N, n) per s.
        acceleration: (N, n) per s².

    Raises:
        TrajectoryError: shapes do not fit together, time does not increase from 0, or goes on beyond a working day.
    """

    joint_names: tuple[str, ...]
    time: NDArray
    position: NDArray
    velocity: NDArray
    acceleration: NDArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        for field in ("time", "position", "velocity", "acceleration"):
            object.__setattr__(self, field, np.array(getattr(self, field), dtype=float))
        if self.time.ndim != 1 or len(self.time) < 2:
            raise TrajectoryError(f"a trajectory needs at least two samples in time, got shape {self.time.shape}")
        shape = (len(self.time), len(self.joint_names))
        for field in ("position", "velocity", "acceleration"):
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
        """Position, velocity and acceleration, each (M, n), at times (M,); at rest in the end poses before and after.

        A scalar time gives (n,).
        """
        time = np.asarray(time, dtype=float)
        inside = np.clip(time, 0.0, self.duration)
        displacement, velocity, acceleration = (spline(inside) for spline in self._splines)
        before = np.clip(np.searchsorted(self.time, inside, side="right") - 1, 0, self.n_samples - 2)
        position = self.position[before] + displacement
        outside = (inside != time)[..., np.newaxis]
        return position, np.where(outside, 0.0, velocity), np.where(outside, 0.0, acceleration)

    def jerk(self, time: ArrayLike) -> NDArray:
        """Jerk (M, n), per s³, at times (M,); it may jump at samples, where it is that after them."""
        time = np.asarray(time, dtype=float)
        outside = (time < 0.0) | (time > self.duration)
        return np.where(outside[..., np.newaxis], 0.0, self._jerk_spline(np.clip(time, 0.0, self.duration)))

    def jerk_peaks(self) -> tuple[NDArray, NDArray]:
        """Time and jerk, each (N − 1, n), where the jerk between two samples, a parabola, is largest."""
        start, middle, end = self._jerk_spline.c  # in Bernstein's basis
        curvature = start - 2 * middle + end
        turning = np.clip((start - middle) / np.where(curvature == 0.0, 1.0, curvature), 0.0, 1.0)
        places = np.stack([np.zeros_like(turning), turning, np.ones_like(turning)])
        values = (1 - places) ** 2 * start + 2 * places * (1 - places) * middle + places**2 * end
        largest = np.argmax(np.abs(values), axis=0)[np.newaxis]
        place, peak = (np.take_along_axis(choices, largest, 0)[0] for choices in (places, values))
        return self.time[:-1, np.newaxis] + place * np.diff(self.time)[:, np.newaxis], peak

    @cached_property
    def _jerk_spline(self) -> BPoly:
        return self._splines[2].derivative()

    @cached_property
    def _splines(self) -> tuple[BPoly, BPoly, BPoly]:
        # From the sample before each, so that a rest is one to the last digit.
        step, change = np.diff(self.time)[:, np.newaxis], np.diff(self.position, axis=0)
        control = []  # points of the quintics in Bernstein's basis
        for sign, end, place in ((1, slice(None, -1), 0.0 * change), (-1, slice(1, None), change)):
            slope = sign * step / 5 * self.velocity[end]
            control += [place, place + slope, place + 2 * slope + step**2 / 20 * self.acceleration[end]][::sign]
        position = BPoly(np.array(control), self.time)
        velocity = position.derivative()
        return position, velocity, velocity.derivative()

    def sample(self, rate: float) -> "Trajectory":
        """The same motion at `rate` samples per second; the end is always a sample.

        So is a sample where the jerk jumps, as where a move starts or ends, unless the next such is nearer than
        1 / `rate`; samples that close to it give way. A quintic across the jump would need more jerk than the motion.

        Raises:
            TrajectoryError: the rate, Hz, is not positive.
        """
        if not rate > 0:
            raise TrajectoryError(f"the sampling rate must be positive, got {rate:g} Hz")
        time = np.arange(np.ceil(self.duration * rate)) / rate
        corners = self._corners(1.0 / rate)
        fences = np.concatenate([[-np.inf], corners, [np.inf]])
        after = np.searchsorted(fences, time)
        time = time[np.minimum(time - fences[after - 1], fences[after] - time) > 0.5 / rate]
        time = time[self.duration - time >= 1e-6]
        time = np.unique(np.concatenate([[0.0], time, corners, [self.duration]]))
        return Trajectory(self.joint_names, time, *self.at(time))

    def _corners(self, apart: float) -> NDArray:
        """Times of the samples at which the jerk jumps, those at least so far `apart` (s) from each other."""
        start, _, end = self._jerk_spline.c
        jump = np.abs(start[1:] - end[:-1])
        largest = np.maximum(np.abs(start).max(axis=0), np.abs(end).max(axis=0))
        jumps = np.any(jump > np.maximum(JUMP * largest, ROUNDING / apart**3), axis=1)
        corners = np.concatenate([[0.0], self.time[1:-1][jumps], [self.duration]])
        gaps = np.diff(corners) >= apart
        return corners[1:-1][gaps[:-1] & gaps[1:]]

    def select(self, joint_names: Sequence[str]) -> "Trajectory":
        """The joints named, in that order.

        Raises:
            TrajectoryError: it does not move one of them.
        """
        missing = [name for name in joint_names if name not in self.joint_names]
        if missing:
            raise TrajectoryError(f"no joint {', '.join(missing)}; the trajectory moves {', '.join(self.joint_names)}")
        columns = [self.joint_names.index(name) for name in joint_names]
        fields = (self.position[:, columns], self.velocity[:, columns], self.acceleration[:, columns])
        return Trajectory(tuple(joint_names), self.time, *fields)

    @staticmethod
    def join(parts: Sequence["Trajectory"]) -> "Trajectory":
        """One after another; each must start in the pose and with the velocity that the one before it ends with.

        Raises:
            TrajectoryError: the joints differ, or a part starts elsewhere; names part, joint and both values.
        """
        first = parts[0]
        start = 0.0
        fields = [[getattr(first, field)] for field in ("time", "position", "velocity", "acceleration")]
        for number, (before, part) in enumerate(pairwise(parts), start=1):
            if part.joint_names != first.joint_names:
                raise TrajectoryError(
                    f"part {number} moves {part.joint_names}, the parts before it {first.joint_names}"
                )
            for field, unit in (("position", "rad or m"), ("velocity", "per s")):
                end, begin = getattr(before, field)[-1], getattr(part, field)[0]
                joint = int(np.argmax(np.abs(end - begin)))
                if not np.allclose(end, begin, rtol=0.0, atol=1e-9):
                    raise TrajectoryError(
                        f"part {number} starts at {field} {begin[joint]:.6g} {unit} of joint "
                        f"'{first.joint_names[joint]}', but the part before it ends at {end[joint]:.6g}"
                    )
            start += before.duration
            fields[0].append(part.time[1:] + start)
            for values, field in zip(fields[1:], ("position", "velocity", "acceleration"), strict=True):
                values.append(getattr(part, field)[1:])
        return Trajectory(first.joint_names, *(np.concatenate(values) for values in fields))

    def save(self, path: str | Path) -> Path:
        """Write the samples as YAML, at once or not at all."""
        head = {"format": FORMAT, "joint_names": list(self.joint_names)}
        text = yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=math.inf)
        lines = [f"{text}time: {_flow_list(self.time)}"]
        for field in FIELDS[1:]:
            lines += [f"{field}:", *(f"- {_flow_list(row)}" for row in getattr(self, field))]
        return write_atomically(path, "\n".join(lines) + "\n")

    @staticmethod
    def read(path: str | Path) -> "Trajectory":
        """Read what `save` wrote.

        Raises:
            TrajectoryError: the file cannot be read, is not safe YAML, or is not a trajectory.
        """
        with document(path, "trajectory", FORMAT) as content:
            fields = (content[field] for field in FIELDS)
            names = content["joint_names"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TrajectoryError(f"joint_names is {names!r}; expected a list of names")
            return Trajectory(tuple(names), *fields)

    def write_csv(self, path: str | Path) -> Path:
        """Write a table: t, then position, velocity and acceleration of each joint."""
        fields = ("position", "velocity", "acceleration")
        header = ["t", *(f"{joint}_{field}" for field in fields for joint in self.joint_names)]
        table = np.column_stack([self.time, self.position, self.velocity, self.acceleration])
        rows = [csv_line(header), *(",".join(repr(float(value)) for value in row) for row in table)]
        return write_atomically(path, "\n".join(rows) + "\n")


def _flow_list(values: NDArray) -> str:
    """Format numbers as a flow list; YAML 1.1 takes a number with an exponent for text unless it has a point."""
    numbers = (repr(value) for value in values.tolist())
    return f"[{', '.join(n if '.' in n else n.replace('e', '.0e') for n in numbers)}]"


# Rest-to-rest moves of minimum jerk: q(t) = q0 + Δ(10 s³ − 15 s⁴ + 6 s⁵), s = t/T (Flash & Hogan 1985).


PEAK_VELOCITY = 15 / 8
"""Largest velocity, in Δ/T (at the middle)."""
PEAK_ACCELERATION = 10 / np.sqrt(3)
"""Largest acceleration, in Δ/T² (at s = (3 ∓ √3)/6)."""
PEAK_JERK = 60.0
"""Largest jerk, in Δ/T³ (at both ends)."""


def minimum_jerk(
    start: ArrayLike, goal: ArrayLike, duration: float, time: ArrayLike
) -> tuple[NDArray, NDArray, NDArray]:
    """Position, velocity and acceleration, each (M, n), at times (M,) of the move from `start` (n,) to `goal` (n,)."""
    start, goal = np.asarray(start, dtype=float), np.asarray(goal, dtype=float)
    s = np.clip(np.asarray(time, dtype=float) / duration, 0.0, 1.0)[..., np.newaxis]
    delta = goal - start
    position = start + delta * s**3 * (10 - 15 * s + 6 * s**2)
    velocity = delta / duration * 30 * s**2 * (1 - s) ** 2
    acceleration = delta / duration**2 * 60 * s * (1 - s) * (1 - 2 * s)
    return position, velocity, acceleration


def shortest_duration(
    displacement: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike = np.inf
) -> float:
    """Shortest time (s) for displacements (n,) within velocity, acceleration and jerk limits (n,)."""
    distance = np.abs(np.asarray(displacement, dtype=float))
    by_velocity = PEAK_VELOCITY * distance / np.asarray(velocity, dtype=float)
    by_acceleration = np.sqrt(PEAK_ACCELERATION * distance / np.asarray(acceleration, dtype=float))
    by_jerk = np.cbrt(PEAK_JERK * distance / np.asarray(jerk, dtype=float))
    return float(np.max([by_velocity, by_acceleration, by_jerk]))


def move(joint_names: Sequence[str], start: ArrayLike, goal: ArrayLike, duration: float) -> Trajectory:
    """The move as a trajectory; with `goal` equal to `start` it is a rest.

    Args:
        joint_names: n names.
        start: (n,) rad or m.
        goal: (n,) likewise.
        duration: s.

    Raises:
        TrajectoryError: the duration is not positive, or more than a working day.
    """
    if not duration > 0:
        raise TrajectoryError(f"a move needs a positive duration, got {duration:g} s")
    check_duration(duration)
    return Trajectory(tuple(joint_names), [0.0, duration], *minimum_jerk(start, goal, duration, [0.0, duration]))  # type: ignore[arg-type]
