"""Joint states of the arm during an experiment, and supervision of its motion, controller, clock and efforts."""

import math
import time
from collections.abc import Callable, Sequence
from threading import RLock
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.clock import ROSClock
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment.trajectory_action import BLENDED, BLENDED_ON_ARRIVAL, PASSED_OVER, Handover
from dynid_ros.nodes.shared.controllers import DEACTIVATED, INTERPOLATES, REPLACES, ControllerView
from dynid_ros.nodes.shared.robot_description import JointOrder, nanoseconds, newest_states
from dynid_ros.nodes.shared.topics import UnservedGroup, publishers_of, waiting_messages
from dynid_ros.trajectories import MotionLimits
from dynid_ros.trajectories.limits import per_joint

MAX_CLOCK_STEP_S = 0.5
"""Longest step of simulated time between two readings; a longer one is a jump of the clock."""
TIME_TOLERANCE_S = 1e-9
STATE_TIMEOUT_S = 1.0
REST_CHECK_S = 0.1
"""Time between two joint states whose difference shows whether the arm rests; some drivers publish no velocities."""
MAX_REST_SPEED = 0.1
"""Largest speed of a resting arm, rad/s or m/s."""
STATE_JITTER_S = 0.05
"""Largest deviation of a joint state's arrival from its period."""
MAX_WAITING_STATES = 100


class MotionController:
    """Controller that executes the motions.

    A `joint_trajectory_controller` begins each trajectory at the measured pose, so that its command jumps by the sag
    and the lag of the arm, unless it interpolates from the desired state (ros2_controllers 4.42.1,
    joint_trajectory_controller.cpp, `update`; trajectory.cpp, `sample`). Since 2026-08-15 a trajectory that replaces
    an active one can begin on the path of the active one (`blend_with_active_trajectory`).

    Args:
        settings: parameters `command_topic` and `accept_jerk`.
        interrupt: called with the reason when the controller is deactivated.

    Attributes:
        name: name of the controller's node; empty without a controller that can be queried.
    """

    def __init__(self, node: Node, settings: SimpleNamespace, interrupt: Callable[[str], None]) -> None:
        self.name = settings.command_topic.rpartition("/")[0].strip("~")
        self._accept_jerk = settings.accept_jerk
        self._interrupt = interrupt
        self._view = ControllerView(node, self.name, on_event=self._on_event, on_answer=lambda _: None)

    @property
    def is_changing(self) -> bool:
        """Whether the controller's first answer, or a report of its activation, is expected soon."""
        return self._view.is_answering or self._view.is_inactive

    @property
    def jerks(self) -> bool:
        """Whether the controller is known to begin each trajectory at the measured pose."""
        answer = self._view.answer
        if answer is None or not answer.follows_trajectories:
            return False
        return not (answer.interpolates_from_desired or answer.replaces_from_desired)

    @property
    def handover(self) -> Handover | None:
        """Transition from one piece of a motion to the next; None if it is not known to be free of jumps."""
        answer = self._view.answer
        if answer is None or not answer.follows_trajectories:
            return None
        if answer.replaces_from_desired:
            return BLENDED if answer.interpolates_from_desired else BLENDED_ON_ARRIVAL
        return PASSED_OVER if answer.interpolates_from_desired else None

    @property
    def refusal(self) -> str:
        """Reason why the controller must not execute a motion; empty if it may, or if nothing is known about it."""
        if self._view.is_inactive:
            return f"controller '{self.name}' is inactive; activate it (ros2 control list_controllers)"
        if self.jerks and not self._accept_jerk:
            return (
                f"controller '{self.name}' begins each trajectory, so each stop, at the measured pose: its command "
                f"jumps by the sag and the lag of the arm. Set {INTERPOLATES[0]} to true in its file and load it "
                f"again (or {REPLACES}, where it has that), or set parameter accept_jerk of this node"
            )
        return ""

    def _on_event(self, event: str) -> None:
        if event == DEACTIVATED:
            self._interrupt(f"controller '{self.name}' {event}")


