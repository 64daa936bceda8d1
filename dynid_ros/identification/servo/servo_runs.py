"""Recordings of servos as inputs of closed-loop simulations; recordings that cannot serve are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks
from dynid_ros.model.base_parameters import BaseParameters, parameter_names, random_motion
from dynid_ros.model.robot import locked
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import equivalent_positions
from dynid_ros.recording.recording import MOVED
from dynid_ros.recording.series import CommandPath
from dynid_ros.recording.uniform_motion import joint_motions, resample_channels, row_times
from dynid_ros.signals import LowPass, Motion

MIN_ECHO_CORRELATION = 0.99
"""Share of samples equal to the command above which positions are not measurements."""
MAX_STILL_TRAVEL = 1e-4
"""Smallest change of a command that counts as motion, rad or m."""
SETTLING_S = 0.5
"""Time after a gap or the beginning until the state before it no longer matters, s."""
GAIN_TOLERANCE = 1e-6
"""Largest change of a gain that counts as constant, as a fraction: gains are sent as text or in 12 bits."""
ARMATURE = "armature"
COMPLIANCE = "compliance"


@dataclass(frozen=True, eq=False)
class JointColumns:
    """Torque of one joint in its coefficients, at N times: own acceleration · `inertia` + `rest`, each (N, c).

    Columns are a constant, the reference mass where there is one, and the base parameters. `gravity` is what of `rest`
    the arm's own weight is.
    """

    inertia: NDArray
    rest: NDArray
    gravity: NDArray


@dataclass(frozen=True, eq=False)
class ServoRun:
    """A stretch of a recording without a gap.

    Attributes:
        source: the recording.
        loaded: whether the reference mass was attached.
        time: (M,) s of the samples that are compared.
        position: (M, n) as measured.
        grid: (G,) s, uniform, from before the samples.
        motion: of the joints at these times, (G, n) each, smoothed.
        commands: of the n joints.
        columns: of the n joints, at the times of the grid.
    """

    source: str
    loaded: bool
    time: NDArray
    position: NDArray
    grid: NDArray
    motion: Motion
    commands: tuple[CommandPath, ...]
    columns: tuple[JointColumns, ...]


class ServoModel:
    """Columns of the torque of each joint.

    Args:
        robot: arm with the moving joints only.
        load: (10,) parameters of the reference mass in the last link; None: no mass.
        cutoff: cutoff frequency of the low-pass of the motion, Hz.
    """

    def __init__(self, robot: RobotModel, load: NDArray | None, cutoff: float) -> None:
        self.robot = robot
        self.load = load
        self.cutoff = cutoff
        self._weightless = RobotModel(robot.chain, gravity=np.zeros(3))
        structure = robot.structure
        motion = random_motion(structure)
        regressor = structure.torque_regressor(*motion)
        names = (*parameter_names(robot), ARMATURE)
        self.base = tuple(
            BaseParameters(np.column_stack([regressor[:, j], motion[2][:, j]]), names) for j in range(robot.n_joints)
        )

    def names(self, joint: int) -> tuple[str, ...]:
        """Return the names of the columns of a joint."""
        return ("offset", *((COMPLIANCE,) if self.load is not None else ()), *self.base[joint].expressions)

    def columns(self, motion: Motion, *, loaded: bool) -> tuple[JointColumns, ...]:
        """Columns of all joints."""
        robot = self.robot
        n = self.robot.n_joints
        found: list[list[tuple[NDArray, NDArray, NDArray]]] = [[] for _ in range(n)]
        for block in blocks(len(motion.position)):
            q, qd, qdd = (part[block] for part in motion)
            whole = robot.torque_regressor(q, qd, qdd)
            weight = robot.gravity_regressor(q)
            still = np.zeros_like(q)
            for j in range(n):
                unit = still.copy()
                unit[:, j] = 1.0
                own = self._weightless.torque_regressor(q, still, unit)[:, j]
                rest = whole[:, j] - own * qdd[:, j, None]
                inertia, rest = self._of(j, own, rest, loaded=loaded)
                found[j].append((inertia, rest, self._weight(j, weight[:, j])))
        return tuple(JointColumns(*(np.concatenate(part) for part in zip(*one, strict=True))) for one in found)

    def weight(self, position: NDArray) -> list[NDArray]:
        """Return the columns (N, c) of the arm's weight at positions (N, n), for each joint."""
        regressor = self.robot.gravity_regressor(position)
        return [self._weight(j, regressor[:, j]) for j in range(self.robot.n_joints)]

    def _weight(self, joint: int, regressor: NDArray) -> NDArray:
        """Columns (N, c) of the arm's weight, of a regressor (N, 10 m)."""
        base = self.base[joint].reduce(np.column_stack([regressor, np.zeros(len(regressor))]))
        return np.column_stack([np.zeros((len(base), len(self.names(joint)) - base.shape[1])), base])

    def _of(self, joint: int, own: NDArray, rest: NDArray, *, loaded: bool) -> tuple[NDArray, NDArray]:
        """Columns (N, c) of the own acceleration and of the rest, of regressors (N, 10 m)."""
        zero = np.zeros((len(own), 1))
        one = np.ones((len(own), 1))
        base = self.base[joint]
        load = () if self.load is None else ((loaded * own[:, self.robot.tip_columns] @ self.load)[:, None],)
        load_rest = () if self.load is None else ((loaded * rest[:, self.robot.tip_columns] @ self.load)[:, None],)
        return (
            np.hstack([zero, *load, base.reduce(np.hstack([own, one]))]),
            np.hstack([one, *load_rest, base.reduce(np.hstack([rest, zero]))]),
        )


