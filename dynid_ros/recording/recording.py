"""Recorded motion of a robot, the input of every identification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import Plotted
from dynid_ros.errors import RecordingError
from dynid_ros.files import require_name
from dynid_ros.files.disk_arrays import read_column, row_blocks, take_columns
from dynid_ros.recording import tables
from dynid_ros.recording.effort import IMPEDANCE, CommandDelay, EffortConvention, with_impedance_torque
from dynid_ros.recording.series import CommandSeries, ImuSeries, PoseSeries, WrenchSeries, require_increasing

MOVED = 0.01
"""Smallest travel of a joint that counts as moved, rad or m; also its smallest speed, rad/s or m/s."""
MIN_TORQUE = 1e-9
"""Smallest torque that counts as measured, N m or N. Memory that a driver does not fill contains smaller numbers,
often denormal ones."""
MIN_TORQUE_SHARE = 1e-7
"""Smallest torque that counts as measured, as a fraction of the arm's largest: the resolution of single precision."""
KINDS_OF_FILES = "give a rosbag2 folder, or a .mcap, .db3, .csv, .tsv, .txt or .npz file"
MIN_STEP_S = 1e-9
"""Smallest mean step between samples, s."""
MAX_VALUE = 1e12
"""Largest value in any unit; larger values are damaged data. Encoder counts are smaller, and are reported elsewhere."""


