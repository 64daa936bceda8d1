"""The demo arm's numbers, straight from its XML, and its gravity torque, from MuJoCo."""

from xml.etree import ElementTree

import numpy as np
import pytest
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import central_moments, is_possible
from dynid_ros.simulation import SimulatedArm, demo_arm_urdf, misjudged_urdf


@pytest.mark.parametrize("seed", range(5))
def test_links_are_wrong_but_possible_and_joints_are_right(demo_robot, seed):
    wrong = RobotModel.from_urdf(misjudged_urdf(demo_robot, 0.2, np.random.default_rng(seed)))
    assert wrong.kinematics_sha256 == demo_robot.kinematics_sha256
    assert wrong.urdf_sha256 != demo_robot.urdf_sha256
    np.testing.assert_array_equal(wrong.limits.effort, demo_robot.limits.effort)
    links, true = (robot.parameters.reshape(-1, 10) for robot in (wrong, demo_robot))
    assert np.all(is_possible(links) & is_possible(true))
    factor = links[:, 0] / true[:, 0]
    assert np.all(np.abs(np.log(factor)) <= 0.2 + 1e-9)
    extent = np.sqrt(np.linalg.eigvalsh(central_moments(true) / true[:, :1, np.newaxis])[:, -1])
    moved = np.linalg.norm(links[:, 1:4] / links[:, :1] - true[:, 1:4] / true[:, :1], axis=1)
    assert np.all(moved <= 0.2 * np.sqrt(3) * extent)
    assert np.all(moved > 0)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 200, 6))
    torque, own = demo_robot.inverse_dynamics(q, qd, qdd), wrong.inverse_dynamics(q, qd, qdd)
    relative = np.sqrt(np.mean((own - torque) ** 2, axis=0) / np.mean(torque**2, axis=0))
    assert relative.max() > 0.05


def test_without_error_it_is_the_truth(demo_robot):
    same = RobotModel.from_urdf(misjudged_urdf(demo_robot, 0.0, np.random.default_rng(0)))
    np.testing.assert_allclose(same.parameters, demo_robot.parameters, rtol=1e-9, atol=1e-12)


def test_link_without_mass_is_named():
    massless = next(
        robot for seed in range(100) if not np.all(is_possible((robot := _random(seed)).parameters.reshape(-1, 10)))
    )
    with pytest.raises(ModelError, match=r"no real body has the inertia of link\(s\)"):
        misjudged_urdf(massless, 0.1, np.random.default_rng(0))


def _random(seed):
    return RobotModel.from_urdf(random_urdf(np.random.default_rng(seed), 3), tip=TIP)


def test_rviz_has_shapes_for_every_link():
    for link in ElementTree.fromstring(demo_arm_urdf()).iter("link"):
        assert link.findall("visual/geometry"), link.get("name")
        assert link.findall("collision/geometry"), link.get("name")


def test_axes_are_those_of_the_brief_and_reach_is_a_metre(demo_robot):
    axes = np.abs(demo_robot.joint_axes(np.zeros((1, 6)))[0])
    z, y = [0, 0, 1], [0, 1, 0]
    assert axes == pytest.approx(np.array([z, y, y, z, y, z]), abs=1e-12)
    shoulder, flange = demo_robot.forward_kinematics(np.zeros((1, 6)))[0][[1, 5], :3, 3]
    assert 0.95 < np.linalg.norm(flange - shoulder) < 1.1


def test_largest_gravity_torques_and_friction_of_five_per_cent(demo_robot):
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
