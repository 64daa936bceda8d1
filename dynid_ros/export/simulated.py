"""Comparison of a recording with its simulation in MuJoCo, for the URDF and for the identified model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.export.exported_arm import ExportedArm, Motion
from dynid_ros.export.exported_urdf import exported_urdf, with_servo_rotors
from dynid_ros.export.mjcf_file import arm_text, held_friction
from dynid_ros.identification.servo.servo_runs import ServoModel, ServoRun, check_told, servo_runs, with_known_gains
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.identified.servos import ServoDrive
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment, LinkSignals, row_times
from dynid_ros.signals import LowPass
from dynid_ros.simulation.mjcf import mjcf_text
from dynid_ros.simulation.replay import Replay, hold_others

HORIZON = 0.2
"""Duration of recorded torque, s, after which the simulated position is compared with the recorded one."""


@dataclass(frozen=True, eq=False)
class SimulationDistance:
    """RMS errors (n,) of two simulations: "URDF", the unchanged model, and "exported", the exported MJCF.

    Attributes:
        recording: name of the recording.
        torque: RMS error (n,) of torque by simulation, N m; also of "identified", the full model, which MJCF may only
            approximate. Empty if the file has no links or the recording no torque.
        position: RMS error (n,) of position by simulation, rad or m: after `HORIZON`, or over the motion in closed
            loop.
        moved: (n,) RMS displacement in a window, or standard deviation of the positions in closed loop, rad or m.
        windows: number of time windows, or of stretches in closed loop.
        duration: duration of all windows together, s.
        in_closed_loop: whether servos followed the recorded commands; otherwise the recorded torque drove the arm.
        remarks: limitations of the comparison.
        simulated: (N, n) positions of the exported model at the samples of the recording, NaN at samples that were not
            simulated; None: not in closed loop.
    """

    recording: str
    joint_names: tuple[str, ...]
    torque: Mapping[str, NDArray]
    position: Mapping[str, NDArray]
    moved: NDArray
    windows: int
    duration: float
    in_closed_loop: bool
    remarks: tuple[str, ...]
    simulated: NDArray | None = None

    def summary(self) -> str:
        """Return a table for a terminal."""
        width = max(map(len, self.joint_names)) + 2
        torque = [*self.torque]
        position = [*self.position, "moved"]
        columns = [*self.torque.values(), *(1e3 * values for values in [*self.position.values(), self.moved])]
        span = "in closed loop" if self.in_closed_loop else f"after {HORIZON:g} s"
        torque_title = f"{'torque RMS [N m]':<{12 * len(torque)}}" if torque else ""
        head = f"{'':<{width}}{torque_title}position {span}, RMS [1e-3 rad or m]"
        names = f"{'joint':<{width}}" + "".join(f"{name:<12}" for name in [*torque, *position])
        rows = [
            f"{joint:<{width}}" + "".join(f"{column[i]:<12.4g}" for column in columns)
            for i, joint in enumerate(self.joint_names)
        ]
        driven = f"{self.windows} times {HORIZON:g} s of recorded torque"
        if self.in_closed_loop:
            driven = f"{self.duration:.3g} s of recorded commands"
        title = f"In MuJoCo on {self.recording}, {driven}"
        return "\n".join([title, head, names, *rows, *self.remarks])

    def document(self) -> dict:
        """Return the numbers by joint."""

        def by_joint(values: NDArray) -> dict[str, float]:
            return dict(zip(self.joint_names, values.tolist(), strict=True))

        return {
            "torque_rms": {name: by_joint(values) for name, values in self.torque.items()},
            "position_rms": {name: by_joint(values) for name, values in self.position.items()},
            "moved_rms": by_joint(self.moved),
            "horizon": self.duration / self.windows,
            "windows": self.windows,
            "in_closed_loop": self.in_closed_loop,
            "remarks": list(self.remarks),
        }


def simulate_recording(
    model: str | Path, robot: RobotModel, recording: Recording, servos: str | Path | None = None
) -> SimulationDistance:
    """Replay a recording in MuJoCo with the URDF and with the output of `dynid export --to mjcf`.

    Recorded torque is compared with MuJoCo's inverse dynamics after the low-pass of the identification. If the
    recording has commands and the gains of all servos are known, simulated servos follow the commands in each stretch
    without a gap, from its first state; the servos of the URDF have the same gains and delays. Otherwise recorded
    torque drives the simulated arm from recorded states for a short time, and the final positions are compared. Longer
    times would be useless, because an arm without a controller soon leaves its path.

    Raises:
        IdentifiedFileError: a file has neither links nor known servos.
        IdentificationError: the recording has no motion, or neither torque nor commands.
        ModelError: MuJoCo refuses the arm, or it has mimic joints or held joints.
    """
    if robot.chain.has_mimics or robot.chain.held:
        raise ModelError(
            f"{robot.name}: joints that mimic others, or are held, cannot be replayed; choose a tip before them"
        )
    recording = recording.select(robot.joint_names)
    document = load_identified(model)
    names = robot.joint_names
    arm = with_servo_rotors(ExportedArm.read(model, robot, servos), recording.position)
    is_looped = recording.command is not None and set(arm.servos) == set(names)
    arm = arm if is_looped else replace(arm, servos={})
    friction = held_friction(arm, Motion.sinusoids(robot))
    urdf = hold_others(exported_urdf(arm, friction)[0], names, robot.posture)
    arms = {"exported": Replay(arm_text(arm, urdf, friction), names)}
    remarks: tuple[str, ...] = ()
    try:
        plain = hold_others(robot.urdf or "", names, robot.posture)
        arms = {"URDF": Replay(mjcf_text(plain, robot, servos=arm.servos if is_looped else None), names), **arms}
    except ModelError as error:
        remarks = (f"no simulation of the URDF as it is: {error}",)
    torque: dict[str, NDArray] = {}
    segments: list[LinkSegment] = []
    if not is_looped or ("links" in document and np.isfinite(recording.torque).any()):
        identified = link_model(document, robot)
        segments = identified.signals.segments(recording)
        predictions = {**{name: one.torque for name, one in arms.items()}, "identified": identified.predict}
        cutoff = identified.signals.cutoff
        torque = {name: _torque_error(predict, segments, cutoff) for name, predict in predictions.items()}
    if is_looped:
        return _follow_commands(arm, arms, recording, servos or model, torque=torque, remarks=remarks)
    windows = [window for segment in segments for window in _windows(segment)]
    if not windows:
        raise IdentificationError(f"{recording.source}: no motion of {HORIZON:g} s without a gap; record longer")
    ends = np.array([segment.motion.position[rows][-1] for segment, rows in windows])
    starts = np.array([segment.motion.position[rows][0] for segment, rows in windows])
    position = {name: _rms(_ends(one, windows) - ends) for name, one in arms.items()}
    span = len(windows), len(windows) * HORIZON
    return SimulationDistance(recording.source, names, torque, position, _rms(ends - starts), *span, False, remarks)


def _follow_commands(
    arm: ExportedArm,
    arms: Mapping[str, Replay],
    recording: Recording,
    servos: str | Path,
    *,
    torque: Mapping[str, NDArray],
    remarks: tuple[str, ...],
) -> SimulationDistance:
    """Let the servos of simulated arms follow the commands of a recording."""
    settings = load_identified(servos).get("source", {}).get("settings", {})
    is_linear = settings.get("between_commands") == "line"
    runs = command_runs(arm.robot, arm.servos, recording, linear=is_linear)
    measured = np.concatenate([run.position for run in runs])
    paths = {name: [follow_run(one, run) for run in runs] for name, one in arms.items()}
    simulated = np.full_like(recording.position, np.nan)
    stamps, _ = row_times(recording)
    for run, path in zip(runs, paths["exported"], strict=True):
        simulated[np.searchsorted(stamps, run.time)] = path
    position = {name: _rms(np.concatenate(path) - measured) for name, path in paths.items()}
    moved = np.std(measured, axis=0)
    span = len(runs), float(sum(run.grid[-1] - run.grid[0] for run in runs))
    names = arm.robot.joint_names
    return SimulationDistance(recording.source, names, torque, position, moved, *span, True, remarks, simulated)


def command_runs(
    robot: RobotModel, servos: Mapping[str, ServoDrive], recording: Recording, *, linear: bool = False
) -> list[ServoRun]:
    """Return the stretches of a recording whose commands are known before their first sample.

    Args:
        robot: the arm.
        servos: servos of its joints.
        recording: positions and commands.
        linear: whether set-points change linearly from one command to the next; otherwise they are steps.

    Raises:
        IdentificationError: the recording has no commands, or is too short.
    """
    recording = with_known_gains(recording, {name: (servo.stiffness, servo.damping) for name, servo in servos.items()})
    check_told(recording)
    longest = max(servo.delay for servo in servos.values())
    model = ServoModel(robot, None, LinkSignals.choose([recording]).motion_cutoff)
    return servo_runs(model, recording, longest, loaded=False, linear=linear)


def follow_run(arm: Replay, run: ServoRun) -> NDArray:
    """Return the positions (M, n) of a simulated arm at the samples of a stretch."""
    motion = run.motion
    times, path = arm.follow(motion.position[0], motion.velocity[0], run.commands, run.grid[0], run.grid[-1])
    return np.column_stack([np.interp(run.time, times, column) for column in path.T])


def _torque_error(predict: Callable[..., NDArray], segments: Sequence[LinkSegment], cutoff: float) -> NDArray:
    """Return the RMS (n,) of measured minus predicted torque, low-passed, without the distorted ends."""
    errors = []
    for segment in segments:
        low_pass = LowPass(cutoff, segment.rate)
        error = low_pass.filter(segment.torque - predict(*segment.motion))
        errors.append(error[low_pass.edge : len(error) - low_pass.edge])
    return _rms(np.concatenate(errors))


def _windows(segment: LinkSegment) -> Iterator[tuple[LinkSegment, slice]]:
    """Yield consecutive windows of duration `HORIZON` as slices of the segment's samples."""
    size = round(HORIZON * segment.rate)
    for start in range(0, len(segment.time) - size, size):
        yield segment, slice(start, start + size + 1)


def _ends(arm: Replay, windows: Sequence[tuple[LinkSegment, slice]]) -> NDArray:
    """Return the simulated positions (W, n) at the ends of W windows."""
    return np.array(
        [
            arm.position(
                segment.motion.position[rows.start],
                segment.motion.velocity[rows.start],
                segment.time[rows],
                segment.torque[rows],
            )
            for segment, rows in windows
        ]
    )


def _rms(values: NDArray) -> NDArray:
    return np.sqrt(np.mean(np.square(values), axis=0))
