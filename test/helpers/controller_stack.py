"""Run the simulated arm as hardware of a real controller manager, with a node that listens to both."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import rclpy
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.files.bounded import share_path

FORWARD = "forward_effort_controller"
TRAJECTORY = "joint_trajectory_controller"
START = [0.0, 0.5, 1.0, 0.0, 0.8, 0.0]
RATE_HZ = 250.0
NOISELESS = {"torque_noise": 0.0, "torque_offset": "[0.0]", "position_noise": 0.0, "velocity_noise": 0.0}
"""Parameters without sensor errors."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TIMEOUT_S = 40.0
"""Time in s to wait for an event."""


class ControllerStack:
    """Processes of one run with logs in a folder, positions (N, 6) in rad, and the last state text of each node."""

    def __init__(self, folder: Path, route: str) -> None:
        self.folder = folder
        self.route = route
        self._processes: dict[str, subprocess.Popen] = {}
        self.node = Node("driver")
        self.position: list[list[float]] = []
        self.states: dict[str, str] = {}
        self.names = [f"joint_{i}" for i in range(1, 7)]
        self.node.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        node_name = "gravity_compensation"
        self.node.create_subscription(
            String, f"/{node_name}/state", lambda m: self.states.update({node_name: m.data}), LATCHED
        )
        parameters = {"rate": RATE_HZ, "controller": "ros2_control", "start_position": str(START), **NOISELESS}
        assignments = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        self._run("simulator", [sys.executable, "-m", "dynid_ros", "node", "simulator", "--ros-args", *assignments])
        manager = folder / "manager.yaml"
        manager.write_text(f"/**:\n  controller_manager:\n    ros__parameters:\n      update_rate: {RATE_HZ:g}\n")
        self._run("manager", [_executable("ros2_control_node"), "--ros-args", "--params-file", str(manager)])
        self.spawn("joint_state_broadcaster", share_path("config/controllers/ros2_control.yaml").resolve())
        self.spin_until(lambda: len(self.position) > 50, "joint states")

    def _run(self, label: str, command: Sequence[str | Path]) -> None:
        with (self.folder / f"{label}.log").open("ab") as log:
            self._processes[label] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self.node.destroy_node()

    def spin_until(self, condition: Callable[[], object], event: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"{event} did not happen; see {self.folder}"
            rclpy.spin_once(self.node, timeout_sec=0.02)

    def spin(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            rclpy.spin_once(self.node, timeout_sec=0.01)

    def spawn(self, name: str, file: Path) -> None:
        """Load and activate a controller of the real manager, as the documentation describes."""
        label = f"spawner_{name}"
        self._run(label, [sys.executable, _executable("spawner"), name, "--param-file", str(file)])
        process = self._processes[label]
        self.spin_until(lambda: process.poll() is not None, f"the end of the {label}")
        assert self._processes.pop(label).returncode == 0, (self.folder / f"{label}.log").read_text()

    def _on_state(self, message: JointState) -> None:
        if set(message.name) >= set(self.names):
            self.position.append([message.position[message.name.index(name)] for name in self.names])


def missing_packages() -> list[str]:
    """Return the packages of ros2_control that the real controllers need and that are not installed."""
    needed = ("controller_manager", "joint_state_broadcaster", TRAJECTORY, "forward_command_controller")
    absent = []
    for name in (*needed, "joint_state_topic_hardware_interface", "control_msgs", "controller_manager_msgs"):
        try:
            get_package_prefix(name)
        except PackageNotFoundError:
            absent.append(name)
    return absent


def _executable(name: str) -> Path:
    return Path(get_package_prefix("controller_manager")) / "lib" / "controller_manager" / name
