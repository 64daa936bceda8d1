"""First act of the demo: the arm sags, gravity is identified from a few poses, and the arm floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid_ros.demo.drop_test import DropPicture, DropTest, write_drop_picture
from dynid_ros.demo.page import Act
from dynid_ros.demo.stage import COMPUTING_TIMEOUT_S, Stage, say
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.rehearsal.truth_comparison import compare_gravity
from dynid_ros.report.comparison import Check
from dynid_ros.simulation import ArmTruth, tabled_arm

N_FRESH_POSES = 100
MAX_TORQUE_ERROR_PERCENT = 0.5
"""RMS over the fresh poses, in per cent of the largest gravity torque of each joint."""
MAX_DRIFT_PERCENT = 2.0
"""Drift with compensation, in per cent of the drift without."""
GRAVITY_MOTION = {"motion": "poses", "target": "gravity", "count": 8, "dwell": 0.8, "approach": [0.03]}
GRAVITY_STORY = (
    "The arm is let go, its motors off: it falls. Then it moves to a few poses, to each from below and from above, and "
    "dwells there. The torque of the motors then is gravity; friction has the opposite sign from the other side, and "
    "cancels. The gravity parameters follow.",
    "The arm is let go again. Now its motors apply the gravity torque that the identified model computes from the "
    "joint angles, and nothing else: it floats.",
)


def gravity_act(stage: Stage) -> None:
    """Play the act."""
    arm = stage.arm
    settings = stage.settings
    folder = stage.output / "gravity"
    stage.announce("Without compensation: the arm is let go.")
    arm.move(settings.drop_pose)
    sagging = arm.drop(settings.drop_time)
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: the arm moves to a few poses, to each from both sides.")
    stage.excitation.record()
    stage.announce("Gravity is identified from the bag.")
    say(stage.call.trigger("/gravity_identification/identify", timeout=COMPUTING_TIMEOUT_S))
    stage.announce("With compensation: the arm is let go again.")
    with arm.compensation():
        arm.move(settings.drop_pose)
        floating = arm.drop(settings.drop_time)
    truth = tabled_arm(stage.truth()).truth
    stage.judge_later(
        "gravity", lambda: judge_gravity(arm.robot, truth, folder, DropTest.from_tracks(sagging, floating))
    )


def judge_gravity(robot: RobotModel, truth: ArmTruth, folder: Path, test: DropTest) -> Act:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo, and write `drop.png` there."""
    model = IdentifiedGravity(robot, load_identified(folder / "identified.yaml"))
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    poses = np.random.default_rng(2026).uniform(lower, upper, (N_FRESH_POSES, robot.n_joints))
    true_torque = truth.gravity_torque(poses)
    torque = model.sensor_torque(poses) - np.nan_to_num(model.offset)
    largest = np.abs(true_torque).max(axis=0)
    is_loaded = largest > 1e-9 * largest.max()
    error = np.sqrt(np.mean((torque - true_torque) ** 2, axis=0))[is_loaded] / largest[is_loaded]
    drift_without, drift = (np.rad2deg(angle.max()) for angle in (test.drift_without, test.drift_compensated))
    write_drop_picture(folder / "drop.png", robot, test)
    picture = DropPicture(robot, test)
    later = f"{test.duration:.0f} s later"
    return Act(
        "Gravity: the arm floats",
        GRAVITY_STORY,
        [
            Check(
                f"Gravity torque in {N_FRESH_POSES} fresh poses, worst joint: RMS error over the largest torque",
                100 * float(error.max()),
                MAX_TORQUE_ERROR_PERCENT,
                "%",
            ),
            Check(
                f"Drift of {drift:.2f}° with compensation over {drift_without:.1f}° without, in {test.duration:.0f} s",
                100 * float(drift / drift_without),
                MAX_DRIFT_PERCENT,
                "%",
            ),
        ],
        compare_gravity(model, truth),
        {
            f"Without compensation the arm falls. Grey: let go, orange: {later}": picture.svg("without"),
            f"With the identified gravity it floats. Blue: {later}": picture.svg("with"),
        },
        [("the report of the identification", "gravity/report.html")],
    )