class MotionTime:
    """Time in seconds by the clock of the arm's controller, without jumps.

    On a robot this is the computer's steady clock, which is never set. With `use_sim_time` it is the time of the
    simulation. If that jumps, or if one clock replaces the other, this time stands still, so that a motion can be
    brought to rest from its present state.
    """

    def __init__(self, node: Node) -> None:
        self._clock = cast(ROSClock, node.get_clock())
        self._simulated, self._reading = self._read()
        self._now = 0.0
        self._jump = 0.0
        self._advanced_at = time.monotonic()

    @property
    def stalled(self) -> float:
        """Time since the clock last advanced, s."""
        self.now()
        return time.monotonic() - self._advanced_at

    def now(self) -> float:
        """Return the time, s; call this at a steady rate while the arm moves."""
        was_simulated = self._simulated
        before = self._reading
        self._simulated, self._reading = self._read()
        step = self._reading - before
        if step:
            self._advanced_at = time.monotonic()
        if self._simulated == was_simulated and (not self._simulated or 0.0 <= step <= MAX_CLOCK_STEP_S):
            self._now += step
        else:
            self._jump = self._jump or step
        return self._now

    def take_jump(self) -> float:
        """Return the first jump of the clock since the last call, s; 0 without one."""
        self.now()
        jump = self._jump
        self._jump = 0.0
        return jump

    def _read(self) -> tuple[bool, float]:
        simulated = self._clock.ros_time_is_active
        return simulated, self._clock.now().nanoseconds * 1e-9 if simulated else time.monotonic()


class EffortWatch:
    """Detection of efforts that exceed their limits for too long; missing and non-finite efforts are ignored.

    Args:
        limits: limits of the joints, whose torque limits replace NaN in `effort_limit`.
        effort_limit: one value or (n,), in the driver's unit; NaN: the torque limit; infinite: no limit.
        grace: time for which an effort may exceed its limit, s, because of impacts and noise.

    Raises:
        DynidError: a limit is not positive, there are too many or too few limits, or the grace is negative or infinite.
    """

    def __init__(self, limits: MotionLimits, effort_limit: ArrayLike, grace: float) -> None:
        self._names = limits.joint_names
        self._torque = limits.torque
        self.adjust(effort_limit, grace)
        self.forget()

    def adjust(self, effort_limit: ArrayLike, grace: float) -> None:
        """Change limit and grace; the time for which efforts have exceeded their limits continues."""
        configured = per_joint(effort_limit, self._names, "effort_limit")
        limits = np.where(np.isnan(configured), self._torque, configured)
        for name, limit in zip(self._names, limits, strict=True):
            if not limit > 0:
                raise DynidError(f"Parameter effort_limit of joint '{name}' is {limit:g}; it must be positive")
        if not 0 <= grace < np.inf:
            raise DynidError(f"Parameter effort_grace is {grace:g}; it must be zero or more, and finite, s")
        self._limit = limits
        self._grace = grace

    def forget(self) -> None:
        """Forget for how long efforts have exceeded their limits."""
        self._since = np.full(len(self._names), np.nan)

    def check(self, effort: NDArray, now: float) -> None:
        """Raise a `DynidError` if an effort exceeds its limit for longer than the grace.

        Args:
            effort: (n,) efforts, in the driver's unit; NaN where unknown.
            now: s of any clock.
        """
        is_high = np.abs(effort) > self._limit
        self._since = np.where(is_high, np.where(np.isnan(self._since), now, self._since), np.nan)
        is_too_long = is_high & (now - self._since >= self._grace - TIME_TOLERANCE_S)
        if is_too_long.any():
            i = int(np.argmax(np.where(is_too_long, np.abs(effort) / self._limit, 0.0)))
            raise DynidError(
                f"effort of joint '{self._names[i]}' is {effort[i]:.4g}, above effort_limit {self._limit[i]:.4g} for "
                f"{now - self._since[i]:.2f} s"
            )


