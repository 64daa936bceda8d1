"""Node that plans static rotations or a Fourier motion and has a joint trajectory controller carry it out.

Parameters that shape the motion may be changed while the node runs; `~/design` takes them.

Latched topics: `~/state` (idle, approaching the first pose, running, done, or `stopped: <reason>`), `~/progress` (part
of approach and experiment that is past, 0 to 1) and `~/plan` (YAML of `StaticRotationPlan` or `FourierPlan`; once
started also `start_time`, when the experiment begins on the node's clock, s).
"""

import math
import signal
import time
from typing import Any

import numpy as np
import yaml
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import uninstall_signal_handlers
from rclpy.wait_for_message import wait_for_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.excitation import Plan
from dynid_ros.nodes.diagnostics import ERROR, OK, Diagnostics
from dynid_ros.nodes.excitation_settings import MOTION_PARAMETERS, PARAMETERS, ExperimentMaker, controller_joints
from dynid_ros.nodes.joint_states import JointOrder
from dynid_ros.nodes.parameters import current, declare
from dynid_ros.nodes.robot_description import LATCHED, robot_model
from dynid_ros.nodes.running import answer, run
from dynid_ros.nodes.trajectory_message import trajectory_message
from dynid_ros.trajectories import MotionInProgress, Trajectory, check_limits, check_start, stop
from dynid_ros.trajectories.limits import per_joint

PAUSE = 1.0
"""Time from sending a long motion to its start, s: some controllers do nothing else while they read it."""
WATCH_RATE = 50.0
PROGRESS_PERIOD = 0.2
MOVING = 0.1
"""Speed above which the arm is not at rest, rad/s or m/s."""
STATE_TIMEOUT = 1.0
"""Time that ~/start waits for a joint state, s."""


