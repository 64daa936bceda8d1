"""What docs/promises.md says of others who command the same robot, or speak for it: nothing starts or goes on."""

import re
import time
from contextlib import contextmanager
from typing import Any

import planar_arm
import pytest
import rclpy
from helpers import compensation_bench, excitation_bench
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads
from helpers.waiting import START_TIME, wait
from rclpy.context import Context
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.nodes.gravity_compensation import GravityCompensation
from dynid_ros.nodes.shared.process import answer
from dynid_ros.nodes.shared.topics import DDS_LEASE_S
from dynid_ros.trajectories import Trajectory, move

EFFORTS, TRAJECTORIES = compensation_bench.EFFORT_TOPIC, excitation_bench.TOPIC
SWING = [0.9, -0.8, 0.7]
POSE = compensation_bench.POSE

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(name="compensated")
def fixture_compensated(model_file, keep):
    """Return a maker of benches with gravity compensation, configured and active."""

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
    """Of excitation, with a motion that takes no design."""
    swing = [
        move(planar_arm.JOINTS, *ends, 1.0)
        for ends in ((excitation_bench.START, SWING), (SWING, excitation_bench.START))
    ]
    path = Trajectory.join(swing).save(tmp_path / "swing.yaml")
    bench = keep(excitation_bench.Bench(motion="file", motion_file=str(path)))
    wait(lambda: not bench.node.arm.doubt)
    return bench


@contextmanager
def publisher(topic, kind, name="other"):
    """In a program of its own as far as the middleware knows, which publishes nothing."""
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node(name, namespace="/elsewhere", context=context)
    made = node.create_publisher(kind, topic, 1)
    try:
        yield made
    finally:
        node.destroy_node()
        context.try_shutdown()


def publishers(bench, topic):
    return bench.robot.count_publishers(topic)


def driver(robot, position):
    """Of another arm that calls its joints the same."""
    other = robot.create_publisher(JointState, "joint_states", 10)

    def publish():
        message = JointState(name=list(planar_arm.JOINTS), position=position)
        message.header.stamp = robot.get_clock().now().to_msg()
        other.publish(message)

    made = robot.executor.create_task(robot.create_timer, 0.01, publish)
    wait(made.done)
    wait(lambda: other.get_subscription_count() >= 1)
    time.sleep(0.1)
    return made.result()


@pytest.mark.parametrize("kind", [Float64MultiArray, String], ids=["same type", "another type"])
def test_enable_beside_another_publisher_is_refused(arm, kind):
    with publisher(EFFORTS, kind):
        wait(lambda: publishers(arm, EFFORTS) == 1)
        answer = arm.enable()
        assert not answer.success
        assert f"somebody else publishes on {EFFORTS}: node /elsewhere/other [" in answer.message
        assert f"/{kind.__name__}]" in answer.message
        assert publishers(arm, EFFORTS) == 1, "ours is not left there"
        assert not arm.robot.commands
    wait(lambda: publishers(arm, EFFORTS) == 0)
    arm.enabled()


def test_another_publisher_that_is_silent_is_told_of_while_enabled(arm):
    arm.enabled()
    with publisher(EFFORTS, Float64MultiArray):
        wait(lambda: any("somebody else publishes" in status.message for status in arm.robot.diagnostics))
        assert arm.state == "active"


def test_another_publisher_that_commands_is_a_fault(arm):
    arm.enabled()
    wait(lambda: arm.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9))
    with publisher(EFFORTS, Float64MultiArray) as other:
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
    wait(lambda: publishers(arm, EFFORTS) == 0)
    assert arm.state.startswith("fault"), "nothing begins again by itself"
    arm.enabled()


def test_after_one_stray_message_the_arm_is_held_and_after_more_it_fades(compensated):
    arm = compensated(descent_time=30.0)
    arm.enabled()
    safe = planar_arm.gravity_torque(POSE)
    arm.robot.watch.foreign = [0.5, 0.5, 0.5]
    with publisher(EFFORTS, Float64MultiArray) as other:
        wait(lambda: arm.node._loop.commands.topic.others and other.get_subscription_count() >= 2)
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: arm.state.startswith("fault"))
        time.sleep(1.0)
        assert arm.torque == pytest.approx(safe, abs=1e-9), "the arm is held"
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: not any(arm.torque))


def test_after_one_stray_message_the_held_arm_may_be_enabled_again(compensated):
    arm = compensated(descent_time=30.0)
    arm.enabled()
    arm.robot.watch.foreign = [0.5, 0.5, 0.5]
    with publisher(EFFORTS, Float64MultiArray) as other:
        wait(lambda: arm.node._loop.commands.topic.others and other.get_subscription_count() >= 2)
        other.publish(Float64MultiArray(data=arm.robot.watch.foreign))
        wait(lambda: arm.state.startswith("fault"))
    wait(lambda: publishers(arm, EFFORTS) == 1)
    arm.enabled()
    time.sleep(0.3)
    assert arm.state == "active"


