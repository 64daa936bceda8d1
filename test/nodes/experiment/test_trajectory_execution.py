"""Test the excitation node with a controller that answers queries like ros2_control."""

import time
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest
import rclpy
from helpers.excitation_bench import MAX_VELOCITY, Bench, check_smooth, is_moving, write_swing
from helpers.node_threads import assert_refused, assert_success
from helpers.waiting import START_TIMEOUT_S, wait
from sensor_msgs.msg import JointState

from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment import trajectory_execution as arm_in_motion
from dynid_ros.nodes.experiment.trajectory_action import LEAD_S, PIECE_PERIOD_S
from dynid_ros.nodes.experiment.trajectory_execution import Arm
from dynid_ros.nodes.simulated_arm.controller_node import ControllerNode
from dynid_ros.trajectories import MotionLimits

pytestmark = pytest.mark.usefixtures("ros")
CONTROLLER = "joint_trajectory_controller"
INTERPOLATES = "interpolate_from_desired_state"


@pytest.fixture(autouse=True)
def fixture_short_pause(monkeypatch):
    monkeypatch.setattr(arm_in_motion, "START_PAUSE_S", 0.3)


@pytest.fixture
def bench(tmp_path, keep):
    """Return a function that starts the node with a prepared motion and a controller with these parameters."""

    def make(controller_parameters, **parameters):
        bench = keep(Bench(repeats=3, **write_swing(tmp_path), **parameters))
        values = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]} | controller_parameters
        bench.served = ControllerNode(bench.robot, f"/{CONTROLLER}/joint_trajectory", values)
        wait(lambda: bench.node.arm._controller._view.answer)
        wait(lambda: bench.robot.count_subscribers(f"/{CONTROLLER}/transition_event"))
        wait(lambda: bench.node.arm._has_controller() and bench.robot.publisher.get_subscription_count())
        return bench

    return make


def stop_motion(bench):
    """Start and stop a motion; return the message that stops it."""
    bench.start()
    wait(lambda: is_moving(bench.robot))
    assert_success(bench.call("stop"))
    wait(lambda: not bench.node.arm.moving)
    return bench.robot.commands[-1]


def read_first_time(message):
    return message.points[0].time_from_start.sec + 1e-9 * message.points[0].time_from_start.nanosec


def test_controller_that_starts_at_measured_pose_is_refused(bench):
    bench = bench({INTERPOLATES: False})
    assert_refused(bench.call("start"), "begins each trajectory, so each stop, at the measured pose", "accept_jerk")
    assert not bench.robot.commands
    assert not bench.robot.holds
    assert "accept_jerk" in bench.node.status()[1]


def test_accepted_jerk_stops_from_the_commanded_position(bench):
    bench = bench({INTERPOLATES: False}, accept_jerk=True)
    stop = stop_motion(bench)
    assert read_first_time(stop) == 0.0
    order = [bench.robot.joints.index(name) for name in stop.joint_names]
    moved = abs(bench.robot.state[0][order] - stop.points[0].positions)  # motion since the message was sent
    assert max(moved) < 0.2 * MAX_VELOCITY
    assert any(stop.points[0].velocities)


def test_stop_of_interpolating_controller_leads_in_smoothly(bench):
    assert read_first_time(stop_motion(bench({INTERPOLATES: True}))) == pytest.approx(LEAD_S, abs=0.01)


def test_inactive_controller_is_refused(bench):
    bench = bench({INTERPOLATES: True})
    bench.served.publish_active(False)
    wait(lambda: bench.node.arm.doubt)
    answer = bench.call("start")
    assert answer.message == f"controller '{CONTROLLER}' is inactive; activate it (ros2 control list_controllers)"
    bench.served.publish_active(True)
    wait(lambda: not bench.node.arm.doubt)
    bench.start()


def test_deactivated_controller_stops_the_motion(bench):
    bench = bench({INTERPOLATES: True})
    bench.start()
    wait(lambda: is_moving(bench.robot))
    bench.served.publish_active(False)
    wait(lambda: bench.state == f"stopped: controller '{CONTROLLER}' was deactivated")
    wait(lambda: not bench.node.arm.moving)
    check_smooth(bench.robot)


