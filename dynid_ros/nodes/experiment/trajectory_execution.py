"""The arm as the excitation node has it: a controller that takes motions, and joint states to watch it by."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from threading import RLock
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment.design import controller_joints
from dynid_ros.nodes.experiment.motion_pieces import LEAD, Load, MotionPieces, trajectory_message
from dynid_ros.nodes.experiment.trajectory_action import ACTION, TAKEN_OVER, interface
from dynid_ros.nodes.experiment.watch import (
    MOVING,
    EffortWatch,
    MotionController,
    MotionTime,
    describe_speeds,
    disagreement,
    optional_values,
)
from dynid_ros.nodes.shared.command_topic import publishers_of
from dynid_ros.nodes.shared.joint_states import JointOrder, nanoseconds, newest_states
from dynid_ros.nodes.shared.topics import UnservedGroup, waiting_messages
from dynid_ros.trajectories import MotionInProgress, MotionLimits, Trajectory, stop
from dynid_ros.trajectories.execution import coast, standstill
from dynid_ros.trajectories.limits import per_joint

PAUSE = 1.0  # s from sending a long motion to its start: some controllers do nothing else while they read it
STATE_TIMEOUT = 1.0  # s for which a joint state is waited for
LOOK = (
    0.1  # s between two joint states that determine whether the arm stands still: not every driver publishes velocities
)
SETTLE = 0.3  # s after a hold until the arm must rest
REQUESTED = "on request"
MATCHING = 1.0  # s for which a controller is waited for: to be found, to answer, to take messages of this node
QUEUE = 100  # joint states that may wait for a look
SAME_CLOCK = 0.1
"""s by which stamps of joint states may be from this computer's clock where pieces are stamped by that clock."""


