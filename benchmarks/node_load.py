"""Recorder and gravity compensation of a seven-joint arm at 1 kHz beside a busy core: losses, latency, CPU, memory.

    python -m benchmarks.node_load [--minutes 1] [--idle-seconds 10] [--no-busy] [--no-relay] [--keep FOLDER]

A Panda's joint states and a wrench come at 1 kHz, the pose of a body and 20 markers at 250 Hz, each from a process of
its own, and another process burns a core. The recorder records all of it, and gravity compensation is enabled.

- Lost: numbers in the stamps of the recorded messages against what was published.
- Latency: from the publication of a joint state until the first command that knows of it or of a newer one is
  published, beside a relay, the least node that rclpy can make of the same topics: same stream, same QoS, same time. A
  command tells by its value which state it came from, since all poses of the motion differ. `received` is until the
  controller's process has it.
- CPU: seconds of processor time per second. Memory: slope of the private memory over the last three quarters of the
  run; judged in runs of ten minutes or more.
- Then the other nodes, idle, with the same joint states.

Exit code 1 if a message is lost, the compensation faulted, or memory grew. The latency is printed beside its aim; on
a machine with other work to do it says little. Needs rclpy, Linux and `pip install example-robot-data`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosbags.rosbag2 import Reader
from std_msgs.msg import String
from std_srvs.srv import SetBool

from benchmarks.gravity_latency import PANDA
from benchmarks.node_load_peers import MILLION, RATES, STAMP
from benchmarks.node_load_usage import Usage, UsageSampler
from benchmarks.recording_loss import call, process
from dynid_ros.identification.identified_file import new_document, save_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

HALF_PERIOD = 2000
"""Joint states from one end of the motion to the other."""
MOVING = 1
AMPLITUDE = 0.25
MIDDLE = (0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8)
AIM = 1.3
GROWTH = 1000.0
"""KiB in 30 minutes that are none: the recorder keeps the index of the file that it writes, up to half of that."""
LONG = 10.0
"""Minutes from which memory is judged."""
RECORDED = {
    "joint_states_topic": "/joint_states",
    "wrench_topics": ["/wrench"],
    "pose_topics": ["/pose", "/markers"],
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
"""The other nodes, with what they cannot do without."""


@dataclass(frozen=True)
class Latency:
    """Times (N,) from joint states to commands, s, until these are published or received; commands per state."""

    published: np.ndarray
    received: np.ndarray
    commands: float


def panda() -> tuple[Path, RobotModel]:
    """URDF and model of the arm."""
    path = next((path for path in (Path(folder) / PANDA for folder in sys.path) if path.exists()), None)
    if path is None:
        raise SystemExit("the Panda is missing: pip install example-robot-data")
    return path, RobotModel.from_urdf(path, tip="panda_hand")


def motion(robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
    """Poses (2 N, n) of one joint that goes to and fro, and its gravity torques (2 N,), no two of them equal."""
    steps = np.arange(HALF_PERIOD)
    angles = AMPLITUDE * (np.concatenate([2 * steps, 2 * steps[::-1] + 1]) / HALF_PERIOD - 1.0)
    poses = np.tile(MIDDLE, (2 * HALF_PERIOD, 1))
    poses[:, MOVING] += angles
    gravity = GravityModel(robot)
    torque = gravity.bind(gravity.project(robot.parameters))
    torques = np.array([torque(pose)[MOVING] for pose in poses.tolist()])
    assert len(np.unique(torques.round(9))) == len(torques)
    return poses, torques


def write_model(robot: RobotModel, path: Path) -> Path:
    """`identified.yaml` that says of the arm's gravity what its URDF says."""
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
    """The processes of one run, and what they left in `folder`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.urdf, self.robot = panda()
        self.poses, self.torques = motion(self.robot)
        self.model = write_model(self.robot, folder / "identified.yaml")
        self.processes: dict[str, int] = {}
        self.faults: list[str] = []
        self.state = ""
        self._asked = 0.0
        self._stack = stack
        np.save(folder / "poses.npy", self.poses)
        rclpy.init()
        stack.callback(rclpy.try_shutdown)
        self.node = rclpy.create_node("node_load")
        latched = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(String, "/gravity_compensation/state", self._on_state, latched)
        self._enable = self.node.create_client(SetBool, "/gravity_compensation/enable")

    def start(self, name: str, *arguments: str, ready: bool = False) -> None:
        """Start a process; `ready`: wait until it says so."""
        child = self._stack.enter_context(process(*arguments))
        self.processes[name] = child.pid
        if ready:
            assert child.stdout is not None
            if not child.stdout.readline():
                raise SystemExit(f"{name} ended before it began")

    def start_peer(self, name: str, *arguments: str, ready: bool = True) -> None:
        """Start one of `node_load_peers`."""
        self.start(name, "-m", "benchmarks.node_load_peers", name, *arguments, ready=ready)

    def start_node(self, name: str, parameters: dict[str, object], *arguments: str) -> None:
        """Start a node of the package."""
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        self.start(name, "-m", f"dynid_ros.nodes.{name}", "--ros-args", "--log-level", "fatal", *words, *arguments)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that callbacks or other processes bring about."""
        deadline = time.monotonic() + START_TIME
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} is not there after {START_TIME:g} s")
            rclpy.spin_once(self.node, timeout_sec=0.1)

    def load(self, seconds: float, *, busy: bool, relay: bool, period: float) -> tuple[dict[str, Usage], str]:
        """Start all, record for `seconds`; returns usage of all processes and the recorder's answer."""
        self.start_node("recorder", RECORDED | {"output_folder": self.folder / "bags"})
        arm = {"robot_description": self.urdf, "tip_link": "panda_hand", "model_file": self.model}
        self.start_node("gravity_compensation", arm | {"autostart": "true"})
        if relay:
            self.start_peer("relay", ready=False)
        self.start_peer("listener", str(MOVING), str(self.folder / "commands.npz"))
        self.start_peer("sensors", str(self.folder / "sensors.npz"))
        self.start_peer("joints", str(self.folder / "poses.npy"), str(self.folder / "joints.npy"))
        if busy:
            self.start_peer("busy", ready=False)
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
        """Usage of the other nodes, which have nothing to do."""
        self.start_peer("joints", str(self.folder / "poses.npy"), str(self.folder / "idle.npy"))
        arm = {"robot_description": self.urdf, "tip_link": "panda_hand"}
        for name, parameters in OTHERS.items():
            self.start_node(name, arm | parameters)
        topics = {"effort_topic": "efforts", "trajectory_topic": "trajectory"}
        self.start_node("simulator", topics, "-r", "__ns:=/simulated")
        names = [*OTHERS, "simulator"]
        self.until(lambda: set(names) <= set(self.node.get_node_names()), "one of the idle nodes")
        time.sleep(3.0)  # after its name is there, a node is still being made
        with UsageSampler({name: self.processes[name] for name in names}, 1.0) as sampler:
            time.sleep(seconds)
        return sampler.usage

    def _enabled(self) -> bool:
        """Whether the torque is all there; asks for it where nothing comes, as while all the processes start."""
        rests = self.state == "disabled" or self.state.startswith("fault")
        if rests and time.monotonic() > self._asked + 1.0 and self._enable.service_is_ready():
            self._asked = time.monotonic()
            self._enable.call_async(SetBool.Request(data=True))
        return self.state == "active"

    def _on_state(self, message: String) -> None:
        self.state = message.data
        if message.data.startswith("fault"):
            self.faults.append(message.data)


