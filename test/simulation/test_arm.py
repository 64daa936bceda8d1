"""Compare the simulated physics with closed forms, in position mode and in effort mode."""

import numpy as np
import pendulum as pendulum_model
import pytest
from pendulum import LENGTH, MASS

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, TrajectoryPoints

INERTIA = MASS * LENGTH**2
START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
ROTORS = [0.8, 0.8, 0.4, 0.04, 0.04, 0.02]


def smooth_points(names, goal, duration):
    zeros = np.zeros((1, len(names)))
    return TrajectoryPoints(names, [duration], np.atleast_2d(goal), zeros, zeros)


def test_dry_friction_stops_a_turntable(turntable):
    """Friction stops the joint after a push: its angle is w² / (2 Fc / I)."""
    arm = SimulatedArm(turntable, drives=Drives(coulomb=2.0))
    arm.release()
    arm.command_effort([20.0])
    arm.step(0.3)
    arm.command_effort([0.0])
    arm.step(0.001)  # a command acts one timestep later
    start = arm.position[0]
    speed = arm.velocity[0]
    assert speed == pytest.approx(18.0 / INERTIA * 0.3, rel=1e-5)
    arm.step(5.0)
    assert arm.velocity == pytest.approx([0.0], abs=1e-6)
    assert arm.position[0] - start == pytest.approx(speed**2 * INERTIA / 4.0, rel=5e-3)


def test_clips_effort_at_its_limit(turntable):
    arm = SimulatedArm(turntable)
    arm.release()
    arm.command_effort([1e6])
    arm.step(0.101)
    assert arm.torque.tolist() == [100.0]
    assert arm.velocity == pytest.approx([100.0 / INERTIA * 0.1], rel=1e-5)


def test_servo_torque_stays_within_the_effort_limit(turntable):
    arm = SimulatedArm(turntable, drives=Drives(rotor_inertia=50.0))
    arm.follow(TrajectoryPoints(["swing"], [0.1], [[1.9]]))
    torques = []
    for _ in range(100):
        arm.step(0.001)
        torques.append(abs(arm.torque[0]))
    assert max(torques) == pytest.approx(100.0, rel=0.2)


def test_repeated_gravity_torque_keeps_the_arm_floating(demo_robot):
    arm = SimulatedArm(demo_robot, start=START)
    arm.release()
    arm.command_effort(arm.truth.gravity_torque(START)[0])
    arm.step(5.0)
    assert arm.position == pytest.approx(START, abs=1e-9)


@pytest.mark.parametrize("rotors", [0.0, ROTORS])
def test_dry_friction_holds_the_arm_without_creep(demo_robot, rotors):
    """Apply 90 % of the Coulomb torque in addition to gravity for 5 s."""
    for sign in (-1.0, 1.0):
        arm = SimulatedArm(demo_robot, start=START, drives=Drives(rotor_inertia=rotors))
        arm.release()
        arm.command_effort(arm.truth.gravity_torque(START)[0] + sign * 0.9 * arm.drives.coulomb)
        arm.step(5.0)
        assert arm.position == pytest.approx(START, abs=1e-5)


def test_torque_above_dry_friction_moves_the_joint(turntable):
    arm = SimulatedArm(turntable, drives=Drives(coulomb=2.0))
    arm.release()
    arm.command_effort([2.02])
    arm.step(1.001)
    assert arm.velocity == pytest.approx([0.02 / INERTIA], rel=1e-3)


@pytest.mark.parametrize("rotors", [pytest.param(0.0, marks=pytest.mark.slow), ROTORS])
def test_stiction_at_rest_keeps_the_direction_of_approach(demo_robot, rotors):
    """Each drive carries gravity plus Fc in the direction of the approach after a minimum-jerk move, and keeps it."""
    arm = SimulatedArm(demo_robot, start=START, drives=Drives(rotor_inertia=rotors))
    rng = np.random.default_rng(3)
    for _ in range(4):
        goal = rng.uniform(0.7 * demo_robot.limits.lower, 0.7 * demo_robot.limits.upper)
        direction = np.sign(goal - arm.position)
        arm.follow(smooth_points(demo_robot.joint_names, arm.position + 0.3 * (goal - arm.position), 2.0))
        arm.step(2.3)
        for _ in range(2):
            stiction = arm.torque - arm.truth.gravity_torque(arm.position)[0]
            assert direction * stiction / arm.drives.coulomb == pytest.approx(np.ones(6), abs=0.05)
            arm.step(2.0)


def test_servo_does_not_overshoot(demo_robot):
    """Each joint moves in one direction only, within a thousandth of its speed."""
    arm = SimulatedArm(demo_robot, start=START)
    goal = START + np.array([0.5, -0.4, 0.3, 0.6, -0.5, 0.4])
    arm.follow(smooth_points(demo_robot.joint_names, goal, 1.5))
    direction = np.sign(goal - START)
    for _ in range(2000):
        arm.step(0.001)
        assert np.all(direction * arm.velocity > -1e-3)
    assert arm.position == pytest.approx(goal, abs=2e-3)


def test_hold_keeps_the_current_position(demo_robot):
    arm = SimulatedArm(demo_robot, start=START)
    arm.release()
    arm.step(0.3)
    start_position = arm.position
    arm.hold()
    arm.step(2.0)
    assert arm.position == pytest.approx(start_position, abs=0.05)
    assert arm.velocity == pytest.approx(np.zeros(6), abs=1e-5)
    assert not arm.effort_mode


