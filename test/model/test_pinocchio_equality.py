"""RobotModel against Pinocchio: real arms, and random chains of which both read the same text."""

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.model import RobotModel

ARMS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "ee_link"),
    "kinova": ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", None),
    "tiago": ("tiago_description/robots/tiago_no_hand.urdf", "arm_tool_link"),
}


def _assert_equal(robot: RobotModel, rng: np.random.Generator, n_samples: int) -> None:
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    q, qd, qdd = rng.normal(size=(3, n_samples, robot.n_joints))
    poses, torques, gravity = robot.forward_kinematics(q), robot.inverse_dynamics(q, qd, qdd), robot.gravity_torque(q)
    matrix, gravity_matrix = robot.torque_regressor(q, qd, qdd), robot.gravity_regressor(q)
    at_rest = gravity_matrix @ robot.parameters
    np.testing.assert_allclose(robot.parameters, arm.parameters(), rtol=0, atol=1e-10)
    for k in range(n_samples):
        expected = arm.inverse_dynamics(q[k], qd[k], qdd[k])
        np.testing.assert_allclose(poses[k], arm.poses(q[k]), rtol=0, atol=1e-10)
        np.testing.assert_allclose(torques[k], expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(matrix[k] @ robot.parameters, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(matrix[k], arm.torque_regressor(q[k], qd[k], qdd[k]), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(gravity[k], arm.gravity_torque(q[k]), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(at_rest[k], arm.gravity_torque(q[k]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ARMS)
def test_real_arms(name):
    path, tip = ARMS[name]
    robot = RobotModel.from_urdf(example_urdf(path), tip=tip, gravity=(1.1, -2.3, -9.4))
    _assert_equal(robot, np.random.default_rng(1), 20)


def test_tiago_has_a_prismatic_torso():
    robot = RobotModel.from_urdf(example_urdf(ARMS["tiago"][0]), tip="arm_tool_link")
    assert robot.joint_names[0] == "torso_lift_joint"
    assert robot.joint_types == ["prismatic"] + ["revolute"] * 7


def test_hundred_random_chains():
    kinds = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 9))), tip=TIP, gravity=rng.normal(size=3) * 8)
        _assert_equal(robot, rng, 3)
        kinds += robot.joint_types
    assert kinds.count("prismatic") > 50
    assert kinds.count("revolute") > 150


def test_base_beyond_moving_joints_feels_the_gravity_of_its_own_frame():
    rng = np.random.default_rng(7)
    urdf = random_urdf(rng, 6)
    whole = RobotModel.from_urdf(urdf, tip=TIP)
    outer = ("joint_4", "joint_5", "joint_6")
    arm = PinocchioArm(urdf, whole.joint_names, whole.gravity)
    q, qd, qdd = rng.normal(size=(3, 6))
    qd[:3] = qdd[:3] = 0.0
    turn = arm.poses(q)[2, :3, :3]
    part = RobotModel.from_urdf(urdf, tip=TIP, base="link_3", gravity=turn.T @ whole.gravity)
    assert part.joint_names == outer
    torque = part.inverse_dynamics(*(array[None, 3:] for array in (q, qd, qdd)))
    np.testing.assert_allclose(torque[0], arm.inverse_dynamics(q, qd, qdd)[3:], rtol=1e-10, atol=1e-10)