class Arm:
    """Sends motions, watches the arm follow them, and slows it down where it does not.

    A motion is sent in pieces that end at rest, each of which replaces the one before, where the controller is known to
    pass over without a jump and the stamps of joint states say that its clock is this computer's. Elsewhere it is sent
    as a whole, and the controller carries out all of it if this process dies.

    A thread of the node calls `watch` at a steady rate, 100 Hz or so. `on_halt` is called with why a motion is stopped,
    when the stop has been sent; `on_rest` when a motion has ended, with whether it was stopped.
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
        self.lock = RLock()  # held by whoever changes what is under way
        self._node, self._limits, self._on_halt, self._on_rest = node, limits, on_halt, on_rest
        names = limits.joint_names
        self._controller_joints = controller_joints(settings, names)
        self._efforts = EffortWatch(limits, settings.effort_limit, settings.effort_grace)
        self._motion: MotionInProgress | None = None
        self.adjust(settings)
        self._order = JointOrder(names)
        self._time = MotionTime(node)
        self.stopping = False
        self._pieces: MotionPieces | None = None
        self._position = self._velocity = np.full(len(names), math.nan)
        self._clock_difference = math.inf
        self._unusable = ""
        self._received = self._watched_from = -math.inf
        self._next_look, self._awaited = Future(), False
        self._comparing, self._disagreement = False, ""
        self._compared: tuple[float, NDArray] | None = None
        self._controller = MotionController(node, settings, self._interrupt)
        self._interface = settings.command_interface
        self._topic, self.action = interface(node, settings.command_topic, self._interface, settings.action_name)
        self._commands, self._taken = self._topic, False
        self._states = node.create_subscription(
            JointState, "joint_states", lambda _: None, newest_states(QUEUE), callback_group=UnservedGroup(), raw=True
        )

    def adjust(self, settings: SimpleNamespace) -> None:
        """Take what stops a motion, also one that is under way: `design.THRESHOLDS`.

        Raises:
            DynidError: one of them makes no sense; all stay.
        """
        tracking = per_joint(settings.tracking_error_limit, self._limits.joint_names, "tracking_error_limit")
        with self.lock:
            self._efforts.adjust(settings.effort_limit, settings.effort_grace)
            self._tracking_error_limit, self._stale_after = tracking, settings.stale_after
            if self._motion:
                self._motion = replace(self._motion, tracking_error_limit=tracking, latency=settings.stale_after)

    @property
    def moving(self) -> bool:
        """Whether a motion, or the stop of one, is under way."""
        return self._motion is not None

    @property
    def fraction(self) -> float:
        """Part of the motion that is past, 0 to 1."""
        return self._motion.fraction(self._time.now()) if self._motion else 0.0

    @property
    def elapsed(self) -> float:
        """Time since the motion began, s; negative before it does, -inf where there is none."""
        return self._time.now() - self._motion.start if self._motion else -math.inf

    @property
    def received(self) -> float:
        """When a usable joint state came last, s of the monotonic clock; -inf: none has."""
        return self._received

    @property
    def doubt(self) -> str:
        """Why no motion could begin now: joint_states of no use, no controller, somebody else; empty: it could."""
        if time.monotonic() - self._received > max(self._stale_after, STATE_TIMEOUT):
            return f"no usable joint_states{self._unusable}"
        return self._hindrance

    @property
    def interface(self) -> str:
        """How the controller is commanded: by which action or topic."""
        action = self._commands is self.action and self.action
        return f"action {action.action}" if action else f"topic {self._topic.name}"

    @property
    def _hindrance(self) -> str:
        if not self._has_controller():
            if self._commands is self.action:
                return f"no controller serves {self.interface}; start it, or set parameter action_name"
            return f"no controller listens on '{self._topic.name}'; start it, or set parameter command_topic"
        return self._commands.others or self._controller.refusal

    async def require_controller(self) -> None:
        """Raise unless something listens to commands of this node alone, and time goes on."""
        while self._commands.unnamed:
            await self._looked()
        if hindrance := self._hindrance:
            raise DynidError(hindrance)
        with self.lock:
            if self._time.stalled > self._stale_after:
                raise DynidError("use_sim_time is set and /clock stands still; let the simulation run, or unset it")

    async def take_command(self) -> None:
        """Become the one who commands the controller; `leave_command` is the way back.

        Raises as `require_controller`, also where the controller takes other messages.
        """
        await self._controller_found()
        await self.require_controller()
        self._taken = True
        self._node.get_logger().info(f"commands go to {self.interface}")
        self._commands.open()
        await self._controller_found()
        await self.require_controller()

    async def _controller_found(self) -> None:
        deadline = time.monotonic() + MATCHING
        while (not self._has_controller() or self._controller.is_answering) and time.monotonic() < deadline:
            await self._looked()

    def leave_command(self) -> None:
        """Leave the controller to others, unless the arm moves."""
        with self.lock:
            self._taken = self._comparing = False
            self._compared, self._disagreement, self._clock_difference = None, "", math.inf
        self._release()

    def _release(self) -> None:
        """In the executor's thread, which may be about to wait for an event of the publisher."""
        with self.lock:
            if not self.moving and not self._taken:
                self._commands.close()

    async def resting_position(self) -> NDArray:
        """Where the arm rests now (n,), by joint states that come after the call: it may just have been moved.

        Raises a `DynidError` where it moves, no usable joint state comes in, or they disagree.
        """
        _, position, velocity = await self._measured_state()
        velocity = np.where(np.abs(self._velocity) > MOVING, self._velocity, velocity)
        if speeds := describe_speeds(velocity, self._limits.joint_names):
            raise DynidError(f"the arm is moving ({speeds} rad/s or m/s); bring it to rest first")
        return position

    async def _measured_state(self) -> tuple[float, NDArray, NDArray]:
        """When it was received (s, monotonic), position and velocity, each (n,), of the arm.

        A velocity is the change of position where none is published, or a driver goes on to publish that of a joint
        which does not move any more.
        """
        self._look()
        self._comparing = True
        began, first = await self._state_after(time.monotonic())
        received, position = await self._state_after(began + LOOK)
        difference = (position - first) / (received - began)
        moves = np.isfinite(self._velocity) & (np.abs(difference) > MOVING)
        return received, position, np.where(moves, self._velocity, difference)

    async def brake(self) -> str:
        """Bring the arm to rest, whoever moves it, and return what was seen; `leave_command` is to follow.

        The motion of a node that was killed lives on in the controller. A stop is sent though others publish, the dead
        node among them; but an arm at rest is left to another node that publishes.

        Raises:
            DynidError: nothing takes commands, no usable joint state comes in, or the arm is at rest.
        """
        await self._controller_found()
        if not self._has_controller():
            raise DynidError(self._hindrance)
        with self.lock:
            self._taken = True
        self._commands.open()
        try:
            received, position, velocity = await self._measured_state()
        except DynidError as error:
            cancelled = self._commands is self.action and self.action is not None
            if cancelled and self.action is not None:
                self.action.cancel_all()
            told = f"; all goals of {self.interface} are cancelled" if cancelled else ""
            raise DynidError(f"whether the arm moves is not known: {error}{told}") from error
        await self._controller_found()
        speeds = describe_speeds(velocity, self._limits.joint_names)
        if not speeds:
            raise DynidError(await self._hold_at_rest(position, velocity))
        with self.lock:
            slowing = coast(self._limits, position, velocity)
            start = self._time.now() - (time.monotonic() - received)
            self._slow_down(slowing, start)
            self._on_halt(REQUESTED)
        await self._taken_or_cancelled()
        rest_time = slowing.duration - (self._time.now() - start)
        return f"the arm was moving ({speeds} rad/s or m/s), not by this node; at rest in {max(rest_time, 0):.1f} s"

    async def _hold_at_rest(self, position: NDArray, velocity: NDArray) -> str:
        """Have the controller hold the arm, unless another node commands it; return what was seen and done."""
        names = self._limits.joint_names
        fastest = int(np.argmax(np.abs(velocity)))
        seen = f"the arm is at rest (fastest: '{names[fastest]}' at {velocity[fastest]:.1g} rad/s or m/s)"
        if others := self._other_publishers():
            return f"{seen}; it is left to node {', '.join(others)}, which publishes on {self._commands.name}"
        resting = standstill(self._limits, position, MOVING)
        self._commands.publish(trajectory_message(resting, self._controller_joints, 0.0))
        await self._taken_or_cancelled()
        await self._state_after(time.monotonic() + resting.duration)
        return f"{seen}, and the controller was told to hold it there"

    def _other_publishers(self) -> list[str]:
        """Full names of other nodes that publish commands; one of the same name was killed, as a rule."""
        own = self._node.get_fully_qualified_name()
        infos = self._node.get_publishers_info_by_topic(self._commands.name)
        names = {f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos}
        return sorted(name for name in names if name != own and "UNKNOWN" not in name)

    async def _taken_or_cancelled(self) -> None:
        """Wait until an action server has taken the goal; where it does not, cancel all of its goals."""
        if self._commands is not self.action or self.action is None:
            return
        deadline = time.monotonic() + TAKEN_OVER
        while not self.action.acknowledged() and time.monotonic() < deadline:
            await self._looked()
        if not self.action.acknowledged():
            self.action.cancel_all()

    async def hold(self) -> None:
        """Have the controller hold the arm where it rests, in place of whatever it carries out.

        The motion of a node that was killed lives on in the controller, and shows nowhere while the arm dwells. Raises
        a `DynidError` where the arm moves, before or after.
        """
        await self.require_controller()  # alone, also among those who began when it did
        resting = standstill(self._limits, await self.resting_position(), MOVING)
        self._commands.publish(trajectory_message(resting, self._controller_joints, 0.0))
        await self.accepted()
        await self._state_after(time.monotonic() + resting.duration + SETTLE)
        try:
            await self.resting_position()
        except DynidError as error:
            told = f"the controller on '{self._commands.name}' was told to hold the arm where it is, but: {error}"
            raise DynidError(f"{told}; see what else moves it") from error

    async def accepted(self) -> None:
        """Wait until the server has accepted the goal that was sent; raises a `DynidError` where it does not."""
        while self._commands is self.action and self.action is not None and not self.action.acknowledged():
            if failure := self.action.failure:
                raise DynidError(failure)
            await self._looked()

    async def _state_after(self, moment: float) -> tuple[float, NDArray]:
        """When the first usable joint state since `moment` (s, monotonic) was seen, and its positions (n,)."""
        patience = max(self._stale_after, STATE_TIMEOUT)
        deadline = max(moment, time.monotonic()) + patience
        while self._received <= moment:
            if time.monotonic() > deadline:
                raise DynidError(
                    f"no usable joint_states within {patience:g} s{self._unusable}; see that the driver runs "
                    f"and publishes positions of {', '.join(self._limits.joint_names)}"
                )
            await self._looked()
        if self._disagreement:
            raise DynidError(self._disagreement)
        return self._received, self._position

    async def _looked(self) -> None:
        """Wait for the next look at the arm, by another thread, which then wakes the executor."""
        self._awaited = True
        await self._next_look

    def load(self, motion: Trajectory, sampled: Trajectory) -> Load:
        """Make a motion and its samples ready to be sent, which takes seconds where they are many.

        Any thread may do so: the arm rests, and no clock is read.
        """
        motion.at(0.0)  # makes the splines, for the watch
        handover = self._controller.handover if self._clock_difference <= SAME_CLOCK else None
        if handover is not None:
            pieces = MotionPieces(sampled, self._controller_joints, self._limits, handover, PAUSE)
            return Load(motion, pieces.first, pieces)
        message = trajectory_message(sampled, self._controller_joints, PAUSE)
        return Load(motion, serialize_message(message) if self._commands is self._topic else message, None)

    def send(self, load: Load) -> float:
        """Have the controller carry out a motion; return in how many s it begins."""
        with self.lock:
            if load.pieces is not None:
                load.pieces.stamp_first(self._node.get_clock().now())
                start = self._time.now() + PAUSE
                self._commands.publish(load.message)
            else:
                self._commands.publish(load.message)
                start = self._time.now() + PAUSE  # the controller counts from the arrival, after all has been sent
            self._follow(load.motion, start)
            self._pieces = load.pieces
            return start - self._time.now()

    def _send_next_piece(self) -> None:
        """Send the next piece of the motion, if it is time; too late for that, let the arm come to rest."""
        pieces, motion = self._pieces, self._motion
        if pieces is None or motion is None:
            return
        stamp, elapsed = self._node.get_clock().now(), self._time.now() - motion.start
        if late := pieces.lateness(elapsed):
            self.halt(f"this process was kept from sending the next piece of the motion for {late:.2f} s")
        elif pieces.is_due(elapsed):
            self._commands.publish(pieces.next_piece(elapsed, stamp))
            if self._commands is self.action and self.action is not None:
                self.action.keep_replaced()

    def halt(self, reason: str) -> float:
        """Have the controller slow down along the motion; how long that takes, s."""
        if self._motion is None:
            return 0.0
        start = self._time.now()
        followed, since = self._motion.trajectory, self._motion.start
        if self._pieces is not None and (stopping := self._pieces.stopping_piece(start - since)):
            followed, since = stopping[0], since + stopping[1]
        slowing = stop(followed, start - since, self._limits)
        self._slow_down(slowing, start)
        self._on_halt(reason)
        return slowing.duration

    def _slow_down(self, slowing: Trajectory, start: float) -> None:
        lead = 0.0 if self._controller.jerks else LEAD  # it would begin at the measured pose
        delay = start - self._time.now()
        self._commands.publish(trajectory_message(slowing, self._controller_joints, delay, lead))
        self._follow(slowing, start)
        self.stopping = True

    def _interrupt(self, reason: str) -> None:
        with self.lock:
            if self._motion is not None and not self.stopping:
                self.halt(reason)

    def end(self) -> None:
        """Bring a moving arm to rest before the node ends."""
        if self._motion is not None:
            if not self.stopping:
                self.halt("the node ends")
            self._commands.acknowledged(1.0)

    def watch(self) -> None:
        """Look at the arm, stop the motion at what is wrong, note its end, and send its pieces in time."""
        if not self.stopping:
            self._send_next_piece()
        self._look()
        if self.action is not None:
            self.action.look()
        looked, self._next_look = self._next_look, Future()
        looked.set_result(None)
        if self._awaited and self._node.executor is not None:
            self._awaited = False
            self._node.executor.wake()
        jump = self._time.take_jump()
        if self._motion is not None:
            self._watch_motion(self._motion, jump)

    def _watch_motion(self, motion: MotionInProgress, jump: float) -> None:
        """Note the end of the motion, or stop it at what is wrong, as at a clock that has jumped by `jump` s."""
        age = time.monotonic() - max(self._received, self._watched_from)
        if motion.done(self._time.now()) and (self.stopping or age <= self._stale_after):
            stopped, self.stopping, self._motion = self.stopping, False, None
            if self._node.executor is not None:
                self._node.executor.create_task(self._release)
            self._on_rest(stopped)
        elif self.stopping:
            return
        elif self._commands is self.action and self.action is not None and (failure := self.action.failure):
            self._lose(failure)
        elif jump:
            self.halt(f"the clock jumped by {jump:.3g} s")
        elif self._time.stalled > self._stale_after:
            self.halt("/clock stands still")
        elif age > self._stale_after:
            self.halt(f"no usable joint_states for {age:.2f} s")
        elif not self._has_controller():
            self.halt(f"the controller does not listen on '{self._commands.name}' any more")
        elif (others := self._commands.others) and not self._commands.unnamed:
            self.halt(others)

    def _lose(self, reason: str) -> None:
        """The controller has given the motion up: it holds the arm, or obeys another; leave it in peace."""
        self._motion = self._pieces = None
        if self._node.executor is not None:
            self._node.executor.create_task(self._release)
        self._on_halt(reason)
        self._on_rest(True)

    def _look(self) -> None:
        """At all joint states that wait where each counts; else at the newest of this arm, which costs less."""
        with self.lock:
            each = self.moving or self._comparing
            waiting = [data for data, _ in waiting_messages(self._states, QUEUE)]
            for data in waiting if each else reversed(waiting):
                if self._look_at(deserialize_message(data, JointState)) and not each:
                    return

    def _look_at(self, message: JointState) -> bool:
        """Whether it is one of this arm, and not of another device on the same topic."""
        if not self._order.concerns(message):
            return False
        names = self._limits.joint_names
        watched = self._motion if not self.stopping else None
        try:
            position = np.array(self._order.pick(message, "position"))
            if watched is not None:
                watched.check(position, self._time.now())
                self._efforts.check(optional_values(message, "effort", names), time.monotonic())
        except DynidError as error:
            self._unusable = f": {error}"
            if watched is not None:
                self.halt(str(error))
            return True
        if self._comparing:
            if stamp := nanoseconds(message.header):
                age = abs(self._node.get_clock().now().nanoseconds - stamp) * 1e-9
                self._clock_difference = min(self._clock_difference, age)
            if self._compared and (found := disagreement(self._limits, *self._compared, position)):
                self._disagreement = f"{found}{publishers_of(self._node, 'joint_states')}"
            self._compared = time.monotonic(), position
        self._position, self._received, self._unusable = position, time.monotonic(), ""
        self._velocity = optional_values(message, "velocity", names)
        return True

    def _follow(self, motion: Trajectory, start: float) -> None:
        """Watch the arm follow `motion`, which the controller holds from `start` (s) on."""
        self._pieces = None
        self._watched_from = time.monotonic() + max(start - self._time.now(), 0.0)
        self._motion = MotionInProgress(motion, start, self._tracking_error_limit, self._stale_after)
        self._efforts.forget()

    def _has_controller(self) -> bool:
        if self.action is not None and not self._taken and not self.moving:
            served = self._interface == ACTION or self.action.listeners > 0
            self._commands = self.action if served else self._topic
        return self._commands.listeners > 0
