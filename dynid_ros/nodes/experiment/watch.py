"""What is watched in the joint states while the arm moves."""

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.clock import ROSClock
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment.motion_pieces import BLENDED, BLENDED_ON_ARRIVAL, PASSED_OVER, Handover
from dynid_ros.nodes.shared.controllers import (
    DEACTIVATED,
    INTERPOLATES,
    REPLACES,
    ControllerView,
)
from dynid_ros.trajectories import MotionLimits
from dynid_ros.trajectories.limits import per_joint

# The controller that carries out the motions of `excitation`: what it does besides, which no motion shows.


class MotionController:
    """Asks it where it begins a trajectory, and listens whether it is active.

    A `joint_trajectory_controller` begins each trajectory where the arm is measured, unless it interpolates from the
    desired state: the command jumps by what the arm sags and lags behind (ros2_controllers 4.42.1,
    joint_trajectory_controller.cpp, `update`; trajectory.cpp, `sample`). Since 2026-08-15 one that replaces a
    trajectory under way begins on the path of that one (`blend_with_active_trajectory`). `interrupt` is called with
    the reason when it is deactivated.

    Attributes:
        name: of the controller's node; empty: there is none that can be asked.
    """

    def __init__(self, node: Node, settings: SimpleNamespace, interrupt: Callable[[str], None]) -> None:
        self.name = settings.command_topic.rpartition("/")[0].strip("~")
        self._accept_jerk, self._interrupt = settings.accept_jerk, interrupt
        self._view = ControllerView(node, self.name, on_event=self._on_event, on_answer=lambda _: None)

    @property
    def is_answering(self) -> bool:
        """Whether it is there, and its first answer on the way, or it may just be reported as activated."""
        return self._view.is_answering or self._view.is_inactive

    @property
    def jerks(self) -> bool:
        """Whether it is known to begin a trajectory at the measured pose."""
        answer = self._view.answer
        starts_on_path = answer is not None and (answer.interpolates_from_desired or answer.replaces_from_desired)
        return answer is not None and answer.follows_trajectories and not starts_on_path

    @property
    def handover(self) -> Handover | None:
        """How it passes from one piece of a motion to the next; None: it is not known to do so without a jump."""
        answer = self._view.answer
        if answer is None or not answer.follows_trajectories:
            return None
        if answer.replaces_from_desired:
            return BLENDED if answer.interpolates_from_desired else BLENDED_ON_ARRIVAL
        return PASSED_OVER if answer.interpolates_from_desired else None

    @property
    def refusal(self) -> str:
        """Why it is to carry out no motion; empty: it may, or nobody knows."""
        if self._view.is_inactive:
            return f"controller '{self.name}' is inactive; activate it (ros2 control list_controllers)"
        if self.jerks and not self._accept_jerk:
            return (
                f"controller '{self.name}' begins each trajectory, so each stop, at the measured pose: its command "
                f"jumps by what the arm sags and lags behind. Set {INTERPOLATES[0]} to true in its file and load it "
                f"anew (or {REPLACES}, where it has that), or set parameter accept_jerk of this node"
            )
        return ""

    def _on_event(self, event: str) -> None:
        if event == DEACTIVATED:
            self._interrupt(f"controller '{self.name}' {event}")


# The time in which an arm moves.


LONGEST_STEP = 0.5
"""s by which simulated time may go on between two looks; more is a jump."""


class MotionTime:
    """Seconds that pass by the clock that the arm's controller has; they never jump.

    On a robot that is the computer's steady clock, which nobody sets. With `use_sim_time` it is the simulation's. Where
    that jumps, or one takes the place of the other, this time stands still, so that a motion can be brought to rest
    from where it is.
    """

    def __init__(self, node: Node) -> None:
        self._clock = cast(ROSClock, node.get_clock())
        self._simulated, self._reading = self._read()
        self._now = self._jump = 0.0
        self._advanced = time.monotonic()

    @property
    def stalled(self) -> float:
        """For how long the clock has been standing still, s."""
        self.now()
        return time.monotonic() - self._advanced

    def now(self) -> float:
        """The time, s; to be asked for at a steady rate while the arm moves."""
        before = self._simulated, self._reading
        self._simulated, self._reading = self._read()
        step = self._reading - before[1]
        if step:
            self._advanced = time.monotonic()
        if self._simulated == before[0] and (not self._simulated or 0.0 <= step <= LONGEST_STEP):
            self._now += step
        else:
            self._jump = self._jump or step
        return self._now

    def take_jump(self) -> float:
        """By how much the clock has jumped, s; 0 if it has not, and from then on until it does again."""
        self.now()
        jump, self._jump = self._jump, 0.0
        return jump

    def _read(self) -> tuple[bool, float]:
        simulated = self._clock.ros_time_is_active
        return simulated, self._clock.now().nanoseconds * 1e-9 if simulated else time.monotonic()


