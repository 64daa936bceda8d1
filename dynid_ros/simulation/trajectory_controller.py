"""Models of two ROS 2 controllers that write to the command interfaces in each cycle.

`ForwardController` models `forward_command_controller` for efforts. `TrajectoryController` models
`joint_trajectory_controller` with position, or position and effort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.trajectory_points import (
    CommandInterfaces,
    GoalTolerances,
    JointSpline,
    TrajectoryPoints,
    TrajectorySettings,
    check_limits,
    from_state,
)


class ForwardController:
    """Model of `forward_command_controller`, which writes the last command to the effort interfaces in each cycle.

    The rules come from ros2_controllers 4.42.1 (forward_controllers_base.cpp). A command with a value that is not
    finite is rejected on arrival. An empty command is ignored. A command of another size raises in `update`, and the
    controller manager then deactivates the controller. Activation and deactivation discard the command and write
    nothing, so the last torque stays in the interface and continues to act.

    Args:
        joints: joint names in the controller's order, which is that of the commands.
        arm_joints: the same joint names in the arm's order.
        interfaces: values that the controllers command.
    """

    def __init__(self, joints: Sequence[str], arm_joints: Sequence[str], interfaces: CommandInterfaces) -> None:
        self._joints = list(joints)
        self._order = [self._joints.index(name) for name in arm_joints]
        self._interfaces = interfaces
        self._command: np.ndarray | None = None

    def activate(self) -> None:
        """Discard the last command; write nothing."""
        self._command = None

    def deactivate(self) -> None:
        """Discard the last command; the torque stays in the interface."""
        self._command = None

    def command(self, effort: ArrayLike) -> None:
        """Store a command (n,), N m in the controller's joint order, also while inactive; `update` checks its size.

        Raises:
            DynidError: a value is not finite; the previous command stays.
        """
        values = np.asarray(effort, dtype=float)
        for number, value in enumerate(values.tolist()):
            if not np.isfinite(value):
                name = f"joint '{self._joints[number]}'" if number < len(self._joints) else f"value {number + 1}"
                raise DynidError(f"the effort command for {name} is {value}; expected a number")
        self._command = values

    def update(self) -> None:
        """Write the last command to the effort interfaces.

        Raises:
            DynidError: the command has another size than the controller has joints; nothing is written.
        """
        command = self._command
        if command is None or not command.size:
            return
        if command.shape != (len(self._joints),):
            raise DynidError(
                f"the effort command has {command.size} values; expected {len(self._joints)}: {', '.join(self._joints)}"
            )
        self._interfaces.effort = command[self._order]


class Goal(Enum):
    """State of an action goal."""

    EXECUTING = "executing"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"
    ABORTED = "aborted"


class _Course(JointSpline):
    """A trajectory in execution: motion and efforts over time, and its end.

    Attributes:
        time: times (K,) of the points, s; the first may be that of the state from which the arm starts.
        has_several_points: whether more than one point was commanded, so that a new trajectory may be blended with it.
        last_position: position (n,) at the end, rad or m.
        last_effort: effort (n,) at the end, N m.
    """

    def __init__(self, time: np.ndarray, derivatives: np.ndarray, effort: np.ndarray, several: bool = False) -> None:
        super().__init__(time, derivatives)
        self.has_several_points = several
        self.time = time
        self._effort = effort
        self.last_position = derivatives[-1, 0]
        self.last_effort = effort[-1]

    def effort_at(self, time: float) -> np.ndarray:
        """Return the efforts (n,) at `time`, N m, interpolated linearly between the points."""
        return np.array([np.interp(time, self.time, column) for column in self._effort.T])


class TrajectoryController:
    """Model of `joint_trajectory_controller`, which follows trajectories from a topic and from action goals.

    The rules come from the sources of ros2_controllers 4.42.1 (joint_trajectory_controller.cpp, trajectory.cpp,
    tolerances.hpp):

    - A *hold* keeps one position with the hold effort. It follows an activation, an abort (tolerance or timeout), a
      canceled goal and a goal's success.
    - The hold effort is zero until an action goal succeeds, and then the last effort of that goal. Only `configure`
      makes it zero again.
    - An activation holds the last commanded position (`set_last_…`) or the measured one.
    - The tolerances in force are those of the last action goal, or of the parameters at `configure`. Neither a
      trajectory from the topic nor an activation nor a changed parameter restores them.
    - A trajectory starts from the measured state, or from the last set-point (`interpolate_from_desired_state`). The
      set-point is given the time of the cycle that wrote it. If the first point is already due, it is the start.
    - With `allow_trajectory_replacement` (of 2026-08-15, `blend_with_active_trajectory`), a new trajectory is blended
      with an active one of several points. The old points before the new start are kept, and the old trajectory's
      state at the new start joins the two. A start in the past is moved to the present cycle, with all its points.
      Kept points are timed from the previous cycle, so they come one cycle late. A hold is not blended.
    - A violated tolerance writes nothing in its cycle. From the next cycle, the position measured at the violation is
      held.
    - `cmd_timeout` does not end a hold.
    - A deactivation leaves the position in its interface and makes the effort zero at once.

    The model differs from the real controller in two ways. It refuses positions and speeds beyond the limits of the
    URDF. It also writes velocity and acceleration of the set-point, so that the drive interpolates between set-points.

    Args:
        robot: arm with joint order and limits.
        interfaces: values that the controllers command.
        settings: parameters; they may be replaced at run time, and take effect when the real controller reads them.
        report: function that receives the message of each abort.

    Attributes:
        aborts: number of aborts.
        active: whether the controller is active and writes commands.
        goals: states of the action goals since `configure`, oldest first.
    """

    def __init__(
        self,
        robot: RobotModel,
        interfaces: CommandInterfaces,
        settings: TrajectorySettings | None = None,
        report: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self.settings = settings or TrajectorySettings()
        self.aborts = 0
        self.active = False
        self._robot = robot
        self._interfaces = interfaces
        self._report = report
        self.configure()

    def configure(self) -> None:
        """Restart as after a cleanup: tolerances of the parameters, zero hold effort, no goals.

        Raises:
            DynidError: the controller is active.
        """
        if self.active:
            raise DynidError("the trajectory controller can not be configured from 'active' state; deactivate it first")
        n = self._robot.n_joints
        self._tolerances = self.settings.tolerances(n)
        self._timeout = self.settings.timeout
        self._hold_effort = np.zeros(n)
        self.goals: list[Goal] = []
        self._reference = np.zeros((3, n))
        self._commanded_at: float | None = None
        self._cursor = 0.0
        self._course: _Course | None = None
        self._next: tuple[TrajectoryPoints, float | None] | np.ndarray | None = None
        self._holding = True

    def activate(self, position: np.ndarray) -> None:
        """Start to hold the last commanded position or, depending on the settings, the measured `position` (n,)."""
        self.active = True
        self._timeout = self.settings.timeout
        commanded = self._interfaces.position
        # Without any command so far, the interface holds NaN.
        use_last = self.settings.set_last_command_interface_value_as_state_on_activation
        use_last = use_last and bool(np.isfinite(commanded).all())
        self._reference = np.zeros((3, self._robot.n_joints))
        self._reference[0] = commanded if use_last else position
        self._commanded_at = None
        self._course = None
        self._holding = True
        self._next = self._reference[0].copy()

    def deactivate(self) -> None:
        """Stop commanding, make the effort zero, and abort the action goal."""
        self.active = False
        self._course = self._next = None
        self._end_goal(Goal.ABORTED)
        self._interfaces.rest()
        if self.settings.has_effort:
            self._interfaces.effort = np.zeros(self._robot.n_joints)

    def topic(self, points: TrajectoryPoints, now: float, start: float | None = None) -> None:
        """Replace the trajectory by one from the topic; an action goal continues and is judged by the new one.

        Args:
            points: points of the new trajectory.
            now: present time, s.
            start: time at which the trajectory begins, s; None: in the next cycle.

        Raises:
            TrajectoryError: the trajectory is refused, or the controller is inactive; the previous one continues.
        """
        self._check(points, now, start)
        self._next = points, start
        self._holding = False

    def goal(
        self,
        points: TrajectoryPoints,
        now: float,
        start: float | None = None,
        tolerances: GoalTolerances | None = None,
    ) -> None:
        """Replace the previous action goal and any trajectory by a new goal; arguments and errors are those of `topic`.

        `tolerances` replace those of the parameters.
        """
        in_force = (tolerances or GoalTolerances()).over(self.settings.tolerances(self._robot.n_joints))
        self.topic(points, now, start)
        self._end_goal(Goal.CANCELED)
        self.goals.append(Goal.EXECUTING)
        self._tolerances = in_force

    def cancel(self, position: np.ndarray) -> None:
        """Cancel the action goal, if there is one, and hold the measured `position` (n,)."""
        if self._end_goal(Goal.CANCELED):
            self._hold(position)

    def update(self, now: float, period: float, position: np.ndarray, velocity: np.ndarray) -> None:
        """Execute one cycle: check the measured state against the tolerances, then command the next set-point.

        Args:
            now: time of the cycle, s.
            period: time until the next cycle, s.
            position: measured position (n,), rad or m.
            velocity: measured velocity (n,), per s.
        """
        if not self.active:
            return
        is_new = self._next is not None
        if is_new:
            self._course = self._begin(now, position, velocity)
            self._next = None
        self._cursor = now
        course = self._course
        if course is None:
            return
        desired = course.at(now)
        before_end = now < course.end
        time_since_end = now - course.end
        if not before_end and not self._holding and time_since_end > self._timeout:
            self._abort("Aborted due to command timeout", position)
        error = desired[0] - position
        # Without an effort interface, the velocity at the goal is not checked.
        velocity_error = desired[1] - velocity if self.settings.has_effort else np.zeros_like(velocity)
        # Read after the timeout, which begins a hold. A hold has no tolerances.
        is_checked = not self._holding
        violates_path = is_checked and (before_end or is_new) and not self._tolerances.on_the_way(error)
        misses_goal = is_checked and not before_end and not self._tolerances.at_the_end(error, velocity_error)
        too_late = misses_goal and 0.0 < self._tolerances.goal_time < time_since_end
        if violates_path or too_late:
            self._end_goal(Goal.ABORTED)
            reason = "state tolerance violation" if violates_path else "exceeded goal_time_tolerance"
            self._abort(f"Holding position due to {reason}", position)
            return
        # The real controller commands the position of the next cycle, but the effort of this one.
        self._command(course.at(now + period), course.effort_at(now))
        self._commanded_at = now
        if is_checked and not before_end and not misses_goal and self._end_goal(Goal.SUCCEEDED):
            self._hold_effort = course.last_effort
            self._hold(course.last_position)

    def _command(self, desired: np.ndarray, effort: np.ndarray) -> None:
        """Write the set-point (3, n) and, if the controller commands it, the effort (n,) to the interfaces."""
        self._reference = desired
        self._interfaces.position, self._interfaces.velocity, self._interfaces.acceleration = desired.copy()
        if self.settings.has_effort:
            self._interfaces.effort = effort

    def _begin(self, now: float, position: np.ndarray, velocity: np.ndarray) -> _Course:
        """Return the course of the next trajectory, or of the next hold, from the measured state or set-point on."""
        if not isinstance(self._next, tuple):
            assert self._next is not None
            return _Course(np.array([now]), self._next[np.newaxis, np.newaxis], self._hold_effort[np.newaxis])
        points, start = self._next
        time, derivatives = points.arrays(self._robot)
        effort = points.efforts(self._robot)
        active = self._course
        if self.settings.allow_trajectory_replacement and active is not None and active.has_several_points:
            wait = max(start - now, 0.0) if start is not None else 0.0
            time, derivatives, effort = self._blend(active, wait, time, derivatives, effort)
            time = time + now
        else:
            time = time + (now if start is None else start)
        has_several_points = len(time) > 1
        if time[0] > now:
            state = np.array([position, velocity, np.zeros_like(position)])
            at = now
            if self.settings.interpolate_from_desired_state:
                state = self._reference
                at = now if self._commanded_at is None else self._commanded_at
            time, derivatives = from_state(at, state, time, derivatives)
            effort = np.vstack([np.nan_to_num(self._interfaces.effort), effort])
        return _Course(time, derivatives, effort, has_several_points)

    def _blend(
        self, active: _Course, wait: float, time: np.ndarray, derivatives: np.ndarray, effort: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times after now, derivatives and efforts: the active trajectory for `wait` s, then the new one."""
        new_start = self._cursor + wait
        kept = active.time[(active.time > self._cursor) & (active.time < new_start)].tolist()
        # The old state at the new start joins the two, unless the new trajectory has a point there.
        if time[0] > 0.0:
            kept.append(new_start)
        kept_derivatives = np.array([active.at(instant)[: derivatives.shape[1]] for instant in kept])
        kept_efforts = np.array([active.effort_at(instant) for instant in kept])
        return (
            np.concatenate([np.array(kept) - self._cursor, time + wait]),
            np.concatenate([kept_derivatives.reshape(len(kept), *derivatives.shape[1:]), derivatives]),
            np.concatenate([kept_efforts.reshape(len(kept), effort.shape[1]), effort]),
        )

    def _check(self, points: TrajectoryPoints, now: float, start: float | None) -> None:
        """Raise `TrajectoryError` if the controller is inactive or refuses the trajectory."""
        if not self.active:
            raise TrajectoryError("the trajectory controller is inactive; activate it first")
        if points.effort is not None and not self.settings.has_effort:
            raise TrajectoryError("the trajectory has efforts, but this controller has no effort interface")
        time, derivatives = points.arrays(self._robot)
        points.efforts(self._robot)
        time = time + (now if start is None else start)
        if not np.isfinite(time).all():
            raise TrajectoryError(f"the trajectory begins {time[0] - now:g} s from now; expected a finite time")
        if time[-1] < now:
            raise TrajectoryError(
                f"the last point of the trajectory lies {now - time[-1]:.3g} s in the past; give it more "
                f"time_from_start, or stamp 0 to start on arrival"
            )
        if time[0] > now:
            check_limits(self._robot, *from_state(now, self._reference, time, derivatives))
        else:
            check_limits(self._robot, time, derivatives, first=0)

    def _abort(self, reason: str, position: np.ndarray) -> None:
        """Count and report an abort, and hold the measured `position` (n,)."""
        self.aborts += 1
        self._report(reason)
        self._hold(position)

    def _hold(self, position: np.ndarray) -> None:
        """Hold `position` (n,) with the hold effort from the next cycle on, unless a new trajectory arrives before."""
        self._next = position.copy()
        self._holding = True

    def _end_goal(self, state: Goal) -> bool:
        """Give the action goal its final state; return whether there was a goal in execution."""
        if not self.goals or self.goals[-1] is not Goal.EXECUTING:
            return False
        self.goals[-1] = state
        return True
