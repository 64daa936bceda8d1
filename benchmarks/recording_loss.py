"""Loss of messages at 1 kHz: a publisher, the recorder, and a process that keeps one core busy.

The publisher, which is this file as a program, sends joint states of 7 joints with the number of the message in its
stamp (1 ms each), so the recording shows every gap. `benchmarks.node_load` measures for longer.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from dynid_ros.recording import Recording

RATE = 1000
JOINTS = [f"joint_{i}" for i in range(1, 8)]
STAMP = slice(4, 12)
"""Bytes of the stamp in a serialized message with a header: after the four bytes of the encoding."""
TOPIC = "recording_loss/joint_states"
BURN = "while True: pass"


@dataclass(frozen=True)
class Outcome:
    """Numbers of messages that were sent, sent late and recorded, and of gaps in the recorded numbers."""

    sent: int
    late: int
    recorded: int
    gaps: int
    answer: str


def measure(seconds: float, folder: str | Path) -> Outcome:
    """Record `seconds` of joint states at 1 kHz into `folder`, and return the numbers of messages."""
    recorder = ["-m", "dynid_ros", "node", "recorder", "--ros-args", "-p", f"output_folder:={folder}"]
    with ExitStack() as stack:
        stack.enter_context(process("-c", BURN))
        stack.enter_context(process(*recorder, "-p", f"joint_states_topic:={TOPIC}"))
        publisher = stack.enter_context(process(__file__, str(round(seconds * RATE))))
        assert publisher.stdout is not None
        assert publisher.stdin is not None
        publisher.stdout.readline()  # the recorder has subscribed
        rclpy.init()
        stack.callback(rclpy.try_shutdown)
        node = rclpy.create_node("recording_loss")
        call(node, "/recorder/start")
        print("go", file=publisher.stdin, flush=True)
        sent, late = (int(word) for word in publisher.stdout.readline().split())
        answer = call(node, "/recorder/stop")
    (bag,) = Path(folder).iterdir()
    recording = Recording.read(bag)
    gaps = int(np.sum(np.round(np.diff(recording.time) * RATE) != 1))
    return Outcome(sent, late, recording.n_samples, gaps, answer)


def publish(count: int) -> None:
    """Wait for a subscriber and a line on stdin, then send `count` messages."""
    rclpy.init()
    node = rclpy.create_node("recording_loss_publisher")
    publisher = node.create_publisher(JointState, TOPIC, QoSProfile(depth=RATE))
    zeros = [0.0] * len(JOINTS)
    message = bytearray(serialize_message(JointState(name=JOINTS, position=zeros, velocity=zeros, effort=zeros)))
    while publisher.get_subscription_count() == 0:
        time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.readline()
    late = 0
    due = time.perf_counter()
    for i in range(count):
        number = i + 1
        message[STAMP] = np.array([number // RATE, number % RATE * (10**9 // RATE)], dtype="<u4").tobytes()
        publisher.publish(bytes(message))
        due += 1 / RATE
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        else:
            late += 1
    publisher.wait_for_all_acked(rclpy.duration.Duration(seconds=10))
    print(count, late, flush=True)
    sys.stdin.readline()


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen]:
    """Run Python in a separate process that is terminated at the end of the block."""
    child = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.terminate()
        child.communicate(timeout=20)


def call(node: Node, service: str) -> str:
    """Return the answer of a service; exit if it refuses or does not answer."""
    client = node.create_client(Trigger, service)
    if not client.wait_for_service(10.0):
        raise SystemExit(f"no service {service}")
    future = client.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(node, future, timeout_sec=30.0)
    response = future.result()
    if response is None or not response.success:
        raise SystemExit(f"{service}: {response.message if response else 'no answer'}")
    return response.message


if __name__ == "__main__":
    publish(int(sys.argv[1]))
