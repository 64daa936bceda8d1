"""Test the trajectory and effort controllers cycle by cycle, with numbers from the sources of ros2_control."""

import numpy as np
import pytest

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.simulation import (
    CommandInterfaces,
    ForwardController,
    GoalTolerances,
    TrajectoryController,
    TrajectoryPoints,
    TrajectorySettings as Settings,
)
from dynid_ros.simulation.trajectory_controller import Goal

NAMES = ["a", "b", "c"]


@pytest.fixture
def interfaces():
    return CommandInterfaces(3)


@pytest.fixture
def controller(interfaces):
    return ForwardController(["c", "a", "b"], NAMES, interfaces)


def test_reorders_commands_from_controller_to_robot(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0]
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0], "the last command persists"


def test_drops_commands_that_are_not_finite(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    with pytest.raises(DynidError, match="the effort command for joint 'a' is nan"):
        controller.command([0.0, np.nan, 0.0])
    with pytest.raises(DynidError, match="the effort command for value 4 is inf"):
        controller.command([0.0, 0.0, 0.0, np.inf])
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0]


def test_update_refuses_commands_of_wrong_size(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    controller.update()
    controller.command([5.0])
    with pytest.raises(DynidError, match="the effort command has 1 values; expected 3: c, a, b"):
        controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0]


def test_activation_drops_the_command_and_keeps_the_torque(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    controller.update()
    controller.deactivate()
    controller.command([9.0, 9.0, 9.0])
    controller.activate()
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0], "neither zero nor the command received while inactive"


PERIOD_S = 0.004
LAG = 0.05
POSITION_AND_EFFORT = ("position", "effort")


class Bench:
    """Controller of one joint whose hardware lags by a constant or is where a test puts it."""

    def __init__(self, robot, lag=0.0, **settings):
        self.interfaces = CommandInterfaces(1)
        self.reported = []
        self.controller = TrajectoryController(robot, self.interfaces, Settings(**settings), self.reported.append)
        self.names = robot.joint_names
        self.lag = lag
        self.now = 0.0
        self.measured = 0.0
        self.speed = 0.0

    def points(self, *points):
        """Return trajectory points from tuples (time, position) or (time, position, effort)."""
        columns = list(zip(*points, strict=True))
        effort = [[value] for value in columns[2]] if len(columns) > 2 else None
        return TrajectoryPoints(self.names, columns[0], [[p] for p in columns[1]], effort=effort)

    def topic(self, *points, start=None):
        self.controller.topic(self.points(*points), self.now, start)

    def goal(self, *points, **tolerances):
        self.controller.goal(self.points(*points), self.now, tolerances=GoalTolerances(**tolerances))

    def activate(self):
        self.controller.activate(np.array([self.measured]))

    def cycle(self, measured=None):
        """Run one cycle and return the position and effort in the interfaces."""
        if measured is not None:
            self.measured = measured
        self.controller.update(self.now, PERIOD_S, np.array([self.measured]), np.array([self.speed]))
        self.now += PERIOD_S
        return float(self.interfaces.position[0]), float(self.interfaces.effort[0])

    def run(self, seconds):
        """Run cycles with a constant lag and return the last position and effort in the interfaces."""
        for _ in range(round(seconds / PERIOD_S)):
            position, effort = self.cycle()
            self.measured = position - self.lag
        return position, effort


@pytest.fixture
def bench(pendulum):
    def make(active=True, **settings):
        bench = Bench(pendulum, **settings)
        if active:
            bench.activate()
            bench.cycle()
        return bench

    return make


def test_commands_nothing_before_the_first_activation(bench):
    bench = bench(active=False)
    assert np.isnan(bench.cycle()).all()
    with pytest.raises(TrajectoryError, match="inactive"):
        bench.topic((1.0, 0.5))


@pytest.mark.parametrize(("last", "expected"), [(True, 0.5), (False, 0.8)])
def test_activation_holds_the_last_command_or_the_measured_pose(bench, last, expected):
    """Another controller led the arm from 0.5 to 0.8 rad in between."""
    bench = bench(set_last_command_interface_value_as_state_on_activation=last)
    bench.topic((1.0, 0.5))
    bench.run(1.5)
    bench.controller.deactivate()
    assert bench.cycle(0.8)[0] == 0.5, "deactivation keeps the position in its interface"
    bench.activate()
    assert bench.cycle()[0] == pytest.approx(expected)


def test_first_activation_holds_the_measured_pose(bench):
    bench = bench(active=False)
    bench.measured = 0.3
    bench.activate()
    assert bench.cycle()[0] == 0.3


