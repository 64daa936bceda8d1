"""Test arm, hardware interfaces and controllers in one cycle, with a pendulum of known weight."""

import numpy as np
import pytest
from pendulum import LENGTH, MASS

from dynid_ros.errors import DynidError
from dynid_ros.simulation import ControlledArm, Drives, SimulatedArm, TrajectoryPoints, TrajectorySettings
from dynid_ros.simulation.controlled_arm import FORWARD, TRAJECTORY

WEIGHT_NM = -MASS * LENGTH * 9.80665
"""Torque that holds the pendulum at zero, where it is horizontal and falls towards positive angles."""
PERIOD_S = 0.004
POSITION_AND_EFFORT = ("position", "effort")


class Bench:
    """Simulated pendulum, its controllers, and their messages and changes of state."""

    def __init__(self, robot, *, sums=True, servo_model=False, **settings):
        arm = SimulatedArm(robot, drives=Drives(coulomb=0.0, viscous=0.0), start=[0.0], servo_model=servo_model)
        self.reported = []
        self.changes = []
        self.controlled = ControlledArm(
            arm,
            TrajectorySettings(**settings),
            sums=sums,
            report=self.reported.append,
            changed=lambda name, active: self.changes.append((name, active)),
        )
        self.arm = arm
        self.names = robot.joint_names
        self.stiffness = arm._servo.gains.stiffness[0]

    def run(self, seconds):
        """Simulate for some seconds and return the position in rad."""
        for _ in range(round(seconds / PERIOD_S)):
            self.controlled.update(PERIOD_S)
            self.arm.step(PERIOD_S)
        return float(self.arm.position[0])

    def topic(self, time, position, effort=None):
        points = TrajectoryPoints(self.names, [time], [[position]], effort=None if effort is None else [[effort]])
        self.controlled.trajectory.topic(points, self.arm.time)

    def measure_largest_torque(self, seconds):
        """Simulate for some seconds and return the largest absolute torque in N m."""
        torques = []
        for _ in range(round(seconds / PERIOD_S)):
            self.run(PERIOD_S)
            torques.append(abs(float(self.arm.torque[0])))
        return max(torques)


@pytest.fixture
def bench(pendulum):
    return lambda **settings: Bench(pendulum, **settings)


def test_servo_sags_by_weight_over_stiffness_until_effort_lifts_it(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT)
    assert bench.run(2.0) == pytest.approx(-WEIGHT_NM / bench.stiffness, rel=0.01)
    bench.topic(0.0, 0.0, WEIGHT_NM)
    assert bench.run(2.0) == pytest.approx(0.0, abs=-WEIGHT_NM / bench.stiffness * 1e-3)


def test_set_points_and_whole_trajectory_give_equal_motion(bench):
    """Constant acceleration between cycles deviates by up to 0.1 rad/s² where the jerk is largest."""
    bench = bench(servo_model=True)
    points = TrajectoryPoints(bench.names, [1.0], [[1.0]], [[0.0]], [[0.0]])
    reference = SimulatedArm(bench.arm.robot, drives=Drives(coulomb=0.0, viscous=0.0), start=[0.0])
    reference.follow(points)
    bench.controlled.trajectory.topic(points, bench.arm.time)
    for _ in range(300):
        bench.run(PERIOD_S)
        reference.step(PERIOD_S)
        assert bench.arm.position == pytest.approx(reference.position, abs=3e-5)
        assert bench.arm.torque == pytest.approx(reference.torque, abs=0.2)


def test_switching_back_returns_to_the_last_command_by_default(bench):
    """The effort controller moves the arm away; only the parameter of the trajectory controller prevents the jump."""
    displacement = {}
    for last in (True, False):
        pendulum = bench(sums=False, servo_model=True, set_last_command_interface_value_as_state_on_activation=last)
        pendulum.run(0.5)
        assert pendulum.controlled.exchange(FORWARD) == f"{FORWARD} active, {TRAJECTORY} inactive"
        position = pendulum.run(0.4)
        assert position > 0.3, "without a command the pendulum falls"
        pendulum.controlled.exchange(TRAJECTORY)
        displacement[last] = pendulum.run(2.0) - position
    assert displacement[True] < -0.3
    assert abs(displacement[False]) < 0.1  # the servo brakes


def test_last_torque_acts_again_at_the_next_activation(bench):
    bench = bench(sums=False, servo_model=True)
    bench.controlled.exchange(FORWARD)
    bench.controlled.forward.command([0.5 * WEIGHT_NM])
    bench.run(0.02)
    bench.controlled.exchange(TRAJECTORY)
    bench.run(0.5)
    bench.controlled.exchange(FORWARD)
    bench.run(PERIOD_S)
    assert bench.arm.torque[0] == pytest.approx(0.5 * WEIGHT_NM)