MOVING = 0.1
"""Speed above which the arm is not at rest, rad/s or m/s."""
JITTER = 0.05
"""s by which a joint state may be late, or early."""
ROUNDING = 1e-9
"""Rounding of times, s."""


class EffortWatch:
    """Tells when an effort has been too large for too long; efforts that are not finite or not there are not watched.

    Args:
        limits: their torque limits hold where the next gives none.
        effort_limit: one value or (n,), in the driver's unit; NaN: the torque limit; infinite: none.
        grace: how long an effort may be above its limit, s: impacts and noise pass.

    Raises:
        DynidError: a limit that is not positive, another number of them, or a negative or infinite grace.
    """

    def __init__(self, limits: MotionLimits, effort_limit: ArrayLike, grace: float) -> None:
        self._names, self._torque = limits.joint_names, limits.torque
        self.adjust(effort_limit, grace)
        self.forget()

    def adjust(self, effort_limit: ArrayLike, grace: float) -> None:
        """Take another limit and grace; what has been too large for some time counts on."""
        given = per_joint(effort_limit, self._names, "effort_limit")
        limits = np.where(np.isnan(given), self._torque, given)
        for name, limit in zip(self._names, limits, strict=True):
            if not limit > 0:
                raise DynidError(f"Parameter effort_limit of joint '{name}' is {limit:g}; it must be positive")
        if not 0 <= grace < np.inf:
            raise DynidError(f"Parameter effort_grace is {grace:g}; it must be zero or more, and finite, s")
        self._limit, self._grace = limits, grace

    def forget(self) -> None:
        """Begin anew."""
        self._since = np.full(len(self._names), np.nan)

    def check(self, effort: NDArray, now: float) -> None:
        """Look at efforts (n,), NaN where unknown, at a time of some clock (s).

        Raises:
            DynidError: names the joint whose effort has been above its limit for longer than the grace.
        """
        high = np.abs(effort) > self._limit
        self._since = np.where(high, np.where(np.isnan(self._since), now, self._since), np.nan)
        late = high & (now - self._since >= self._grace - ROUNDING)
        if late.any():
            i = int(np.argmax(np.where(late, np.abs(effort) / self._limit, 0.0)))
            raise DynidError(
                f"effort of joint '{self._names[i]}' is {effort[i]:.4g}, above effort_limit {self._limit[i]:.4g} for "
                f"{now - self._since[i]:.2f} s"
            )


def disagreement(limits: MotionLimits, received: float, before: NDArray, position: NDArray) -> str:
    """Whether an arm that was at `before` (n,) at `received` (s, monotonic) cannot be at `position` now.

    Text that names the joint; empty: it may have gone there since.
    """
    span = time.monotonic() - received + JITTER
    jumped = np.flatnonzero(np.abs(position - before) > limits.velocity * span)
    if not jumped.size:
        return ""
    i = jumped[0]
    return (
        f"joint_states disagree: joint '{limits.joint_names[i]}' is at {before[i]:.4g} and at {position[i]:.4g} within "
        f"{span:.2g} s; check the encoder, and that one driver publishes them alone"
    )


def optional_values(message: JointState, field: str, joint_names: Sequence[str]) -> NDArray:
    """Return the values (n,) of `field`, effort or velocity, by name; NaN where there is none."""
    values = dict(zip(message.name, getattr(message, field), strict=False))
    return np.array([values.get(name, np.nan) for name in joint_names])


def describe_speeds(velocity: NDArray, joint_names: Sequence[str]) -> str:
    """Name the joints that move faster than `MOVING`, with their speeds, fastest first; empty: none does."""
    fastest_first = np.argsort(-np.abs(velocity))
    return ", ".join(f"'{joint_names[i]}' at {velocity[i]:.2g}" for i in fastest_first if abs(velocity[i]) > MOVING)
