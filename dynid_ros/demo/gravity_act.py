"""Holds the gravity that the demo identified against what MuJoCo knows, and writes the report of it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.demo.drop_test import Demonstration, DropPicture, relative, write_drop_picture, write_drop_report
from dynid_ros.demo.page import Act, Found
from dynid_ros.demo.stage import COMPUTING_TIMEOUT, Stage, say
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.gravity import IdentifiedGravity, gravity_moments
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.formats import joint_units
from dynid_ros.report.page import Tile
from dynid_ros.simulation import ArmTruth, tabled_arm

FRESH_POSES = 100
LARGEST_ERROR = 0.005
"""Of each joint's largest gravity torque, RMS over the fresh poses."""
LARGEST_DRIFT = 0.02
"""Of the drift without compensation."""

Track = tuple[NDArray, NDArray]
"""Time (T,) in s and positions (T, n)."""


@dataclass(frozen=True)
class GravityVerdict:
    """What the first act has shown.

    Attributes:
        robot: the arm as its URDF has it.
        document: content of `identified.yaml`.
        shown: the truth, and the arm let go.
    """

    robot: RobotModel
    document: dict
    shown: Demonstration

    @property
    def torque_error(self) -> float:
        """Of the worst joint, RMS over its largest gravity torque."""
        return float(np.nanmax(relative(self.shown.torque_rms, self.shown.largest_torque)))

    @property
    def passed(self) -> bool:
        """Whether torque and drift are as good as they must be."""
        return self.torque_error <= LARGEST_ERROR and self.shown.drift_ratio <= LARGEST_DRIFT

    def sentences(self) -> list[str]:
        """The verdict."""
        without, compensated = self._drifts()
        return [
            "PASSED: the arm floats." if self.passed else "FAILED: the arm does not float as well as it must.",
            f"Gravity torque on {FRESH_POSES} fresh poses: the worst joint is off by {self.torque_error:.2%} RMS "
            f"of its largest (allowed {LARGEST_ERROR:.1%})",
            f"Drop test: the largest joint drift in {self.shown.duration:.0f} s is {without:.1f} deg without and "
            f"{compensated:.2f} deg with compensation, {self.shown.drift_ratio:.2%} (allowed {LARGEST_DRIFT:.0%})",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        without, compensated = self._drifts()
        return [
            Tile("Let go without compensation", f"{without:.0f}°", f"largest drift in {self.shown.duration:.0f} s"),
            Tile("Let go with compensation", f"{compensated:.2f}°", "largest drift in the same time"),
            Tile("Gravity torque, worst joint", f"{self.torque_error:.2%}", f"off, on {FRESH_POSES} other poses"),
        ]

    @cached_property
    def rows(self) -> list[Found]:
        """Gravity parameters of all joints that gravity loads."""
        model = IdentifiedGravity(self.robot, self.document)
        rows, halves = [], half_width(model.std, model.dof)
        for i, (joint, unit) in enumerate(zip(self.robot.joint_names, joint_units(self.robot), strict=True)):
            if joint not in model.torque_free:
                for column in range(len(model.moments))[model.gravity.columns(i)]:
                    name = f"{model.gravity.names[column].split()[0]} of {joint}"
                    value, half = model.moments[column], halves[column]
                    rows.append(Found(name, unit.moment, self.shown.moments[column], value, half))
        return rows

    @cached_property
    def pictures(self) -> dict[str, str]:
        """The arm from the side, let go without and with compensation."""
        picture, later = DropPicture(self.robot, self.shown), f"{self.shown.duration:.0f} s later"
        return {
            f"Without compensation the arm falls. Grey: where it is let go, orange: {later}": picture.svg("without"),
            f"With the identified gravity it floats. Blue: {later}": picture.svg("with"),
        }

    def _drifts(self) -> tuple[float, float]:
        """Largest drift without and with compensation, deg."""
        drifts = self.shown.drift_without, self.shown.drift_with
        return float(np.rad2deg(drifts[0].max())), float(np.rad2deg(drifts[1].max()))


def write_gravity_demonstration(
    robot: RobotModel, truth: ArmTruth, folder: Path, sagging: Track, floating: Track
) -> GravityVerdict:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo; write `report.html`, with it, and `drop.png`."""
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
    )
    recordings = [Recording.read(path, joint_names=robot.joint_names) for path in document["source"]["recordings"]]
    samples = GravityIdentification(robot).extract(*recordings)
    write_drop_picture(folder / "drop.png", robot, shown)
    write_drop_report(folder / "report.html", robot, document, samples, shown)
    return GravityVerdict(robot, document, shown)


def _fresh_poses(robot: RobotModel) -> NDArray:
    lower, upper = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
    return np.random.default_rng(2026).uniform(lower, upper, (FRESH_POSES, robot.n_joints))


def _in_joint_frames(robot: RobotModel, moments: NDArray) -> NDArray:
    """(2 n,) moments about the joint axes from (n, 3) in the link frames."""
    turned = np.einsum("iab,ib->ia", robot.chain.link_offsets[:, :3, :3], moments)
    return turned[:, :2].ravel()


# First act of the demo: the arm sags, is excited pose by pose, identified and floats.


MOTION = {"motion": "poses", "target": "gravity", "count": 8, "dwell": 0.8, "approach": [0.03]}
STORY = (
    "The arm is let go, its motors off: it falls. Then it goes to a few poses, to each from below and from "
    "above, and dwells there. The torque that the motors need then is gravity; friction has the other sign "
    "from the other side, and cancels. From that the arm's mass moments follow.",
    "The arm is let go again. Now its motors apply the gravity torque that the identified model computes from "
    "the joint angles, and nothing else: it floats.",
)


def gravity_act(stage: Stage) -> None:
    """Play it; it is good if the arm floats."""
    arm, settings, folder = stage.arm, stage.settings, stage.output / "gravity"
    stage.announce("Without compensation: the arm is let go.")
    arm.move(settings.drop_pose)
    sagging = arm.drop(settings.drop_time)
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: the arm goes to a few poses, to each from both sides.")
    stage.excitation.record()
    stage.announce("Gravity, identified from the bag.")
    say(stage.call.trigger("/gravity_identification/identify", timeout=COMPUTING_TIMEOUT))
    stage.announce("With compensation: the arm is let go again.")
    with arm.compensation():
        arm.move(settings.drop_pose)
        floating = arm.drop(settings.drop_time)
    truth = tabled_arm(stage.truth()).truth

    def judge() -> Act:
        verdict = write_gravity_demonstration(arm.robot, truth, folder, sagging, floating)
        return Act.of(
            "Gravity: the arm floats", STORY, verdict, [("the identification's report", "gravity/report.html")]
        )

    stage.later("gravity", judge)
