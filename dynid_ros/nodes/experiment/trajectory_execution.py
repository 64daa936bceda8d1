"""The arm as the excitation node has it: a controller that takes motions, and joint states to watch it by."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import RLock
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment.design import controller_joints
from dynid_ros.nodes.experiment.trajectory_action import ACTION, interface
from dynid_ros.nodes.experiment.watch import (
    MOVING,
    EffortWatch,
    MotionController,
    MotionTime,
    disagreement,
    efforts,
    moving_joint,
)
from dynid_ros.nodes.shared.command_topic import publishers_of
from dynid_ros.nodes.shared.joint_states import JointOrder, newest_states
from dynid_ros.nodes.shared.topics import Waiting, waiting_messages
from dynid_ros.trajectories import MotionInProgress, MotionLimits, Trajectory, stop
from dynid_ros.trajectories.execution import SHORTEST, standstill
from dynid_ros.trajectories.limits import per_joint

# `Trajectory` to `trajectory_msgs/JointTrajectory`.


LEAD = SHORTEST
"""Time from arrival to the first point, s: the controller goes there smoothly from where it begins.

That is its own reference, or the measured pose, see `motion_controller`. The way a message takes shifts the motion;
over less time a controller could not make up for it without a jerk.
"""
SAME = 1e-6
"""s within which two points are one."""


def trajectory_message(
    trajectory: Trajectory, joint_names: Sequence[str], delay: float, lead: float = LEAD
) -> JointTrajectory:
    """Message with what of `trajectory` is due `lead` after arrival, and its samples after that.

    Args:
        trajectory: ends at rest.
        joint_names: as the controller has them.
        delay: time from the arrival of the message to the first sample, s; negative: it is past.
        lead: s; 0: the controller goes on with the motion where that is to be, whatever its own beginning is.
    """
    ordered = trajectory.select(joint_names)
    first = min(max(lead - delay, 0.0), ordered.duration)
    own: NDArray = np.concatenate([[first], ordered.time[ordered.time > first + SAME]])
    message = JointTrajectory(joint_names=list(joint_names))
    rows = (np.maximum(own + delay, lead), *ordered.at(own))
    for instant, position, velocity, acceleration in zip(*(row.tolist() for row in rows), strict=True):
        point = JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration)
        point.time_from_start = Duration(seconds=instant).to_msg()
        message.points.append(point)
    return message


PAUSE = 1.0  # s from sending a long motion to its start: some controllers do nothing else while they read it
STATE_TIMEOUT = 1.0  # s for which a joint state is waited for
LOOK = (
    0.1  # s between two joint states that determine whether the arm stands still: not every driver publishes velocities
)
SETTLE = 0.3  # s after a hold until the arm must rest
MATCHING = 1.0  # s for which a controller is waited for: to be found, to answer, to take messages of this node
QUEUE = 100  # joint states that may wait for a look


class Arm:
    """Sends each motion as one message, watches the arm follow it, and slows it down where it does not.

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
        self._position = np.full(len(names), math.nan)
        self._moving = self._unusable = ""
        self._received = self._watched_from = -math.inf
        self._next_look, self._awaited = Future(), False
        self._comparing, self._disagreement = False, ""
        self._compared: tuple[float, NDArray] | None = None
        self._controller = MotionController(node, settings, self._interrupt)
        self._interface = settings.command_interface
        self._topic, self.action = interface(node, settings.command_topic, self._interface, settings.action_name)
        self._commands, self._taken = self._topic, False
        self._states = node.create_subscription(
            JointState, "joint_states", lambda _: None, newest_states(QUEUE), callback_group=Waiting(), raw=True
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
            self._compared, self._disagreement = None, ""
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
        self._look()
        self._comparing = True
        began, first = await self._state_after(time.monotonic())
        received, position = await self._state_after(began + LOOK)
        speed = np.abs(position - first) / (received - began)
        fastest = int(np.argmax(speed))
        if not self._moving and speed[fastest] > MOVING:
            self._moving = f"'{self._limits.joint_names[fastest]}' at {speed[fastest]:.2g}"
        if self._moving:
            raise DynidError(f"the arm is moving ({self._moving} rad/s or m/s); bring it to rest first")
        return position

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

    def send(self, motion: Trajectory, sampled: Trajectory) -> float:
        """Have the controller carry out `sampled`, the samples of `motion`; returns in how many s it begins."""
        start = self._time.now() + PAUSE
        self._follow(trajectory_message(sampled, self._controller_joints, PAUSE), motion, start)
        return PAUSE

    def halt(self, reason: str) -> float:
        """Have the controller slow down along the motion; how long that takes, s."""
        if self._motion is None:
            return 0.0
        start = self._time.now()
        slowing = stop(self._motion.trajectory, start - self._motion.start, self._limits)
        lead = 0.0 if self._controller.jerks else LEAD  # it would begin at the measured pose
        delay = start - self._time.now()
        self._follow(trajectory_message(slowing, self._controller_joints, delay, lead), slowing, start)
        self.stopping = True
        self._on_halt(reason)
        return slowing.duration

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
        """Look at the arm, stop the motion at what is wrong, and note its end."""
        self._look()
        if self.action is not None:
            self.action.look()
        looked, self._next_look = self._next_look, Future()
        looked.set_result(None)
        if self._awaited and self._node.executor is not None:
            self._awaited = False
            self._node.executor.wake()
        jump = self._time.take_jump()
        if self._motion is None:
            return
        age = time.monotonic() - max(self._received, self._watched_from)
        if self._motion.done(self._time.now()) and (self.stopping or age <= self._stale_after):
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
        self._motion = None
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
                self._efforts.check(efforts(message, names), time.monotonic())
        except DynidError as error:
            self._unusable = f": {error}"
            if watched is not None:
                self.halt(str(error))
            return True
        if self._comparing:
            if self._compared and (found := disagreement(self._limits, *self._compared, position)):
                self._disagreement = f"{found}{publishers_of(self._node, 'joint_states')}"
            self._compared = time.monotonic(), position
        self._position, self._received, self._unusable = position, time.monotonic(), ""
        self._moving = moving_joint(message, names)
        return True

    def _follow(self, message: JointTrajectory, motion: Trajectory, start: float) -> None:
        """Publish `message` for the controller, and watch `motion` that it holds from `start` (s) on."""
        self._commands.publish(message)
        self._watched_from = time.monotonic() + max(start - self._time.now(), 0.0)
        self._motion = MotionInProgress(motion, start, self._tracking_error_limit, self._stale_after)
        self._efforts.forget()

    def _has_controller(self) -> bool:
        if self.action is not None and not self._taken and not self.moving:
            served = self._interface == ACTION or self.action.listeners > 0
            self._commands = self.action if served else self._topic
        return self._commands.listeners > 0