@pytest.mark.parametrize(("desired", "jump"), [(False, LAG), (True, 0.0)])
def test_new_trajectory_begins_at_the_measured_or_desired_pose(bench, desired, jump):
    bench = bench(interpolate_from_desired_state=desired, lag=LAG)
    bench.measured = -LAG
    before = bench.cycle()[0]
    bench.topic((2.0, 0.0))
    assert bench.cycle()[0] == pytest.approx(before - jump, abs=2e-4)


def test_last_command_has_the_time_of_its_cycle(bench):
    bench = bench(interpolate_from_desired_state=True)
    bench.topic((1.0, 0.0), (2.0, 1.0))
    before = bench.run(1.5)[0]
    bench.topic((0.5, before + 0.5))
    assert bench.cycle()[0] == pytest.approx(before + 0.5 * 2 * PERIOD_S / (0.5 + PERIOD_S), abs=1e-9)


@pytest.mark.parametrize("desired", [True, False])
def test_replacement_begins_on_the_current_path(bench, desired):
    bench = bench(allow_trajectory_replacement=True, interpolate_from_desired_state=desired, lag=LAG)
    bench.topic((1.0, 0.0), (3.0, 1.0))
    before = bench.run(2.0)[0]
    bench.topic((0.5, before + 0.25), (1.0, before))
    after = bench.cycle()[0]
    assert after == pytest.approx(before, abs=2e-4), "one cycle is lost"
    assert bench.run(0.5)[0] == pytest.approx(before + 0.25, abs=5e-3)


def test_shifts_late_replacements_by_their_delay(bench):
    bench = bench(allow_trajectory_replacement=True)
    bench.topic((1.0, 0.0), (3.0, 1.0))
    bench.run(2.0)
    bench.topic((0.2, 0.6), (1.2, 1.1), start=bench.now - 0.3)
    assert bench.run(0.2)[0] == pytest.approx(0.6, abs=2e-3)


def test_replacement_keeps_the_path_until_its_start(bench):
    bench = bench(allow_trajectory_replacement=True, interpolate_from_desired_state=True)
    bench.topic((1.0, 0.0), *((1.0 + 0.1 * i, 0.05 * i) for i in range(1, 21)))
    bench.run(2.0)
    bench.topic((0.2, 0.7), (1.2, 0.9), start=bench.now + 0.2)
    assert bench.run(0.15)[0] == pytest.approx(0.575, abs=2e-3)
    assert bench.run(0.25)[0] == pytest.approx(0.7, abs=2e-3)


def test_jumps_to_a_first_point_that_is_due(bench):
    bench = bench(lag=LAG)
    bench.measured = -LAG
    bench.topic((0.0, 0.01), (1.0, 0.5))
    assert bench.cycle()[0] == pytest.approx(0.01 + 0.49 * PERIOD_S, abs=1e-9)
    bench.topic((0.0, 0.3))
    assert bench.cycle()[0] == 0.3


def test_skips_points_before_the_present(bench):
    bench = bench()
    bench.now = 10.0
    bench.topic((0.5, 0.0), (1.0, 0.1), (2.0, 0.2), start=8.5)
    assert bench.cycle()[0] == pytest.approx(0.15 + 0.1 * PERIOD_S, abs=1e-9)
    with pytest.raises(TrajectoryError, match="lies 1 s in the past"):
        bench.topic((0.5, 0.0), start=bench.now - 1.5)
    assert bench.run(1.0)[0] == pytest.approx(0.2)


def test_position_leads_effort_by_one_period(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT)
    bench.topic((1.0, 1.0, 10.0))
    assert bench.cycle() == pytest.approx((PERIOD_S, 0.0))
    assert bench.cycle() == pytest.approx((2 * PERIOD_S, 10.0 * PERIOD_S))
    bench.run(1.0)
    bench.topic((1.0, 1.0))
    assert bench.cycle()[1] == pytest.approx(10.0), "a trajectory without effort removes it over its first segment"
    assert bench.run(0.5)[1] == pytest.approx(5.0, abs=0.1)
    assert bench.run(1.0)[1] == 0.0


def test_deactivation_sets_effort_to_zero(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT)
    bench.topic((0.0, 0.0, 40.0))
    assert bench.cycle()[1] == 40.0
    bench.controller.deactivate()
    assert bench.interfaces.effort[0] == 0.0


def test_position_controller_does_not_write_effort(bench):
    bench = bench()
    bench.interfaces.effort = np.array([7.0])
    with pytest.raises(TrajectoryError, match="no effort interface"):
        bench.topic((1.0, 0.0, 1.0))
    bench.run(0.1)
    bench.controller.deactivate()
    assert bench.interfaces.effort[0] == 7.0


