"""Test two simulated arms in two namespaces: excited, recorded, identified and compensated by real processes.

No node gets a topic; only the namespace separates the arms.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
import yaml
from geometry_msgs.msg import WrenchStamped
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads, call
from helpers.waiting import START_TIMEOUT_S, wait
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.recording.bag_reader import open_bag

pytest.importorskip("mujoco")

LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LONG_TIMEOUTS = {"stale_after": 5.0, "tracking_error_limit": "[6.0]", "effort_grace": 5.0}
"""Timeouts for a busy computer, as in the demo."""
REST_MOTION_RAD = 0.005
"""Largest motion in rad of a position servo at rest with sensor noise."""
MIN_MOTION_RAD = 0.1
"""Motion in rad that no arm makes without a command."""


class Arm:
    """Nodes of an arm in its namespace, and a listener."""

    def __init__(self, client, name, folder, seed):
        self.client = client
        self.name = name
        self.folder = folder / name
        self.latest = None
        self.published = {}
        client.create_subscription(JointState, f"/{name}/joint_states", self._on_state, 10)
        for topic in ("excitation/state", "gravity_compensation/state", "recorder/bag"):
            client.create_subscription(
                String, f"/{name}/{topic}", lambda m, topic=topic: self.published.update({topic: m.data}), LATCHED
            )
        self.nodes = {
            "simulator": {"rate": 50.0, "timestep": 0.002, "seed": seed, "start_position": "[0.0,0.5,1.0,0.0,0.8,0.0]"}
            | {"interpolate_from_desired_state": True},
            "excitation": {"motion": "poses", "count": 5, "dwell": 0.4, "seed": seed, "acceleration_limits": "[6.0]"}
            | {"floor_height": 0.1, "speed_fraction": 0.8, "travel_speed_fraction": 0.8}
            | LONG_TIMEOUTS,
            "recorder": {"output_folder": self.folder / "bags"},
            "gravity_identification": {"effort_convention": "torque", "output": self.folder},
            "gravity_compensation": {"model_file": self.folder / "identified.yaml", "timeout": 5.0, "ramp_time": 0.5}
            | {"scale": "[1.0]", "assume_no_effort": "true", "descent_time": "0.0", "watch_motion": "false"},
        }

    def start(self, stack):
        for node, parameters in self.nodes.items():
            stack.enter_context(NodeProcess(node, parameters, "-r", f"__ns:=/{self.name}"))

    def _on_state(self, message):
        self.latest = np.array(message.position)

    def ask(self, service, kind=Trigger, **request):
        answer = call(self.client, kind, f"/{self.name}/{service}", kind.Request(**request))
        assert answer.success, f"{self.name}: {getattr(answer, 'message', service)}"
        return getattr(answer, "message", "")

    def call_async(self, service):
        client = self.client.create_client(Trigger, f"/{self.name}/{service}")
        wait(client.service_is_ready, START_TIMEOUT_S)
        return client.call_async(Trigger.Request())

    def compensate(self):
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            self.ask("gravity_compensation/change_state", ChangeState, transition=Transition(id=transition))
        # A new subscription receives joint states late on a busy computer.
        enable = f"/{self.name}/gravity_compensation/enable"
        wait(lambda: "no joint state" not in call(self.client, SetBool, enable, SetBool.Request(data=True)).message)
        wait(lambda: self.published["gravity_compensation/state"] == "active")

    def wait_for_rest(self):
        """Wait until the arm rests, which a busy computer delays."""

        def rests():
            before = self.latest
            time.sleep(0.5)
            return np.abs(self.latest - before).max() < REST_MOTION_RAD / 5

        wait(rests)

    def publishers(self, topic):
        return [f"{info.node_namespace}/{info.node_name}" for info in self._publishers(f"/{self.name}/{topic}")]

    def _publishers(self, topic):
        return self.client.get_publishers_info_by_topic(topic)


@pytest.fixture(name="arms")
def fixture_arms(tmp_path, ros):
    client = rclpy.create_node("client")
    arms = [Arm(client, name, tmp_path, seed) for seed, name in enumerate(("left", "right"))]
    threads = NodeThreads(client)
    with ExitStack() as stack:
        for arm in arms:
            arm.start(stack)
        wait(
            lambda: all(arm.latest is not None and "excitation/state" in arm.published for arm in arms), START_TIMEOUT_S
        )
        yield SimpleNamespace(left=arms[0], right=arms[1], both=arms)
        threads.close()
    client.destroy_node()


def wait_for_success(futures):
    wait(lambda: all(future.done() for future in futures), 4 * START_TIMEOUT_S)
    for future in futures:
        assert future.result().success, future.result().message


def assert_at_rest(arm, since):
    assert np.abs(arm.latest - since).max() < REST_MOTION_RAD, f"{arm.name} moved without a command"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_arm_moves_alone_and_both_are_identified_and_compensated(arms):
    left = arms.left
    right = arms.right
    wait_for_success([arm.call_async("excitation/design") for arm in arms.both])

    before = right.latest, left.latest
    left.ask("excitation/start")
    wait(lambda: np.abs(left.latest - before[1]).max() > MIN_MOTION_RAD, START_TIMEOUT_S)
    assert left.publishers("joint_trajectory_controller/joint_trajectory") == ["/left/excitation"]
    assert right.publishers("joint_trajectory_controller/joint_trajectory") == []
    assert_at_rest(right, before[0])
    left.ask("excitation/stop")
    wait(lambda: left.published["excitation/state"] == "idle")
    assert_at_rest(right, before[0])
    assert right.published["excitation/state"] == "idle"

    for arm in arms.both:
        arm.wait_for_rest()
        arm.ask("recorder/start")
    wait_for_success([arm.call_async("excitation/start") for arm in arms.both])
    wait(lambda: all(arm.published["excitation/state"] == "done" for arm in arms.both), 4 * START_TIMEOUT_S)
    for arm in arms.both:
        arm.ask("recorder/stop")
        with open_bag(Path(arm.published["recorder/bag"])) as bag:
            assert sorted(bag.topics) == [f"/{arm.name}/joint_states", f"/{arm.name}/robot_description"]
    wait_for_success([arm.call_async("gravity_identification/identify") for arm in arms.both])
    documents = [yaml.safe_load((arm.folder / "identified.yaml").read_text()) for arm in arms.both]
    for arm, document in zip(arms.both, documents, strict=True):
        assert document["source"]["recordings"] == [arm.published["recorder/bag"]]
    assert documents[0]["gravity"] != documents[1]["gravity"], "the arms have different noise"

    left.compensate()
    assert left.publishers("forward_effort_controller/commands") == ["/left/gravity_compensation"]
    assert right.publishers("forward_effort_controller/commands") == []
    right.compensate()
    for arm in arms.both:
        arm.ask("simulator/activate_effort_controller", SetBool, data=True)
        time.sleep(0.5)  # until the first command
        arm.ask("simulator/activate_trajectory_controller", SetBool, data=False)
    floating = left.latest, right.latest
    push = left.client.create_publisher(WrenchStamped, "/left/simulator/push", 1)
    wait(push.get_subscription_count)
    message = WrenchStamped()
    message.wrench.force.z = 60.0
    message.wrench.force.y = 60.0

    def push_until_moved():
        push.publish(message)
        return np.abs(left.latest - floating[0]).max() > MIN_MOTION_RAD

    wait(push_until_moved, START_TIMEOUT_S)
    assert np.abs(right.latest - floating[1]).max() < MIN_MOTION_RAD / 3, "the other arm floats in place"
    for arm in arms.both:
        assert arm.published["gravity_compensation/state"] == "active"
        arm.ask("gravity_compensation/enable", SetBool, data=False)
