"""Test the node's set-points, the velocities for damping, and the wait for the next message."""

import math
import threading
import time

import planar_arm
import pytest
import rclpy
from helpers.compensation_bench import POSE, Bench
from helpers.waiting import wait
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.nodes.compensation.inputs import PromptWait
from dynid_ros.nodes.gravity_compensation import serve_ready

STIFFNESS = 20.0
DAMPING = 2.0
GAINS = {"stiffness": [STIFFNESS], "damping": [DAMPING], "setpoint_velocity": [2.0]}


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(tmp_path, keep):
    """Return a function that starts a bench with these measured velocities."""

    def make(velocity=(0.0, 0.0, 0.0), **parameters):
        bench = keep(Bench(planar_arm.write(tmp_path / "identified.yaml", planar_arm.document()), **parameters))
        bench.velocity = list(velocity)
        bench.robot.spoil = lambda message: setattr(message, "velocity", bench.velocity)
        bench.setpoint = bench.robot.create_publisher(JointState, "/gravity_compensation/setpoint", 10)
        return bench

    return make


def gravity_torque(position):
    return planar_arm.gravity_torque(position)


@pytest.mark.parametrize(
    ("names", "positions", "message"),
    [
        (["joint_9"], [0.0], "it names joint_9; the model's joints are joint_1"),
        ([], [], "it names no joint"),
        (["joint_1", "joint_2"], [0.0], "it has 1 positions for joints joint_1, joint_2"),
        (["joint_1"], [math.nan], "position of joint 'joint_1' is nan"),
        (["joint_2"], [2.6], "joint 'joint_2' is to go to 2.6000; its limits are -2.5000 to 2.5000"),
    ],
)
def test_invalid_set_point_is_refused(bench, names, positions, message):
    bench = bench(**GAINS).run()
    wait(bench.setpoint.get_subscription_count)
    bench.setpoint.publish(JointState(name=names, position=positions))
    wait(lambda: any("set-point was refused" in status.message for status in bench.robot.diagnostics))
    assert message in bench.node._loop.setpoint.problem
    assert bench.state == "active"
    assert bench.torque == pytest.approx(gravity_torque(POSE), abs=1e-9)


@pytest.mark.parametrize(("velocity", "message"), [([], "0 values of velocity"), ([0.0, math.nan, 0.0], "is nan")])
def test_damping_without_velocities_is_a_fault(bench, velocity, message):
    bench = bench(**GAINS).run()
    bench.velocity = velocity
    wait(lambda: bench.state.startswith("fault"))
    assert message in bench.state


@pytest.fixture
def node(ros):
    """Create a node."""
    node = rclpy.create_node("prompt")
    yield node
    node.destroy_node()


def take_text(subscription):
    """Take the next message and return its text, or None."""
    with subscription.handle:
        taken = subscription.handle.take_message(String, False)
    return taken and taken[0].data


def test_wait_ends_with_a_message_or_at_the_timeout(node):
    subscription = node.create_subscription(String, "~/text", lambda _: None, 10)
    publisher = node.create_publisher(String, "~/text", 10)
    node.create_timer(0.001, lambda: None)  # a timer does not end the wait
    wait = PromptWait(node, subscription)
    before = time.monotonic()
    assert not wait(0.1)
    assert time.monotonic() - before >= 0.09
    for text in ("now", "again"):
        threading.Timer(0.05, lambda text=text: publisher.publish(String(data=text))).start()
        before = time.monotonic()
        assert wait(10.0)
        assert time.monotonic() - before < 5.0
        assert wait(0.0), "the wait leaves the message in its queue"
        assert take_text(subscription) == text
        assert take_text(subscription) is None
    assert not wait(0.0)


def test_executor_serves_timers_and_messages_that_were_not_taken(node):
    texts = []
    calls = []
    subscription = node.create_subscription(String, "~/text", lambda message: texts.append(message.data), 10)
    publisher = node.create_publisher(String, "~/text", 10)
    timers = [node.create_timer(0.0, lambda i=i: calls.append(i)) for i in range(3)]
    wait = PromptWait(node, subscription)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    assert serve_ready(executor, 2) == len(calls) == 2
    assert serve_ready(executor, 10) == len(calls) - 2 >= 1
    assert set(calls) == {0, 1, 2}
    for timer in timers:
        node.destroy_timer(timer)
    publisher.publish(String(data="text"))
    assert wait(5.0)
    while not texts:
        serve_ready(executor, 10)
    assert texts == ["text"]
    assert not wait(0.0)
    assert serve_ready(executor, 10) == 0


def test_exception_of_a_callback_is_raised(node):
    def fail():
        raise ValueError("on purpose")

    node.create_timer(0.0, fail)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with pytest.raises(ValueError, match="on purpose"):
        serve_ready(executor, 5)