def test_effort_mode_starts_without_torque(demo_robot):
    arm = SimulatedArm(demo_robot, start=START)
    arm.release()
    arm.command_effort(np.ones(6))
    arm.hold()
    arm.release()
    arm.step(0.001)
    assert arm.torque.tolist() == [0.0] * 6


def test_reset_returns_to_rest_in_position_mode(demo_robot):
    arm = SimulatedArm(demo_robot, start=START)
    fresh = arm.torque
    arm.release()
    arm.step(1.0)
    arm.reset()
    assert arm.time == 0.0
    assert not arm.effort_mode
    assert np.array_equal(arm.position, START)
    assert np.array_equal(arm.torque, fresh)
    assert np.all(arm.velocity == 0.0)


def test_readings_are_reproducible_by_seed(demo_robot):
    def readings(seed):
        sensors = Sensors.draw(demo_robot.limits.effort, np.random.default_rng(1), position_noise=1e-5)
        arm = SimulatedArm(demo_robot, start=START, sensors=sensors, seed=seed)
        arm.follow(smooth_points(demo_robot.joint_names, START + 0.1, 1.0))
        samples = []
        for _ in range(50):
            arm.step(0.004)
            samples.append(arm.measure())
        return np.array(samples)

    first = readings(7)
    assert np.array_equal(first, readings(7))
    assert not np.array_equal(first, readings(8))


def test_joints_stop_at_their_limits(demo_robot):
    arm = SimulatedArm(demo_robot, start=START)
    arm.release()
    arm.command_effort([0, 60, 0, 0, 0, 0])
    arm.step(3.0)
    assert arm.position[1] == pytest.approx(demo_robot.limits.upper[1], abs=0.02)


@pytest.mark.parametrize(
    ("effort", "message"),
    [
        ([1.0, 2.0], "the effort command has 2 values; expected 6: joint_1, .*joint_6"),
        ([0, 0, np.nan, 0, 0, 0], "the effort command for joint 'joint_3' is nan"),
        ([0, 0, 0, -np.inf, 0, 0], "the effort command for joint 'joint_4' is -inf"),
    ],
)
def test_refuses_invalid_effort_commands(demo_robot, effort, message):
    arm = SimulatedArm(demo_robot, start=START)
    arm.release()
    arm.command_effort(np.full(6, 0.5))
    with pytest.raises(DynidError, match=message):
        arm.command_effort(effort)
    arm.step(0.001)
    assert arm.torque.tolist() == [0.5] * 6


def test_refuses_commands_of_the_other_mode(demo_robot):
    arm = SimulatedArm(demo_robot)
    with pytest.raises(DynidError, match="in position mode"):
        arm.command_effort(np.zeros(6))
    arm.release()
    with pytest.raises(TrajectoryError, match="in effort mode"):
        arm.follow(smooth_points(demo_robot.joint_names, START, 3.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": [0, 2.0, 0, 0, 0, 0]}, "joint 'joint_2' at 2; its limits are -1.64 to 1.64"),
        ({"start": [0, np.nan, 0, 0, 0, 0]}, "the pose of joint 'joint_2' is nan; expected a number up to 1e\\+12"),
        ({"start": [0, 0]}, "the pose: 2 values; give one for all joints or one for each of joint_1, .*joint_6"),
        ({"timestep": 0.0}, "timestep is 0 s"),
        ({"timestep": 0.1}, "timestep is 0.1 s; expected more than 0 and at most 0.005"),
        ({"drives": Drives(coulomb=-1.0)}, "coulomb of joint '1' is -1.0; expected a number of at least 0"),
        ({"drives": Drives(coulomb=1e308)}, r"coulomb of joint '1' is 1e\+308; expected .* up to 1e\+12"),
        ({"drives": Drives(rotor_inertia=[1.0, 2.0])}, "rotor_inertia: 2 values; give one for all joints"),
    ],
)
def test_refuses_invalid_settings(demo_robot, settings, message):
    with pytest.raises(DynidError, match=message):
        SimulatedArm(demo_robot, **settings)


def test_refuses_durations_between_timesteps(demo_robot):
    with pytest.raises(DynidError, match=r"cannot step by 0.0015 s: not a multiple of the timestep, 0.001 s"):
        SimulatedArm(demo_robot).step(0.0015)


def test_default_start_is_the_limit_nearest_to_zero():
    limit = '<limit lower="0.5" upper="2" velocity="20" effort="100"/>'
    assert SimulatedArm(RobotModel.from_urdf(pendulum_model.urdf(limit=limit))).position.tolist() == [0.5]


def test_reports_divergence():
    """Drive a very light rotor without position limits by a huge torque."""
    rod = '<inertial><mass value="1e-4"/><inertia ixx="1e-7" iyy="1e-7" izz="1e-7" ixy="0" ixz="0" iyz="0"/></inertial>'
    arm = SimulatedArm(RobotModel.from_urdf(pendulum_model.urdf(kind="continuous", rod=rod)))
    arm.release()
    arm.command_effort([0.1])
    with pytest.raises(DynidError, match="diverged at"):
        arm.step(0.1)


def test_continuous_joints_turn_beyond_a_revolution():
    arm = SimulatedArm(RobotModel.from_urdf(pendulum_model.urdf(axis="0 0 1", kind="continuous")))
    arm.follow(smooth_points(["swing"], [20.0], 5.0))
    arm.step(6.0)
    assert arm.position == pytest.approx([20.0], abs=1e-3)
