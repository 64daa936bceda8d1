"""Test that nothing starts or continues while another node commands the robot or publishes its joint states."""

import re
import time
from contextlib import contextmanager
from typing import Any

import planar_arm
import pytest
import rclpy
from helpers import compensation_bench, excitation_bench
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads, assert_refused
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.context import Context
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.nodes.gravity_compensation import GravityCompensation
from dynid_ros.nodes.shared.process import answer
from dynid_ros.nodes.shared.topics import DDS_LEASE_S

EFFORTS = compensation_bench.EFFORT_TOPIC
TRAJECTORIES = excitation_bench.TOPIC
POSE = compensation_bench.POSE

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(name="compensated")
def fixture_compensated(model_file, keep):
    """Return a function that makes an active bench of gravity compensation."""

    def make(**parameters):
        bench = keep(compensation_bench.Bench(model_file, **parameters))
        bench.activate()
        wait(lambda: bench.node._loop.compensator.position and bench.node._loop.has_listener)
        return bench

    return make


@pytest.fixture(name="arm")
def fixture_arm(compensated):
    return compensated()


@pytest.fixture(name="mover")
def fixture_mover(tmp_path, keep):
    """Make an excitation bench with a prepared motion."""
    bench = keep(excitation_bench.Bench(**excitation_bench.write_swing(tmp_path)))
    wait(lambda: not bench.node.arm.doubt)
    return bench


@contextmanager
def foreign_publisher(topic, kind, name="other"):
    """Create a publisher in a ROS context of its own, which appears as another process."""
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node(name, namespace="/elsewhere", context=context)
    publisher = node.create_publisher(kind, topic, 1)
    try:
        yield publisher
    finally:
        node.destroy_node()
        context.try_shutdown()


def count_publishers(bench, topic):
    return bench.robot.count_publishers(topic)


def publish_foreign_states(robot, position):
    """Publish joint states of another arm with equal joint names; return the timer."""
    publisher = robot.create_publisher(JointState, "joint_states", 10)

    def publish():
        message = JointState(name=list(planar_arm.JOINTS), position=position)
        message.header.stamp = robot.get_clock().now().to_msg()
        publisher.publish(message)

    task = robot.executor.create_task(robot.create_timer, 0.01, publish)
    wait(task.done)
    wait(lambda: publisher.get_subscription_count() >= 1)
    time.sleep(0.1)
    return task.result()


@pytest.mark.parametrize("kind", [Float64MultiArray, String], ids=["same type", "another type"])
def test_another_publisher_refuses_enable(arm, kind):
    with foreign_publisher(EFFORTS, kind):
        wait(lambda: count_publishers(arm, EFFORTS) == 1)
        assert_refused(
            arm.enable(), f"somebody else publishes on {EFFORTS}: node /elsewhere/other [", f"/{kind.__name__}]"
        )
        assert count_publishers(arm, EFFORTS) == 1, "the node's publisher is destroyed"
        assert not arm.robot.commands
    wait(lambda: count_publishers(arm, EFFORTS) == 0)
    arm.enable_until_active()


def test_silent_publisher_is_reported_while_enabled(arm):
    arm.enable_until_active()
    with foreign_publisher(EFFORTS, Float64MultiArray):
        wait(lambda: any("somebody else publishes" in status.message for status in arm.robot.diagnostics))
        assert arm.state == "active"


def test_commands_of_another_publisher_are_a_fault(arm):
    arm.enable_until_active()
    arm.wait_for_torque(planar_arm.gravity_torque(POSE))
    with foreign_publisher(EFFORTS, Float64MultiArray) as other:
        wait(lambda: arm.node._loop.commands.topic.others)
        wait(lambda: not arm.node._loop.commands.topic.unnamed)
        arm.robot.watch.foreign = [0.5, 0.5, 0.5]
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: arm.state.startswith("fault"))
        assert re.search(
            rf"somebody else publishes on {EFFORTS}: node (/elsewhere/other|\(name not known\)) ", arm.state
        )
        arm.check_fade(planar_arm.gravity_torque(POSE))
        assert not arm.enable().success
    wait(lambda: count_publishers(arm, EFFORTS) == 0)
    assert arm.state.startswith("fault"), "the node does not restart by itself"
    arm.enable_until_active()


def test_stray_message_holds_the_arm_and_a_second_one_fades(compensated):
    arm = compensated(descent_time=30.0)
    arm.enable_until_active()
    safe = planar_arm.gravity_torque(POSE)
    arm.robot.watch.foreign = [0.5, 0.5, 0.5]
    with foreign_publisher(EFFORTS, Float64MultiArray) as other:
        wait(lambda: arm.node._loop.commands.topic.others and other.get_subscription_count() >= 2)
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: arm.state.startswith("fault"))
        time.sleep(1.0)
        assert arm.torque == pytest.approx(safe, abs=1e-9), "the arm is held"
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: not any(arm.torque))


def test_held_arm_may_be_enabled_after_one_stray_message(compensated):
    arm = compensated(descent_time=30.0)
    arm.enable_until_active()
    arm.robot.watch.foreign = [0.5, 0.5, 0.5]
    with foreign_publisher(EFFORTS, Float64MultiArray) as other:
        wait(lambda: arm.node._loop.commands.topic.others and other.get_subscription_count() >= 2)
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: arm.state.startswith("fault"))
    wait(lambda: count_publishers(arm, EFFORTS) == 1)
    arm.enable_until_active()
    time.sleep(0.3)
    assert arm.state == "active"


