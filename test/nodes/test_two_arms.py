"""Two simulated arms, a namespace each, are excited, recorded, identified and compensated at once, by real processes.

No node is given a topic: the namespace is all that tells them apart.
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
from helpers.waiting import START_TIME, wait
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.recording.bag_reader import open_bag

pytest.importorskip("mujoco")

LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENT = {"stale_after": 5.0, "tracking_error_limit": "[6.0]", "effort_grace": 5.0}
"""For a busy machine; as in the demo."""
STILL = 0.005
"""What a position servo and its sensors stir, rad."""
MOVED = 0.1
"""What no arm does that is not asked, rad."""


class Arm:
    """All nodes of an arm in its namespace, and who listens to them."""

    def __init__(self, client, name, folder, seed):
        self.client, self.name, self.folder = client, name, folder / name
        self.latest, self.published = None, {}
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
            | PATIENT,
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

    def later(self, service):
        client = self.client.create_client(Trigger, f"/{self.name}/{service}")
        wait(client.service_is_ready, START_TIME)
        return client.call_async(Trigger.Request())

    def compensate(self):
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            self.ask("gravity_compensation/change_state", ChangeState, transition=Transition(id=transition))
        # which a new subscription on a busy machine is late to get
        enable = f"/{self.name}/gravity_compensation/enable"
        wait(lambda: "no joint state" not in call(self.client, SetBool, enable, SetBool.Request(data=True)).message)
        wait(lambda: self.published["gravity_compensation/state"] == "active")

    def comes_to_rest(self):
        """Which a simulation on a busy machine is late to do."""

        def rests():
            before = self.latest
            time.sleep(0.5)
            return np.abs(self.latest - before).max() < STILL / 5

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
        wait(lambda: all(arm.latest is not None and "excitation/state" in arm.published for arm in arms), START_TIME)
        yield SimpleNamespace(left=arms[0], right=arms[1], both=arms)
        threads.close()
    client.destroy_node()


def finished(futures):
    wait(lambda: all(future.done() for future in futures), 4 * START_TIME)
    for future in futures:
        assert future.result().success, future.result().message


def stays(arm, since):
    assert np.abs(arm.latest - since).max() < STILL, f"{arm.name} moved and was not asked"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_only_the_arm_that_is_asked_moves_and_both_are_identified_and_compensated(arms):
    left, right = arms.left, arms.right
    finished([arm.later("excitation/design") for arm in arms.both])

    before = right.latest, left.latest
    left.ask("excitation/start")
    wait(lambda: np.abs(left.latest - before[1]).max() > MOVED, START_TIME)
    assert left.publishers("joint_trajectory_controller/joint_trajectory") == ["/left/excitation"]
    assert right.publishers("joint_trajectory_controller/joint_trajectory") == []
    stays(right, before[0])
    left.ask("excitation/stop")
    wait(lambda: left.published["excitation/state"] == "idle")
    stays(right, before[0])
    assert right.published["excitation/state"] == "idle"

    for arm in arms.both:
        arm.comes_to_rest()
        arm.ask("recorder/start")
    finished([arm.later("excitation/start") for arm in arms.both])
    wait(lambda: all(arm.published["excitation/state"] == "done" for arm in arms.both), 4 * START_TIME)
    for arm in arms.both:
        arm.ask("recorder/stop")
        with open_bag(Path(arm.published["recorder/bag"])) as bag:
            assert sorted(bag.topics) == [f"/{arm.name}/joint_states", f"/{arm.name}/robot_description"]
    finished([arm.later("gravity_identification/identify") for arm in arms.both])
    found = [yaml.safe_load((arm.folder / "identified.yaml").read_text()) for arm in arms.both]
    for arm, document in zip(arms.both, found, strict=True):
        assert document["source"]["recordings"] == [arm.published["recorder/bag"]]
    assert found[0]["gravity"] != found[1]["gravity"], "each has noise of its own"

    left.compensate()
    assert left.publishers("forward_effort_controller/commands") == ["/left/gravity_compensation"]
    assert right.publishers("forward_effort_controller/commands") == []
    right.compensate()
    for arm in arms.both:
        arm.ask("simulator/activate_effort_controller", SetBool, data=True)
        time.sleep(0.5)  # for the first command
        arm.ask("simulator/activate_trajectory_controller", SetBool, data=False)
    floating = left.latest, right.latest
    push = left.client.create_publisher(WrenchStamped, "/left/simulator/push", 1)
    wait(push.get_subscription_count)
    message = WrenchStamped()
    message.wrench.force.z, message.wrench.force.y = 60.0, 60.0

    def pushed():
        push.publish(message)
        return np.abs(left.latest - floating[0]).max() > MOVED

    wait(pushed, START_TIME)
    assert np.abs(right.latest - floating[1]).max() < MOVED / 3, "it floats where it is"
    for arm in arms.both:
        assert arm.published["gravity_compensation/state"] == "active"
        arm.ask("gravity_compensation/enable", SetBool, data=False)
