"""The simulated arm, its controllers and the nodes beside them, as processes; one way to switch both kinds."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.files.bounded import share_path

FORWARD, TRAJECTORY = "forward_effort_controller", "joint_trajectory_controller"
START = [0.0, 0.5, 1.0, 0.0, 0.8, 0.0]
RATE = 250.0
CALM = {"torque_noise": 0.0, "torque_offset": "[0.0]", "position_noise": 0.0, "velocity_noise": 0.0}
"""What is measured is what acts."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENCE = 40.0
"""s for anything to come about."""


class ControllerStack:
    """Processes of one run, and a node that listens to the arm.

    Args:
        folder: for their logs.
        kind: of controllers, `simulated` or `ros2_control`.
        route: effort, feedforward or trajectory.
        spawned: whether the real manager has the route's controllers, beside `joint_state_broadcaster`.
        changed: parameters of the trajectory controller.

    Attributes:
        node: of this process.
        times, position, effort: of the joint states so far, s (N,), rad and N m (N, 6).
        said: last texts of the states of our nodes.
        diagnostics: last status of each node, level and text.
    """

    def __init__(self, folder: Path, kind: str, route: str, *, spawned: bool = True, **changed: object) -> None:
        self.folder, self.kind, self.route = folder, kind, route
        self._processes: dict[str, subprocess.Popen] = {}
        self.node = Node("driver")
        self.times: list[float] = []
        self.position: list[list[float]] = []
        self.effort: list[list[float]] = []
        self.said: dict[str, str] = {}
        self.diagnostics: dict[str, tuple[int, str]] = {}
        self.names = [f"joint_{i}" for i in range(1, 7)]
        self.node.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        for name in ("gravity_compensation", "excitation"):
            self.node.create_subscription(
                String, f"/{name}/state", lambda m, name=name: self.said.update({name: m.data}), LATCHED
            )
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        controller = {"effort": "effort", "feedforward": "position_and_effort", "trajectory": "trajectory_effort"}
        parameters = {"rate": RATE, "controller": controller[route] if kind == "simulated" else kind, **CALM}
        if kind == "simulated":
            parameters |= changed
        self.start("simulator", parameters | {"start_position": str(START)})
        if kind == "ros2_control":
            self._start_manager(spawned, changed)
        self.until(lambda: len(self.times) > 50, "joint states")

    def start(self, name: str, parameters: Mapping[str, object], label: str = "") -> None:
        """One of our nodes."""
        given = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        command = [sys.executable, "-m", "dynid_ros", "node", name, "--ros-args", *given]
        self._run(label or name, command)

    def _run(self, label: str, command: Sequence[str | Path]) -> None:
        with (self.folder / f"{label}.log").open("ab") as log:
            self._processes[label] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def log(self, label: str) -> str:
        """What a process has printed."""
        return (self.folder / f"{label}.log").read_text(encoding="utf-8", errors="replace")

    def end(self, label: str, number: int = signal.SIGINT) -> int:
        """Send a signal; the exit code."""
        process = self._processes.pop(label)
        process.send_signal(number)
        return process.wait(30.0)

    def close(self) -> None:
        """End all."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self.node.destroy_node()

    def until(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Spin until something is so.

        Raises:
            TimeoutError: names it.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come about; see {self.folder}")
            rclpy.spin_once(self.node, timeout_sec=0.02)

    def spin(self, seconds: float) -> None:
        """Let time pass."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            rclpy.spin_once(self.node, timeout_sec=0.01)

    def call(self, kind: Any, service: str, **request: object) -> Any:
        """Call a service; its answer."""
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready, f"service {service}")
        future = client.call_async(kind.Request(**request))
        self.until(future.done, f"the answer of {service}")
        self.node.destroy_client(client)
        return future.result()

    def switch(self, activate: Sequence[str] = (), deactivate: Sequence[str] = ()) -> str:
        """As `ros2 control switch_controllers`; what went wrong."""
        if self.kind == "ros2_control":
            kind = import_module("controller_manager_msgs.srv").SwitchController
            answer = self.call(
                kind,
                "/controller_manager/switch_controller",
                activate_controllers=list(activate),
                deactivate_controllers=list(deactivate),
                strictness=kind.Request.STRICT,
            )
            return "" if answer.ok else f"the switch failed: {getattr(answer, 'message', '')}"
        kind = import_module("std_srvs.srv").SetBool
        short = {FORWARD: "effort", TRAJECTORY: "trajectory"}
        if activate and deactivate:
            answer = self.call(kind, "/simulator/effort_mode", data=activate[0] == FORWARD)
            return "" if answer.success else answer.message
        for name in (*activate, *deactivate):
            answer = self.call(kind, f"/simulator/activate_{short[name]}_controller", data=name in activate)
            if not answer.success:
                return answer.message
        return ""

    def spawn(self, name: str, file: Path, *words: str) -> None:
        """Load and activate a controller of the real manager as the documents say."""
        spawner = _executable("spawner")
        command = [sys.executable, spawner, name, *words, "--param-file", str(file)]
        label = f"spawner_{name}"
        self._run(label, command)
        process = self._processes[label]
        self.until(lambda: process.poll() is not None, f"the end of the {label}")
        if self._processes.pop(label).returncode:
            raise RuntimeError(f"the spawner failed:\n{self.log(label)}")

    def _start_manager(self, spawned: bool, changed: Mapping[str, object]) -> None:
        manager = self.folder / "manager.yaml"
        manager.write_text(f"/**:\n  controller_manager:\n    ros__parameters:\n      update_rate: {RATE:g}\n")
        self._run("manager", [_executable("ros2_control_node"), "--ros-args", "--params-file", str(manager)])
        common = share_path("config/controllers/ros2_control.yaml").resolve()
        self.spawn("joint_state_broadcaster", common)
        if not spawned:
            return
        own = share_path(f"config/controllers/{self.route}.yaml").resolve()
        file = self.folder / "controllers.yaml"
        text = (common if self.route == "effort" else own).read_text(encoding="utf-8")
        for key, value in changed.items():
            text = "".join(_replaced(line, key, value) for line in text.splitlines(keepends=True))
        file.write_text(text, encoding="utf-8")
        self.spawn(TRAJECTORY, file)
        if self.route != "trajectory":
            words = ["--inactive"] if self.route == "effort" else []
            self.spawn(FORWARD, own, *words)

    def reload(self, name: str) -> None:
        """Deactivate a controller of the real manager, unload it, and spawn it anew, as the documents say."""
        kind = import_module("controller_manager_msgs.srv").UnloadController
        self.switch(deactivate=[name])
        assert self.call(kind, "/controller_manager/unload_controller", name=name).ok
        self.spawn(name, self.folder / "controllers.yaml")

    def _on_state(self, message: JointState) -> None:
        if set(message.name) >= set(self.names) and len(message.effort) == len(message.name):
            order = [message.name.index(name) for name in self.names]
            self.times.append(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)
            self.position.append([message.position[i] for i in order])
            self.effort.append([message.effort[i] for i in order])

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            level = status.level[0] if isinstance(status.level, bytes) else status.level
            self.diagnostics[status.name] = int(level), status.message

    def since(self, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, positions and efforts of the joint states from number `index` on."""
        return np.array(self.times[index:]), np.array(self.position[index:]), np.array(self.effort[index:])


def missing_packages() -> list[str]:
    """Packages of ros2_control that the real controllers need and that are not here."""
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


def _replaced(line: str, key: str, value: object) -> str:
    name = line.strip().partition(":")[0]
    return f"{line[: len(line) - len(line.lstrip())]}{key}: {str(value).lower()}\n" if name == key else line
