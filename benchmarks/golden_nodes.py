"""Golden record of the nodes: parameters, topics with their QoS, services and diagnostics of each, started alone.

Each runs as `dynid node NAME` in a copy of this process. A thread in it looks at the node through rclpy until nothing
is added any more, and ends the copy.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rclpy.node
import rclpy.publisher
import yaml
from lifecycle_msgs.srv import GetState
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from benchmarks.golden_inputs import JOINTS, LINKS, UPRIGHT, arm_urdf
from benchmarks.golden_installed import setup
from benchmarks.golden_runs import Shape, command, forked, plain, preload, write_part
from dynid_ros.model import RobotModel

SETTLED = 1.2
"""Time for which nothing was added after which a node is taken for complete, s; diagnostics come twice a second."""
PATIENCE = 20.0
"""Time for which a node is asked again, s."""
LONGEST = 40.0
"""Time after which a node is looked at whatever it does, s."""


@dataclass(frozen=True)
class Start:
    """How a node is started: parameters, and what is done beside it once it runs."""

    parameters: Mapping[str, object] = field(default_factory=dict)
    beside: Callable[[], dict] | None = None


class Driver:
    """A robot's driver beside the node, in a thread of its own: publishes joint states, calls services."""

    def __init__(self) -> None:
        self.node = rclpy.node.Node("driver")
        self._publisher = self.node.create_publisher(JointState, "joint_states", 10)
        self.node.create_timer(0.02, self._publish)
        executor = SingleThreadedExecutor()
        executor.add_node(self.node)
        threading.Thread(target=executor.spin, daemon=True).start()

    def _publish(self) -> None:
        message = JointState(name=list(JOINTS), position=[0.3] * 3, velocity=[0.0] * 3, effort=[0.0] * 3)
        message.header.stamp = self.node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def call(self, kind: Any, name: str, **request: object) -> bool:
        """Call a service and return whether it says that it succeeded."""
        return self.ask(kind, name, **request).success

    def ask(self, kind: Any, name: str, **request: object) -> Any:
        """Call a service and return its answer."""
        client = self.node.create_client(kind, name)
        client.wait_for_service(timeout_sec=10.0)
        answered = client.call_async(kind.Request(**request))
        end = time.monotonic() + 15.0
        while not answered.done() and time.monotonic() < end:
            time.sleep(0.02)
        return answered.result()


