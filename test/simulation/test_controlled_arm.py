"""Arm, hardware and controllers in one cycle, on a pendulum whose weight is known by hand."""

import numpy as np
import pytest
from pendulum import LENGTH, MASS

from dynid_ros.errors import DynidError
from dynid_ros.simulation import ControlledArm, Drives, SimulatedArm, TrajectoryPoints, TrajectorySettings
from dynid_ros.simulation.controlled_arm import FORWARD, TRAJECTORY

WEIGHT = -MASS * LENGTH * 9.80665
"""Torque that holds the pendulum at zero, where it hangs out horizontally and falls towards positive angles."""
PERIOD = 0.004
BOTH = ("position", "effort")


class Bench:
    def __init__(self, robot, *, sums=True, servo_model=False, **settings):
        arm = SimulatedArm(robot, drives=Drives(coulomb=0.0, viscous=0.0), start=[0.0], servo_model=servo_model)
        self.reported, self.changes = [], []
        self.controlled = ControlledArm(
            arm,
            TrajectorySettings(**settings),
            sums=sums,
            report=self.reported.append,
            changed=lambda name, active: self.changes.append((name, active)),
        )
        self.arm, self.names = arm, robot.joint_names
        self.stiffness = arm._servo.gains.stiffness[0]

    def run(self, seconds):
        for _ in range(round(seconds / PERIOD)):
            self.controlled.update(PERIOD)
            self.arm.step(PERIOD)
        return float(self.arm.position[0])

    def topic(self, time, position, effort=None):
        points = TrajectoryPoints(self.names, [time], [[position]], effort=None if effort is None else [[effort]])
        self.controlled.trajectory.topic(points, self.arm.time)

    def largest_torque(self, seconds):
        found = 0.0
        for _ in range(round(seconds / PERIOD)):
            self.run(PERIOD)
            found = max(found, abs(float(self.arm.torque[0])))
        return found


@pytest.fixture
def bench(pendulum):
    return lambda **settings: Bench(pendulum, **settings)


def test_the_servo_without_model_sags_by_weight_over_stiffness_and_effort_lifts_it(bench):
    bench = bench(command_interfaces=BOTH)
    assert bench.run(2.0) == pytest.approx(-WEIGHT / bench.stiffness, rel=0.01)
    bench.topic(0.0, 0.0, WEIGHT)
    assert bench.run(2.0) == pytest.approx(0.0, abs=-WEIGHT / bench.stiffness * 1e-3)


def test_the_servo_follows_set_points_as_it_does_the_whole_motion(bench):
    """Interpolated between cycles with constant acceleration, which is 0.1 rad/s² off where the jerk is largest."""
    bench = bench(servo_model=True)
    far = TrajectoryPoints(bench.names, [1.0], [[1.0]], [[0.0]], [[0.0]])
    alone = SimulatedArm(bench.arm.robot, drives=Drives(coulomb=0.0, viscous=0.0), start=[0.0])
    alone.follow(far)
    bench.controlled.trajectory.topic(far, bench.arm.time)
    for _ in range(300):
        bench.run(PERIOD)
        alone.step(PERIOD)
        assert bench.arm.position == pytest.approx(alone.position, abs=3e-5)
        assert bench.arm.torque == pytest.approx(alone.torque, abs=0.2)


def test_switching_back_snaps_the_arm_to_its_old_pose_by_default(bench):
    """Its only cure is the parameter: the arm was led away under the effort controller."""
    moved = {}
    for last in (True, False):
        this = bench(sums=False, servo_model=True, set_last_command_interface_value_as_state_on_activation=last)
        this.run(0.5)
        assert this.controlled.exchange(FORWARD) == f"{FORWARD} active, {TRAJECTORY} inactive"
        place = this.run(0.4)
        assert place > 0.3, "nothing was commanded: it falls"
        this.controlled.exchange(TRAJECTORY)
        moved[last] = this.run(2.0) - place, this.largest_torque(0.1)
    assert moved[True][0] < -0.3
    assert abs(moved[False][0]) < 0.1  # it brakes


def test_a_stale_torque_acts_again_at_the_next_activation(bench):
    bench = bench(sums=False, servo_model=True)
    bench.controlled.exchange(FORWARD)
    bench.controlled.forward.command([0.5 * WEIGHT])
    bench.run(0.02)
    bench.controlled.exchange(TRAJECTORY)
    bench.run(0.5)
    bench.controlled.exchange(FORWARD)
    bench.run(PERIOD)
    assert bench.arm.torque[0] == pytest.approx(0.5 * WEIGHT)


