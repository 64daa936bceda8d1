"""Test one compensation node for both arms of a torso with a held head, against Pinocchio."""

import numpy as np
import pytest
from helpers.compensation_bench import Bench
from helpers.waiting import wait
from pinocchio_arm import PinocchioArm, example_urdf

from dynid_ros.identified.gravity import gravity_section
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.model import GravityModel, RobotModel

pytestmark = pytest.mark.usefixtures("ros")
TIPS = "left_gripper,right_gripper"
HEAD = 0.3


def test_one_node_compensates_both_arms(tmp_path, keep):
    text = example_urdf("baxter_description/urdf/baxter.urdf").read_text()
    robot = RobotModel.from_urdf(text, TIPS, held={"head_pan": HEAD})
    gravity = GravityModel(robot)
    moments = gravity.project(robot.parameters)
    document = new_document(robot, ("made up",), {})
    document["gravity"] = gravity_section(gravity, moments, np.zeros_like(moments), {})
    file = save_identified(tmp_path / "identified.yaml", document)
    bench = Bench(
        file, robot_description=text, tip_link=TIPS, held_joints=f"head_pan={HEAD}", torque_limits=[50.0] * 14
    )
    keep(bench)
    low = robot.limits.lower
    high = robot.limits.upper
    pose = low + (high - low) * np.random.default_rng(0).uniform(0.3, 0.7, 14)
    names = ["r_gripper_l_finger_joint", *robot.joint_names[::-1], "head_pan"]
    bench.robot.names = names
    bench.robot.position = [0.01, *pose[::-1], HEAD]
    bench.run()
    truth = PinocchioArm(text, robot.joint_names, robot.gravity)
    expected = truth.gravity_torque(pose)
    assert np.abs(expected).max() > 10.0
    wait(lambda: bench.torque == pytest.approx(expected, abs=1e-6))
    assert np.ptp(expected[:7]) > 10.0 < np.ptp(expected[7:])