def test_torque_persists_after_its_controller_where_commands_add(bench):
    bench = bench()
    bench.controlled.forward.command([WEIGHT_NM])
    assert bench.run(2.0) == pytest.approx(0.0, abs=1e-4)
    assert bench.controlled.switch(FORWARD, False) == f"{FORWARD} inactive"
    bench.controlled.forward.command([0.0])
    assert bench.run(2.0) == pytest.approx(0.0, abs=1e-4)
    assert bench.controlled.switch(FORWARD, False) == f"{FORWARD} is inactive already"


def test_commands_of_wrong_size_deactivate_the_effort_controller(bench):
    bench = bench(sums=False, servo_model=True)
    bench.controlled.exchange(FORWARD)
    bench.controlled.forward.command([0.9 * WEIGHT_NM])
    bench.run(0.02)
    bench.controlled.forward.command([1.0, 2.0])
    position = bench.run(PERIOD_S)
    assert not bench.controlled.active(FORWARD)
    assert bench.changes[-1] == (FORWARD, False)
    assert "deactivated, as its update resulted in an error" in bench.reported[-1]
    bench.controlled.forward.command([WEIGHT_NM])
    assert bench.run(0.8) > position + 0.1, "the last torque does not hold the pendulum"
    assert bench.arm.torque[0] == pytest.approx(0.9 * WEIGHT_NM)


def test_effort_controller_takes_over_without_a_gap(bench):
    """Beside the active trajectory controller its torque is stored; it acts when that controller is deactivated."""
    bench = bench(sums=False, servo_model=True)
    bench.controlled.switch(FORWARD, True)
    bench.controlled.forward.command([WEIGHT_NM])
    bench.run(0.1)
    assert not bench.arm.effort_mode
    assert bench.controlled.switch(TRAJECTORY, False) == f"{TRAJECTORY} inactive"
    assert bench.run(1.0) == pytest.approx(0.0, abs=1e-4)
    assert bench.arm.effort_mode
    bench.controlled.switch(FORWARD, False)
    bench.run(PERIOD_S)
    assert bench.arm.effort_mode, "a mode persists until another is claimed"
    bench.controlled.switch(TRAJECTORY, True)
    bench.run(PERIOD_S)
    assert not bench.arm.effort_mode


def test_refuses_to_switch_controllers_that_do_not_exist(bench):
    with pytest.raises(DynidError, match="efforts are in the points of trajectories"):
        bench(command_interfaces=POSITION_AND_EFFORT).controlled.switch(FORWARD, True)
    with pytest.raises(DynidError, match="the servo and torques act together here"):
        bench().controlled.exchange(FORWARD)


def test_reset_clears_torques_poses_and_goals(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT)
    points = TrajectoryPoints(bench.names, [0.1], [[1.0]], effort=[[WEIGHT_NM]])
    bench.controlled.trajectory.goal(points, bench.arm.time)
    bench.run(2.0)
    assert bench.controlled.trajectory.goals
    bench.arm.reset()
    bench.controlled.reset()
    bench.run(PERIOD_S)
    assert bench.controlled.interfaces.position == pytest.approx([0.0])
    assert bench.controlled.torque() == pytest.approx([0.0])
    assert bench.controlled.trajectory.goals == []
    assert bench.controlled.active(TRAJECTORY)


def test_new_trajectories_jump_by_the_lag_unless_from_the_desired_state(bench):
    """A loaded servo sags; the command jumps by the sag, which removes the torque that carried the load."""
    jump = {}
    for desired in (False, True):
        bench_of_case = bench(interpolate_from_desired_state=desired)
        bench_of_case.run(2.0)
        before = bench_of_case.controlled.interfaces.position.copy()
        bench_of_case.topic(2.0, 0.0)
        bench_of_case.run(PERIOD_S)
        jump[desired] = float(bench_of_case.controlled.interfaces.position[0] - before[0])
    assert jump[True] == pytest.approx(0.0, abs=1e-9)
    assert jump[False] == pytest.approx(-WEIGHT_NM / bench_of_case.stiffness, rel=0.02)


def test_holds_positions_without_a_command(pendulum):
    arm = SimulatedArm(pendulum, start=[0.5])
    controlled = ControlledArm(arm, TrajectorySettings(), sums=True)
    controlled.interfaces.forget()
    for effort in (np.nan, 0.0):
        controlled.interfaces.effort = np.array([effort])
        for _ in range(100):
            controlled.hardware.write(PERIOD_S)
            arm.step(PERIOD_S)
        assert arm.position == pytest.approx([0.5], abs=1e-3)