def test_of_two_compensations_one_may_command(arm, model_file):
    values = {"robot_description": planar_arm.urdf(), "model_file": str(model_file), "timeout": compensation_bench.CALM}
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
        arm.enabled()
        wait(lambda: publishers(arm, EFFORTS) == 1)
        enable = answer(second, second._enable)
        refused = enable(None, SetBool.Response())
        assert not refused.success
        assert "node /gravity_compensation [" in refused.message
        assert arm.state == "active"
        arm.enable(False)
        wait(lambda: arm.state == "disabled" and publishers(arm, EFFORTS) == 0)
        assert enable(None, SetBool.Response()).success
    finally:
        threads.close()
        second.end()
        second.destroy_node()


def test_enabled_has_a_publisher_and_disabled_none(arm):
    assert publishers(arm, EFFORTS) == 0
    arm.enabled()
    wait(lambda: publishers(arm, EFFORTS) == 1)
    arm.enable(False)
    wait(lambda: publishers(arm, EFFORTS) == 0)
    assert not any(arm.torque), "the last command has arrived"


def test_a_motion_has_a_publisher_and_its_end_none(mover):
    assert mover.call("design").success
    assert publishers(mover, TRAJECTORIES) == 0
    mover.start()
    assert publishers(mover, TRAJECTORIES) == 1
    wait(lambda: mover.state == "done" and publishers(mover, TRAJECTORIES) == 0)
    mover.start()
    wait(lambda: excitation_bench.moving(mover.robot))
    assert mover.call("stop").success
    wait(lambda: mover.state == "idle" and publishers(mover, TRAJECTORIES) == 0)
    excitation_bench.check_smooth(mover.robot)


@pytest.mark.parametrize("kind", [JointTrajectory, String], ids=["same type", "another type"])
def test_start_beside_another_publisher_is_refused(mover, kind):
    with publisher(TRAJECTORIES, kind):
        wait(lambda: publishers(mover, TRAJECTORIES) == 1)
        answer = mover.call("start")
        assert not answer.success
        assert f"somebody else publishes on {TRAJECTORIES}: node /elsewhere/other [" in answer.message
        assert publishers(mover, TRAJECTORIES) == 1, "ours is not left there"
    assert not mover.robot.commands
    wait(lambda: publishers(mover, TRAJECTORIES) == 0)
    mover.start()


def test_another_publisher_while_the_arm_moves_brings_it_to_rest(mover):
    mover.set(repeats=8)  # a busy machine finds others late
    mover.start()
    wait(lambda: excitation_bench.moving(mover.robot))
    with publisher(TRAJECTORIES, JointTrajectory):
        wait(lambda: mover.state.startswith("stopped"))
        assert re.search(rf"else publishes on {TRAJECTORIES}: node (/elsewhere/other|\(name not known\)) ", mover.state)
        excitation_bench.check_smooth(mover.robot)


def test_two_drivers_that_disagree_are_refused_at_enable(arm):
    timer = driver(arm.robot, [0.0, -1.0, 1.0])
    seen = arm.node._loop.states.states
    wait(lambda: arm.node._loop.states.states > seen + 20)  # of both
    answer = arm.enable()
    assert not answer.success
    assert "no other node publishes its joint states" in answer.message
    assert "joint_states is published by /robot and /robot" in answer.message
    assert not arm.robot.commands
    timer.cancel()
    wait(lambda: arm.enable().success)


def test_two_drivers_that_disagree_are_refused_at_start(mover):
    timer = driver(mover.robot, [2.0, -2.0, 2.0])
    answer = mover.call("start")
    assert not answer.success
    assert "joint_states disagree: joint 'joint_1' is at" in answer.message
    assert "joint_states is published by /robot and /robot" in answer.message
    assert not mover.robot.commands
    timer.cancel()
    wait(lambda: mover.call("start").success)


@pytest.mark.slow
def test_a_killed_one_is_named_until_the_middleware_finds_out(arm, model_file, tmp_path):
    description = tmp_path / "arm.urdf"
    description.write_text(planar_arm.urdf())
    values = {"robot_description": description, "model_file": model_file, "timeout": compensation_bench.CALM}
    values |= {"autostart": "true", "enable_on_activate": "true", "unchecked_controller": "true"}
    values["assume_no_effort"] = "true"
    with NodeProcess("gravity_compensation", values, "-r", "__ns:=/first", "-r", "joint_states:=/joint_states",
                     "-p", f"command_topic:={EFFORTS}"):  # fmt: skip
        wait(lambda: arm.robot.commands, START_TIME)
    killed = time.monotonic()
    answer = arm.enable()
    assert not answer.success
    assert "node /first/gravity_compensation [" in answer.message
    assert f"one that was killed counts until the middleware finds out, up to {DDS_LEASE_S} s" in answer.message
    wait(lambda: publishers(arm, EFFORTS) == 0, 2 * DDS_LEASE_S)
    assert time.monotonic() - killed < DDS_LEASE_S + 5.0
    arm.enabled()
