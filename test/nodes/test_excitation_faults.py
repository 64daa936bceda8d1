"""Test that after each fault in docs/promises.md `excitation` stops the arm smoothly and reports the reason."""

import math
import time

import numpy as np
import planar_arm
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from helpers.excitation_bench import (
    LATCHED,
    PARAMETERS,
    START,
    SWING,
    TOPIC,
    Bench,
    Robot,
    call_excitation,
    check_smooth,
    is_moving,
    write_swing,
)
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads, assert_refused
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.nodes.excitation import ExcitationNode
from dynid_ros.nodes.experiment import trajectory_execution as arm_in_motion
from dynid_ros.nodes.experiment.design import Safety
from dynid_ros.nodes.experiment.trajectory_action import trajectory_message
from dynid_ros.nodes.shared.topics import DDS_LEASE_S
from dynid_ros.nodes.simulated_arm.controller_node import ControllerNode
from dynid_ros.trajectories import Trajectory, move

STALE = PARAMETERS["stale_after"]
BUSY_TIME_S = 0.4
"""Time in s by which a busy computer may exceed a promised time."""


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(autouse=True)
def fixture_short_pause(monkeypatch):
    monkeypatch.setattr(arm_in_motion, "START_PAUSE_S", 0.3)


@pytest.fixture(name="motion", scope="module")
def fixture_motion(tmp_path_factory):
    """Return the parameters of a prepared motion to a pose and back."""
    return write_swing(tmp_path_factory.mktemp("motion")) | {"periods": 1, "repeats": 3}


@pytest.fixture(name="bench")
def fixture_bench(motion, keep):
    """Return a function that starts a bench with the prepared motion."""
    return lambda **parameters: keep(Bench(**motion | parameters))