def moving_joints(robot: RobotModel, recordings: Sequence[Recording]) -> RobotModel:
    """Return the arm with the joints that move; the others are held at their positions.

    Raises:
        IdentificationError: no commands, no command that changes, positions that only repeat them, or a joint that
            moves in one direction only or without a command.
    """
    for recording in recordings:
        check_told(recording)
    told = [_told_way(recordings, j) for j in range(robot.n_joints)]
    position = np.concatenate([recording.position for recording in recordings])
    way = np.ptp(position, axis=0)
    moved = way > MOVED
    sources = ", ".join(recording.source for recording in recordings)
    if not any(each > MAX_STILL_TRAVEL for each in told):
        raise IdentificationError(
            f"{sources}: the command never changes, so that neither delay nor gain are determined; command a motion"
        )
    for j, name in enumerate(robot.joint_names):
        if moved[j] and told[j] <= MAX_STILL_TRAVEL:
            raise IdentificationError(
                f"{sources}: joint '{name}' moves by {way[j]:.3g} though its command never changes, so its delay is "
                "undetermined; command it, or hold it still"
            )
        if moved[j] and not _reverses(recordings, j):
            raise IdentificationError(
                f"{sources}: joint '{name}' never reverses, so its friction cannot be distinguished from an offset; "
                "command it back and forth"
            )
    names = [name for name, own in zip(robot.joint_names, moved, strict=True) if own]
    if not names:
        raise IdentificationError(f"{sources}: no joint moves by more than {MOVED:g} rad or m; command larger motions")
    return robot if moved.all() else locked(robot, names, position.mean(axis=0))


def with_known_gains(recording: Recording, gains: Mapping[str, tuple[float, float]]) -> Recording:
    """Return the recording with the set-points whose position error alone makes the torque of its commands.

    Commanded velocities and torques act like an additional position error, divided by the stiffness.

    Args:
        recording: recording with commands.
        gains: stiffness and damping of every joint by name; empty: unknown, the recording is returned.
    """
    command = recording.command
    if not gains or command is None:
        return recording
    stiffness, damping = (
        np.tile([gains[name][k] for name in recording.joint_names], (len(command.time), 1)) for k in (0, 1)
    )
    return replace(recording, command=equivalent_positions(replace(command, stiffness=stiffness, damping=damping)))