def test_beside_a_position_controller_the_torque_outlives_its_controller(bench):
    bench = bench()
    bench.controlled.forward.command([WEIGHT])
    assert bench.run(2.0) == pytest.approx(0.0, abs=1e-4)
    assert bench.controlled.switch(FORWARD, False) == f"{FORWARD} inactive"
    bench.controlled.forward.command([0.0])
    assert bench.run(2.0) == pytest.approx(0.0, abs=1e-4)
    assert bench.controlled.switch(FORWARD, False) == f"{FORWARD} is inactive already"


def test_a_wrong_size_deactivates_the_effort_controller_and_its_torque_stays(bench):
    bench = bench(sums=False, servo_model=True)
    bench.controlled.exchange(FORWARD)
    bench.controlled.forward.command([0.9 * WEIGHT])
    bench.run(0.02)
    bench.controlled.forward.command([1.0, 2.0])
    place = bench.run(PERIOD)
    assert not bench.controlled.active(FORWARD)
    assert bench.changes[-1] == (FORWARD, False)
    assert "deactivated, as its update resulted in an error" in bench.reported[-1]
    bench.controlled.forward.command([WEIGHT])
    assert bench.run(0.8) > place + 0.1, "nobody holds it"
    assert bench.arm.torque[0] == pytest.approx(0.9 * WEIGHT)


def test_activated_first_the_effort_controller_takes_over_without_a_gap(bench):
    """Beside the trajectory controller it writes its torque, which acts when that one is deactivated."""
    bench = bench(sums=False, servo_model=True)
    bench.controlled.switch(FORWARD, True)
    bench.controlled.forward.command([WEIGHT])
    bench.run(0.1)
    assert not bench.arm.effort_mode
    assert bench.controlled.switch(TRAJECTORY, False) == f"{TRAJECTORY} inactive"
    assert bench.run(1.0) == pytest.approx(0.0, abs=1e-4)
    assert bench.arm.effort_mode
    bench.controlled.switch(FORWARD, False)
    bench.run(PERIOD)
    assert bench.arm.effort_mode, "a mode stays until another is claimed"
    bench.controlled.switch(TRAJECTORY, True)
    bench.run(PERIOD)
    assert not bench.arm.effort_mode


def test_what_does_not_exist_is_not_switched(bench):
    with pytest.raises(DynidError, match="efforts are in the points of trajectories"):
        bench(command_interfaces=BOTH).controlled.switch(FORWARD, True)
    with pytest.raises(DynidError, match="the servo and torques act together here"):
        bench().controlled.exchange(FORWARD)


def test_a_reset_forgets_torques_poses_and_goals(bench):
    bench = bench(command_interfaces=BOTH)
    points = TrajectoryPoints(bench.names, [0.1], [[1.0]], effort=[[WEIGHT]])
    bench.controlled.trajectory.goal(points, bench.arm.time)
    bench.run(2.0)
    assert bench.controlled.trajectory.goals
    bench.arm.reset()
    bench.controlled.reset()
    bench.run(PERIOD)
    assert bench.controlled.interfaces.position == pytest.approx([0.0])
    assert bench.controlled.torque() == pytest.approx([0.0])
    assert bench.controlled.trajectory.goals == []
    assert bench.controlled.active(TRAJECTORY)


def test_a_new_trajectory_jerks_by_the_lag_unless_it_begins_at_the_desired_state(bench):
    """A loaded servo that sags: the jump of the command is the sag, and takes the torque that carried it."""
    jump = {}
    for desired in (False, True):
        this = bench(interpolate_from_desired_state=desired)
        this.run(2.0)
        before = this.controlled.interfaces.position.copy()
        this.topic(2.0, 0.0)
        this.run(PERIOD)
        jump[desired] = float(this.controlled.interfaces.position[0] - before[0])
    assert jump[True] == pytest.approx(0.0, abs=1e-9)
    assert jump[False] == pytest.approx(-WEIGHT / this.stiffness, rel=0.02)


def test_positions_that_nobody_commands_are_held(pendulum):
    arm = SimulatedArm(pendulum, start=[0.5])
    controlled = ControlledArm(arm, TrajectorySettings(), sums=True)
    controlled.interfaces.forget()
    for effort in (np.nan, 0.0):
        controlled.interfaces.effort = np.array([effort])
        for _ in range(100):
            controlled.hardware.write(PERIOD)
            arm.step(PERIOD)
        assert arm.position == pytest.approx([0.5], abs=1e-3)
