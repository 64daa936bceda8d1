"""Coordinator of the demo: tells the nodes, by their services, to sag, excite, record, identify and float."""

import sys
import time
from pathlib import Path

import numpy as np
import rclpy
from lifecycle_msgs.msg import Transition
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String
from tqdm import tqdm
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.jobs.gravity_demonstration import write_demonstration
from dynid_ros.nodes.joint_states import JointOrder
from dynid_ros.nodes.parameters import NodeParameter, declare
from dynid_ros.nodes.robot_description import LATCHED, ROBOT_PARAMETERS, robot_model
from dynid_ros.nodes.running import ros_process
from dynid_ros.nodes.service_calls import ServiceCaller

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("output", "demo_results", "folder that the identification writes into; the report goes there too"),
    NodeParameter("drop_pose", [0.3, 0.6, 0.9, 0.4, 0.5, 0.3], "pose from which the arm is let go, rad"),
    NodeParameter("drop_time", 5.0, "how long it is watched, s"),
    NodeParameter("command_topic", "/joint_trajectory_controller/joint_trajectory", "where the arm takes trajectories"),
)
SERVICES = (
    "/simulator/effort_mode",
    "/simulator/reset",
    "/excitation/design",
    "/excitation/start",
    "/recorder/start",
    "/recorder/stop",
    "/gravity_identification/identify",
    "/gravity_compensation/enable",
)
MOVE_TIME = 3.0
EXCITATION_TIMEOUT = 600.0


class Demo(Node):
    """Plays the acts in order; not a node to add to a robot, but it uses nothing that a robot does not have."""

    def __init__(self) -> None:
        super().__init__("demo")
        self.settings = declare(self, PARAMETERS)
        self.call = ServiceCaller(self)
        self.robot = robot_model(self, self.settings, timeout=30.0)
        self.order = JointOrder(self.robot.joint_names)
        self.track: list[tuple[float, list[float]]] = []
        self.excitation_state, self.progress = "", 0.0
        self.create_subscription(JointState, "joint_states", self._on_joint_state, 100)
        self.create_subscription(String, "/excitation/state", self._on_state, LATCHED)
        self.create_subscription(Float32, "/excitation/progress", self._on_progress, LATCHED)
        self.command = self.create_publisher(JointTrajectory, self.settings.command_topic, 10)

    def play(self) -> bool:
        """All acts; True if the arm floats and the identified torque is right."""
        self.call.wait(*SERVICES)
        print("1/5  Without compensation: the arm is let go.", flush=True)
        self._move(self.settings.drop_pose)
        sagging = self._drop()
        self.call.trigger("/simulator/reset")
        print("2/5  Excitation: each joint turns alone, in steps, from both sides.", flush=True)
        print(_indented(self.call.trigger("/excitation/design")), flush=True)
        self._excite()
        print("3/5  Identification from the bag.", flush=True)
        print(_indented(self.call.trigger("/gravity_identification/identify")), flush=True)
        print("4/5  With compensation: the arm is let go again.", flush=True)
        self._move(self.settings.drop_pose)
        self.call.change_state("/gravity_compensation", Transition.TRANSITION_CONFIGURE)
        self.call.change_state("/gravity_compensation", Transition.TRANSITION_ACTIVATE)
        self.call.set("/gravity_compensation/enable", True)
        self._watch(3.0)
        floating = self._drop()
        self.call.set("/gravity_compensation/enable", False)
        print("5/5  Report.", flush=True)
        verdict = write_demonstration(self.robot, Path(self.settings.output), sagging, floating)
        print(_indented(verdict.text()), flush=True)
        return verdict.passed

    def _excite(self) -> None:
        self.call.trigger("/recorder/start")
        self.excitation_state = ""
        print(_indented(self.call.trigger("/excitation/start")), flush=True)
        deadline = time.monotonic() + EXCITATION_TIMEOUT
        # no bar in a log file
        with tqdm(total=100, disable=None, bar_format="     {percentage:3.0f}% {bar} {remaining} to go") as bar:
            while not self.excitation_state.startswith(("done", "stopped", "fault")):
                rclpy.spin_once(self, timeout_sec=0.1)
                bar.update(round(100 * self.progress) - bar.n)
                if time.monotonic() > deadline:
                    raise DynidError("the excitation did not end; see the log of node excitation")
        print(_indented(self.call.trigger("/recorder/stop")), flush=True)
        if not self.excitation_state.startswith("done"):
            raise DynidError(f"the excitation ended early: {self.excitation_state}")

    def _move(self, pose: list[float]) -> None:
        """Slow move in position mode; the controller interpolates from where the arm is."""
        message = JointTrajectory(joint_names=list(self.robot.joint_names))
        zeros = [0.0] * self.robot.n_joints
        point = JointTrajectoryPoint(positions=list(pose), velocities=zeros, accelerations=zeros)
        point.time_from_start.sec = int(MOVE_TIME)
        message.points = [point]
        self.command.publish(message)
        self._watch(MOVE_TIME + 0.5)

    def _drop(self) -> tuple[NDArray, NDArray]:
        """Effort mode for a while; time (T,) and positions (T, n) from the switch on."""
        self.call.set("/simulator/effort_mode", True)
        time_, position = self._watch(self.settings.drop_time)
        self.call.set("/simulator/effort_mode", False)
        return time_, position

    def _watch(self, duration: float) -> tuple[NDArray, NDArray]:
        self.track.clear()
        end = time.monotonic() + duration
        while time.monotonic() < end:
            rclpy.spin_once(self, timeout_sec=0.05)
        if not self.track:
            raise DynidError("no joint_states; is the simulator running?")
        stamps, positions = zip(*self.track, strict=True)
        return np.array(stamps) - stamps[0], np.array(positions)

    def _on_joint_state(self, message: JointState) -> None:
        stamp = message.header.stamp
        self.track.append((stamp.sec + stamp.nanosec * 1e-9, self.order.pick(message, "position")))

    def _on_state(self, message: String) -> None:
        self.excitation_state = message.data

    def _on_progress(self, message: Float32) -> None:
        self.progress = message.data


def _indented(text: str) -> str:
    return "\n".join(f"     {line}" for line in text.splitlines())


def main() -> None:
    """Run the demo; exit code 0 if the verdict is good, 1 if not."""
    passed = False
    with ros_process():
        passed = Demo().play()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
