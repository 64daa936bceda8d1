"""Test the deflection of joint springs in closed form, and against a flexible arm in MuJoCo."""

import math

import numpy as np
import pa10
import planar_arm
import pytest

from dynid_ros.control import (
    CarriedLoad,
    GravityCompensator,
    JointSettings,
    JointSprings,
    LoadedGravity,
    State,
    Timing,
    load_gravity_torque as load,
)
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.model.spring import CubicSpring, DeadZoneSpring, LinearSpring

STIFFNESS = np.array([joint.stiffness for joint in pa10.PRINTED.values()])
LAWS = [
    (LinearSpring, {"stiffness": 500.0}),
    (CubicSpring, {"stiffness": 500.0, "cubic": 4e6}),
    (CubicSpring, {"stiffness": 500.0, "cubic": -1e4}),
    (CubicSpring, {"stiffness": 500.0, "cubic": 0.5}),
    (CubicSpring, {"stiffness": 500.0, "cubic": -0.5}),
    (DeadZoneSpring, {"stiffness": 500.0, "dead_zone": 1e-3}),
]


def make_springs(**laws):
    return JointSprings(planar_arm.JOINTS, laws)


def deflection_of(law, torque):
    """Return the deflection of a joint under a torque that does not depend on the link position."""
    link_positions = []

    def gravity(links):
        link_positions[:] = links
        return [0.0, torque, 0.0]

    make_springs(joint_2=law).settled([0.1, 0.2, 0.3], gravity)
    assert (link_positions[0], link_positions[2]) == (0.1, 0.3), "rigid joints"
    return 0.2 - link_positions[1]


@pytest.mark.parametrize(("law", "values"), LAWS)
@pytest.mark.parametrize("torque", [-20.0, -1.0, 3.0, 20.0])
def test_spring_law_at_the_deflection_gives_the_torque(law, values, torque):
    deflection = np.array([deflection_of(values, torque)])
    assert law().torque(deflection, np.array([values[name] for name in law.names])) == pytest.approx([torque])


def test_backlash_is_crossed_linearly_with_torque():
    """The link crosses the dead zone from its middle to its end for torques from 0 to k a, plus the deflection."""
    law = {"stiffness": 500.0, "dead_zone": 1e-3}
    assert deflection_of(law, 0.0) == 0.0
    assert deflection_of(law, 0.25) == pytest.approx(0.25 / 500.0 + 0.5e-3)
    assert deflection_of(law, -0.5) == pytest.approx(-0.5 / 500.0 - 1e-3)


def test_torque_is_that_of_the_deflected_links():
    model = GravityModel(RobotModel.from_urdf(planar_arm.urdf()))
    moments = model.project(model.robot.parameters)
    flexible = LoadedGravity(
        model, moments, springs=make_springs(joint_2={"stiffness": 200.0}, joint_3={"stiffness": 100.0})
    )
    motors = [0.3, 0.4, -0.9]
    torque = flexible(motors)
    links = [motors[0], motors[1] - torque[1] / 200.0, motors[2] - torque[2] / 100.0]
    assert torque == pytest.approx(planar_arm.gravity_torque(links), abs=1e-4)
    assert abs(torque[1] - planar_arm.gravity_torque(motors)[1]) > 0.1
    assert flexible(motors, links) == pytest.approx(planar_arm.gravity_torque(links), abs=1e-9)
    assert flexible(motors, motors) == pytest.approx(planar_arm.gravity_torque(motors), abs=1e-9)
    rigid = LoadedGravity(model, moments)
    assert rigid(motors, links) == pytest.approx(planar_arm.gravity_torque(links), abs=1e-9), (
        "measured links also apply to a rigid model"
    )


@pytest.mark.parametrize("carried", [pytest.param(None, marks=pytest.mark.slow), 5.0])
def test_static_torque_of_a_flexible_arm_agrees_with_mujoco(carried):
    """The arm of table I in Lightcap and Banks (2007) rests on its held motors, which have no dry friction."""
    simulation = pytest.importorskip("dynid_ros.simulation")
    robot = RobotModel.from_urdf(pa10.arm_urdf())
    model = GravityModel(robot)
    moments = model.project(robot.parameters)
    laws = {name: {"stiffness": k} for name, k in zip(robot.joint_names, STIFFNESS, strict=True)}
    tip_load = None if carried is None else CarriedLoad(carried, (0.0, 0.0, 0.1), robot.tip)
    by_motors = LoadedGravity(model, moments).carrying(tip_load)
    by_links = LoadedGravity(model, moments, springs=JointSprings(robot.joint_names, laws)).carrying(tip_load)
    drives = simulation.Drives(coulomb=0.0, viscous=10.0, rotor_inertia=[0.4, 2.1, 0.8, 0.05, 0.05, 0.05])
    arm = simulation.SimulatedArm(robot, drives=drives, springs=simulation.Springs(STIFFNESS))
    if carried is not None:
        arm.attach_load(from_center_of_mass(carried, np.array([0.0, 0.0, 0.1]), np.zeros((3, 3))))
    errors = []
    for pose in np.random.default_rng(1).uniform(-2.4, 2.4, (6, 6)):
        arm.reset(pose)
        arm.step(3.0)
        motors = arm.position.tolist()
        measured = by_motors(motors, arm.link_position.tolist())
        errors.append([np.subtract(torque, arm.torque) for torque in (by_motors(motors), by_links(motors), measured)])
    motor_error, link_error, measured_error = np.abs(errors).max(axis=(0, 2))
    assert motor_error > (0.2 if carried is None else 0.8)
    assert link_error < 0.02 * motor_error
    assert measured_error < 0.02 * motor_error


