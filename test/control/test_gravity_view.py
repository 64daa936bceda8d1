"""Test the gravity view: torque, center of mass and load agree with Pinocchio and the compensation."""

from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest
import yaml
from pinocchio_arm import PinocchioArm

from dynid_ros.control import CarriedLoad
from dynid_ros.control.gravity_view import GravityView
from dynid_ros.errors import ControlError
from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel

URDF = share_path("config/demo_arm.urdf").read_text()
GRAVITY = (1.0, -2.0, -9.5)
LOAD = CarriedLoad(2.5, (0.05, -0.03, 0.1), "link_6")


def make_settings(**values):
    return SimpleNamespace(
        **{"model_file": "", "base_link": "", "tip_link": "", "held_joints": "", "gravity": GRAVITY} | values
    )


def make_pinocchio_arm(load=None):
    robot = RobotModel.from_urdf(URDF, gravity=GRAVITY)
    arm = PinocchioArm(URDF, robot.joint_names, robot.gravity)
    if load is not None:
        body = arm.pinocchio.Inertia(load.mass, np.array(load.center), np.zeros((3, 3)))
        arm.model.inertias[arm.model.njoints - 1] += body
        arm.data = arm.model.createData()
    return arm


def center_of_mass(arm, q):
    """Return mass and center of all moving links; Pinocchio's function would include the base."""
    centers = [
        pose.act(body.lever) for pose, body in zip(joint_poses(arm, q), list(arm.model.inertias)[1:], strict=True)
    ]
    masses = [body.mass for body in list(arm.model.inertias)[1:]]
    return sum(masses), np.average(centers, axis=0, weights=masses)


def joint_poses(arm, q):
    arm.pinocchio.forwardKinematics(arm.model, arm.data, arm.configuration(q))
    return list(arm.data.oMi)[1:]


@pytest.mark.parametrize("load", [None, LOAD])
def test_center_and_torque_agree_with_pinocchio(load):
    view = GravityView.from_settings(make_settings(), URDF)
    arm = make_pinocchio_arm(load)
    if load is not None:
        view.carry(load)
    for q in np.random.default_rng(0).uniform(-2, 2, (20, 6)):
        picture = view.at(q)
        mass, place = center_of_mass(arm, q)
        assert picture.mass == pytest.approx(mass, rel=1e-12)
        np.testing.assert_allclose(picture.center, place, atol=1e-12)
        np.testing.assert_allclose(picture.torque, arm.gravity_torque(q), atol=1e-9)
        placed = joint_poses(arm, q)
        # links rotate about the z axis of their frames in this URDF
        np.testing.assert_allclose(picture.rotations, [pose.rotation for pose in placed], atol=1e-12)
        np.testing.assert_allclose(picture.origins, [pose.translation for pose in placed], atol=1e-12)
        if load is None:
            assert picture.load is None
        else:
            np.testing.assert_allclose(picture.load, placed[-1].act(np.array(load.center)), atol=1e-12)


@pytest.mark.parametrize(("base", "tip", "first"), [("link_2", "", 2), ("", "link_4", 0), ("link_1", "link_3", 1)])
def test_view_covers_the_joints_between_base_and_tip(base, tip, first):
    view = GravityView.from_settings(make_settings(base_link=base, tip_link=tip), URDF)
    count = (int(tip[-1]) if tip else 6) - first
    assert view.robot.joint_names == RobotModel.from_urdf(URDF).joint_names[first : first + count]


def test_small_load_is_shown():
    view = GravityView.from_settings(make_settings(), URDF)
    view.carry(CarriedLoad(0.2, (0.0, 0.0, 0.1), "link_6"))
    pose = joint_poses(make_pinocchio_arm(), np.zeros(6))[-1]
    np.testing.assert_allclose(view.at(np.zeros(6)).load, pose.act(np.array([0.0, 0.0, 0.1])), atol=1e-12)


def test_removed_load_is_not_shown():
    view = GravityView.from_settings(make_settings(), URDF)
    view.carry(LOAD)
    view.carry(CarriedLoad(0.0, (0.0, 0.0, 0.0), "link_6"))
    picture = view.at(np.zeros(6))
    assert picture.load is None
    assert picture.mass == pytest.approx(center_of_mass(make_pinocchio_arm(), np.zeros(6))[0])
    with pytest.raises(ControlError, match="link_3"):
        view.carry(CarriedLoad(1.0, (0.0, 0.0, 0.0), "link_3"))


def test_gravity_identification_determines_torques_but_no_masses(tmp_path):
    path = tmp_path / "identified.yaml"
    path.write_text(yaml.safe_dump(planar_arm.document(1.3)))
    view = GravityView.from_settings(
        make_settings(model_file=str(path), gravity=(0.0, 0.0, -planar_arm.G)), planar_arm.urdf()
    )
    assert (view.torque_identified, view.masses_identified) == (True, False)
    q = [0.4, 0.3, -0.2]
    picture = view.at(q)
    np.testing.assert_allclose(picture.torque, planar_arm.gravity_torque(q, 1.3), atol=1e-12)
    assert picture.mass == pytest.approx(sum(planar_arm.MASS))  # the masses of the URDF


def test_full_scale_is_the_limit_or_the_largest_gravity_torque():
    np.testing.assert_array_equal(GravityView.from_settings(make_settings(), URDF).full_scale[0], 230.0)
    without = planar_arm.urdf(effort=0.0)
    view = GravityView.from_settings(make_settings(gravity=(0.0, 0.0, -planar_arm.G)), without)
    largest_torque = planar_arm.G * (planar_arm.MOMENTS["joint_2"] + planar_arm.MOMENTS["joint_3"])
    assert 0.9 * largest_torque < view.full_scale[1] <= largest_torque
