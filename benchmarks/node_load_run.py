"""Processes of one run of `node_load`: sensors, a busy core and the nodes; their results are in a folder."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import SetBool

from benchmarks.gravity_latency import PANDA
from benchmarks.node_load_usage import Usage, UsageSampler
from benchmarks.recording_loss import call, process
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

HALF_PERIOD_SAMPLES = 2000
"""Number of joint states from one end of the motion to the other."""
MOVING = 1
AMPLITUDE = 0.25
MIDDLE = (0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8)
RECORDED = {"joint_states_topic": "/joint_states", "wrench_topics": ["/wrench"], "pose_topics": ["/pose", "/markers"]}
FLOATING = {
    "autostart": "true",
    "unchecked_controller": "true",
    "assume_no_effort": "true",
    "scale": "[1.0]",
    "watch_motion": "false",  # the simulated arm ignores the commands
}
START_TIME = 60.0
OTHERS: dict[str, dict[str, object]] = {
    "excitation": {"acceleration_limits": "[2.0]"},
    "gravity_identification": {"effort_convention": "torque"},
    "link_identification": {"effort_convention": "torque"},
    "load_identification": {"effort_convention": "torque"},
    "flexible_joint_identification": {"effort_convention": "torque"},
    "torque_sensor_calibration": {"effort_convention": "torque"},
}


def panda() -> tuple[Path, RobotModel]:
    """Return URDF and model of the arm."""
    path = next((path for path in (Path(folder) / PANDA for folder in sys.path) if path.exists()), None)
    if path is None:
        raise SystemExit("the Panda is missing: pip install example-robot-data")
    return path, RobotModel.from_urdf(path, tip="panda_hand")


def motion(robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
    """Return poses (2 N, n) of one joint in periodic motion, and its gravity torques (2 N,), all of them different."""
    steps = np.arange(HALF_PERIOD_SAMPLES)
    angles = AMPLITUDE * (np.concatenate([2 * steps, 2 * steps[::-1] + 1]) / HALF_PERIOD_SAMPLES - 1.0)
    poses = np.tile(MIDDLE, (2 * HALF_PERIOD_SAMPLES, 1))
    poses[:, MOVING] += angles
    gravity = GravityModel(robot)
    torque = gravity.bind(gravity.project(robot.parameters))
    torques = np.array([torque(pose)[MOVING] for pose in poses.tolist()])
    assert len(np.unique(torques.round(9))) == len(torques)
    return poses, torques


def write_model(robot: RobotModel, path: Path) -> Path:
    """Write an `identified.yaml` with the gravity of the URDF, and return its path."""
    gravity = GravityModel(robot)
    moments = gravity.project(robot.parameters)
    document = new_document(robot, [], {})
    document["gravity"] = {
        joint: {"observable": True}
        | {gravity.names[c].split()[0]: float(moments[c]) for c in range(len(moments))[gravity.columns(i)]}
        for i, joint in enumerate(robot.joint_names)
    }
    return save_identified(path, document)


class Run:
    """Processes of one run; their results are in `folder`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.urdf, self.robot = panda()
        self.poses, self.torques = motion(self.robot)
        self.model = write_model(self.robot, folder / "identified.yaml")
        self.processes: dict[str, int] = {}
        self.faults: list[str] = []
        self.state = ""
        self._request_time = 0.0
        self._stack = stack
        np.save(folder / "poses.npy", self.poses)
        rclpy.init()
        stack.callback(rclpy.try_shutdown)
        self.node = rclpy.create_node("node_load")
        latched = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(String, "/gravity_compensation/state", self._on_state, latched)
        self._enable = self.node.create_client(SetBool, "/gravity_compensation/enable")

    def start(self, name: str, *arguments: str, ready: bool = False) -> None:
        """Start a process; with `ready`, wait until it prints a line."""
        child = self._stack.enter_context(process(*arguments))
        self.processes[name] = child.pid
        if ready:
            assert child.stdout is not None
            if not child.stdout.readline():
                raise SystemExit(f"{name} ended before it began")

    def start_peer(self, name: str, *arguments: str, ready: bool = True) -> None:
        """Start a process of `node_load_peers`."""
        self.start(name, "-m", "benchmarks.node_load_peers", name, *arguments, ready=ready)

    def start_node(self, name: str, parameters: dict[str, object], *arguments: str) -> None:
        """Start a node of the package."""
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        self.start(name, "-m", "dynid_ros", "node", name, "--ros-args", "--log-level", "fatal", *words, *arguments)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition that callbacks or other processes fulfil."""
        deadline = time.monotonic() + START_TIME
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} is not there after {START_TIME:g} s")
            rclpy.spin_once(self.node, timeout_sec=0.1)

    def start_guide(self) -> None:
        """Start the page of `dynid guide` without a client."""
        output = ["--port", "0", "--no-browser", "--output", str(self.folder / "guide")]
        self.start("guide", "-m", "dynid_ros", "guide", "--urdf", str(self.urdf), "--tip", "panda_hand", *output)
        self.until(lambda: "guide" in self.node.get_node_names(), "the guide")

    def load(
        self, seconds: float, *, busy: bool, relay: bool, guide: bool, period: float
    ) -> tuple[dict[str, Usage], str]:
        """Start all processes and record for `seconds`; return the usage of all processes and the recorder's answer."""
        self.start_node("recorder", RECORDED | {"output_folder": self.folder / "bags"})
        arm = {"robot_description": self.urdf, "tip_link": "panda_hand", "model_file": self.model}
        self.start_node("gravity_compensation", arm | FLOATING)
        if relay:
            self.start_peer("relay", ready=False)
        self.start_peer("listener", str(MOVING), str(self.folder / "commands.npz"))
        self.start_peer("sensors", str(self.folder / "sensors.npz"))
        self.start_peer("joints", str(self.folder / "poses.npy"), str(self.folder / "joints.npy"))
        if busy:
            self.start_peer("busy", ready=False)
        if guide:
            self.start_guide()
        self.until(lambda: self.node.count_subscribers("/markers"), "the recorder")
        self.until(lambda: not relay or self.node.count_publishers("/relay/commands"), "the relay")
        self.until(self._enabled, "gravity compensation")
        call(self.node, "/recorder/start")
        self.faults.clear()
        self.started = time.time_ns()
        with UsageSampler(self.processes, period) as sampler:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                rclpy.spin_once(self.node, timeout_sec=0.5)
                self._enabled()
        self.stopped = time.time_ns()
        return sampler.usage, call(self.node, "/recorder/stop")

    def idle(self, seconds: float) -> dict[str, Usage]:
        """Return the usage of the other nodes while they are idle."""
        self.start_peer("joints", str(self.folder / "poses.npy"), str(self.folder / "idle.npy"))
        arm = {"robot_description": self.urdf, "tip_link": "panda_hand"}
        for name, parameters in OTHERS.items():
            self.start_node(name, arm | parameters)
        topics = {"effort_topic": "efforts", "trajectory_topic": "trajectory"}
        self.start_node("simulator", topics, "-r", "__ns:=/simulated")
        names = [*OTHERS, "simulator"]
        self.until(lambda: set(names) <= set(self.node.get_node_names()), "one of the idle nodes")
        time.sleep(3.0)  # a node is visible before its construction ends
        with UsageSampler({name: self.processes[name] for name in names}, 1.0) as sampler:
            time.sleep(seconds)
        return sampler.usage

    def _enabled(self) -> bool:
        """Return whether compensation is active; request it once per second while it is disabled."""
        is_disabled = self.state == "disabled" or self.state.startswith("fault")
        if is_disabled and time.monotonic() > self._request_time + 1.0 and self._enable.service_is_ready():
            self._request_time = time.monotonic()
            self._enable.call_async(SetBool.Request(data=True))
        return self.state == "active"

    def _on_state(self, message: String) -> None:
        self.state = message.data
        if message.data.startswith("fault"):
            self.faults.append(message.data)


@contextmanager
def running(folder: Path) -> Iterator[Run]:
    """Yield a run whose processes end, and write their data, at the end of the block."""
    with ExitStack() as stack:
        yield Run(folder, stack)
