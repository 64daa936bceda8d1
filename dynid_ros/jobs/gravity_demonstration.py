"""Holds what the demo identified against what MuJoCo knows, and writes the report of it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.identified_file import gravity_moments, load_identified
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report import Demonstration, write_drop_picture, write_gravity_report
from dynid_ros.report.demonstration import relative
from dynid_ros.simulation import ArmTruth

FRESH_POSES = 100
LARGEST_ERROR = 0.005
"""Of each joint's largest gravity torque, RMS over the fresh poses."""
LARGEST_DRIFT = 0.02
"""Of the drift without compensation."""

FURTHER = (
    ("Links and friction", "links/report.html"),
    ("A load", "load/demonstration.html"),
    ("Torque sensors", "torque_sensors/demonstration.html"),
    ("Flexible joints", "flexible_joint/demonstration.html"),
)
"""Pages of the other acts."""

Track = tuple[NDArray, NDArray]
"""Time (T,) in s and positions (T, n)."""


@dataclass(frozen=True)
class Verdict:
    """What the demo has shown."""

    shown: Demonstration
    report: Path

    @property
    def torque_error(self) -> float:
        """Of the worst joint, RMS over its largest gravity torque."""
        return float(np.nanmax(relative(self.shown.torque_rms, self.shown.largest_torque)))

    @property
    def passed(self) -> bool:
        """Whether torque and drift are as good as they must be."""
        return self.torque_error <= LARGEST_ERROR and self.shown.drift_ratio <= LARGEST_DRIFT

    def text(self) -> str:
        """For the terminal."""
        without, compensated = (np.rad2deg(drift.max()) for drift in (self.shown.drift_without, self.shown.drift_with))
        return "\n".join(
            [
                "PASSED: the arm floats." if self.passed else "FAILED: see the report.",
                f"Gravity torque on {FRESH_POSES} fresh poses: the worst joint is off by {self.torque_error:.2%} RMS "
                f"of its largest (allowed {LARGEST_ERROR:.1%})",
                f"Drop test: the largest joint drift is {without:.1f} deg without and {compensated:.2f} deg with "
                f"compensation, {self.shown.drift_ratio:.2%} (allowed {LARGEST_DRIFT:.0%})",
                f"Report: {self.report.resolve()}",
            ]
        )


def write_demonstration(robot: RobotModel, truth: ArmTruth, folder: Path, sagging: Track, floating: Track) -> Verdict:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo; write `report.html` and `drop.png` there."""
    document = load_identified(folder / "identified.yaml")
    gravity = GravityModel(robot)
    poses = _fresh_poses(robot)
    time = sagging[0]
    floated = np.stack([np.interp(time, floating[0], joint) for joint in floating[1].T], axis=1)
    shown = Demonstration(
        joint_names=robot.joint_names,
        moments=_in_joint_frames(robot, truth.gravity_moments()),
        poses=poses,
        gravity_torque=truth.gravity_torque(poses),
        identified_torque=gravity.regressor(poses) @ gravity_moments(document, gravity),
        time=time,
        position_without=sagging[1],
        position_with=floated,
        further=FURTHER,
    )
    recordings = [Recording.read(path, joint_names=robot.joint_names) for path in document["source"]["recordings"]]
    samples = GravityIdentification(robot).extract(*recordings)
    write_drop_picture(folder / "drop.png", robot, shown)
    return Verdict(shown, write_gravity_report(folder / "report.html", robot, document, samples, shown))


def _fresh_poses(robot: RobotModel) -> NDArray:
    lower, upper = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
    return np.random.default_rng(2026).uniform(lower, upper, (FRESH_POSES, robot.n_joints))


def _in_joint_frames(robot: RobotModel, moments: NDArray) -> NDArray:
    """(2 n,) moments about the joint axes from (n, 3) in the link frames."""
    turned = np.einsum("iab,ib->ia", robot.chain.link_offsets[:, :3, :3], moments)
    return turned[:, :2].ravel()
