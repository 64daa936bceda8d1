import threading
import time

import pytest

rclpy = pytest.importorskip("rclpy")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from dynid_ros.nodes.compensation.inputs import PromptWait  # noqa: E402
from dynid_ros.nodes.gravity_compensation import serve_ready  # noqa: E402


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
