"""Motions of the arm: sent to its controller, supervised, and brought to rest."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment.arm_states import (
    MAX_REST_SPEED,
    ArmStates,
    EffortWatch,
    MotionController,
    MotionTime,
    describe_speeds,
    optional_values,
)
from dynid_ros.nodes.experiment.design import controller_joints
from dynid_ros.nodes.experiment.trajectory_action import (
    ACTION,
    LEAD_S,
    REPLACEMENT_TIMEOUT_S,
    Load,
    MotionPieces,
    TrajectoryAction,
    interface,
    trajectory_message,
)
from dynid_ros.nodes.shared.topics import CommandTopic, UnservedGroup, waiting_messages
from dynid_ros.trajectories import MotionInProgress, MotionLimits, Trajectory, stop
from dynid_ros.trajectories.execution import coast, standstill
from dynid_ros.trajectories.limits import per_joint

START_PAUSE_S = 1.0
"""Time from sending a motion to its begin; some controllers write no commands while they read a long message."""
SETTLING_S = 0.3
"""Time from the end of a hold to the check that the arm rests."""
MATCHING_TIMEOUT_S = 1.0
"""Longest wait for a controller to be discovered, to answer, and to receive messages of this node."""
END_TIMEOUT_S = 1.0
"""Longest wait for the controller to receive the stop when the node ends."""
STREAM_DETECTION_S = 0.3
"""Time in which this node discovers a node that streams commands, and receives several of them."""
MIN_STREAMED_COMMANDS = 3
"""Number of commands within that time that shows a stream."""
MAX_CLOCK_DIFFERENCE_S = 0.1
"""Largest difference between stamps of joint states and this computer's clock for pieces with stamps."""
MAX_SAG = 0.05
"""Largest distance, rad (m), by which a position controller lets the arm sag below the pose that it is to hold."""
REQUESTED = "on request"
"""Reason of a stop that a caller requested."""