@contextmanager
def running(folder: Path) -> Iterator[Run]:
    """A run whose processes end, and write what they know, with the block."""
    with ExitStack() as stack:
        yield Run(folder, stack)


def losses(run: Run) -> dict[str, tuple[int, int]]:
    """Messages recorded, and lost between the start and the stop of the recording, by topic."""
    published = {"joint_states": np.load(run.folder / "joints.npy")}
    published |= dict(np.load(run.folder / "sensors.npz"))
    (bag,) = (run.folder / "bags").iterdir()
    found: dict[str, list[int]] = {topic: [] for topic in RATES}
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            stamp = np.frombuffer(bytes(data[STAMP]), "<u4")
            found[connection.topic.lstrip("/")].append(1000 * int(stamp[0]) + int(stamp[1]) // MILLION)
    result = {}
    for topic, rate in RATES.items():
        numbers = np.array(found[topic], dtype=int) // (1000 // rate)
        meant = 1 + np.flatnonzero((published[topic] > run.started) & (published[topic] < run.stopped))
        result[topic] = (len(numbers), int(np.sum(~np.isin(meant, numbers))))
        if len(numbers) != len(np.unique(numbers)):
            raise SystemExit(f"{topic}: a message was recorded twice")
    return result


def latencies(run: Run) -> dict[str, Latency]:
    """Of the node and of the relay, over the time of the recording.

    Each joint state counts, also one that was passed over for a newer one: until the first command that knows of it.
    """
    commands = np.load(run.folder / "commands.npz")
    published = np.load(run.folder / "joints.npy")
    states = np.flatnonzero((published > run.started) & (published < run.stopped))
    result = {}
    for name, values in (("node", run.torques), ("relay", run.poses[:, MOVING])):
        value, sent, received = (commands[f"{name}_{what}"] for what in ("value", "published", "received"))
        order = np.argsort(values)
        at = order[np.searchsorted(values[order] + 1e-9, value) % len(values)]
        # The motion repeats; a command is the answer to the last of the equal states before it.
        newest = np.searchsorted(published, sent) - 1
        state = newest - (newest - at) % len(values)
        known = (np.abs(values[at] - value) < 1e-9) & (state >= 0)  # a ramp's torques are those of no pose
        state, sent, received = state[known], sent[known], received[known]
        if not len(state):
            continue
        answer = np.searchsorted(np.maximum.accumulate(state), states)
        asked = states[answer < len(state)]
        answer = answer[answer < len(state)]
        result[name] = Latency(
            published=(sent[answer] - published[asked]) * 1e-9,
            received=(received[answer] - published[asked]) * 1e-9,
            commands=len(np.unique(answer)) / len(asked),
        )
    return result


def show_usage(usage: dict[str, Usage]) -> None:
    """Print a table."""
    print(f"{'process':<32}{'CPU s/s':>9}{'RSS MB':>9}{'PSS MB':>9}{'private memory, KiB/min':>28}{'in all, KiB':>13}")
    for name, use in usage.items():
        slope, error, whole = use.growth()
        growth = "too short" if np.isnan(slope) else f"{slope:.1f} ± {2 * error:.1f}"
        numbers = f"{use.cores:>9.3f}{use.resident[-1] / 1024:>9.1f}{use.proportional[-1] / 1024:>9.1f}"
        print(f"{name:<32}{numbers}{growth:>28}{whole:>13.0f}")


def show_latencies(found: dict[str, Latency]) -> None:
    """Print a table."""
    print(f"{'latency, ms':<32}{'median':>9}{'99 %':>9}{'99.9 %':>9}{'worst':>9}{'commands per state':>21}")
    for until in ("published", "received"):
        for name, latency in found.items():
            times = getattr(latency, until)
            numbers = [*np.percentile(times, (50, 99, 99.9)), times.max()]
            line = "".join(f"{1e3 * number:>9.3f}" for number in numbers)
            print(f"{f'{name}, {until}':<32}{line}{latency.commands:>21.4f}")
        if len(found) > 1:
            middle, late = np.divide(*(np.percentile(getattr(found[n], until), (50, 99)) for n in ("node", "relay")))
            verdict = _verdict(max(middle, late) <= AIM)
            print(f"{'node over relay':<32}{middle:>9.2f}{late:>9.2f}   at most {AIM:g}: {verdict}")


def _verdict(good: bool) -> str:
    return "met" if good else "NOT MET"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="0: leave the other nodes out")
    parser.add_argument("--no-busy", action="store_true", help="without the process that burns a core")
    parser.add_argument("--no-relay", action="store_true", help="without the relay, which takes half a core")
    parser.add_argument("--keep", type=Path, help="folder for bag and arrays, which are else deleted")
    options = parser.parse_args(arguments)
    seconds = 60.0 * options.minutes
    grown: list[str] = []
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before, ", end="", flush=True)
        with running(folder) as run:
            usage, answer = run.load(
                seconds, busy=not options.no_busy, relay=not options.no_relay, period=max(0.5, seconds / 300)
            )
            print(f"{os.getloadavg()[0]:.2f} at the end")
            faults = list(run.faults)
        print(answer)
        show_usage(usage)
        show_latencies(latencies(run))
        lost = losses(run)
        print("\n" + ", ".join(f"{topic}: {count} recorded, {gone} lost" for topic, (count, gone) in lost.items()))
        print(f"faults of the compensation: {'; '.join(faults) or 'none'}")
        if options.minutes >= LONG:
            grown = [name for name in ("recorder", "gravity_compensation") if usage[name].growth()[0] * 30 > GROWTH]
            print(f"memory grows: {', '.join(grown) or 'nowhere'}")
        if options.idle_seconds:
            print("\nidle, with joint states at 1 kHz", flush=True)
            with running(folder) as run:
                show_usage(run.idle(options.idle_seconds))
    return 1 if any(gone for _, gone in lost.values()) or faults or grown else 0


if __name__ == "__main__":
    sys.exit(main())