def start_moving(bench):
    """Start the motion, repeatedly if joint states become stale on a busy computer; return the moving bench."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not is_moving(bench.robot):
        assert time.monotonic() < deadline
        bench.start()
        wait(lambda: is_moving(bench.robot) or (bench.state.startswith("stopped") and not bench.node.arm.moving))
    return bench


def set_fault(kind):
    """Return a function that sets a fault of the robot."""

    def begin(robot):
        robot.fault = kind

    return begin


def set_spoiling(change):
    """Return a function that changes each joint state of the robot."""

    def begin(robot):
        robot.spoil = change

    return begin


def duplicate_joint(message):
    message.name = [*message.name, "joint_2"]
    message.position = [*message.position, 0.0]


def add_second_driver(robot):
    """Publish joint states of another arm with equal joint names."""
    other = robot.create_publisher(JointState, "joint_states", 10)
    message = JointState(name=robot.joints, position=[2.0, -2.0, 2.0])
    robot.executor.create_task(robot.create_timer, 0.01, lambda: other.publish(message))


TRACKING_LIMIT_RAD = 0.05
"""Tracking error limit in rad, which an arm that is stuck exceeds during the motion."""
FAULTS = {
    "driver stops": (set_fault("silent"), "no usable joint_states for ", STALE),
    "nan": (set_fault("nan"), "position of joint 'joint_3' is nan", 0.0),
    "joint missing": (set_fault("missing"), "joint_states lacks joint(s) joint_2", 0.0),
    "joint twice": (set_spoiling(duplicate_joint), "names joint(s) joint_2 more than once", 0.0),
    "two drivers": (add_second_driver, f"further away than tracking_error_limit {TRACKING_LIMIT_RAD}", 0.0),
    "controller refuses": (set_fault("stuck"), f"further away than tracking_error_limit {TRACKING_LIMIT_RAD}", 2.0),
    "effort too large": (set_fault("strained"), "effort of joint 'joint_2' is -60, above effort_limit 50 for 0.", 0.1),
    "controller gone": (
        lambda robot: robot.executor.create_task(robot.destroy_subscription, robot.controller),
        f"the controller does not listen on '{TOPIC}' any more",
        0.02,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_stops_the_arm_and_is_named(bench, fault):
    begin, message, detection_time = FAULTS[fault]
    bench = start_moving(bench(tracking_error_limit=[TRACKING_LIMIT_RAD]))
    robot = bench.robot
    begin(robot)
    duration = wait(lambda: bench.state.startswith("stopped"))
    assert duration < detection_time + BUSY_TIME_S
    assert message in bench.state
    if fault not in ("controller refuses", "controller gone"):
        wait(lambda: len(robot.commands) == 2)
        assert len(robot.commands[1].points) < len(robot.commands[0].points)
        check_smooth(robot)
    wait(lambda: not bench.node.arm.moving)
    assert bench.state.startswith("stopped"), "the state keeps the reason"
    wait(lambda: DiagnosticStatus.ERROR in robot.levels)
    assert "nothing to stop" in bench.call("stop").message


def test_start_works_after_a_fault(bench):
    bench = start_moving(bench())
    bench.robot.fault = "nan"
    wait(lambda: bench.state.startswith("stopped"))
    wait(lambda: not bench.node.arm.moving)
    wait(lambda: "position of joint 'joint_3' is nan" in bench.call("start").message)
    bench.robot.fault = None
    check_smooth(bench.robot)
    start_moving(bench)


def reorder(message):
    message.name = message.name[::-1]
    message.position = message.position[::-1]
    message.velocity = message.velocity[::-1]
    message.effort = message.effort[::-1]


def later(message):
    message.header.stamp.sec += 3600


def sparse(message):
    """Drop joint states to a rate of 10 Hz."""
    now = time.monotonic()
    if now - sparse.sent < 0.095:
        message.name = []
        message.position = []
    else:
        sparse.sent = now


sparse.sent = 0.0


@pytest.mark.parametrize("change", [reorder, later, sparse], ids=lambda change: change.__name__)
def test_motion_continues_with_unusual_joint_states(bench, change):
    bench = start_moving(bench(repeats=1))
    bench.robot.spoil = change
    wait(lambda: bench.state == "done")
    check_smooth(bench.robot)


def test_motion_continues_after_a_short_silence(bench):
    bench = start_moving(bench(repeats=1))
    bench.robot.fault = "silent"
    time.sleep(0.2)
    bench.robot.fault = None
    for _ in range(300):  # a burst
        bench.robot.publish()
    wait(lambda: bench.state == "done")
    assert len(bench.robot.commands) == 1


class SimulatedTime:
    """Publisher of /clock, like a simulation."""

    def __init__(self, robot):
        self.ahead = -1e9
        self.silent = True
        self._robot = robot
        self._publisher = robot.create_publisher(Clock, "/clock", 10)
        robot.executor.create_task(robot.create_timer, 0.01, self._tick)

    def _tick(self):
        if not self.silent:
            message = Clock()
            nanoseconds = round((self._robot.now() + self.ahead) * 1e9)
            message.clock.sec, message.clock.nanosec = divmod(nanoseconds, 10**9)
            self._publisher.publish(message)


@pytest.mark.parametrize("jump", [-500.0, 500.0])
def test_clock_jump_stops_the_arm_smoothly(bench, jump):
    bench = bench(use_sim_time=True)
    simulated = SimulatedTime(bench.robot)
    simulated.silent = False
    wait(lambda: bench.node.get_clock().now().nanoseconds > 0)
    start_moving(bench)
    simulated.ahead += jump
    wait(lambda: bench.state.startswith("stopped"))
    assert f"the clock jumped by {jump:g} s" in bench.state
    check_smooth(bench.robot)
    wait(lambda: not bench.node.arm.moving)
    start_moving(bench)


def test_stalled_clock_refuses_start_and_stops_the_motion(bench):
    bench = bench(use_sim_time=True, tracking_error_limit=[9.0])
    wait(lambda: bench.node.arm._has_controller() and bench.node.arm._time.stalled > STALE)
    assert_refused(bench.call("start"), "use_sim_time is set and /clock stands still")
    simulated = SimulatedTime(bench.robot)
    simulated.silent = False
    wait(lambda: bench.node.get_clock().now().nanoseconds > 0)
    start_moving(bench)
    simulated.silent = True
    wait(lambda: bench.state == "stopped: /clock stands still")


def test_changed_parameters_and_urdf_do_not_affect_a_running_motion(bench):
    bench = start_moving(bench(repeats=1, robot_description=PARAMETERS["robot_description"]))
    publisher = bench.robot.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data="<robot"))
    (result,) = bench.node.set_parameters([Parameter("velocity_limits", value=[9.0])])
    assert not result.successful
    assert not bench.node.set_parameters([Parameter("motion", value="walk")])[0].successful
    bench.set(motion="payload", speed_fraction=1.0)
    wait(lambda: bench.state == "done")
    check_smooth(bench.robot)
    assert len(bench.robot.commands) == 1


def test_effort_limit_can_be_changed_during_a_motion(bench):
    bench = start_moving(bench(repeats=1))
    for name, value in (
        ("effort_limit", [-1.0]),
        ("effort_limit", [1.0, 2.0]),
        ("effort_grace", math.inf),
        ("tracking_error_limit", [math.nan]),
        ("stale_after", 9.0),
    ):
        (result,) = bench.node.set_parameters([Parameter(name, value=value)])
        assert not result.successful
        assert name in result.reason
    bench.set(effort_limit=[70.0])
    set_fault("strained")(bench.robot)
    time.sleep(0.5)
    assert bench.node.arm.moving
    assert not bench.node.arm.stopping
    bench.set(effort_limit=[50.0], effort_grace=0.0)
    wait(lambda: "above effort_limit 50 for 0." in bench.state)
    check_smooth(bench.robot)


def test_services_in_parallel_start_one_motion(bench):
    bench = bench()
    robot = bench.robot
    wait(lambda: bench.node.arm.doubt == "")
    clients = {name: robot.create_client(Trigger, f"/excitation/{name}") for name in ("design", "start", "stop")}
    assert all(client.wait_for_service(START_TIMEOUT_S) for client in clients.values())
    futures = [clients[name].call_async(Trigger.Request()) for name in ("start",) * 4]
    wait(lambda: all(future.done() for future in futures))
    assert sum(future.result().success for future in futures) == 1
    assert all(future.result().success or "already" in future.result().message for future in futures)
    wait(lambda: is_moving(robot))
    stops = [clients["stop"].call_async(Trigger.Request()) for _ in range(4)]
    wait(lambda: all(stop.done() for stop in stops))
    assert sum(stop.result().success for stop in stops) == 1
    wait(lambda: bench.state == "idle")
    assert len(robot.commands) == 2
    check_smooth(robot)


@pytest.mark.parametrize("content", [None, b"", b"\x89MCAP0\r\n then nothing"], ids=["missing", "empty", "truncated"])
def test_unreadable_recording_is_named(bench, tmp_path, content):
    path = tmp_path / "run.mcap"
    if content is not None:
        path.write_bytes(content)
    bench = bench(motion="fourier", design_time=0.0, recordings=[str(path)])
    assert_refused(bench.call("design"), str(path))
    wait(lambda: bench.state == "idle")
    bench.set(recordings=[""], motion="file")
    assert bench.call("design").success


def test_unexpected_exception_is_answered(bench, monkeypatch):
    bench = bench()
    monkeypatch.setattr("dynid_ros.nodes.experiment.design.repeat_plan", lambda *_: 1 / 0)
    assert_refused(bench.call("design"), "unexpected ZeroDivisionError")
    monkeypatch.undo()
    assert bench.call("design").success


@pytest.mark.parametrize("text", ["", "<robot", "<robot name='a'><link name='b'/></robot>"])
def test_malformed_urdf_ends_the_node_with_an_error(text):
    node = rclpy.create_node("state_publisher")
    publisher = node.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=text))
    values = PARAMETERS | {"robot_description": ""}
    with pytest.raises(DynidError):
        ExcitationNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
    node.destroy_node()


def follow_foreign_motion(robot, *motions):
    """Let the controller follow motions that a node sent which no longer exists."""
    message = trajectory_message(Trajectory.join(motions).sample(50.0), planar_arm.JOINTS, 0.25)
    robot.executor.create_task(robot.follow, message, {"source_timestamp": time.time_ns()})
    wait(lambda: robot.spline is not None)
    robot.commands.clear()


def rest_at(pose, seconds):
    return move(planar_arm.JOINTS, pose, pose, seconds)


def test_earlier_motion_in_the_controller_is_replaced_by_a_hold(bench, monkeypatch):
    bench = bench()
    robot = bench.robot
    wait(lambda: bench.node.arm.doubt == "")
    check = Safety.check
    # Planning takes longer than the dwell.
    monkeypatch.setattr(Safety, "check", lambda self, motion: (time.sleep(0.5), check(self, motion)))
    follow_foreign_motion(robot, rest_at(START, 1.5), move(planar_arm.JOINTS, START, SWING, 0.5), rest_at(SWING, 9.0))
    bench.start()
    (hold,) = robot.holds
    (point,) = hold.points
    assert dict(zip(hold.joint_names, point.positions, strict=True)) == pytest.approx(
        dict(zip(robot.joints, START, strict=True))
    )
    assert not any(point.velocities)
    assert not any(point.accelerations)
    assert 0.0 < point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec <= 0.5
    begun = robot.commands[0].points[0]
    np.testing.assert_allclose(sorted(begun.positions), sorted(START), atol=1e-9)
    assert all(np.abs(state[0] - START).max() < 1e-9 for at, state in robot.track if at < robot.spline_start)
    check_smooth(robot)


@pytest.mark.parametrize("velocities", [True, False])
def test_start_is_refused_if_the_controller_does_not_hold(bench, velocities):
    def without_velocities(message):
        message.velocity = []

    bench = bench()
    robot = bench.robot
    if not velocities:
        robot.spoil = without_velocities
    wait(lambda: bench.node.arm.doubt == "")
    robot.fault = "deaf"
    starting = bench.call_async("start")
    wait(lambda: robot.holds)
    robot.fault = None
    follow_foreign_motion(robot, move(planar_arm.JOINTS, START, SWING, 1.2))
    wait(starting.done)
    assert not starting.result().success
    assert f"the controller on '{TOPIC}' did not hold the arm" in starting.result().message
    assert robot.commands == []
    assert bench.state == "idle"
    follow_foreign_motion(robot, move(planar_arm.JOINTS, SWING, START, 1.2))
    wait(lambda: is_moving(robot))
    assert "the arm is moving" in bench.call("start").message
    assert len(robot.holds) == 1, "a moving arm gets no hold"


@pytest.mark.slow
def test_motion_of_a_killed_node_ends_at_rest_before_a_new_start(urdf_file, motion):
    values = PARAMETERS | motion | {"repeats": 4}
    robot = Robot()
    threads = NodeThreads(robot)
    with NodeProcess("excitation", values | {"robot_description": urdf_file}):
        wait(lambda: robot.states, START_TIMEOUT_S)
        wait(lambda: call_excitation(robot, "start").success)
        wait(lambda: is_moving(robot))
    threads.close()
    second_node = ExcitationNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
    threads = NodeThreads(robot, second_node)
    try:
        wait(lambda: second_node.arm.states.received > 0 and second_node.arm._has_controller())
        assert_refused(
            call_excitation(robot, "start"), f"somebody else publishes on {TOPIC}: node /excitation (of the same name)"
        )
        wait(lambda: robot.now() - robot.spline_start > robot.spline_end)
        check_smooth(robot)
        wait(lambda: call_excitation(robot, "start").success, 2 * DDS_LEASE_S)
    finally:
        threads.close()
        second_node.destroy_node()
        robot.destroy_node()


def test_stop_ends_the_motion_of_another_node(bench):
    bench = bench()
    robot = bench.robot
    wait(lambda: bench.node.arm.doubt == "")
    follow_foreign_motion(
        robot,
        move(planar_arm.JOINTS, START, SWING, 1.5),
        rest_at(SWING, 60.0),
        move(planar_arm.JOINTS, SWING, START, 1.5),
    )
    wait(lambda: np.abs(robot.state[1]).max() > 0.2)
    answer = bench.call("stop")
    assert answer.success, answer.message
    assert "\n" not in answer.message
    assert "arm was moving ('joint_1' at " in answer.message
    assert "not by this node" in answer.message
    wait(lambda: bench.state == "idle" and not bench.node.arm.moving)
    assert bench.robot.states[-2:] == ["stopped: on request", "idle"]
    check_smooth(robot)
    assert np.abs(robot.state[0] - SWING).max() > 0.02, "the other motion would have continued"
    wait(lambda: robot.count_publishers(TOPIC) == 0)


def test_stop_at_rest_replaces_the_controllers_trajectory(bench):
    bench = bench()
    robot = bench.robot
    wait(lambda: bench.node.arm.doubt == "")
    follow_foreign_motion(robot, rest_at(START, 2.0), move(planar_arm.JOINTS, START, SWING, 1.0), rest_at(SWING, 60.0))
    assert_refused(
        bench.call("stop"),
        "nothing to stop: the state is idle; the arm is at rest (fastest: 'joint_",
        "the controller was told to hold it there",
    )
    time.sleep(2.5)
    np.testing.assert_allclose(robot.state[0], START, atol=1e-9)
    assert bench.state == "idle"


def test_repeated_stops_hold_a_sagging_arm_at_the_first_pose(bench):
    bench = bench()
    robot = bench.robot

    def sag(message):
        message.position = [position - 0.01 for position in message.position]

    robot.spoil = sag
    wait(lambda: bench.node.arm.doubt == "")
    for _ in range(3):
        assert "the controller was told to hold it there" in bench.call("stop").message
    np.testing.assert_allclose(robot.state[0], np.array(START) - 0.01, atol=1e-6)
    robot.state[0] += 0.2  # another node moves the arm
    robot.spline = None
    time.sleep(0.2)
    bench.call("stop")
    np.testing.assert_allclose(robot.state[0], np.array(START) + 0.18, atol=1e-6)


def test_stop_at_rest_leaves_the_arm_to_another_publisher(bench):
    bench = bench()
    robot = bench.robot
    wait(lambda: bench.node.arm.doubt == "")
    other = robot.create_publisher(JointTrajectory, TOPIC, 10)
    wait(lambda: bench.node.count_publishers(TOPIC) == 1)
    wait(lambda: "left to node /robot" in bench.call("stop").message)
    assert not robot.commands
    robot.destroy_publisher(other)


def test_stop_leaves_a_moving_arm_to_a_streaming_node(bench):
    """Two nodes that command in turn would fight, such as gravity_compensation on route trajectory."""
    bench = bench()
    robot = bench.robot
    wait(lambda: bench.node.arm.doubt == "")
    follow_foreign_motion(robot, move(planar_arm.JOINTS, START, SWING, 3.0), rest_at(SWING, 60.0))
    robot.fault = "deaf"
    stream = robot.create_publisher(JointTrajectory, TOPIC, 10)
    command = JointTrajectory(joint_names=["streamed"])
    timer = robot.create_timer(0.01, lambda: stream.publish(command))
    wait(lambda: bench.node.count_publishers(TOPIC) == 1 and np.abs(robot.state[1]).max() > 0.2)
    assert_refused(bench.call("stop"), "by node /robot", "stop that node")
    assert {tuple(message.joint_names) for message in robot.commands} <= {("streamed",)}
    assert bench.state == "idle"
    robot.destroy_timer(timer)
    robot.destroy_publisher(stream)


@pytest.mark.slow
def test_killed_node_with_pieces_leaves_the_arm_at_rest_in_two_seconds(urdf_file, motion):
    values = PARAMETERS | motion | {"repeats": 8, "robot_description": urdf_file}
    robot = Robot()
    controller_parameters = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]}
    ControllerNode(robot, TOPIC, controller_parameters | {"interpolate_from_desired_state": True})
    threads = NodeThreads(robot)
    try:
        with NodeProcess("excitation", values):
            wait(lambda: robot.states, START_TIMEOUT_S)
            wait(lambda: call_excitation(robot, "start").success)
            wait(lambda: is_moving(robot) and len(robot.commands) > 3)
        kill_time = robot.now()
        wait(lambda: robot.now() > robot.spline_start + robot.spline_end)
        assert robot.now() - kill_time < 2.0 + BUSY_TIME_S
        check_smooth(robot)
    finally:
        threads.close()
        robot.destroy_node()