class Arm:
    """Arm whose motions are sent to its controller and supervised; it is brought to rest if it does not follow.

    A motion is sent in pieces that end at rest, each of which replaces the previous piece. This requires a controller
    that is known to pass from one piece to the next without a jump, and stamps of joint states that show that its clock
    is this computer's. Otherwise the motion is sent as a whole, and the controller executes it even if this process
    dies.

    A thread of the node calls `watch` at a steady rate of about 100 Hz.

    Args:
        settings: parameters of the node.
        on_halt: called with the reason after the stop of a motion has been sent.
        on_rest: called at the end of a motion, with whether it was stopped.

    Attributes:
        states: joint states of the arm.
        lock: held while the motion changes or joint states are processed.
        action: action of the controller; None if motions can only be sent to its topic.
        stopping: whether the arm is being brought to rest.
    """

    def __init__(
        self,
        node: Node,
        settings: SimpleNamespace,
        limits: MotionLimits,
        *,
        on_halt: Callable[[str], None],
        on_rest: Callable[[bool], None],
    ) -> None:
        self.stopping = False
        self._node = node
        self._limits = limits
        self._on_halt = on_halt
        self._on_rest = on_rest
        self._controller_joints = controller_joints(settings, limits.joint_names)
        self._efforts = EffortWatch(limits, settings.effort_limit, settings.effort_grace)
        self._motion: MotionInProgress | None = None
        self._pieces: MotionPieces | None = None
        self._states_due_from = -math.inf
        self.states = ArmStates(node, limits, check=self._check_state, on_fault=self._halt_if_moving)
        self.lock = self.states.lock
        self.adjust(settings)
        self._time = MotionTime(node)
        self._controller = MotionController(node, settings, self._interrupt)
        self._interface = settings.command_interface
        self._topic, self.action = interface(node, settings.command_topic, self._interface, settings.action_name)
        self._used_interface: CommandTopic = self._topic
        self._is_commanding = False
        self._rest_pose: NDArray | None = None  # pose in which the controller last brought the arm to rest

    def adjust(self, settings: SimpleNamespace) -> None:
        """Change the thresholds at which a motion is stopped, also of a running motion; see `design.THRESHOLDS`.

        Raises:
            DynidError: a threshold is invalid; no threshold changes.
        """
        tracking = per_joint(settings.tracking_error_limit, self._limits.joint_names, "tracking_error_limit")
        with self.lock:
            self._efforts.adjust(settings.effort_limit, settings.effort_grace)
            self._tracking_error_limit = tracking
            self.states.stale_after = settings.stale_after
            if self._motion:
                self._motion = replace(self._motion, tracking_error_limit=tracking, latency=settings.stale_after)

    @property
    def moving(self) -> bool:
        """Whether a motion, or the stop of one, is running."""
        return self._motion is not None

    @property
    def fraction(self) -> float:
        """Elapsed fraction of the motion, 0 to 1."""
        return self._motion.fraction(self._time.now()) if self._motion else 0.0

    @property
    def elapsed(self) -> float:
        """Time since the motion began, s; negative before; -inf without a motion."""
        return self._time.now() - self._motion.start if self._motion else -math.inf

    @property
    def doubt(self) -> str:
        """Reason why no motion can begin now; empty if a motion can."""
        return self.states.doubt or self._hindrance

    @property
    def interface(self) -> str:
        """Action or topic by which the controller is commanded, for display."""
        action = self._used_action
        return f"action {action.action}" if action else f"topic {self._topic.name}"

    @property
    def _used_action(self) -> TrajectoryAction | None:
        """Action of the controller if motions are sent to it now."""
        return self.action if self._used_interface is self.action else None

    @property
    def _hindrance(self) -> str:
        """Reason why the controller must not be commanded now; empty if it may."""
        if not self._has_controller():
            if self._used_action:
                return f"no controller serves {self.interface}; start it, or set parameter action_name"
            return f"no controller listens on '{self._topic.name}'; start it, or set parameter command_topic"
        return self._used_interface.others or self._controller.refusal

    async def require_controller(self) -> None:
        """Check that a controller listens to this node alone, and that time advances."""
        while self._used_interface.unnamed:
            await self.states.next_look()
        if hindrance := self._hindrance:
            raise DynidError(hindrance)
        with self.lock:
            if self._time.stalled > self.states.stale_after:
                raise DynidError("use_sim_time is set and /clock stands still; let the simulation run, or unset it")

    async def take_command(self) -> None:
        """Begin to command the controller, until `leave_command`; see `require_controller` for errors.

        The controller is checked before and after this node becomes a publisher, as another may begin in between.
        """
        await self._find_controller()
        await self.require_controller()
        self._is_commanding = True
        self._node.get_logger().info(f"Commands go to {self.interface}.")
        self._used_interface.open()
        await self._find_controller()
        await self.require_controller()

    async def _find_controller(self) -> None:
        """Wait for a limited time until the controller is discovered and has answered."""
        deadline = time.monotonic() + MATCHING_TIMEOUT_S
        while (not self._has_controller() or self._controller.is_changing) and time.monotonic() < deadline:
            await self.states.next_look()

    def leave_command(self) -> None:
        """Leave the controller to other nodes, unless the arm moves."""
        with self.lock:
            self._is_commanding = False
            self.states.end_comparison()
        self._release()

    def _release(self) -> None:
        """Close the publisher; for the executor's thread only, because it waits for events of the publisher."""
        with self.lock:
            if not self.moving and not self._is_commanding:
                self._used_interface.close()

    async def brake(self) -> str:
        """Bring the arm to rest even if another node moves it, and return a description; call `leave_command` next.

        The motion of a node that was killed continues in the controller. The stop is sent even if other nodes publish,
        because a killed node still counts as one of them. The stop is not sent to a resting arm if another node
        publishes, nor to a moving arm if another node streams commands, such as `gravity_compensation`: the two would
        command in turn.

        Raises:
            DynidError: no controller listens, no usable joint state arrives, the arm rests, or another node streams
                commands.
        """
        await self._find_controller()
        if not self._has_controller():
            raise DynidError(self._hindrance)
        others = self._used_interface.other_nodes
        are_streaming = bool(others) and await self._is_streamed_to()
        with self.lock:
            self._is_commanding = True
        self._used_interface.open()
        try:
            received, position, velocity = await self.states.measured_state()
        except DynidError as error:
            cancelled = ""
            if action := self._used_action:
                action.cancel_all()
                cancelled = f"; all goals of {self.interface} are cancelled"
            raise DynidError(f"whether the arm moves is not known: {error}{cancelled}") from error
        await self._find_controller()
        speeds = describe_speeds(velocity, self._limits.joint_names)
        if not speeds:
            raise DynidError(await self._hold_at_rest(position, velocity, others))
        if are_streaming:
            raise DynidError(
                f"the arm is moved ({speeds} rad/s or m/s) by node {', '.join(others)}, whose commands on "
                f"{self._used_interface.name} would replace a stop; stop that node"
            )
        with self.lock:
            slowing = coast(self._limits, position, velocity)
            start = self._time.now() - (time.monotonic() - received)
            self._slow_down(slowing, start)
            self._on_halt(REQUESTED)
        await self._wait_or_cancel()
        rest_time = slowing.duration - (self._time.now() - start)
        return f"The arm was moving ({speeds} rad/s or m/s), not by this node; it rests in {max(rest_time, 0):.1f} s."

    async def _is_streamed_to(self) -> bool:
        """Return whether other nodes send several commands within `STREAM_DETECTION_S`."""
        echo = self._node.create_subscription(
            JointTrajectory,
            self._used_interface.name,
            lambda _: None,
            MIN_STREAMED_COMMANDS,
            callback_group=UnservedGroup(),
            raw=True,
        )
        n_commands = 0
        deadline = time.monotonic() + STREAM_DETECTION_S
        while n_commands < MIN_STREAMED_COMMANDS and time.monotonic() < deadline:
            await self.states.next_look()
            n_commands += len(list(waiting_messages(echo, MIN_STREAMED_COMMANDS)))
        self._node.destroy_subscription(echo)
        return n_commands >= MIN_STREAMED_COMMANDS

    async def _hold_at_rest(self, position: NDArray, velocity: NDArray, others: Sequence[str]) -> str:
        """Let the controller hold the arm, unless other nodes publish commands, and return a description."""
        names = self._limits.joint_names
        fastest = int(np.argmax(np.abs(velocity)))
        state = f"the arm is at rest (fastest: '{names[fastest]}' at {velocity[fastest]:.1g} rad/s or m/s)"
        if others := others or self._used_interface.other_nodes:
            return f"{state}; it is left to node {', '.join(others)}, which publishes on {self._used_interface.name}"
        resting = self._publish_standstill(position)
        await self._wait_or_cancel()
        await self.states.state_after(time.monotonic() + resting.duration)
        return f"{state}, and the controller was told to hold it there"

    def _publish_standstill(self, position: NDArray) -> Trajectory:
        """Send a standstill at the last rest pose of the controller, or at measured positions (n,), and return it.

        A soft controller lets the arm sag, so each standstill at the measured positions would lower it further.
        """
        if self._rest_pose is None:
            self._rest_pose = position
        resting = standstill(self._limits, self._rest_pose, MAX_REST_SPEED)
        self._used_interface.publish(trajectory_message(resting, self._controller_joints, 0.0))
        return resting

    async def _wait_or_cancel(self) -> None:
        """Wait until the action server has accepted the goal; if it does not, cancel all of its goals."""
        action = self._used_action
        if action is None:
            return
        deadline = time.monotonic() + REPLACEMENT_TIMEOUT_S
        while not action.acknowledged() and time.monotonic() < deadline:
            await self.states.next_look()
        if not action.acknowledged():
            action.cancel_all()

    async def hold(self) -> None:
        """Replace any motion in the controller by a standstill of the resting arm.

        The motion of a node that was killed continues in the controller, and cannot be observed while the arm dwells.
        """
        await self.require_controller()  # again, because another node may have begun at the same time
        resting = self._publish_standstill(await self.states.resting_position())
        await self.accepted()
        await self.states.state_after(time.monotonic() + resting.duration + SETTLING_S)
        try:
            await self.states.resting_position()
        except DynidError as error:
            raise DynidError(
                f"the controller on '{self._used_interface.name}' did not hold the arm: {error}; find out what else "
                "moves it"
            ) from error

    async def accepted(self) -> None:
        """Wait until the action server has accepted the goal."""
        while (action := self._used_action) is not None and not action.acknowledged():
            if failure := action.failure:
                raise DynidError(failure)
            await self.states.next_look()

    def load(self, motion: Trajectory, sampled: Trajectory) -> Load:
        """Prepare a motion and its samples for sending, which takes seconds for many samples.

        Any thread may call this, because the arm rests and no clock is read.
        """
        motion.at(0.0)  # computes the splines, which the supervision needs
        has_same_clock = self.states.clock_difference <= MAX_CLOCK_DIFFERENCE_S
        handover = self._controller.handover if has_same_clock else None
        if handover is not None:
            pieces = MotionPieces(sampled, self._controller_joints, self._limits, handover, START_PAUSE_S)
            return Load(motion, pieces.first, pieces)
        message = trajectory_message(sampled, self._controller_joints, START_PAUSE_S)
        return Load(motion, serialize_message(message) if self._used_interface is self._topic else message, None)

    def send(self, load: Load) -> float:
        """Send a motion to the controller and return the time until it begins, s."""
        with self.lock:
            if load.pieces is not None:
                load.pieces.stamp_first(self._node.get_clock().now())
                start = self._time.now() + START_PAUSE_S
                self._used_interface.publish(load.message)
            else:
                self._used_interface.publish(load.message)
                start = self._time.now() + START_PAUSE_S  # the controller counts from the arrival of the whole message
            self._supervise(load.motion, start)
            self._pieces = load.pieces
            return start - self._time.now()

    def _send_next_piece(self) -> None:
        """Send the next piece of the motion if it is due; stop the motion if it is too late for that."""
        pieces = self._pieces
        motion = self._motion
        if pieces is None or motion is None:
            return
        stamp = self._node.get_clock().now()
        elapsed = self._time.now() - motion.start
        if late := pieces.lateness(elapsed):
            self.halt(f"this process was kept from sending the next piece of the motion for {late:.2f} s")
        elif pieces.is_due(elapsed):
            self._used_interface.publish(pieces.next_piece(elapsed, stamp))
            if action := self._used_action:
                action.keep_replaced()

    def halt(self, reason: str) -> float:
        """Let the controller slow down along the motion, and return the duration of the stop, s."""
        if self._motion is None:
            return 0.0
        start = self._time.now()
        followed = self._motion.trajectory
        followed_start = self._motion.start
        if self._pieces is not None and (stopping := self._pieces.stopping_piece(start - followed_start)):
            followed, piece_begin = stopping
            followed_start += piece_begin
        slowing = stop(followed, start - followed_start, self._limits)
        self._slow_down(slowing, start)
        self._on_halt(reason)
        return slowing.duration

    def _slow_down(self, slowing: Trajectory, start: float) -> None:
        """Send a stop that begins at `start`, s, and supervise it."""
        # With a lead, a controller that jerks would begin the stop at the measured pose.
        lead = 0.0 if self._controller.jerks else LEAD_S
        delay = start - self._time.now()
        self._used_interface.publish(trajectory_message(slowing, self._controller_joints, delay, lead))
        self._supervise(slowing, start)
        self.stopping = True

    def _halt_if_moving(self, reason: str) -> None:
        if self._motion is not None and not self.stopping:
            self.halt(reason)

    def _interrupt(self, reason: str) -> None:
        with self.lock:
            self._halt_if_moving(reason)

    def end(self) -> None:
        """Bring a moving arm to rest before the node ends."""
        if self._motion is not None:
            if not self.stopping:
                self.halt("the node ends")
            self._used_interface.acknowledged(END_TIMEOUT_S)

    def watch(self) -> None:
        """Send the next piece if it is due, process joint states, and detect faults and the end of the motion."""
        if not self.stopping:
            self._send_next_piece()
        self.states.look(every=self.moving)
        if self.action is not None:
            self.action.look()
        self.states.finish_look()
        jump = self._time.take_jump()
        if self._motion is not None:
            self._watch_motion(self._motion, jump)

    def _watch_motion(self, motion: MotionInProgress, jump: float) -> None:
        """Finish a motion that has ended, or stop it because of a fault, such as a jump of the clock by `jump` s."""
        age = time.monotonic() - max(self.states.received, self._states_due_from)
        stale_after = self.states.stale_after
        if motion.done(self._time.now()) and (self.stopping or age <= stale_after):
            stopped = self.stopping
            self.stopping = False
            self._motion = None
            self._rest_pose = motion.trajectory.position[-1]
            self._release_soon()
            self._on_rest(stopped)
        elif self.stopping:
            return
        elif (action := self._used_action) is not None and (failure := action.failure):
            self._give_up(failure)
        elif jump:
            self.halt(f"the clock jumped by {jump:.3g} s")
        elif self._time.stalled > stale_after:
            self.halt("/clock stands still")
        elif age > stale_after:
            self.halt(f"no usable joint_states for {age:.2f} s")
        elif not self._has_controller():
            self.halt(f"the controller does not listen on '{self._used_interface.name}' any more")
        elif (others := self._used_interface.others) and not self._used_interface.unnamed:
            self.halt(others)

    def _give_up(self, reason: str) -> None:
        """End a motion that the controller has aborted: the controller holds the arm, or obeys another node."""
        self._motion = None
        self._pieces = None
        self._release_soon()
        self._on_halt(reason)
        self._on_rest(True)

    def _release_soon(self) -> None:
        """Let the executor's thread call `_release`."""
        if self._node.executor is not None:
            self._node.executor.create_task(self._release)

    def _check_state(self, position: NDArray, message: JointState) -> None:
        """Compare a joint state with the motion; raise a `DynidError` for a large deviation or large efforts."""
        if self._motion is None and self._rest_pose is not None and np.abs(position - self._rest_pose).max() > MAX_SAG:
            self._rest_pose = None  # another node, or a hand, has moved the arm
        if self._motion is None or self.stopping:
            return
        self._motion.check(position, self._time.now())
        self._efforts.check(optional_values(message, "effort", self._limits.joint_names), time.monotonic())

    def _supervise(self, motion: Trajectory, start: float) -> None:
        """Supervise the arm along `motion`, which the controller begins at `start`, s."""
        self._pieces = None
        self._rest_pose = None
        self._states_due_from = time.monotonic() + max(start - self._time.now(), 0.0)
        self._motion = MotionInProgress(motion, start, self._tracking_error_limit, self.states.stale_after)
        self._efforts.forget()

    def _has_controller(self) -> bool:
        """Choose action or topic, unless one is in use, and return whether a controller listens to it."""
        if self.action is not None and not self._is_commanding and not self.moving:
            served = self._interface == ACTION or self.action.listeners > 0
            self._used_interface = self.action if served else self._topic
        return self._used_interface.listeners > 0
