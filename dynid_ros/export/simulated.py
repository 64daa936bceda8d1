"""Distance of a simulation from a recording, for the URDF's model and the identified model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.export.exported_urdf import exported_urdf
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.export.mjcf_file import HELD, joint_fields
from dynid_ros.export.motion import Motion
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment
from dynid_ros.signals import LowPass
from dynid_ros.simulation.mjcf import mjcf_text
from dynid_ros.simulation.replay import Replay, hold_others

HORIZON = 0.2
"""s of recorded torque, after which the simulated arm is compared with the recorded one."""


@dataclass(frozen=True, eq=False)
class SimulationDistance:
    """RMS errors (n,) of two simulations: "URDF", the unchanged model, and "exported".

    Attributes:
        recording: name.
        joint_names: n.
        torque: N m; also of "identified", the full model without the limits of MJCF.
        position: rad or m, after `HORIZON`.
        moved: RMS displacement of the joints in that time.
        windows: number of time windows.
        remarks: limits of the comparison.
    """

    recording: str
    joint_names: tuple[str, ...]
    torque: Mapping[str, NDArray]
    position: Mapping[str, NDArray]
    moved: NDArray
    windows: int
    remarks: tuple[str, ...]

    def summary(self) -> str:
        """Return a table for a terminal."""
        width = max(map(len, self.joint_names)) + 2
        torque = [*self.torque]
        position = [*self.position, "moved"]
        columns = [*self.torque.values(), *(1e3 * values for values in [*self.position.values(), self.moved])]
        head = f"{'':<{width}}{'torque RMS [N m]':<{12 * len(torque)}}position after {HORIZON:g} s, RMS [1e-3 rad or m]"
        names = f"{'joint':<{width}}" + "".join(f"{name:<12}" for name in [*torque, *position])
        rows = [
            f"{joint:<{width}}" + "".join(f"{column[i]:<12.4g}" for column in columns)
            for i, joint in enumerate(self.joint_names)
        ]
        title = f"In MuJoCo on {self.recording}, {self.windows} times {HORIZON:g} s of recorded torque"
        return "\n".join([title, head, names, *rows, *self.remarks])

    def document(self) -> dict:
        """Return the numbers by joint."""

        def by_joint(values: NDArray) -> dict[str, float]:
            return dict(zip(self.joint_names, values.tolist(), strict=True))

        return {
            "torque_rms": {name: by_joint(values) for name, values in self.torque.items()},
            "position_rms": {name: by_joint(values) for name, values in self.position.items()},
            "moved_rms": by_joint(self.moved),
            "horizon": HORIZON,
            "windows": self.windows,
            "remarks": list(self.remarks),
        }


def simulate_recording(model: str | Path, robot: RobotModel, recording: Recording) -> SimulationDistance:
    """Replay a recording in MuJoCo with the URDF and with the output of `dynid export --to mjcf`.

    Recorded torque is compared with MuJoCo's inverse dynamics, both through the low-pass of the identification.
    Position
    is compared after short times in which the recorded torque drives the simulated arm from recorded states; over
    longer
    times any arm without a controller leaves its path.

    Raises:
        IdentifiedFileError: the file holds no links.
        IdentificationError: the recording holds no motion or torque.
        ModelError: MuJoCo refuses the arm, or it has mimic joints or held joints.
    """
    if robot.chain.has_mimics or robot.chain.held:
        raise ModelError(
            f"{robot.name}: joints that mimic others, or are held, cannot be replayed; choose a tip before them"
        )
    recording = recording.select(robot.joint_names)
    identified = link_model(load_identified(model), robot)
    segments = identified.signals.segments(recording)
    names = robot.joint_names
    arm = ExportedArm.read(model, robot)
    friction = HeldFriction.of(arm, HELD, Motion.sinusoids(robot))
    urdf = hold_others(exported_urdf(arm, friction)[0], names, robot.posture)
    arms = {"exported": Replay(mjcf_text(urdf, robot, joint_fields(friction)), names)}
    remarks = []
    try:
        arms = {"URDF": Replay(mjcf_text(hold_others(robot.urdf or "", names, robot.posture), robot), names), **arms}
    except ModelError as error:
        remarks.append(f"no simulation of the URDF as it is: {error}")
    torque = {name: _torque_error(arm.torque, segments, identified.signals.cutoff) for name, arm in arms.items()}
    torque["identified"] = _torque_error(identified.predict, segments, identified.signals.cutoff)
    windows = [window for segment in segments for window in _windows(segment)]
    if not windows:
        raise IdentificationError(f"{recording.source}: no motion of {HORIZON:g} s without a gap; record longer")
    ends = np.array([segment.motion.position[rows][-1] for segment, rows in windows])
    starts = np.array([segment.motion.position[rows][0] for segment, rows in windows])
    position = {name: _rms(_ends(arm, windows) - ends) for name, arm in arms.items()}
    return SimulationDistance(
        recording.source, robot.joint_names, torque, position, _rms(ends - starts), len(windows), tuple(remarks)
    )


def _torque_error(predict: Callable[..., NDArray], segments: Sequence[LinkSegment], cutoff: float) -> NDArray:
    """Return the RMS (n,) of measured minus predicted torque, low-passed, without the distorted ends."""
    errors = []
    for segment in segments:
        low_pass = LowPass(cutoff, segment.rate)
        off = low_pass.filter(segment.torque - predict(*segment.motion))
        errors.append(off[low_pass.edge : len(off) - low_pass.edge])
    return _rms(np.concatenate(errors))


def _windows(segment: LinkSegment) -> Iterator[tuple[LinkSegment, slice]]:
    """Return consecutive windows of equal duration."""
    size = round(HORIZON * segment.rate)
    for start in range(0, len(segment.time) - size, size):
        yield segment, slice(start, start + size + 1)


def _ends(arm: Replay, windows: Sequence[tuple[LinkSegment, slice]]) -> NDArray:
    """Return the positions (W, n) at the ends of the windows."""
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