class ArmStates:
    """Subscription to the joint states of the arm, processed by `look` in the thread that watches the arm.

    Args:
        check: called with positions (n,) and message of each state; raises `DynidError` if a motion must be stopped.
        on_fault: called with the reason if a state is unusable or `check` fails.

    Attributes:
        joint_names: n names, in the model's order.
        velocity: (n,) published velocities of the last usable state, rad/s (m/s); NaN if not published.
        received: arrival of the last usable state, s of the monotonic clock; -inf before the first.
        unusable: reason why the last state could not be used, after ": "; empty if it could.
        clock_difference: smallest difference between this computer's clock and the stamps of compared states, s;
            infinite before the first comparison.
        stale_after: age beyond which a state is too old, s.
        lock: held while states are processed.
    """

    def __init__(
        self,
        node: Node,
        limits: MotionLimits,
        *,
        check: Callable[[NDArray, JointState], None],
        on_fault: Callable[[str], None],
    ) -> None:
        self.joint_names = limits.joint_names
        self.velocity: NDArray = np.full(len(self.joint_names), math.nan)
        self.received = -math.inf
        self.unusable = ""
        self.clock_difference = math.inf
        self.stale_after = STATE_TIMEOUT_S
        self.lock = RLock()
        self._node = node
        self._limits = limits
        self._check = check
        self._on_fault = on_fault
        self._order = JointOrder(self.joint_names)
        self._position: NDArray = self.velocity
        self._next_look = Future()
        self._awaited = False
        self._comparing = False
        self._compared: tuple[float, NDArray] | None = None
        self._disagreement = ""
        self._subscription = node.create_subscription(
            JointState,
            "joint_states",
            lambda _: None,
            newest_states(MAX_WAITING_STATES),
            callback_group=UnservedGroup(),
            raw=True,
        )

    @property
    def doubt(self) -> str:
        """Message that no usable state arrives; empty otherwise."""
        age = time.monotonic() - self.received
        return f"no usable joint_states{self.unusable}" if age > self._timeout else ""

    @property
    def _timeout(self) -> float:
        return max(self.stale_after, STATE_TIMEOUT_S)

    def look(self, *, every: bool) -> None:
        """Process the waiting states.

        Args:
            every: whether to process all states; otherwise only the newest one, unless states are being compared.
        """
        with self.lock:
            every = every or self._comparing
            waiting = [data for data, _ in waiting_messages(self._subscription, MAX_WAITING_STATES)]
            for data in waiting if every else reversed(waiting):
                if self._process(deserialize_message(data, JointState)) and not every:
                    return

    def finish_look(self) -> None:
        """Continue the coroutines that wait for `next_look`."""
        finished = self._next_look
        self._next_look = Future()
        finished.set_result(None)
        if self._awaited and self._node.executor is not None:
            self._awaited = False
            self._node.executor.wake()

    async def next_look(self) -> None:
        """Wait until another thread has processed the waiting states."""
        self._awaited = True
        await self._next_look

    async def state_after(self, moment: float) -> tuple[float, NDArray]:
        """Return arrival and positions (n,) of the first usable state since `moment`, s of the monotonic clock."""
        deadline = max(moment, time.monotonic()) + self._timeout
        while self.received <= moment:
            if time.monotonic() > deadline:
                raise DynidError(
                    f"no usable joint_states within {self._timeout:g} s{self.unusable}; see that the driver runs "
                    f"and publishes positions of {', '.join(self.joint_names)}"
                )
            await self.next_look()
        if self._disagreement:
            raise DynidError(self._disagreement)
        return self.received, self._position

    async def measured_state(self) -> tuple[float, NDArray, NDArray]:
        """Return arrival, positions (n,) and velocities (n,) of the arm.

        The velocity is the difference of positions, except where a joint moves and its velocity is published. Some
        drivers keep publishing the last velocity of a joint that has stopped.
        """
        self.look(every=False)
        self._comparing = True
        began, first = await self.state_after(time.monotonic())
        received, position = await self.state_after(began + REST_CHECK_S)
        difference = (position - first) / (received - began)
        moves = np.isfinite(self.velocity) & (np.abs(difference) > MAX_REST_SPEED)
        return received, position, np.where(moves, self.velocity, difference)

    async def resting_position(self) -> NDArray:
        """Return the positions (n,) of the resting arm, from states that arrive after the call."""
        _, position, velocity = await self.measured_state()
        # Here a published velocity counts even if the positions did not change.
        velocity = np.where(np.abs(self.velocity) > MAX_REST_SPEED, self.velocity, velocity)
        if speeds := describe_speeds(velocity, self.joint_names):
            raise DynidError(f"the arm is moving ({speeds} rad/s or m/s); bring it to rest first")
        return position

    def end_comparison(self) -> None:
        """Stop comparing states with each other, and forget the result of the comparison."""
        self._comparing = False
        self._compared = None
        self._disagreement = ""
        self.clock_difference = math.inf

    def _process(self, message: JointState) -> bool:
        """Process a state and return whether it is of this arm; other devices may publish on the same topic."""
        if not self._order.concerns(message):
            return False
        try:
            position = np.array(self._order.pick(message, "position"))
            self._check(position, message)
        except DynidError as error:
            self.unusable = f": {error}"
            self._on_fault(str(error))
            return True
        if self._comparing:
            self._compare(message, position)
        self._position = position
        self.received = time.monotonic()
        self.unusable = ""
        self.velocity = optional_values(message, "velocity", self.joint_names)
        return True

    def _compare(self, message: JointState, position: NDArray) -> None:
        """Compare a state with this computer's clock and with the previous state, because two drivers may disagree."""
        if stamp := nanoseconds(message.header):
            age = abs(self._node.get_clock().now().nanoseconds - stamp) * 1e-9
            self.clock_difference = min(self.clock_difference, age)
        if self._compared and (jump := describe_jump(self._limits, *self._compared, position)):
            self._disagreement = f"{jump}{publishers_of(self._node, 'joint_states')}"
        self._compared = (time.monotonic(), position)


