"""PD about a desired pose, in the node: set-points, and the velocities that damping needs."""

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

STIFFNESS, DAMPING = 20.0, 2.0
GAINS = {"stiffness": [STIFFNESS], "damping": [DAMPING], "setpoint_velocity": [2.0]}


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(tmp_path, keep):
    def make(velocity=(0.0, 0.0, 0.0), **parameters):
        made = keep(Bench(planar_arm.write(tmp_path / "identified.yaml", planar_arm.document()), **parameters))
        made.velocity = list(velocity)
        made.robot.spoil = lambda message: setattr(message, "velocity", made.velocity)
        made.setpoint = made.robot.create_publisher(JointState, "/gravity_compensation/setpoint", 10)
        return made

    return make


def gravity(position):
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
def test_a_set_point_that_cannot_be_meant_is_refused(bench, names, positions, message):
    bench = bench(**GAINS).run()
    wait(bench.setpoint.get_subscription_count)
    bench.setpoint.publish(JointState(name=names, position=positions))
    wait(lambda: any("set-point was refused" in status.message for status in bench.robot.diagnostics))
    assert message in bench.node._loop.setpoint.problem
    assert bench.state == "active"
    assert bench.torque == pytest.approx(gravity(POSE), abs=1e-9)


@pytest.mark.parametrize(("velocity", "message"), [([], "0 values of velocity"), ([0.0, math.nan, 0.0], "is nan")])
def test_damping_without_velocities_is_a_fault(bench, velocity, message):
    bench = bench(**GAINS).run()
    bench.velocity = velocity
    wait(lambda: bench.state.startswith("fault"))
    assert message in bench.state


@pytest.fixture
def node(ros):
    node = rclpy.create_node("prompt")
    yield node
    node.destroy_node()


def take(subscription):
    with subscription.handle:
        taken = subscription.handle.take_message(String, False)
    return taken and taken[0].data


def test_it_waits_for_a_message_and_for_no_longer_than_it_is_told(node):
    subscription = node.create_subscription(String, "~/text", lambda _: None, 10)
    publisher = node.create_publisher(String, "~/text", 10)
    node.create_timer(0.001, lambda: None)  # of no interest to it
    wait = PromptWait(node, subscription)
    before = time.monotonic()
    assert not wait(0.1)
    assert time.monotonic() - before >= 0.09
    for text in ("now", "again"):
        threading.Timer(0.05, lambda text=text: publisher.publish(String(data=text))).start()
        before = time.monotonic()
        assert wait(10.0)
        assert time.monotonic() - before < 5.0
        assert wait(0.0), "a message that is not taken is still there"
        assert take(subscription) == text
        assert take(subscription) is None
    assert not wait(0.0)


def test_the_executor_serves_the_rest_and_what_was_not_taken(node):
    texts, calls = [], []
    subscription = node.create_subscription(String, "~/text", lambda message: texts.append(message.data), 10)
    publisher = node.create_publisher(String, "~/text", 10)
    timers = [node.create_timer(0.0, lambda i=i: calls.append(i)) for i in range(3)]
    wait, executor = PromptWait(node, subscription), SingleThreadedExecutor()
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


def test_what_a_callback_raises_is_raised(node):
    def fail():
        raise ValueError("on purpose")

    node.create_timer(0.0, fail)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with pytest.raises(ValueError, match="on purpose"):
        serve_ready(executor, 5)