class ExcitationNode(Node):
    """Sends the planned motion as one message, and watches the arm while the controller follows it."""

    _motion: MotionInProgress | None = None  # a node that could not be made is destroyed as well

    def __init__(self, **arguments: Any) -> None:
        super().__init__("excitation", **arguments)
        self.settings = declare(self, PARAMETERS)
        self._maker = ExperimentMaker(robot_model(self, self.settings), self.settings)
        self.experiment = self._maker.make(self.settings)
        self.limits = self._maker.limits
        names = self.limits.joint_names
        self._controller_joints = controller_joints(self.settings, names)
        self._tracking_error_limit = per_joint(self.settings.tracking_error_limit, names, "tracking_error_limit")
        self._plan: Plan | None = None
        self._stopping = self._ending = False
        self._then = ""
        self._approach_end = self._progress = self._progress_time = 0.0
        self._order = JointOrder(names)
        self._position = np.full(len(names), math.nan)
        self._moving = self._unusable = ""
        self._received = self._watched_from = -math.inf

        self._command = self.create_publisher(JointTrajectory, self.settings.command_topic, 10)
        self._plan_publisher = self.create_publisher(String, "~/plan", LATCHED)
        self._progress_publisher = self.create_publisher(Float32, "~/progress", LATCHED)
        self._state_publisher = self.create_publisher(String, "~/state", LATCHED)
        self._set_state("idle")
        self.create_subscription(JointState, "joint_states", self._on_joint_state, qos_profile_sensor_data)
        for name, action in (("design", self.design), ("start", self.start), ("stop", self.stop)):
            self.create_service(Trigger, f"~/{name}", answer(self, action))
        self.create_timer(1.0 / WATCH_RATE, self._watch)
        Diagnostics(self, self.status)

    def design(self) -> str:
        """Plan the motion from the model and the parameters as they are now."""
        if self._motion is not None:
            raise DynidError(f"the arm is moving ({self.state}); call ~/stop first, or wait")
        settings = current(self, MOTION_PARAMETERS)
        experiment = self._maker.make(settings)
        plan = experiment.plan()
        self.experiment, self._plan = experiment, plan
        self._publish_plan(plan)
        text = plan.summary()
        if settings.trajectory_file:
            text += f"\nwritten to {plan.trajectory.save(settings.trajectory_file)}"
        return text

    def start(self) -> str:
        """Send the approach and the planned motion to the controller."""
        if self._motion is not None:
            raise DynidError(f"the arm is moving already ({self.state}); call ~/stop first, or wait")
        if self._command.get_subscription_count() == 0:
            raise DynidError(
                f"no controller listens on '{self._command.topic_name}'; start it, or set parameter command_topic"
            )
        plan = self._plan or self.experiment.plan()
        measured = self._fresh_position()
        approach = self.experiment.approach_motion(measured, plan)
        motion = Trajectory.join([approach, plan.trajectory])
        sampled = motion.sample(self.settings.point_rate)
        check_start(sampled, measured)
        check_limits(sampled, self.limits)
        self.experiment.workspace.check(sampled)
        message = trajectory_message(sampled, self._controller_joints, PAUSE)
        start = self._now() + PAUSE
        self._send(message, motion, start)
        self._plan, self._approach_end = plan, start + approach.duration
        self._publish_plan(plan, start_time=self._approach_end)
        self._set_state("approaching")
        self._publish_progress(0.0)
        return f"approaching for {approach.duration:.1f} s, then {plan.duration:.1f} s of excitation"

    def stop(self) -> str:
        """Bring the arm to rest."""
        if self._motion is None:
            raise DynidError(f"nothing to stop: the state is {self.state}")
        if self._stopping:
            raise DynidError(f"the arm is coming to rest already ({self.state})")
        self._halt(self._motion, "on request", then="idle")
        return f"at rest in {self._motion.trajectory.duration:.1f} s"

    def status(self) -> tuple[bytes, str, dict[str, object]]:
        """State, and how far the motion is."""
        fault = self.state.startswith("stopped") and not self._then
        return ERROR if fault else OK, self.state, {"progress": f"{self._progress:.3f}"}

    def end(self) -> None:
        """Have `spin` return soon."""
        self._ending = True

    def destroy_node(self) -> None:
        """Bring a moving arm to rest, then end."""
        if self._motion is not None and self.context.ok():
            if not self._stopping:
                self._halt(self._motion, "the node ends")
            self._command.wait_for_all_acked(Duration(seconds=1))
        super().destroy_node()

    def _on_joint_state(self, message: JointState) -> None:
        if not set(message.name) & set(self.limits.joint_names):
            return  # of another device on the same topic
        try:
            position = np.array(self._order.pick(message, "position"))
            if self._motion is not None and not self._stopping:
                self._motion.check(position, self._now())
        except DynidError as error:
            self._unusable = f": {error}"
            if self._motion is not None and not self._stopping:
                self._halt(self._motion, str(error))
            return
        self._position, self._received, self._unusable = position, time.monotonic(), ""
        self._moving = self._find_moving(message)

    def _find_moving(self, message: JointState) -> str:
        """Name and speed of a joint that moves; empty where none does or velocities are not published."""
        for name, velocity in zip(message.name, message.velocity, strict=False):
            if name in self.limits.joint_names and abs(velocity) > MOVING:
                return f"'{name}' at {velocity:.2g}"
        return ""

    def _fresh_position(self) -> np.ndarray:
        """Where the arm rests; waits for a joint state, for none are taken in during a service call."""
        deadline = time.monotonic() + STATE_TIMEOUT
        while time.monotonic() - self._received > self.settings.stale_after:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise DynidError(
                    f"no usable joint_states within {STATE_TIMEOUT:g} s{self._unusable}; see that the driver runs and "
                    f"publishes positions of {', '.join(self.limits.joint_names)}"
                )
            received, message = wait_for_message(
                JointState, self, "joint_states", qos_profile=qos_profile_sensor_data, time_to_wait=remaining
            )
            if received:
                self._on_joint_state(message)
        if self._moving:
            raise DynidError(f"the arm is moving ({self._moving} rad/s or m/s); bring it to rest first")
        return self._position

    def _watch(self) -> None:
        if self._ending:
            raise ExternalShutdownException
        motion, now = self._motion, self._now()
        if motion is None:
            return
        age = time.monotonic() - max(self._received, self._watched_from)
        if self._stopping:
            if motion.done(now):
                self._motion, self._stopping = None, False
                self._set_state(self._then or self.state)
        elif age > self.settings.stale_after:
            self._halt(motion, f"no usable joint_states for {age:.2f} s")
        elif self._command.get_subscription_count() == 0:
            self._halt(motion, f"the controller does not listen on '{self._command.topic_name}' any more")
        elif motion.done(now):
            self._motion = None
            self._publish_progress(1.0)
            self._set_state("done")
        else:
            if self.state == "approaching" and now >= self._approach_end:
                self._set_state("running")
            if now - self._progress_time >= PROGRESS_PERIOD:
                self._progress_time = now
                self._publish_progress(motion.fraction(now))

    def _halt(self, motion: MotionInProgress, reason: str, then: str = "") -> None:
        """Have the controller slow down along the motion; the state is `then` when the arm rests, else it stays."""
        start = self._now()
        slowing = stop(motion.trajectory, start - motion.start, self.limits)
        self._send(trajectory_message(slowing, self._controller_joints, start - self._now()), slowing, start)
        self._stopping, self._then = True, then
        self._set_state(f"stopped: {reason}")
        if not then:
            self.get_logger().error(f"motion stopped: {reason}")

    def _send(self, message: JointTrajectory, motion: Trajectory, start: float) -> None:
        """Publish `message` for the controller, and watch `motion` that it holds from `start` (s) on."""
        self._command.publish(message)
        self._watched_from = time.monotonic() + max(start - self._now(), 0.0)
        self._motion = MotionInProgress(motion, start, self._tracking_error_limit, self.settings.stale_after)

    def _publish_plan(self, plan: Plan, **when: float) -> None:
        self._plan_publisher.publish(String(data=yaml.safe_dump({**plan.as_dict(), **when}, sort_keys=False)))

    def _publish_progress(self, fraction: float) -> None:
        self._progress = fraction
        self._progress_publisher.publish(Float32(data=fraction))

    def _set_state(self, state: str) -> None:
        self.state = state
        self._state_publisher.publish(String(data=state))

    def _now(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9


def make_node() -> ExcitationNode:
    """Make the node; SIGINT and SIGTERM end it while it can still publish the stop (after rclpy's own it cannot)."""
    node = ExcitationNode()
    uninstall_signal_handlers()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: node.end())
    return node


def main() -> None:
    """Entry point of `ros2 run dynid_ros excitation`."""
    run(make_node)


if __name__ == "__main__":
    main()
