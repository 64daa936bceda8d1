"""The excitation node beside a controller that answers, as those of ros2_control do."""

import time
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest
import rclpy
from helpers.excitation_bench import START, VELOCITY, Bench, check_smooth, moving
from helpers.waiting import START_TIME, wait
from sensor_msgs.msg import JointState

from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment import trajectory_execution as arm_in_motion
from dynid_ros.nodes.experiment.trajectory_action import LEAD_S, PIECE_PERIOD_S
from dynid_ros.nodes.experiment.trajectory_execution import Arm
from dynid_ros.nodes.simulated_arm.controller_node import ControllerNode
from dynid_ros.trajectories import MotionLimits, Trajectory, move

pytestmark = pytest.mark.usefixtures("ros")
CONTROLLER = "joint_trajectory_controller"
INTERPOLATES = "interpolate_from_desired_state"
SWING = [START[0] + 0.5, START[1] - 0.4, START[2] + 0.4]


@pytest.fixture(autouse=True)
def fixture_short_pause(monkeypatch):
    monkeypatch.setattr(arm_in_motion, "START_PAUSE_S", 0.3)


@pytest.fixture
def bench(tmp_path, keep):
    """The node, on a motion that takes no design, and a controller that tells these parameters."""
    swing = [move(planar_arm.JOINTS, *ends, 1.0) for ends in ((START, SWING), (SWING, START))]
    path = Trajectory.join(swing).save(tmp_path / "swing.yaml")

    def make(answers, **parameters):
        made = keep(Bench(motion="file", motion_file=str(path), repeats=3, **parameters))
        values = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]} | answers
        made.served = ControllerNode(made.robot, f"/{CONTROLLER}/joint_trajectory", values)
        wait(lambda: made.node.arm._controller._view.answer)
        wait(lambda: made.robot.count_subscribers(f"/{CONTROLLER}/transition_event"))
        wait(lambda: made.node.arm._has_controller() and made.robot.publisher.get_subscription_count())
        return made

    return make


def stopped(bench):
    """The message that stops a motion, and the state of the arm when it comes."""
    bench.start()
    wait(lambda: moving(bench.robot))
    answer = bench.call("stop")
    assert answer.success, answer.message
    wait(lambda: not bench.node.arm.moving)
    return bench.robot.commands[-1]


def first_time(message):
    return message.points[0].time_from_start.sec + 1e-9 * message.points[0].time_from_start.nanosec


def test_no_motion_is_sent_to_a_controller_that_begins_each_at_the_measured_pose(bench):
    bench = bench({INTERPOLATES: False})
    answer = bench.call("start")
    assert not answer.success
    assert "begins each trajectory, so each stop, at the measured pose" in answer.message
    assert "accept_jerk" in answer.message
    assert not bench.robot.commands
    assert not bench.robot.holds
    assert "accept_jerk" in bench.node.status()[1]


def test_accepted_its_stop_begins_where_the_arm_was_to_be(bench):
    bench = bench({INTERPOLATES: False}, accept_jerk=True)
    stop = stopped(bench)
    assert first_time(stop) == 0.0
    order = [bench.robot.joints.index(name) for name in stop.joint_names]
    moved = abs(bench.robot.state[0][order] - stop.points[0].positions)  # since it was sent
    assert max(moved) < 0.2 * VELOCITY
    assert any(stop.points[0].velocities)


def test_one_that_interpolates_is_led_to_the_stop_smoothly(bench):
    assert first_time(stopped(bench({INTERPOLATES: True}))) == pytest.approx(LEAD_S, abs=0.01)


def test_an_inactive_controller_is_refused(bench):
    bench = bench({INTERPOLATES: True})
    bench.served.publish_active(False)
    wait(lambda: bench.node.arm.doubt)
    answer = bench.call("start")
    assert answer.message == f"controller '{CONTROLLER}' is inactive; activate it (ros2 control list_controllers)"
    bench.served.publish_active(True)
    wait(lambda: not bench.node.arm.doubt)
    bench.start()


def test_deactivated_under_way_it_is_told_and_the_motion_is_stopped(bench):
    bench = bench({INTERPOLATES: True})
    bench.start()
    wait(lambda: moving(bench.robot))
    bench.served.publish_active(False)
    wait(lambda: bench.state == f"stopped: controller '{CONTROLLER}' was deactivated")
    wait(lambda: not bench.node.arm.moving)
    check_smooth(bench.robot)


# Motions in pieces.


REPLACES = "allow_trajectory_replacement"


def plan_error(robot, plan, joints, start):
    """Largest distance of what the robot was made to do from the plan that began at `start`, rad."""
    times = np.array([t for t, _ in robot.track])
    positions = np.array([state[0] for _, state in robot.track])
    during = (times > start + 0.05) & (times < start + plan.duration)
    assert during.sum() > 100
    return np.abs(positions[during] - plan.select(joints).at(times[during] - start)[0]).max()


@pytest.mark.parametrize(
    ("answers", "allowed"),
    [
        ({INTERPOLATES: True}, 1e-3),
        ({REPLACES: True}, 0.03),  # that of some milliseconds: it counts from the arrival, and the machine is busy
        ({REPLACES: True, INTERPOLATES: True}, 1e-3),
    ],
)
def test_a_motion_comes_in_pieces_that_end_at_rest_and_do_not_change_it(bench, answers, allowed):
    bench = bench(answers)
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
    assert plan_error(bench.robot, plan, bench.robot.joints, start) < allowed
    check_smooth(bench.robot)


def test_a_node_that_is_halted_leaves_the_arm_at_rest_and_sends_no_more(bench):
    bench = bench({INTERPOLATES: True})
    bench.start()
    wait(lambda: moving(bench.robot))
    with bench.node.arm.lock:  # the thread that sends waits for it
        sent = len(bench.robot.commands)
        wait(lambda: not bench.robot.state[1].any(), 2.5)
        assert len(bench.robot.commands) <= sent + 1
    wait(lambda: bench.state.startswith("stopped: this process was kept from sending the next piece"))
    wait(lambda: not bench.node.arm.moving)
    assert len(bench.robot.commands) <= sent + 1
    check_smooth(bench.robot)


def test_where_the_clock_of_the_controller_is_another_the_motion_is_sent_whole(bench):
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


def test_a_state_of_the_arm_counts_though_a_gripper_spoke_after_it(ros):
    node, driver = rclpy.create_node("arm"), rclpy.create_node("driver")
    arm = Arm(node, SETTINGS, LIMITS, on_halt=str, on_rest=str)
    assert "no usable joint_states" in arm.doubt
    publisher = driver.create_publisher(JointState, "joint_states", 10)
    wait(lambda: publisher.get_subscription_count() > 0, START_TIME)
    publisher.publish(JointState(name=list(planar_arm.JOINTS), position=[0.1, 0.2, 0.3]))
    publisher.publish(JointState(name=["finger"], position=[0.0]))
    time.sleep(0.5)  # until both wait
    arm.watch()
    assert time.monotonic() - arm.states.received < 10.0
    assert (
        arm.doubt == f"no controller listens on '/{SETTINGS.command_topic}'; start it, or set parameter command_topic"
    )
    for made in (node, driver):
        made.destroy_node()
