"""Test links with a given gravity: equal masses, physical consistency, and agreement with Pinocchio."""

from dataclasses import replace

import numpy as np
import pytest
from c_arm import arm_of
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_tree_urdf, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.export.exported_urdf import link_parameters, with_servo_rotors
from dynid_ros.identified.servos import ServoDrive
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import central_moments, is_possible, possible_prior
from dynid_ros.model.urdf_export import urdf_with_inertias


def draw_gravity(robot: RobotModel, seed: int, error: float = 0.1):
    """Return the arm with the gravity moments of other links, and these links."""
    arm = arm_of(robot, parameters=None)
    other = robot.parameters * np.random.default_rng(seed).uniform(1 - error, 1 + error, robot.parameters.size)
    return arm_of(robot, parameters=None, moments=arm.gravity.project(other)), other


def test_links_have_the_given_gravity_in_pinocchio():
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    arm, other = draw_gravity(robot, 0)
    parameters, remarks = link_parameters(arm)
    links = parameters.reshape(-1, 10)
    before = robot.parameters.reshape(-1, 10)
    np.testing.assert_allclose(links[:, 0], before[:, 0], rtol=1e-12)
    np.testing.assert_allclose(central_moments(links), central_moments(before), atol=1e-12)
    assert is_possible(links).all()
    pinocchio = PinocchioArm(urdf_with_inertias(robot, parameters), robot.joint_names, robot.gravity)
    for q in np.random.default_rng(1).normal(size=(20, 7)):
        np.testing.assert_allclose(pinocchio.gravity_torque(q), robot.gravity_torque([q], other)[0], atol=1e-9)
    assert "the centre that moved most is" in remarks[-1]


def test_rotors_complete_the_mean_inertia():
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    friction = FrictionModel([JointFriction(offset=True)] * 7)
    arm = arm_of(robot, friction, np.tile([1.0, 2.0, 0.0], 7), parameters=None)
    position = np.random.default_rng(0).normal(size=(300, 7))
    zeros = np.zeros_like(position)
    pinocchio = PinocchioArm(robot.urdf, robot.joint_names, np.zeros(3))
    inertia = np.zeros(7)
    for j, unit in enumerate(np.eye(7)):
        torques = [pinocchio.inverse_dynamics(q, zero, unit)[j] for q, zero in zip(position, zeros, strict=True)]
        inertia[j] = np.mean(torques[::2]) + 0.1
    armature = [np.nan] * 6 + [0.2]
    drives = [ServoDrive(50.0, 1.0, 0.01, *values, 1.0, 2.0) for values in zip(inertia, armature, strict=True)]
    servos = dict(zip(robot.joint_names, drives, strict=True))
    exported = with_servo_rotors(replace(arm, servos=servos), position)
    rotors = [terms["rotor_inertia"] for terms in friction_by_name(exported)]
    np.testing.assert_allclose(rotors, 6 * [0.1] + [0.2], atol=1e-9)
    assert with_servo_rotors(arm, position) is arm, "an arm without servos stays unchanged"


def friction_by_name(arm):
    """Return the friction of each joint by the names of its terms."""
    return [{part.name: value for part, value in terms.items()} for terms in arm.joint_terms]


def test_identified_links_stay_unchanged():
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    parameters, remarks = link_parameters(arm_of(robot))
    np.testing.assert_array_equal(parameters, robot.parameters)
    assert remarks == []


@pytest.mark.parametrize("is_tree", [False, True])
def test_random_arms_with_prismatic_or_mimic_joints(is_tree):
    slides = mimics = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        urdf, tip = (random_tree_urdf(rng, 7), "all") if is_tree else (random_urdf(rng, 5), TIP)
        robot = RobotModel.from_urdf(urdf, tip, gravity=rng.normal(size=3) * 8)
        arm, _ = draw_gravity(robot, seed)
        try:
            parameters, _ = link_parameters(arm)
        except ModelError:  # massless links would need a negative mass
            continue
        slides += robot.joint_types.count("prismatic")
        mimics += robot.chain.has_mimics
        assert is_possible(parameters.reshape(-1, 10)).all()
        q = rng.normal(size=(20, robot.n_joints))
        expected = arm.gravity.regressor(q) @ arm.moments
        np.testing.assert_allclose(robot.gravity_torque(q, parameters), expected, atol=1e-8 * np.abs(expected).max())
    assert slides > 3
    assert (mimics > 2) == is_tree


def test_massless_links_get_a_mass():
    urdf = random_urdf(np.random.default_rng(0), 4, prismatic_share=0.0)
    robot = RobotModel.from_urdf(urdf, tip=TIP)
    massless = RobotModel(robot.chain, np.zeros_like(robot.parameters), robot.gravity)
    original = arm_of(robot, parameters=None)
    parameters, remarks = link_parameters(arm_of(massless, parameters=None, moments=original.moments))
    assert is_possible(parameters.reshape(-1, 10)).all()
    np.testing.assert_allclose(original.gravity.project(parameters), original.moments, atol=1e-9)
    assert len(remarks) == 5
    assert possible_prior(parameters, robot.link_names)[1] == []


def test_negative_masses_are_refused():
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(3), 2, prismatic_share=1.0), tip=TIP)
    arm = arm_of(robot, parameters=None)
    with pytest.raises(ModelError, match="correct the masses of the URDF, or identify links"):
        link_parameters(arm_of(robot, parameters=None, moments=-arm.moments))
