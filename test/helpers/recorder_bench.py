"""Bench of the recorder with a robot's publishers, in this process or in a process of its own."""

import time
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from helpers.node_process import NodeProcess
from helpers.waiting import START_TIMEOUT_S
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.nodes.recorder import Recorder

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SENSOR = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1000)


class Bench:
    """Robot's publishers and clients of the recorder, which runs in this process or in a process of its own."""

    def __init__(self, folder: Path, parameters: dict | None = None, *, process: type[NodeProcess] | None = None):
        self.folder = folder
        self.executor = SingleThreadedExecutor()
        self.robot = rclpy.create_node("robot")
        self.executor.add_node(self.robot)
        self.clients = {name: self.robot.create_client(Trigger, f"/recorder/{name}") for name in ("start", "stop")}
        self.bags: list[str] = []
        self.diagnostics: list[DiagnosticStatus] = []
        self.robot.create_subscription(String, "/recorder/bag", lambda m: self.bags.append(m.data), LATCHED)
        self.robot.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.diagnostics.extend(m.status), 10)
        settings = {"output_folder": str(folder)} | (parameters or {})
        self.process = None
        self.recorder = None
        if process is not None:
            self.process = process("recorder", settings)
        else:
            overrides = [Parameter(name, value=value) for name, value in settings.items()]
            self.recorder = Recorder(parameter_overrides=overrides)
            self.executor.add_node(self.recorder)
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.__exit__()
        if self.recorder is not None:
            self.recorder.destroy_node()
        self.robot.destroy_node()
        self.executor.shutdown()

    def spin(self, seconds: float):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def spin_until(self, condition, timeout=START_TIMEOUT_S):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "timeout"
            self.executor.spin_once(timeout_sec=0.02)

    def call(self, name):
        assert self.clients[name].wait_for_service(START_TIMEOUT_S)
        future = self.clients[name].call_async(Trigger.Request())
        self.spin_until(future.done)
        return future.result()

    def publisher(self, msgtype, topic="joint_states", qos=RELIABLE):
        publisher = self.robot.create_publisher(msgtype, topic, qos)
        self.spin_until(lambda: publisher.get_subscription_count() > 0)
        return publisher

    def publish(self, publisher, count, period=0.001):
        """Publish joint states that count: the positions of both joints and the stamp."""
        for _ in range(count):
            self.sent += 1
            message = JointState(name=["b", "a"], position=[-float(self.sent), float(self.sent)], effort=[1.0, 2.0])
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(self.sent * 10**6, 10**9)
            publisher.publish(message)
            if self.process is None:
                self.executor.spin_once(timeout_sec=0)
            time.sleep(period)

    def status(self):
        self.diagnostics.clear()
        self.spin_until(lambda: any(status.name == "recorder" for status in self.diagnostics))
        return next(status for status in self.diagnostics if status.name == "recorder")