def commanded_gains(recordings: Sequence[Recording]) -> dict[str, tuple[float, float]]:
    """Return stiffness and damping by joint that the commands contain; empty if they contain none.

    Raises:
        IdentificationError: a gain changes.
    """
    gains: dict[str, tuple[float, float]] = {}
    for recording in recordings:
        command = recording.command
        if command is None or command.stiffness is None or not np.isfinite(command.stiffness).any(axis=0).all():
            return {}
        damping = np.zeros_like(command.stiffness) if command.damping is None else np.nan_to_num(command.damping)
        for j, name in enumerate(recording.joint_names):
            gain = float(np.nanmedian(command.stiffness[:, j])), float(np.median(damping[:, j]))
            wanders = max(np.nanmax(np.abs(command.stiffness[:, j] - gain[0])), np.abs(damping[:, j] - gain[1]).max())
            if wanders > GAIN_TOLERANCE * max(gain) or gains.setdefault(name, gain) != gain or not gain[0]:
                raise IdentificationError(
                    f"{recording.source}: the commanded gains of joint '{name}' change or are 0 ({gain[0]:g} N m/rad, "
                    f"{gain[1]:g} N m s/rad); servos need one stiffness above 0: use recordings with the same gains"
                )
    return gains


def check_told(recording: Recording) -> None:
    """Refuse a recording without commands for all of its joints, or whose positions only repeat them.

    Raises:
        IdentificationError: names the joints.
    """
    command = recording.command
    if command is None or not np.isfinite(command.position).any(axis=0).all():
        lacking = recording.joint_names
        if command is not None:
            known = np.isfinite(command.position).any(axis=0)
            lacking = tuple(name for name, some in zip(recording.joint_names, known, strict=True) if not some)
        raise IdentificationError(
            f"{recording.source}: no commands of joint(s) {', '.join(lacking)}; record the topic of the commanded "
            "positions and name it (command_topic), or give columns '<joint>_command'"
        )
    for j, name in enumerate(recording.joint_names):
        told = command.path(j)
        if np.ptp(told.position) <= MAX_STILL_TRAVEL or len(told.position) < 2:
            continue
        latest = told.at(recording.time) == recording.position[:, j]
        if np.mean(latest) > MIN_ECHO_CORRELATION:
            raise IdentificationError(
                f"{recording.source}: the positions of joint '{name}' are its commands, not measured: the driver "
                "repeats what it was told; record the encoder"
            )


def _told_way(recordings: Sequence[Recording], joint: int) -> float:
    told = [recording.command.position[:, joint] for recording in recordings if recording.command is not None]
    return max(float(np.nanmax(each) - np.nanmin(each)) for each in told)


def _reverses(recordings: Sequence[Recording], joint: int) -> bool:
    """Return whether a joint moves forward and back by a fraction of its travel."""
    for recording in recordings:
        q = recording.position[:, joint]
        on = np.max(q - np.minimum.accumulate(q))
        back = np.max(np.maximum.accumulate(q) - q)
        if min(on, back) > MOVED:
            return True
    return False


def servo_runs(
    model: ServoModel, recording: Recording, longest_delay: float, *, loaded: bool, linear: bool
) -> list[ServoRun]:
    """Stretches of a recording that are long enough.

    Raises:
        IdentificationError: too few samples.
    """
    assert recording.command is not None
    commands = tuple(recording.command.path(j, linear=linear) for j in range(recording.n_joints))
    try:
        time, _ = row_times(recording)
        series = resample_channels(recording, recording.position)
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error
    low_pass = LowPass(min(model.cutoff, 0.4 * series.rate), series.rate)
    begin = max(told.time[0] for told in commands) + longest_delay
    parts = [part for part in series.segments if part.time[-1] > max(begin, part.time[0]) + 2 * SETTLING_S]
    runs = []
    for part, motion in zip(parts, joint_motions([part.values for part in parts], low_pass), strict=True):
        kept = part.time >= begin
        compared = (time >= max(begin, part.time[0]) + SETTLING_S) & (time <= part.time[-1])
        own = Motion(*(values[kept] for values in motion))
        runs.append(
            ServoRun(
                recording.source,
                loaded,
                time[compared],
                recording.position[compared],
                part.time[kept],
                own,
                commands,
                model.columns(own, loaded=loaded),
            )
        )
    if not runs:
        raise IdentificationError(
            f"{recording.source}: no stretch with commands lasts {2 * SETTLING_S:g} s without a gap; record longer"
        )
    return runs