def test_holds_the_measured_pose_one_cycle_after_a_violation(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT, trajectory=[0.1])
    bench.topic((0.0, 0.0, 40.0))
    bench.run(0.1)
    bench.topic((1.0, 0.2, 40.0))
    before = bench.cycle(0.0)
    assert bench.cycle(0.15) == before
    assert bench.reported == ["Holding position due to state tolerance violation"]
    assert bench.cycle(0.17) == (0.15, 0.0), "the position at the violation, without effort"
    assert bench.controller.aborts == 1
    bench.topic((0.0, 0.0, 40.0))
    bench.cycle()
    bench.cycle(0.2)
    assert bench.controller.aborts == 2, "each message is checked again"
    assert bench.cycle()[0] == 0.17


def test_holding_does_not_violate_tolerances(bench):
    bench = bench(trajectory=[0.1])
    bench.run(0.1)
    bench.cycle(1.0)
    assert bench.controller.aborts == 0


def test_goal_tolerances_apply_to_later_topic_messages(bench):
    """Tolerances override zero parameters beyond the end of the goal, an activation and other parameters."""
    bench = bench()
    bench.topic((0.0, 0.5))
    bench.cycle(0.0)
    assert bench.controller.aborts == 0
    bench.goal((0.1, 0.0), trajectory=[0.2])
    bench.run(0.2)
    assert bench.controller.goals == [Goal.SUCCEEDED]
    bench.controller.deactivate()
    bench.controller.settings = Settings(trajectory=[10.0])
    bench.activate()
    bench.cycle(0.0)
    for number in range(3):
        bench.topic((0.0, 0.5))
        bench.cycle(0.0)
        assert bench.controller.aborts == number + 1


@pytest.mark.parametrize(
    ("path", "aborts"), [([0.0], 1), ([-1.0], 0), ([0.6], 0), ([0.2], 1), ([-2.0], 1), ([np.nan], None)]
)
def test_goal_tolerances_select_parameter_or_none(bench, path, aborts):
    """0 selects the parameter, here 0.4; -1 disables the tolerance; other values are ignored."""
    bench = bench(trajectory=[0.4])
    if aborts is None:
        with pytest.raises(DynidError, match="path tolerance"):
            bench.goal((0.0, 0.0), trajectory=path)
        return
    bench.goal((0.0, 0.0), trajectory=path)
    bench.cycle(0.0)
    bench.cycle(0.0)
    bench.topic((0.0, 0.5))
    bench.cycle(0.0)
    assert bench.controller.aborts == aborts


def test_new_goal_or_configuration_resets_tolerances(bench):
    bench = bench()
    bench.goal((0.0, 0.0), trajectory=[0.2])
    bench.run(0.1)
    bench.goal((0.0, 0.0))
    bench.run(0.1)
    bench.topic((0.0, 0.5))
    bench.cycle(0.0)
    assert bench.controller.aborts == 0
    bench.goal((0.0, 0.5), trajectory=[0.2])
    with pytest.raises(DynidError, match="can not be configured from 'active' state"):
        bench.controller.configure()
    bench.controller.deactivate()
    assert bench.controller.goals[-1] is Goal.ABORTED
    bench.controller.configure()
    bench.activate()
    bench.cycle(0.0)
    bench.topic((0.0, 0.5))
    bench.cycle(0.0)
    assert bench.controller.aborts == 0
    assert bench.controller.goals == []


def test_hold_repeats_the_last_effort_of_a_succeeded_goal(bench):
    """An abort, a timeout and an activation restore it, wherever the arm is then."""
    bench = bench(command_interfaces=POSITION_AND_EFFORT, trajectory=[0.1], cmd_timeout=0.5)
    bench.goal((0.1, 0.0, -86.0))
    assert bench.run(0.2) == (0.0, -86.0)
    assert bench.controller.goals == [Goal.SUCCEEDED]
    assert bench.run(2.0) == (0.0, -86.0), "the controller holds, so the timeout never expires"
    assert bench.controller.aborts == 0
    bench.topic((0.0, 0.0, -20.0))
    assert bench.cycle()[1] == -20.0
    assert bench.run(0.7)[1] == -86.0, "the timeout restores it"
    assert bench.reported[-1] == "Aborted due to command timeout"
    bench.topic((0.0, 0.0, -20.0))
    bench.run(0.1)
    bench.controller.deactivate()
    assert bench.interfaces.effort[0] == 0.0
    bench.activate()
    assert bench.cycle()[1] == -86.0, "an activation restores it"
    bench.goal((0.1, 0.0))
    bench.run(0.2)
    bench.topic((0.0, 0.0, -20.0))
    bench.run(0.7)
    assert bench.interfaces.effort[0] == 0.0, "a goal without effort removes it when it succeeds"