def describe_jump(limits: MotionLimits, received: float, before: NDArray, position: NDArray) -> str:
    """Return a message if the arm cannot have moved from `before` to `position`; otherwise an empty string.

    Args:
        limits: limits of the joints.
        received: arrival of the previous state, s of the monotonic clock.
        before: (n,) positions of the previous state, rad (m).
        position: (n,) positions now, rad (m).
    """
    span = time.monotonic() - received + STATE_JITTER_S
    jumped = np.flatnonzero(np.abs(position - before) > limits.velocity * span)
    if not jumped.size:
        return ""
    i = jumped[0]
    return (
        f"joint_states disagree: joint '{limits.joint_names[i]}' is at {before[i]:.4g} and at {position[i]:.4g} within "
        f"{span:.2g} s; check the encoder, and that one driver publishes them alone"
    )


def optional_values(message: JointState, field: str, joint_names: Sequence[str]) -> NDArray:
    """Return the values (n,) of `field`, effort or velocity; NaN for joints without a value."""
    values = dict(zip(message.name, getattr(message, field), strict=False))
    return np.array([values.get(name, np.nan) for name in joint_names])


def describe_speeds(velocity: NDArray, joint_names: Sequence[str]) -> str:
    """Return the joints that move and their speeds, fastest first; empty if none does."""
    fastest_first = np.argsort(-np.abs(velocity))
    moving = [i for i in fastest_first if abs(velocity[i]) > MAX_REST_SPEED]
    return ", ".join(f"'{joint_names[i]}' at {velocity[i]:.2g}" for i in moving)