def test_arm_too_heavy_for_its_springs_is_a_fault():
    """The links have no equilibrium with 16 N m of gravity on 4 N m/rad."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    model = GravityModel(robot)
    weak = make_springs(joint_2={"stiffness": 4.0}, joint_3={"stiffness": 4.0})
    gravity = LoadedGravity(model, model.project(robot.parameters), springs=weak)
    compensator = GravityCompensator(gravity, JointSettings.from_robot(robot, fault_ramp_time=0.5), Timing())
    compensator.update(0.0, [0.0, 1.2, 0.1])
    compensator.enable(0.0)
    compensator.update(0.01, [0.0, 1.2, 0.1])
    assert compensator.state is State.FAULT
    assert "find no rest on their springs" in compensator.fault_reason


def test_softening_spring_has_a_largest_torque():
    assert deflection_of({"stiffness": 500.0, "cubic": -1e6}, 4.0) == pytest.approx(0.01)
    with pytest.raises(ControlError, match="find no rest"):
        deflection_of({"stiffness": 500.0, "cubic": -1e6}, 5.0)


def add_springs(**section):
    return planar_arm.document() | {"flexible_joints": section}


def test_springs_of_the_file_are_used_unless_disabled(tmp_path):
    path = planar_arm.write(tmp_path / "soft.yaml", add_springs(joint_2={"stiffness": 200.0, "std": 3.0}))
    q = [0.3, 0.4, -0.9]
    _, flexible = load(path, planar_arm.urdf())
    _, rigid = load(path, planar_arm.urdf(), use_springs=False)
    assert rigid(q) == pytest.approx(planar_arm.gravity_torque(q), abs=1e-12)
    torque = flexible(q)
    assert torque == pytest.approx(planar_arm.gravity_torque([q[0], q[1] - torque[1] / 200.0, q[2]]), abs=1e-4)
    assert not math.isclose(torque[1], rigid(q)[1], abs_tol=0.1)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"joint_2": {"stiffness": None}}, "stiffness of joint 'joint_2' is None; expected a number above 0"),
        ({"joint_2": {"stiffness": -5.0}}, "stiffness of joint 'joint_2' is -5.0"),
        ({"joint_2": {"stiffness": 5.0, "dead_zone": -0.1}}, "dead_zone of joint 'joint_2' is -0.1"),
        ({"joint_2": {"stiffness": 5.0, "cubic": "much"}}, "cubic of joint 'joint_2' is 'much'"),
        ({"joint_2": 200.0}, "expected for each flexible joint its stiffness"),
        (
            {"elbow": {"stiffness": 5.0}, "wrist": {"stiffness": 5.0}},
            r"springs of joint\(s\) elbow, wrist; expected joint_1, joint_2, joint_3",
        ),
    ],
)
def test_unusable_springs_name_the_parameter_to_ignore_them(tmp_path, section, message):
    path = planar_arm.write(tmp_path / "soft.yaml", add_springs(**section))
    with pytest.raises(IdentifiedFileError, match=rf"soft\.yaml: .*{message}.*use_springs false"):
        load(path, planar_arm.urdf())


def test_undetermined_stiffness_is_not_used():
    section = {joint: {"stiffness": 500.0, "decided": {"stiffness": True}} for joint in planar_arm.JOINTS}
    section["joint_2"]["decided"]["stiffness"] = False
    springs = JointSprings.from_document({"flexible_joints": section}, planar_arm.JOINTS)
    link_positions = []

    def gravity(links):
        link_positions[:] = links
        return [10.0, 10.0, 10.0]

    springs.settled([0.1, 0.2, 0.3], gravity)
    np.testing.assert_allclose(link_positions, [0.08, 0.2, 0.28])
