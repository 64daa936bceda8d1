"""What the acts of the demo do with the nodes, by services and topics that a robot has as well."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from lifecycle_msgs.msg import Transition
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.wait_for_message import wait_for_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String
from tqdm import tqdm
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.joint_states import JointOrder
from dynid_ros.nodes.parameters import NodeParameter, declare
from dynid_ros.nodes.robot_description import LATCHED, robot_model
from dynid_ros.nodes.service_calls import ServiceCaller
from dynid_ros.recording import Recording

MOVE_TIME = 3.0
DESIGN_TIMEOUT = 120.0
EXCITATION_TIMEOUT = 600.0
STATES = ("approaching", "running", "done")
TRUTH_TOPIC = "/simulator/true_parameters"
TRUTH_TIMEOUT = 10.0
COMPENSATION = "/gravity_compensation"


class Stage(Node):
    """Moves the simulated arm, watches it, and has its motions excited and recorded.

    Args:
        name: of the node.
        parameters: those of the robot, `output`, `drop_pose`, `drop_time` and `command_topic`.

    """

    def __init__(self, name: str, parameters: Sequence[NodeParameter]) -> None:
        super().__init__(name)
        self.settings = declare(self, parameters)
        self.output = Path(self.settings.output)
        self.call = ServiceCaller(self)
        self.robot = robot_model(self, self.settings, timeout=30.0)
        self.order = JointOrder(self.robot.joint_names)
        self.track: list[tuple[float, list[float]]] = []
        self.excitation_state, self.progress, self.bag, self.compensation_state = "", 0.0, "", ""
        self._steps, self._step = 0, 0
        self.create_subscription(JointState, "joint_states", self._on_joint_state, 100)
        self.create_subscription(String, "/excitation/state", self._on_state, LATCHED)
        self.create_subscription(Float32, "/excitation/progress", self._on_progress, LATCHED)
        self.create_subscription(String, "/recorder/bag", self._on_bag, LATCHED)
        self.create_subscription(String, f"{COMPENSATION}/state", self._on_compensation, LATCHED)
        self.command = self.create_publisher(JointTrajectory, self.settings.command_topic, 10)

    def expect(self, steps: int) -> None:
        """So many steps are to come."""
        self._steps, self._step = steps, 0

    def announce(self, text: str) -> None:
        """Say which step begins."""
        self._step += 1
        print(f"{self._step}/{self._steps}  {text}", flush=True)

    def now(self) -> float:
        """Time of the clock that joint states are stamped by, s."""
        return self.get_clock().now().nanoseconds * 1e-9

    def truth(self, topic: str = TRUTH_TOPIC) -> dict[str, Any]:
        """All that is true of the simulated arm, see `truth_table`."""
        received, message = wait_for_message(String, self, topic, qos_profile=LATCHED, time_to_wait=TRUTH_TIMEOUT)
        if not received:
            raise DynidError(f"nothing on {topic} within {TRUTH_TIMEOUT:g} s; is the simulator running?")
        return yaml.safe_load(message.data)

    def read(self, bag: str) -> Recording:
        """A recording of the arm."""
        return Recording.read(bag, joint_names=self.robot.joint_names)

    def excite(self, motion: Mapping[str, object], record_from: str = "approaching") -> str:
        """Plan a motion and record it; the bag.

        Args:
            motion: parameters of the excitation node.
            record_from: its state in which the recording starts.

        """
        self.design(motion)
        return self.record(record_from)

    def design(self, motion: Mapping[str, object]) -> None:
        """Plan a motion; parameters of the excitation node that are not given are as they were."""
        self.call.set_parameters("/excitation", motion)
        say(self.call.trigger("/excitation/design", timeout=DESIGN_TIMEOUT))

    def record(self, record_from: str) -> str:
        """Make the motion that was planned, and record it; the bag."""
        self.excitation_state = ""
        say(self.call.trigger("/excitation/start"))
        self._wait_for(record_from)
        self.call.trigger("/recorder/start")
        # no bar in a log file
        with tqdm(total=100, disable=None, bar_format="     {percentage:3.0f}% {bar} {remaining} to go") as bar:
            self._wait_for("done", lambda: bar.update(round(100 * self.progress) - bar.n))
        say(self.call.trigger("/recorder/stop"))
        return self.bag

    def _wait_for(self, state: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Spin until the excitation is in a state, or beyond."""
        deadline = time.monotonic() + EXCITATION_TIMEOUT
        awaited = STATES[STATES.index(state) :]
        while self.excitation_state not in awaited:
            if self.excitation_state.startswith("stopped"):
                raise DynidError(f"the excitation ended early: {self.excitation_state}")
            if time.monotonic() > deadline:
                raise DynidError(f"the excitation was not {state} in time; see the log of node excitation")
            rclpy.spin_once(self, timeout_sec=0.1)
            meanwhile()

    def move(self, pose: list[float]) -> None:
        """Slow move in position mode; the controller interpolates from where the arm is."""
        self.begin_move(pose)
        self.watch(MOVE_TIME + 0.5)

    def begin_move(self, pose: list[float]) -> None:
        """The same without waiting for its end."""
        message = JointTrajectory(joint_names=list(self.robot.joint_names))
        zeros = [0.0] * self.robot.n_joints
        point = JointTrajectoryPoint(positions=list(pose), velocities=zeros, accelerations=zeros)
        point.time_from_start.sec = int(MOVE_TIME)
        message.points = [point]
        self.command.publish(message)

    def drop(self, duration: float) -> tuple[NDArray, NDArray]:
        """Effort mode for a while; time (T,) and positions (T, n) from the switch on."""
        self.call.set("/simulator/effort_mode", True)
        track = self.watch(duration)
        self.call.set("/simulator/effort_mode", False)
        return track

    @contextmanager
    def compensation(self) -> Iterator[None]:
        """Gravity compensation ramps in, with the gravity that was identified; in position mode it has no effect.

        Raises:
            DynidError: it ended by itself.

        """
        self.call.change_state(COMPENSATION, Transition.TRANSITION_CONFIGURE)
        self.call.change_state(COMPENSATION, Transition.TRANSITION_ACTIVATE)
        self.call.set(f"{COMPENSATION}/enable", True)
        yield
        if self.compensation_state.startswith("fault"):
            raise DynidError(f"gravity compensation ended early: {self.compensation_state}")
        self.call.set(f"{COMPENSATION}/enable", False)
        self.call.change_state(COMPENSATION, Transition.TRANSITION_DEACTIVATE)
        self.call.change_state(COMPENSATION, Transition.TRANSITION_CLEANUP)

    def watch(self, duration: float) -> tuple[NDArray, NDArray]:
        """Time (T,) and positions (T, n) of the arm from now on."""
        self.track.clear()
        end = time.monotonic() + duration
        while time.monotonic() < end:
            rclpy.spin_once(self, timeout_sec=0.05)
        if not self.track:
            raise DynidError("no joint_states; is the simulator running?")
        stamps, positions = zip(*self.track, strict=True)
        return np.array(stamps) - stamps[0], np.array(positions)

    def began_to_move(self, distance: float) -> float:
        """Stamp, s, at which a joint had come that far (rad or m) from where the arm was last watched.

        Raises:
            DynidError: none has.

        """
        position = np.array([position for _, position in self.track])
        moved = np.flatnonzero(np.abs(position - position[0]).max(axis=1) > distance)
        if not moved.size:
            raise DynidError("the arm has not moved; see the log of node excitation")
        return self.track[moved[0]][0]

    def _on_joint_state(self, message: JointState) -> None:
        stamp = message.header.stamp
        self.track.append((stamp.sec + stamp.nanosec * 1e-9, self.order.pick(message, "position")))

    def _on_state(self, message: String) -> None:
        self.excitation_state = message.data

    def _on_progress(self, message: Float32) -> None:
        self.progress = message.data

    def _on_compensation(self, message: String) -> None:
        self.compensation_state = message.data

    def _on_bag(self, message: String) -> None:
        self.bag = message.data


def say(text: str) -> None:
    """Print below the line that says what is being done."""
    # a bar may be there
    tqdm.write("\n".join(f"     {line}" for line in text.splitlines()))
    sys.stdout.flush()
