"""Test `identified.urdf` of an arm with a recorded gripper, whose joints may not be at zero."""

import re
from pathlib import Path

import link_experiment
import numpy as np
import pytest
from gripper_arms import gripper_arm
from pinocchio_arm import PinocchioArm

from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.run import IdentificationRun, run
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


def record(robot: RobotModel, truth: np.ndarray, swing: float) -> Recording:
    """Return a recording of arm and gripper, whose joints swing about the posture of `robot`."""
    arm = link_experiment.record(robot, truth)
    fingers = np.array(list(robot.posture.values())) + swing * np.sin(3 * arm.time)[:, None]
    unknown = np.full_like(fingers, np.nan)
    return Recording(
        (*arm.joint_names, *robot.posture),
        arm.time,
        np.hstack([arm.position, fingers]),
        np.hstack([arm.velocity, unknown]),
        np.hstack([arm.torque, unknown]),
        source="run",
    )


def identify(robot: RobotModel, folder: Path, factor: float, swing: float = 0.0) -> IdentificationRun:
    """Identify links that are `factor` times as heavy as in the URDF, with the gripper in its posture."""
    record(robot, factor * robot.parameters, swing).write_csv(folder / "run.csv")
    recording = Recording.read(folder / "run.csv", robot.joint_names)
    identification = LinkIdentification(robot.with_posture({}), friction=link_experiment.FRICTION, prior_weight=1.0)
    return run("links", identification, {"recordings": [recording]}, folder)


@pytest.mark.parametrize(
    ("name", "factor"),
    [pytest.param("panda with fingers", 0.6, marks=pytest.mark.slow), ("gripper in the middle", 1.4)],
)
def test_pinocchio_reads_the_model_with_the_gripper_posture(name, factor, tmp_path):
    robot = gripper_arm(name)
    job = identify(robot, tmp_path, factor)
    assert job.result.robot.parameters == pytest.approx(robot.parameters, abs=1e-9)
    arm = PinocchioArm(job.files["urdf"].read_text(), robot.joint_names, robot.gravity, robot.posture)
    q, qd, qdd = np.random.default_rng(4).normal(size=(3, 20, robot.n_joints))
    for motion in ((q, 0 * q, 0 * q), (q, qd, qdd)):
        model = robot.inverse_dynamics(*motion, job.result.parameters)
        torque = np.array([arm.inverse_dynamics(*sample) for sample in zip(*motion, strict=True)])
        assert np.abs(torque - model).max() <= 1e-9 * np.abs(model).max()
        true = robot.inverse_dynamics(*motion, factor * robot.parameters)
        assert np.abs(torque - true).max() <= 0.02 * np.abs(true).max()


def test_error_by_a_moved_gripper_is_reported(tmp_path):
    robot = gripper_arm("gripper in the middle")
    job = identify(robot, tmp_path, 1.0, swing=0.05)
    (remark,) = job.result.urdf_remarks
    assert remark in job.summary()
    assert remark in load_identified(job.identified)["remarks"]
    reported_error = float(re.search(r"gravity torque by up to (\S+) \(", remark)[1])
    postures = [{"slide": 0.3 + a, "other_slide": 0.17 + b} for a in (-0.05, 0.05) for b in (-0.05, 0.05)]
    text = job.files["urdf"].read_text()
    arms = [PinocchioArm(text, robot.joint_names, robot.gravity, posture) for posture in postures]
    q = np.random.default_rng(4).uniform(-2, 2, size=(200, robot.n_joints))
    model = robot.gravity_torque(q, job.result.parameters)
    true_error = max(np.abs([arm.gravity_torque(row) for row in q] - model).max() for arm in arms)
    assert reported_error == pytest.approx(true_error, rel=0.1)
