"""Check the demo arm against its XML and MuJoCo, and URDF files whose link parameters are deliberately wrong."""

from xml.etree import ElementTree

import numpy as np
import pytest
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import central_moments, is_possible
from dynid_ros.simulation import SimulatedArm, demo_arm_urdf, misjudged_urdf


@pytest.mark.parametrize("seed", range(5))
def test_misjudged_links_are_wrong_but_possible_and_joints_unchanged(demo_robot, seed):
    wrong_robot = RobotModel.from_urdf(misjudged_urdf(demo_robot, 0.2, np.random.default_rng(seed)))
    assert wrong_robot.kinematics_sha256 == demo_robot.kinematics_sha256
    assert wrong_robot.urdf_sha256 != demo_robot.urdf_sha256
    np.testing.assert_array_equal(wrong_robot.limits.effort, demo_robot.limits.effort)
    wrong = wrong_robot.parameters.reshape(-1, 10)
    true = demo_robot.parameters.reshape(-1, 10)
    assert np.all(is_possible(wrong) & is_possible(true))
    factor = wrong[:, 0] / true[:, 0]
    assert np.all(np.abs(np.log(factor)) <= 0.2 + 1e-9)
    extent = np.sqrt(np.linalg.eigvalsh(central_moments(true) / true[:, :1, np.newaxis])[:, -1])
    shift = np.linalg.norm(wrong[:, 1:4] / wrong[:, :1] - true[:, 1:4] / true[:, :1], axis=1)
    assert np.all(shift <= 0.2 * np.sqrt(3) * extent)
    assert np.all(shift > 0)
    motion = np.random.default_rng(0).uniform(-1, 1, (3, 200, 6))
    torque = demo_robot.inverse_dynamics(*motion)
    error = wrong_robot.inverse_dynamics(*motion) - torque
    assert np.sqrt(np.mean(error**2, axis=0) / np.mean(torque**2, axis=0)).max() > 0.05


def test_misjudged_urdf_without_error_keeps_the_parameters(demo_robot):
    copy = RobotModel.from_urdf(misjudged_urdf(demo_robot, 0.0, np.random.default_rng(0)))
    np.testing.assert_allclose(copy.parameters, demo_robot.parameters, rtol=1e-9, atol=1e-12)


def test_refuses_and_names_links_with_impossible_inertia():
    robots = (RobotModel.from_urdf(random_urdf(np.random.default_rng(seed), 3), tip=TIP) for seed in range(100))
    impossible = next(robot for robot in robots if not np.all(is_possible(robot.parameters.reshape(-1, 10))))
    with pytest.raises(ModelError, match=r"no real body has the inertia of link\(s\)"):
        misjudged_urdf(impossible, 0.1, np.random.default_rng(0))


def test_demo_arm_has_visual_and_collision_shapes_for_each_link():
    for link in ElementTree.fromstring(demo_arm_urdf()).iter("link"):
        assert link.findall("visual/geometry"), link.get("name")
        assert link.findall("collision/geometry"), link.get("name")


def test_demo_arm_has_the_specified_axes_and_a_reach_of_one_metre(demo_robot):
    axes = np.abs(demo_robot.joint_axes(np.zeros((1, 6)))[0])
    z = [0, 0, 1]
    y = [0, 1, 0]
    assert axes == pytest.approx(np.array([z, y, y, z, y, z]), abs=1e-12)
    shoulder, flange = demo_robot.forward_kinematics(np.zeros((1, 6)))[0][[1, 5], :3, 3]
    assert 0.95 < np.linalg.norm(flange - shoulder) < 1.1


def test_demo_arm_has_plausible_gravity_torques_and_friction(demo_robot):
    limits = demo_robot.limits
    poses = np.random.default_rng(0).uniform(limits.lower, limits.upper, (20000, 6))
    arm = SimulatedArm(demo_robot)
    largest = np.abs(arm.truth.gravity_torque(poses)).max(axis=0)
    assert arm.drives.coulomb[1:] / largest[1:] == pytest.approx(0.05, abs=0.002)
    assert largest[0] == pytest.approx(0.0, abs=1e-12)
    assert 100.0 < largest[1] < 150.0
    assert 40.0 < largest[2] < 60.0
    assert np.all((largest[3:5] > 2.0) & (largest[3:5] < 10.0))
    assert largest[5] > 1.0
    assert np.all(limits.effort > 1.5 * largest)


def test_gravity_moments_of_joints_two_to_six_are_observable(demo_robot):
    moments = SimulatedArm(demo_robot).truth.gravity_moments()
    assert np.all(np.abs(moments[1:, :2]) > 1e-3)
    assert np.all(np.abs(moments[:, 2]) < 1e-12)
