"""The torque of arm and load against Pinocchio, and against MuJoCo, which lets fall what is not held."""

import time

import carried_loads
import numpy as np
import pytest
from carried_loads import LoadedArm
from pinocchio_arm import example_urdf

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, Timing
from dynid_ros.errors import ControlError
from dynid_ros.files.share import share_path
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
PERIOD = 0.004
TOLD = 25


def load_at(frame):
    return CarriedLoad(carried_loads.MASS, tuple(carried_loads.CENTER.tolist()), frame)


def alone(robot, **settings):
    model = GravityModel(robot)
    return LoadedGravity(model, model.project(robot.parameters), **settings)


@pytest.fixture(scope="module")
def demo_robot():
    return RobotModel.from_urdf(share_path("config/demo_arm.urdf"))


@pytest.mark.parametrize(
    ("path", "tip"),
    [("", "tool"), ("ur_description/urdf/ur10_robot.urdf", "tool0"), ("xarm_description/urdf/xarm7.urdf", "link7")],
)
def test_torque_of_arm_and_load_is_that_of_pinocchio(path, tip):
    robot = RobotModel.from_urdf(example_urdf(path) if path else share_path("config/demo_arm.urdf"), tip=tip)
    reference = LoadedArm(robot.urdf, tip, robot.gravity)
    gravity = alone(robot).carrying(load_at(tip))
    for q in np.random.default_rng(3).uniform(-3.0, 3.0, (50, robot.n_joints)):
        np.testing.assert_allclose(gravity(q.tolist()), reference.gravity_torque(q), rtol=0, atol=1e-10)


def test_another_load_leaves_the_torque_in_force_alone(demo_robot):
    gravity = alone(demo_robot)
    q = START.tolist()
    bare = gravity(q)
    loaded = gravity.carrying(load_at("tool"))
    assert gravity(q) == bare
    assert loaded.load == load_at("tool")
    assert np.abs(np.subtract(loaded(q), bare)).max() > 10.0
    assert loaded.carrying(CarriedLoad(0.0, (0.0, 0.0, 0.0), "tool"))(q) == pytest.approx(bare, abs=1e-12)
    assert loaded.carrying(None)(q) == bare


def test_a_change_takes_less_than_a_sample(demo_robot):
    """0.1 ms are usual; a fiftieth of the limit would be a compilation."""
    gravity = alone(demo_robot)
    start = time.process_time()
    for _ in range(100):
        gravity = gravity.carrying(load_at("tool"))
    assert (time.process_time() - start) / 100 < 1e-3


def test_too_heavy_is_not_believed(demo_robot):
    gravity = alone(demo_robot, largest_load=3.0)
    with pytest.raises(ControlError, match=r"mass is 3.2 kg; at most 3 kg are believed \(parameter largest_load\)"):
        gravity.carrying(load_at("tool"))
    light = gravity.carrying(CarriedLoad(3.0, (0.0, 0.0, 0.1), "tool"))
    with pytest.raises(ControlError, match="at most 3 kg"):
        light.carrying(load_at("tool"))
    with pytest.raises(ControlError, match="frame 'link_5' is not fixed"):
        gravity.carrying(CarriedLoad(1.0, (0.0, 0.0, 0.1), "link_5"))


def hold(demo_robot, told):
    """Simulated arm that has picked something up and has been told of it after 0.1 s, or not; 3 s later.

    Returns:
        The arm, the commands (N, n), and their fastest change (n,).

    """
    simulation = pytest.importorskip("dynid_ros.simulation")
    arm = simulation.SimulatedArm(demo_robot, start=START)
    joints = JointSettings.of(demo_robot, fault_ramp_time=0.5)
    gravity = alone(demo_robot)
    compensator = GravityCompensator(gravity, joints, Timing(ramp_time=0.01))
    compensator.update(0.0, START.tolist())
    compensator.enable(0.0)
    while compensator.torque != tuple(gravity(START.tolist())):
        arm.step(PERIOD)
        compensator.update(arm.time, START.tolist())
    arm.release()
    arm.attach_load(carried_loads.parameters())
    commands = []
    for sample in range(round(3.0 / PERIOD)):
        commands.append(compensator.update(arm.time, arm.position.tolist()))
        arm.command_effort(commands[-1])
        arm.step(PERIOD)
        if told and sample == TOLD:
            compensator.replace(gravity.carrying(load_at("tool")), joints)
    return arm, np.array(commands), np.array(joints.rate)


def test_an_arm_that_is_told_of_its_load_stops_falling_without_a_step_in_torque(demo_robot):
    """A load of 3.2 kg is more than friction holds; the shoulder of an arm that is not told falls to its stop."""
    falling, _, _ = hold(demo_robot, told=False)
    held, commands, rate = hold(demo_robot, told=True)
    assert falling.position[1] == pytest.approx(demo_robot.limits.upper[1], abs=0.02)
    assert held.position[1] == pytest.approx(START[1], abs=0.02)
    assert np.abs(held.velocity).max() < 1e-3
    change = np.abs(np.diff(commands, axis=0))
    assert np.all(change <= rate * PERIOD * (1.0 + 1e-6))
    assert (change[TOLD] / (rate * PERIOD)).max() == pytest.approx(1.0)
