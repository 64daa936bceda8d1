"""A push against Pinocchio's Jacobian and forward dynamics, and against Newton's law by hand."""

import numpy as np
import pytest
from pendulum import LENGTH, MASS, urdf

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, SimulatedArm, Springs

G = 9.80665
POSE = np.array([0.4, 0.7, 0.9, 0.5, -0.8, 0.3])
WRENCH = np.array([20.0, -15.0, 30.0, 2.0, 1.0, -3.0])
STEP = 0.0005


def free(robot, **settings):
    """In effort mode, without friction."""
    arm = SimulatedArm(robot, drives=Drives(coulomb=0.0, viscous=0.0), timestep=STEP, **settings)
    arm.release()
    return arm


@pytest.mark.parametrize(("link", "axes"), [("tool", "base_link"), ("tool", "tool"), ("link_3", "link_2")])
def test_acceleration_is_that_of_the_jacobian(demo_robot, link, axes):
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(demo_robot.urdf)
    data = model.createData()
    frame, along = model.getFrameId(link), model.getFrameId(axes)
    jacobian = pinocchio.computeFrameJacobian(model, data, POSE, frame, pinocchio.LOCAL_WORLD_ALIGNED)
    pinocchio.forwardKinematics(model, data, POSE)
    rotation = pinocchio.updateFramePlacement(model, data, along).rotation
    world = np.concatenate([rotation @ WRENCH[:3], rotation @ WRENCH[3:]])
    model.gravity.linear = np.array([0.0, 0.0, -G])
    weight = pinocchio.computeGeneralizedGravity(model, data, POSE)
    expected = pinocchio.aba(model, data, POSE, np.zeros(6), weight + jacobian.T @ world)

    arm = free(demo_robot, start=POSE)
    arm.command_effort(weight)
    arm.push(WRENCH, link, axes, duration=1.0)
    arm.step(STEP)
    before = arm.velocity
    arm.step(STEP)
    assert np.abs(before).max() <= np.abs(expected).max() * 1.1 * STEP
    assert (arm.velocity - before) / STEP == pytest.approx(expected, rel=0.02, abs=0.02 * np.abs(expected).max())


def test_it_ends_after_its_time():
    """From rest by F L / (m L²) for 0.1 s, and then at constant speed: the axis is upright."""
    arm = free(RobotModel.from_urdf(urdf(axis="0 0 1")), start=[0.0])
    arm.push([0.0, 0.0, 0.0, 0.0, 0.0, 6.0], duration=0.1)
    arm.step(0.1 + 2 * STEP)
    speed = 6.0 / (MASS * LENGTH**2) * 0.1
    assert arm.velocity == pytest.approx([speed], rel=1e-3)
    arm.step(0.5)
    assert arm.velocity == pytest.approx([speed], rel=1e-3)


def test_a_new_push_takes_the_place_of_the_one_before(demo_robot):
    arm = free(demo_robot, start=POSE)
    for link in ("link_3", "tool"):
        arm.push(WRENCH, link, duration=1.0)
    both, alone = arm, free(demo_robot, start=POSE)
    alone.push(WRENCH, "tool", duration=1.0)
    for each in (both, alone):
        each.step(0.05)
    assert both.velocity == pytest.approx(alone.velocity, abs=1e-12)


def test_a_reset_ends_it(demo_robot):
    arm = SimulatedArm(demo_robot, start=POSE)
    arm.push(WRENCH * 5, duration=10.0)
    arm.step(0.2)
    assert np.abs(arm.position - POSE).max() > 1e-3
    arm.reset()
    arm.step(0.2)
    assert arm.position == pytest.approx(POSE, abs=1e-4)


def test_flexible_joints_give_way_by_the_torque_over_the_stiffness(demo_robot):
    pinocchio = pytest.importorskip("pinocchio")
    stiffness = np.array([6e3, 1e4, 5e3, 800.0, 800.0, 500.0])
    drives = Drives(coulomb=0.0, viscous=5.0, rotor_inertia=0.5)
    arm = SimulatedArm(demo_robot, drives=drives, springs=Springs(stiffness, damping=20.0), start=POSE, timestep=STEP)
    arm.step(1.0)
    before = arm.link_position - arm.position
    arm.push(WRENCH, duration=5.0)
    arm.step(1.5)
    model = pinocchio.buildModelFromXML(demo_robot.urdf)
    frame = model.getFrameId("tool")
    jacobian = pinocchio.computeFrameJacobian(model, model.createData(), POSE, frame, pinocchio.LOCAL_WORLD_ALIGNED)
    deflection = (arm.link_position - arm.position - before) * stiffness
    assert deflection == pytest.approx(jacobian.T @ WRENCH, abs=0.5)  # the weight moves along


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"link": "hand"}, "no link 'hand' to push; its links are base_link, link_1"),
        ({"axes": "load of the simulated arm"}, "no link 'load of the simulated arm'"),
        ({"wrench": [1.0, 2.0, 3.0]}, "push (force, torque): shape (3,); expected (6,)"),
        ({"wrench": [np.nan] * 6}, "is not finite"),
        ({"duration": 0.0}, "a push for 0.0 s; expected a time above 0"),
        ({"duration": np.inf}, "a push for inf s"),
        ({"duration": 1e308}, "a push for 1e+308 s; expected a time above 0, up to 3600 s"),
        ({"wrench": [1e300] * 6}, "expected numbers up to 1e+12"),
    ],
)
def test_what_is_no_push_is_refused(demo_robot, arguments, message):
    arm = SimulatedArm(demo_robot, start=POSE)
    with pytest.raises(DynidError) as error:
        arm.push(**{"wrench": WRENCH} | arguments)
    assert message in str(error.value)
    arm.step(0.1)
    assert arm.position == pytest.approx(POSE, abs=1e-4)
