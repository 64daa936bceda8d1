"""Supervision of a motion: its controller, its clock and the efforts."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.clock import ROSClock
from rclpy.node import Node

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment.motion_pieces import BLENDED, BLENDED_ON_ARRIVAL, PASSED_OVER, Handover
from dynid_ros.nodes.shared.controllers import DEACTIVATED, INTERPOLATES, REPLACES, ControllerView
from dynid_ros.trajectories import MotionLimits
from dynid_ros.trajectories.limits import per_joint

MAX_CLOCK_STEP_S = 0.5
"""Longest step of simulated time between two readings; a longer one is a jump of the clock."""
TIME_TOLERANCE_S = 1e-9


class MotionController:
    """Controller that carries out the motions.

    A `joint_trajectory_controller` begins each trajectory at the measured pose, unless it interpolates from the desired
    state: its command then jumps by the sag and the lag of the arm (ros2_controllers 4.42.1,
    joint_trajectory_controller.cpp, `update`; trajectory.cpp, `sample`). Since 2026-08-15 a trajectory that replaces
    an active one begins on the path of that one (`blend_with_active_trajectory`).

    Args:
        node: node that queries the controller.
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
        """Whether its first answer, or a report of its activation, can be expected soon."""
        return self._view.is_answering or self._view.is_inactive

    @property
    def jerks(self) -> bool:
        """Whether it is known to begin a trajectory at the measured pose."""
        answer = self._view.answer
        if answer is None or not answer.follows_trajectories:
            return False
        return not (answer.interpolates_from_desired or answer.replaces_from_desired)

    @property
    def handover(self) -> Handover | None:
        """Its transition from one piece of a motion to the next; None if it is not known to be free of jumps."""
        answer = self._view.answer
        if answer is None or not answer.follows_trajectories:
            return None
        if answer.replaces_from_desired:
            return BLENDED if answer.interpolates_from_desired else BLENDED_ON_ARRIVAL
        return PASSED_OVER if answer.interpolates_from_desired else None

    @property
    def refusal(self) -> str:
        """Reason why it must not carry out a motion; empty if it may, or if nothing is known."""
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
        self._advanced = time.monotonic()

    @property
    def stalled(self) -> float:
        """Time since the clock last advanced, s."""
        self.now()
        return time.monotonic() - self._advanced

    def now(self) -> float:
        """Return the time, s; to be read at a steady rate while the arm moves."""
        was_simulated = self._simulated
        before = self._reading
        self._simulated, self._reading = self._read()
        step = self._reading - before
        if step:
            self._advanced = time.monotonic()
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
    """Detection of efforts that stay too large for too long; missing and non-finite efforts are not watched.

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
        """Change limit and grace; the time for which efforts have been too large continues."""
        given = per_joint(effort_limit, self._names, "effort_limit")
        limits = np.where(np.isnan(given), self._torque, given)
        for name, limit in zip(self._names, limits, strict=True):
            if not limit > 0:
                raise DynidError(f"Parameter effort_limit of joint '{name}' is {limit:g}; it must be positive")
        if not 0 <= grace < np.inf:
            raise DynidError(f"Parameter effort_grace is {grace:g}; it must be zero or more, and finite, s")
        self._limit = limits
        self._grace = grace

    def forget(self) -> None:
        """Forget for how long efforts have been too large."""
        self._since = np.full(len(self._names), np.nan)

    def check(self, effort: NDArray, now: float) -> None:
        """Check efforts.

        Args:
            effort: (n,) efforts; NaN where unknown.
            now: time of any clock, s.
        """
        high = np.abs(effort) > self._limit
        self._since = np.where(high, np.where(np.isnan(self._since), now, self._since), np.nan)
        late = high & (now - self._since >= self._grace - TIME_TOLERANCE_S)
        if late.any():
            i = int(np.argmax(np.where(late, np.abs(effort) / self._limit, 0.0)))
            raise DynidError(
                f"effort of joint '{self._names[i]}' is {effort[i]:.4g}, above effort_limit {self._limit[i]:.4g} for "
                f"{now - self._since[i]:.2f} s"
            )