@dataclass(frozen=True, eq=False, repr=False)
class Recording(Plotted):
    """Samples of all joints on one clock. Arrays are read-only.

    Args:
        joint_names: names of the n joints, in column order.
        time: (N,) strictly increasing time since `start_time`, s; 0 at the first sample of a file.
        position: (N, n) finite positions, rad or m.
        velocity: (N, n) velocities, rad/s or m/s; NaN where not recorded.
        torque: (N, n) joint torques with gravity, N m or N; NaN where not recorded.
        start_time: time of the file's clock at time 0, s (since the epoch in a bag; 0 if unknown).
        link_position: (N, n) positions of a second encoder behind the elastic transmission, or None.
        wrenches: force/torque sensors by topic.
        poses: motion-capture bodies by topic, markers of a topic as "<topic>[<index>]".
        imus: inertial measurement units by topic.
        others: (K,) positions of other recorded joints by name, without times, rad or m.
        truncated: whether the file ends early, because its recorder was killed.
        source: name of the file, for messages.
        command: commanded positions, and for drives in MIT mode velocities, torques and gains, with their own time
            stamps; or None.
        command_delay: time after which a command acts, by which `torque` was computed from the commands of drives in
            MIT mode; None: the torque was recorded.
        clock_remark: remark of the reader on wrong time stamps; empty without any.

    Raises:
        RecordingError: there are no samples, wrong shapes, repeated names, names with control characters, positions
            that are not finite, infinite values, or time stamps that repeat or go backward.
    """

    joint_names: tuple[str, ...]
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    torque: np.ndarray
    start_time: float = 0.0
    link_position: np.ndarray | None = None
    wrenches: Mapping[str, WrenchSeries] = field(default_factory=dict)
    poses: Mapping[str, PoseSeries] = field(default_factory=dict)
    imus: Mapping[str, ImuSeries] = field(default_factory=dict)
    others: Mapping[str, np.ndarray] = field(default_factory=dict)
    truncated: bool = False
    source: str = "recording"
    command: CommandSeries | None = None
    clock_remark: str = ""
    command_delay: CommandDelay | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        for name in ("time", "position", "velocity", "torque", "link_position"):
            if getattr(self, name) is not None:
                array = np.asarray(getattr(self, name), dtype=float).view()
                array.flags.writeable = False
                object.__setattr__(self, name, array)
        self._check_names()
        self._check_shapes()
        require_increasing(self.time, self.source, "remove the repeated or misplaced samples, or split the file there")
        self._check_values()

    @staticmethod
    def read(
        path: str | Path,
        joint_names: Sequence[str] | None = None,
        torque_topic: str | None = None,
        effort_convention: EffortConvention | None = None,
        *,
        joint_states_topic: str | None = None,
        link_states_topic: str | None = None,
        command_topic: str | None = None,
        receive_time: bool = False,
    ) -> Recording:
        """Read a rosbag2 folder, a single .mcap or .db3 file, a table (.csv, .tsv, .txt) or a .npz archive.

        In a bag, positions, velocities and efforts come from one JointState topic; every WrenchStamped, PoseStamped,
        PoseArray and Imu topic is read too. Tables are described in `tables`.

        Args:
            path: file or folder.
            joint_names: joints to read, in this order; they name the columns of a table without names. None: all
                joints, in the order of the first message or of the table.
            torque_topic: topic of a bag with the joint torques, if they are not the effort of the joint states: a
                JointState (effort by name) or a Float64MultiArray in the order of `joint_names`.
            effort_convention: convention of the recorded effort; None: torque in N m, as ROS defines the field.
            joint_states_topic: topic of the joint states; None: /joint_states, or the only JointState topic of the bag.
            link_states_topic: JointState topic of a bag with the positions of the links by the names of their joints,
                interpolated to the times of the joint states; None: no topic.
            command_topic: topic of a bag with the commands: a JointState or a JointTrajectory (by name), a
                Float64MultiArray in the order of `joint_names`, or the reference of a
                control_msgs/JointTrajectoryControllerState; None: no topic.
            receive_time: whether to use the times of reception instead of the time stamps.

        Raises:
            RecordingError: the file is missing, empty, damaged or lacks a joint.
        """
        path = Path(path)
        convention = effort_convention or EffortConvention("torque")
        _require_readable(path, joint_names, convention)
        bag_options: dict[str, Any] = {
            "torque_topic": torque_topic,
            "joint_states_topic": joint_states_topic,
            "link_states_topic": link_states_topic,
            "command_topic": command_topic,
            "receive_time": receive_time,
        }
        if path.is_dir() or path.suffix in (".mcap", ".db3"):
            from dynid_ros.recording.bag_reader import read_bag  # noqa: PLC0415 - rosbags is slow to import

            recording = Recording(**read_bag(path, joint_names, convention, **bag_options))
            return with_impedance_torque(recording, convention) if convention.kind == IMPEDANCE else recording
        readers = dict.fromkeys(tables.TABLE_SUFFIXES, tables.read_csv) | {".npz": tables.read_npz}
        if path.suffix not in readers:
            raise RecordingError(f"{path} is no known kind of recording; {KINDS_OF_FILES}")
        if any(bag_options.values()):
            raise RecordingError(f"{path}: {', '.join(bag_options)} are for bags, not for tables")
        recording = Recording(**readers[path.suffix](path, joint_names, convention))
        recording = recording if joint_names is None else recording.select(joint_names)
        if convention.kind == IMPEDANCE:
            return with_impedance_torque(recording, convention)
        return replace(recording, torque=convention.to_torque(recording.torque))

    def write_csv(self, path: str | Path) -> None:
        """Write the joint data as `tables` describes, with 12 digits; wrenches and poses are omitted."""
        tables.write_csv(self, Path(path))

    def write_npz(self, path: str | Path) -> None:
        """Write the whole recording without loss, as `tables` describes."""
        tables.write_npz(self, Path(path))

    @property
    def n_samples(self) -> int:
        """Number of samples N."""
        return len(self.time)

    @property
    def n_joints(self) -> int:
        """Number of joints n."""
        return len(self.joint_names)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample, s."""
        return float(self.time[-1] - self.time[0])

    @property
    def delay_is_unknown(self) -> bool:
        """Whether `torque` was computed from commands whose delay is unknown."""
        return self.command_delay is not None and bool(np.isnan(self.command_delay.error))

    @property
    def wrench(self) -> WrenchSeries | None:
        """Readings of the only force/torque sensor; None without a sensor.

        Raises:
            RecordingError: there are several sensors; choose one of `wrenches`.
        """
        if len(self.wrenches) > 1:
            raise RecordingError(f"{self.source} has several wrench topics: {', '.join(self.wrenches)}; choose one")
        return next(iter(self.wrenches.values()), None)

    def select(self, joint_names: Sequence[str]) -> Recording:
        """Select these joints, in this order; the positions of the other joints are kept in `others`.

        Raises:
            RecordingError: joints are missing.
        """
        if tuple(joint_names) == self.joint_names:
            return self
        missing = [name for name in joint_names if name not in self.joint_names]
        if missing:
            raise RecordingError(
                f"{self.source} lacks joint(s) {', '.join(missing)}; it has {', '.join(self.joint_names)}"
            )
        columns = [self.joint_names.index(name) for name in joint_names]
        rest = {name: self.position[:, i] for i, name in enumerate(self.joint_names) if name not in joint_names}
        return replace(
            self,
            joint_names=tuple(joint_names),
            others={**self.others, **rest},
            position=take_columns(self.position, columns),
            velocity=take_columns(self.velocity, columns),
            torque=take_columns(self.torque, columns),
            link_position=None if self.link_position is None else take_columns(self.link_position, columns),
            command=None if self.command is None else self.command.select(columns),
        )

    def slice(self, samples: np.ndarray | slice) -> Recording:
        """Select samples by a slice, a mask (N,) or increasing indices, without changing their times.

        Wrenches, poses and commands are kept from the first to the last of these samples.
        """
        time = self.time[samples]
        start, end = (time[0], time[-1]) if len(time) else (np.inf, -np.inf)
        return replace(
            self,
            time=time,
            position=self.position[samples],
            velocity=self.velocity[samples],
            torque=self.torque[samples],
            link_position=None if self.link_position is None else self.link_position[samples],
            command=None if self.command is None else self.command.between(start, end),
            wrenches={topic: series.between(start, end) for topic, series in self.wrenches.items()},
            poses={name: series.between(start, end) for name, series in self.poses.items()},
            imus={topic: series.between(start, end) for topic, series in self.imus.items()},
        )

    def _line(self) -> str:
        rate = (self.n_samples - 1) / self.duration if self.duration else 0.0
        return f"{self.source}, {self.n_joints} joints, {self.n_samples} samples, {self.duration:.4g} s, {rate:.4g} Hz"

    def _table(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"time": self.time}
        for quantity, by_joint in self._series().items():
            columns |= {f"{quantity} {joint}": column for joint, column in by_joint.items()}
        return columns

    def _series(self) -> dict[str, dict[str, NDArray]]:
        values = {name: getattr(self, name) for name in ("position", "velocity", "torque", "link_position")}
        return {
            name: dict(zip(self.joint_names, rows.T, strict=True))
            for name, rows in values.items()
            if rows is not None and np.isfinite(rows).any()
        }

    def _check_names(self) -> None:
        for joint in (*self.joint_names, *self.others):
            require_name(joint, f"{self.source}: a joint", RecordingError)
        for topics in (self.wrenches, self.poses, self.imus):
            for topic, series in topics.items():
                require_name(topic, f"{self.source}: a topic", RecordingError)
                require_name(series.frame_id, f"{self.source}: the frame of {topic}", RecordingError)

    def _check_shapes(self) -> None:
        names = self.joint_names
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise RecordingError(f"{self.source} names joint(s) {', '.join(twice)} more than once")
        if self.time.ndim != 1 or not self.time.size or not names:
            raise RecordingError(
                f"{self.source} has no samples: time has shape {self.time.shape} for {len(names)} joints; "
                "expected (N,) with N > 0"
            )
        for name in ("position", "velocity", "torque", "link_position"):
            array = getattr(self, name)
            if array is not None and array.shape != (len(self.time), len(names)):
                raise RecordingError(
                    f"{self.source}: {name} has shape {array.shape}; expected ({len(self.time)}, {len(names)}) "
                    f"for {len(self.time)} samples of {len(names)} joints"
                )

        if self.command is not None and self.command.position.shape[1] != len(names):
            raise RecordingError(
                f"{self.source}: command has shape {self.command.position.shape}; expected (K, {len(names)}), one "
                "column per joint"
            )

    def _check_values(self) -> None:
        if self.duration < MIN_STEP_S * (self.n_samples - 1):
            raise RecordingError(
                f"{self.source}: its {self.n_samples} samples take {self.duration:g} s; time must be in s"
            )
        for name in ("position", "velocity", "torque", "link_position"):
            array = getattr(self, name)
            if array is None:
                continue
            bad = []
            for rows in row_blocks(len(array)):
                bad.append(np.argwhere(~_is_acceptable(array[rows], name)))
                bad[-1][:, 0] += rows.start
            count = sum(map(len, bad))
            if count:
                sample, joint = next(part for part in bad if len(part))[0]
                raise RecordingError(
                    f"{self.source}: {name} of joint '{self.joint_names[joint]}' is {array[sample, joint]} at sample "
                    f"{sample}, t = {self.time[sample]:g} s ({count} such values); expected a number up to "
                    f"{MAX_VALUE:g}: remove these samples, or record again"
                )


def _is_acceptable(values: np.ndarray, name: str) -> np.ndarray:
    """Return a mask (N, n) of the values that a recording may have; positions must be known."""
    good = np.abs(values) <= MAX_VALUE
    return good if name == "position" else good | np.isnan(values)


RecordingLike = Recording | str | Path
Recordings = RecordingLike | Sequence[RecordingLike]
"""Recording, or path of a recording; or several of them."""


def read_all(given: Sequence[Recordings], joint_names: Sequence[str] | None = None) -> tuple[Recording, ...]:
    """Return the given recordings, and read those that are given by path; nested lists are flattened.

    Effort in the files counts as torque.

    Raises:
        RecordingError: a file cannot be read, see `Recording.read`.
    """
    recordings: list[Recording] = []
    for entry in given:
        if isinstance(entry, Recording):
            recordings.append(entry)
        elif isinstance(entry, (str, Path)):
            recordings.append(Recording.read(entry, joint_names))
        else:
            recordings += read_all(entry, joint_names)
    return tuple(recordings)


def practically_zero(torque: np.ndarray) -> np.ndarray:
    """Return a mask (n,) of the joints whose torques (N, n) are recorded, but zero or too small to be measured."""
    largest = np.full(torque.shape[1], np.inf)
    usual_of_arm = 0.0
    for j in range(torque.shape[1]):
        magnitude = np.abs(read_column(torque, j))
        is_finite = np.isfinite(magnitude)
        magnitude = magnitude if is_finite.all() else magnitude[is_finite]
        if magnitude.size:
            largest[j] = magnitude.max()
            # The quantile excludes spikes: compared with a spike, every other torque would seem to be zero.
            usual_of_arm = max(usual_of_arm, float(np.quantile(magnitude, 0.99, overwrite_input=True)))
    return largest <= max(MIN_TORQUE, MIN_TORQUE_SHARE * usual_of_arm)


def add_poses(recording: Recording, poses: Mapping[str, PoseSeries]) -> Recording:
    """Return a recording with further motion-capture tracks, whose time stamps are not changed.

    Do not slice the recording while the tracks are on the camera's clock: a slice uses the robot's clock.

    Raises:
        RecordingError: the recording has a track of the same name.
    """
    both = sorted(set(recording.poses) & set(poses))
    if both:
        raise RecordingError(
            f"{recording.source} already has poses of {', '.join(both)}; rename or leave out one of them"
        )
    return replace(recording, poses={**recording.poses, **poses})


def _require_readable(path: Path, joint_names: Sequence[str] | None, convention: EffortConvention) -> None:
    """Check the arguments of `Recording.read` before a reader is chosen."""
    try:
        exists = path.exists()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror}); give a folder or file that can") from error
    if not exists:
        raise RecordingError(f"{path} does not exist; {KINDS_OF_FILES}")
    if not isinstance(convention, EffortConvention):
        raise RecordingError(
            f"effort_convention is {convention!r}; give EffortConvention({convention!r}) of dynid_ros.recording"
        )
    if convention.gains is not None and joint_names is None:
        raise RecordingError(
            f"{path}: the gains of effort_convention are in the order of joint_names; give joint_names with them"
        )