def test_topic_messages_replace_the_path_of_a_goal(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT, goal=[0.1])
    bench.goal((10.0, 1.0, 5.0))
    bench.run(0.1)
    assert bench.controller.goals == [Goal.EXECUTING]
    bench.topic((0.0, bench.measured, -33.0))
    bench.cycle()
    assert bench.controller.goals == [Goal.SUCCEEDED]
    assert bench.run(1.0)[1] == -33.0


def test_goals_with_effort_succeed_only_at_rest(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT)
    bench.goal((0.0, 0.0, 1.0))
    bench.speed = 0.02
    bench.run(0.5)
    assert bench.controller.goals == [Goal.EXECUTING]
    bench.speed = 0.005
    bench.cycle()
    assert bench.controller.goals == [Goal.SUCCEEDED]


def test_aborts_goals_missed_by_goal_time(bench):
    bench = bench(goal=[0.1], lag=0.5)
    bench.goal((0.1, 0.0), goal_time=0.3)
    bench.run(0.35)
    assert bench.controller.goals == [Goal.EXECUTING]
    bench.run(0.1)
    assert bench.controller.goals == [Goal.ABORTED]
    assert bench.reported == ["Holding position due to exceeded goal_time_tolerance"]


def test_new_goals_and_requests_cancel_goals(bench):
    bench = bench()
    bench.goal((1.0, 0.5))
    bench.run(0.5)
    bench.goal((1.0, 0.5))
    assert bench.controller.goals == [Goal.CANCELED, Goal.EXECUTING]
    bench.run(0.1)
    bench.controller.cancel(np.array([0.1]))
    assert bench.controller.goals == [Goal.CANCELED, Goal.CANCELED]
    assert bench.cycle()[0] == 0.1


def test_timeout_drops_stale_commands_and_holds_the_measured_pose(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT, cmd_timeout=0.5)
    for _ in range(5):
        bench.topic((0.0, 0.0, 40.0))
        bench.run(0.4)
    assert bench.controller.aborts == 0
    assert bench.interfaces.effort[0] == 40.0
    bench.cycle(-0.02)
    for _ in range(round(0.2 / PERIOD_S)):
        state = bench.cycle()
    assert state == (-0.02, 0.0)
    assert bench.controller.aborts == 1


@pytest.mark.parametrize(("timeout", "goal_time", "aborts"), [(0.5, 0.0, 1), (0.5, 0.5, 0), (0.5, 0.6, 0)])
def test_timeout_acts_only_above_goal_time(bench, timeout, goal_time, aborts):
    bench = bench(cmd_timeout=timeout, goal_time=goal_time)
    bench.topic((0.0, 0.0))
    bench.run(2.0)
    assert bench.controller.aborts == aborts


def test_timeout_parameter_is_read_at_activation(bench):
    bench = bench(cmd_timeout=0.5)
    bench.controller.settings = Settings()
    bench.topic((0.0, 0.0))
    bench.run(1.0)
    assert bench.controller.aborts == 1
    bench.controller.deactivate()
    bench.activate()
    bench.topic((0.0, 0.0))
    bench.run(1.0)
    assert bench.controller.aborts == 1


def test_refused_trajectories_change_nothing(bench):
    bench = bench(command_interfaces=POSITION_AND_EFFORT)
    bench.topic((1.0, 1.0, 10.0))
    bench.run(0.5)
    for rows, message in (
        ([(1.0, np.nan, 0.0)], "position of joint 'swing' at point 1 is nan"),
        ([(1.0, 0.0, np.nan)], "effort of the trajectory"),
        ([(0.0, 11.0, 0.0)], "would go to 11 at t = 0 s; its limits"),
        ([(0.01, 1.0, 0.0)], "would move at"),
        ([], "no points"),
    ):
        time = [row[0] for row in rows]
        points = TrajectoryPoints(bench.names, time, [[row[1]] for row in rows], effort=[[row[2]] for row in rows])
        with pytest.raises(TrajectoryError, match=message):
            bench.controller.topic(points, bench.now)
    assert bench.run(0.6) == pytest.approx((1.0, 10.0))


def test_refuses_trajectories_that_end_in_motion(bench):
    bench = bench()
    with pytest.raises(TrajectoryError, match=r"has velocity 0\.1 at the last point"):
        bench.controller.topic(TrajectoryPoints(bench.names, [1.0], [[0.0]], [[0.1]]), bench.now)


@pytest.mark.parametrize(
    "settings", [{"cmd_timeout": -1.0}, {"goal_time": np.nan}, {"command_interfaces": ("effort",)}]
)
def test_refuses_invalid_controller_settings(settings):
    with pytest.raises(DynidError, match=r"expected"):
        Settings(**settings)