REPLACES = "allow_trajectory_replacement"


def plan_error(robot, plan, joints, start):
    """Return the largest distance in rad between executed and planned positions for a plan that began at `start`."""
    times = np.array([t for t, _ in robot.track])
    positions = np.array([state[0] for _, state in robot.track])
    during = (times > start + 0.05) & (times < start + plan.duration)
    assert during.sum() > 100
    return np.abs(positions[during] - plan.select(joints).at(times[during] - start)[0]).max()


@pytest.mark.parametrize(
    ("controller_parameters", "tolerance"),
    [
        ({INTERPOLATES: True}, 1e-3),
        ({REPLACES: True}, 0.03),  # a busy computer delays the arrival by milliseconds
        ({REPLACES: True, INTERPOLATES: True}, 1e-3),
    ],
)
def test_pieces_end_at_rest_and_follow_the_plan(bench, controller_parameters, tolerance):
    bench = bench(controller_parameters)
    bench.start()
    wait(lambda: bench.state == "done")
    pieces = bench.robot.commands
    assert len(pieces) > 0.6 * 6.0 / PIECE_PERIOD_S
    for piece in pieces:
        last = piece.points[-1].time_from_start
        assert last.sec + 1e-9 * last.nanosec < 2.5
        assert not any(piece.points[-1].velocities)
    plan = bench.node._designed[1].trajectory
    start = bench.robot.plans[-1]["start_time"]
    assert plan_error(bench.robot, plan, bench.robot.joints, start) < tolerance
    check_smooth(bench.robot)


def test_halted_node_leaves_the_arm_at_rest(bench):
    bench = bench({INTERPOLATES: True})
    bench.start()
    wait(lambda: is_moving(bench.robot))
    with bench.node.arm.lock:  # the sending thread waits for this lock
        sent = len(bench.robot.commands)
        wait(lambda: not bench.robot.state[1].any(), 2.5)
        assert len(bench.robot.commands) <= sent + 1
    wait(lambda: bench.state.startswith("stopped: this process was kept from sending the next piece"))
    wait(lambda: not bench.node.arm.moving)
    assert len(bench.robot.commands) <= sent + 1
    check_smooth(bench.robot)


def test_motion_is_sent_whole_if_the_clocks_differ(bench):
    def shift(message):
        message.header.stamp.sec -= 5

    bench = bench({INTERPOLATES: True})
    bench.robot.spoil = shift
    bench.start()
    wait(lambda: bench.state == "done")
    (whole,) = bench.robot.commands
    assert whole.points[-1].time_from_start.sec >= 6


LIMITS = MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf()), 2.0, torque_limits=[50.0, 40.0, 30.0])
SETTINGS = SimpleNamespace(
    command_topic="commands",
    command_interface="auto",
    action_name="",
    accept_jerk=False,
    controller_joints=[""],
    tracking_error_limit=[0.1],
    effort_limit=[float("nan")],
    effort_grace=0.1,
    stale_after=1.0,
)


def test_arm_state_counts_despite_a_later_gripper_state(ros):
    node = rclpy.create_node("arm")
    driver = rclpy.create_node("driver")
    arm = Arm(node, SETTINGS, LIMITS, on_halt=str, on_rest=str)
    assert "no usable joint_states" in arm.doubt
    publisher = driver.create_publisher(JointState, "joint_states", 10)
    wait(lambda: publisher.get_subscription_count() > 0, START_TIMEOUT_S)
    publisher.publish(JointState(name=list(planar_arm.JOINTS), position=[0.1, 0.2, 0.3]))
    publisher.publish(JointState(name=["finger"], position=[0.0]))
    time.sleep(0.5)  # until both messages have arrived
    arm.watch()
    assert time.monotonic() - arm.states.received < 10.0
    assert (
        arm.doubt == f"no controller listens on '/{SETTINGS.command_topic}'; start it, or set parameter command_topic"
    )
    node.destroy_node()
    driver.destroy_node()