def _record() -> dict:
    """Record joint states, and return what the folder of the bag holds."""
    driver = Driver()
    time.sleep(1.0)
    answers = [driver.call(Trigger, "recorder/start")]
    time.sleep(0.5)
    answers.append(driver.call(Trigger, "recorder/stop"))
    (bag,) = Path("recordings").iterdir()
    metadata = yaml.safe_load((bag / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    topics = {
        entry["topic_metadata"]["name"]: entry["topic_metadata"] for entry in metadata["topics_with_message_count"]
    }
    return {
        "start, stop": answers,
        "files": sorted(path.name.replace(bag.name, "<bag>") for path in bag.iterdir()),
        "name": "".join("0" if letter.isdigit() else letter for letter in bag.name),
        "storage": metadata["storage_identifier"],
        "metadata": Shape().of(metadata),
        "topics": {name: f"{entry['type']}, {entry['serialization_format']}" for name, entry in sorted(topics.items())},
    }


def _activated() -> dict:
    """Wait until a lifecycle node is active."""
    driver, end = Driver(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = driver.ask(GetState, "gravity_compensation/get_state").current_state.label
        if state == "active":
            break
        time.sleep(0.2)
    return {"state": state}


def _enable(kind: type, topic: str) -> Callable[[], dict]:
    """Return what enables the compensation, with a controller that listens."""

    def enable() -> dict:
        driver = Driver()
        driver.node.create_subscription(kind, topic, lambda _: None, 10)
        end = time.monotonic() + PATIENCE
        while not driver.call(SetBool, "gravity_compensation/enable", data=True):
            if time.monotonic() > end:
                return {"enabled": False}
            time.sleep(0.5)
        return {"enabled": True}

    return enable


ARM = {"robot_description": "arm.urdf"}
TORQUE = ARM | {"effort_convention": "torque"}
HELD = {
    "model_file": "identified.yaml",
    "autostart": True,
    "unchecked_controller": True,
    "assume_no_effort": True,
    "max_model_change": 10.0,
    "timeout": 5.0,
}
BY_TRAJECTORY = {"output": "trajectory", "controller": "joint_trajectory_controller"}
STARTS: dict[str, dict[str, Start]] = {
    "demo": {"alone": Start()},
    "excitation": {"alone": Start(ARM | {"acceleration_limits": [2.0]})},
    "external_torque": {"alone": Start(TORQUE | {"model_file": "links.yaml"})},
    "flexible_joint_identification": {"alone": Start(TORQUE)},
    "gravity_compensation": {
        "alone": Start(ARM),
        "active": Start(ARM | HELD, _activated),
        "enabled": Start(ARM | HELD, _enable(Float64MultiArray, "forward_effort_controller/commands")),
        "enabled, trajectories": Start(
            ARM | HELD | BY_TRAJECTORY, _enable(JointTrajectory, "joint_trajectory_controller/joint_trajectory")
        ),
    },
    "gravity_identification": {"alone": Start(TORQUE)},
    "gravity_markers": {"alone": Start(ARM)},
    "link_identification": {"alone": Start(TORQUE)},
    "load_identification": {
        "alone": Start(TORQUE | {"model_file": "identified.yaml"}),
    },
    "recorder": {"alone": Start(), "recording": Start(beside=_record)},
    "simulator": {
        "alone": Start(),
        "all sensors": Start(
            {
                "wrench_topic": "wrench",
                "link_states_topic": "links",
                "markers_topic": "markers",
                "mocap_prefix": "mocap",
            }
        ),
        "hardware of ros2_control": Start({"controller": "ros2_control"}),
    },
    "torque_sensor_calibration": {"alone": Start(TORQUE)},
}
"""Nodes, and how they are started, in a folder with `arm.urdf` and the `identified.yaml` of its gravity."""


def nodes() -> dict:
    """Return the interface of each node that is installed, by how it is started."""
    preload()
    found: dict = {}
    for name, kind in setup("install")["console_scripts"].items():
        if kind == "nodes":
            found[name] = {way: _seen(name, start) for way, start in STARTS.get(name, {"alone": Start(ARM)}).items()}
            for entry in list(found[name].values())[1:]:
                entry.pop("parameters", None)
    return found


def _seen(name: str, start: Start) -> dict:
    """Run a node and return what is seen of it; where it ends by itself, its exit code and last line."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "arm.urdf").write_text(arm_urdf())
        (folder / "identified.yaml").write_text(yaml.safe_dump(_identified()))
        (folder / "links.yaml").write_text(yaml.safe_dump(_identified() | _links()))
        words = [word for key, value in start.parameters.items() for word in ("-p", f"{key}:={json.dumps(value)}")]

        main = command()

        def work() -> None:
            os.environ |= {"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF", "ROS_HOME": scratch}
            _watch(start.beside)
            sys.argv = ["dynid", "node", name, "--ros-args", *words]
            main()

        done = forked(work, folder)
        seen = folder / "seen.json"
        if seen.exists():
            return _with_defaults(json.loads(seen.read_text()), start.parameters)
    return {"ended": done.code, "said": done.err.strip().splitlines()[-1:]}


def _with_defaults(seen: dict, given: Mapping[str, object]) -> dict:
    """Return what was seen without the values that this module gave."""
    for name in given:
        words = seen["parameters"][name].split("; ")
        seen["parameters"][name] = "; ".join(word for word in words if not word.startswith("default"))
    return seen


def _watch(beside: Callable[[], dict] | None) -> None:
    """Have a thread look at the nodes that are made from now on."""
    made: list[rclpy.node.Node] = []
    said: dict[str, set[str]] = {}
    make, publish = rclpy.node.Node.__init__, rclpy.publisher.Publisher.publish

    def remembered(node: rclpy.node.Node, *arguments: Any, **named: Any) -> None:
        make(node, *arguments, **named)
        made.append(node)

    def overheard(publisher: Any, message: Any) -> None:
        for status in getattr(message, "status", ()):
            said.setdefault(status.name, set()).update(value.key for value in status.values)
        publish(publisher, message)

    rclpy.node.Node.__init__ = remembered  # type: ignore[method-assign]
    rclpy.publisher.Publisher.publish = overheard  # type: ignore[method-assign]

    def look() -> None:
        try:
            seen = _settled(made, said)
            if beside is not None:
                seen = {"beside": beside()} | _settled(made[:1], said)
            Path("seen.json").write_text(json.dumps(plain(seen)))
        except Exception:
            traceback.print_exc()
        os._exit(0)

    threading.Thread(target=look, daemon=True).start()


def _settled(made: list[rclpy.node.Node], said: Mapping[str, set[str]]) -> dict:
    """Return what is seen of the nodes once it stays the same."""
    begin = since = time.monotonic()
    last: dict = {}
    while time.monotonic() < begin + LONGEST and (not made or time.monotonic() < since + SETTLED):
        time.sleep(0.1)
        try:
            now = _interface(made[0]) | {"diagnostics": {name: sorted(keys) for name, keys in said.items()}}
        except Exception:  # it is being made
            continue
        if now != last:
            last, since = now, time.monotonic()
    return last


def _interface(node: rclpy.node.Node) -> dict:
    """Return parameters, topics and services of a node."""
    return {
        "node": node.get_fully_qualified_name(),
        "parameters": _parameters(node),
        "publishes": sorted(
            _topic(end.topic_name, end.msg_type, end.qos_profile)
            for end in node.publishers
            if end.topic_name != "/parameter_events"
        ),
        "subscribes": sorted(_topic(end.topic_name, end.msg_type, end.qos_profile) for end in node.subscriptions),
        "serves": sorted(_service(node, end) for end in node.services if not _of_all(end.srv_name)),
        "calls": sorted(_service(node, end) for end in node.clients),
    }


def _parameters(node: rclpy.node.Node) -> dict[str, str]:
    """Return type and default of each parameter, and whether it is read-only; rclpy's own are left out."""
    names = sorted(set(node.get_parameters_by_prefix("")) - {"use_sim_time", "start_type_description_service"})
    told = {}
    for name, descriptor in zip(names, node.describe_parameters(names), strict=True):
        parameter = node.get_parameter(name)
        words = [parameter.type_.name.lower(), "read-only" if descriptor.read_only else "live"]
        words += [] if descriptor.description else ["not described"]
        told[name] = "; ".join([*words, f"default {json.dumps(plain(parameter.value))}"])
    return told


def _of_all(service: str) -> bool:
    """Return whether rclpy gives a service to every node."""
    return service.rsplit("/", 1)[-1].startswith(
        ("describe_param", "get_param", "set_param", "list_param", "get_type_d")
    )


def _service(node: rclpy.node.Node, end: Any) -> str:
    return _typed(node.resolve_service_name(end.srv_name), end.srv_type)


def _typed(name: str, kind: Any) -> str:
    package, group = kind.__module__.split(".")[:2]
    return f"{name} ({package}/{group}/{kind.__name__})"


def _topic(name: str, kind: Any, qos: QoSProfile) -> str:
    policies = (qos.durability, qos.reliability, qos.history)
    return " ".join([_typed(name, kind), *(policy.name.lower() for policy in policies), f"{qos.depth}"])


def _identified() -> dict:
    """Return the `identified.yaml` of the arm's gravity, as its URDF has it."""
    robot = RobotModel.from_urdf(arm_urdf())
    moments = {"n_x": 0.5, "n_y": 0.0, "std": {"n_x": 0.001, "n_y": 0.001}, "observable": True}
    return {
        "format": "dynid/1",
        "robot": {
            "name": "planar",
            "joints": list(JOINTS),
            "base": LINKS[0],
            "tip": LINKS[-1],
            "gravity": list(UPRIGHT),
            "urdf_sha256": robot.urdf_sha256,
            "kinematics_sha256": robot.kinematics_sha256,
        },
        "gravity": {
            JOINTS[0]: {"n_x": None, "n_y": None, "std": None, "observable": False, "reason": "parallel"},
            JOINTS[1]: moments,
            JOINTS[2]: moments,
        },
    }


def _links() -> dict:
    """Return sections of its links without friction."""
    link = {"mass": 1.0, "mass_moment": [0.1, 0.0, 0.0], "inertia": [0.1, 0.0, 0.0, 0.1, 0.0, 0.1]}
    return {
        "links": {name: dict(link) for name in RobotModel.from_urdf(arm_urdf()).link_names},
        "friction": {name: {"terms": [], "smoothing": 0.0, "dead_zone": 0.0} for name in JOINTS},
        "signals": {"cutoff": 10.0, "motion_cutoff": 10.0},
        "residual_rms": dict.fromkeys(JOINTS, 0.1),
    }


if __name__ == "__main__":
    write_part(nodes())