def test_only_one_of_two_compensations_may_command(arm, model_file):
    values = {
        "robot_description": planar_arm.urdf(),
        "model_file": str(model_file),
        "timeout": compensation_bench.LONG_TIMEOUT_S,
    }
    values |= {"unchecked_controller": True, "assume_no_effort": True}
    second = GravityCompensation(
        namespace="second",
        cli_args=["--ros-args", "-r", "joint_states:=/joint_states"],
        parameter_overrides=[Parameter(k, value=v) for k, v in (values | {"command_topic": EFFORTS}).items()],
    )
    create_subscription = second.create_subscription

    def subscribe_slowly(*args: Any, **options: Any) -> Any:
        """Create a subscription whose first message comes before the caller has it."""
        subscription = create_subscription(*args, **options)
        time.sleep(0.05)
        return subscription

    second.create_subscription = subscribe_slowly
    threads = NodeThreads(second)
    try:
        second.trigger_configure()
        second.trigger_activate()
        wait(lambda: second._loop.compensator.position)
        arm.enable_until_active()
        wait(lambda: count_publishers(arm, EFFORTS) == 1)
        enable = answer(second, second._enable)
        assert_refused(enable(None, SetBool.Response()), "node /gravity_compensation [")
        assert arm.state == "active"
        arm.enable(False)
        wait(lambda: arm.state == "disabled" and count_publishers(arm, EFFORTS) == 0)
        assert enable(None, SetBool.Response()).success
    finally:
        threads.close()
        second.end()
        second.destroy_node()


def test_publisher_exists_only_while_enabled(arm):
    assert count_publishers(arm, EFFORTS) == 0
    arm.enable_until_active()
    wait(lambda: count_publishers(arm, EFFORTS) == 1)
    arm.enable(False)
    wait(lambda: count_publishers(arm, EFFORTS) == 0)
    assert not any(arm.torque), "the last command is zero"


def test_publisher_exists_only_during_a_motion(mover):
    assert mover.call("design").success
    assert count_publishers(mover, TRAJECTORIES) == 0
    mover.start()
    assert count_publishers(mover, TRAJECTORIES) == 1
    wait(lambda: mover.state == "done" and count_publishers(mover, TRAJECTORIES) == 0)
    mover.start()
    wait(lambda: excitation_bench.is_moving(mover.robot))
    assert mover.call("stop").success
    wait(lambda: mover.state == "idle" and count_publishers(mover, TRAJECTORIES) == 0)
    excitation_bench.check_smooth(mover.robot)


@pytest.mark.parametrize("kind", [JointTrajectory, String], ids=["same type", "another type"])
def test_another_publisher_refuses_start(mover, kind):
    with foreign_publisher(TRAJECTORIES, kind):
        wait(lambda: count_publishers(mover, TRAJECTORIES) == 1)
        assert_refused(mover.call("start"), f"somebody else publishes on {TRAJECTORIES}: node /elsewhere/other [")
        assert count_publishers(mover, TRAJECTORIES) == 1, "the node's publisher is destroyed"
    assert not mover.robot.commands
    wait(lambda: count_publishers(mover, TRAJECTORIES) == 0)
    mover.start()


def test_another_publisher_stops_a_moving_arm(mover):
    mover.set(repeats=8)  # a busy computer discovers nodes late
    mover.start()
    wait(lambda: excitation_bench.is_moving(mover.robot))
    with foreign_publisher(TRAJECTORIES, JointTrajectory):
        wait(lambda: mover.state.startswith("stopped"))
        assert re.search(rf"else publishes on {TRAJECTORIES}: node (/elsewhere/other|\(name not known\)) ", mover.state)
        excitation_bench.check_smooth(mover.robot)


def test_contradicting_joint_states_refuse_enable(arm):
    timer = publish_foreign_states(arm.robot, [0.0, -1.0, 1.0])
    n_states = arm.node._loop.states.states
    wait(lambda: arm.node._loop.states.states > n_states + 20)  # of both drivers
    assert_refused(
        arm.enable(), "no other node publishes its joint states", "joint_states is published by /robot and /robot"
    )
    assert not arm.robot.commands
    timer.cancel()
    wait(lambda: arm.enable().success)


def test_contradicting_joint_states_refuse_start(mover):
    timer = publish_foreign_states(mover.robot, [2.0, -2.0, 2.0])
    assert_refused(
        mover.call("start"),
        "joint_states disagree: joint 'joint_1' is at",
        "joint_states is published by /robot and /robot",
    )
    assert not mover.robot.commands
    timer.cancel()
    wait(lambda: mover.call("start").success)


@pytest.mark.slow
def test_killed_node_is_named_until_its_dds_lease_ends(arm, model_file, urdf_file):
    values = {"robot_description": urdf_file, "model_file": model_file, "timeout": compensation_bench.LONG_TIMEOUT_S}
    values |= {"autostart": "true", "enable_on_activate": "true", "unchecked_controller": "true"}
    values["assume_no_effort"] = "true"
    with NodeProcess("gravity_compensation", values, "-r", "__ns:=/first", "-r", "joint_states:=/joint_states",
                     "-p", f"command_topic:={EFFORTS}"):  # fmt: skip
        wait(lambda: arm.robot.commands, START_TIMEOUT_S)
    kill_time = time.monotonic()
    assert_refused(
        arm.enable(),
        "node /first/gravity_compensation [",
        f"one that was killed counts until the middleware finds out, up to {DDS_LEASE_S} s",
    )
    wait(lambda: count_publishers(arm, EFFORTS) == 0, 2 * DDS_LEASE_S)
    assert time.monotonic() - kill_time < DDS_LEASE_S + 5.0
    arm.enable_until_active()
