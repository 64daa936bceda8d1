"""Model of `joint_trajectory_controller`: its writes to the command interfaces position and effort, cycle by cycle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.hardware import CommandInterfaces
from dynid_ros.simulation.trajectory_points import JointSpline, TrajectoryPoints, check_limits, from_state
from dynid_ros.simulation.trajectory_settings import GoalTolerances, TrajectorySettings

# `forward_command_controller` for efforts: its reaction to commands, activation and deactivation.


class ForwardController:
    """Controller that writes the last command to the effort interfaces in each cycle.

    It follows ros2_controllers 4.42.1 (forward_controllers_base.cpp): a command that is not finite is dropped on
    arrival; an empty one is ignored; one of another size is an error of `update`, for which the manager deactivates the
    controller. Activation and deactivation forget the command and write nothing, so the torque before stays in the
    interface and acts.

    Args:
        joints: in the controller's order.
        arm_joints: these joints in the arm's order.
        interfaces: of the arm.
    """

    def __init__(self, joints: Sequence[str], arm_joints: Sequence[str], interfaces: CommandInterfaces) -> None:
        self._joints = list(joints)
        self._order = [self._joints.index(name) for name in arm_joints]
        self._interfaces = interfaces
        self._command: np.ndarray | None = None

    def activate(self) -> None:
        """Forget what came before; write nothing."""
        self._command = None

    def deactivate(self) -> None:
        """Deactivate the controller and forget its command."""
        self._command = None

    def command(self, effort: ArrayLike) -> None:
        """Take a command (n,), N m in the controller's joint order, of whatever size, also while inactive.

        Raises:
            DynidError: a number that is not finite; the command before stays.
        """
        values = np.asarray(effort, dtype=float)
        for number, value in enumerate(values.tolist()):
            if not np.isfinite(value):
                name = f"joint '{self._joints[number]}'" if number < len(self._joints) else f"value {number + 1}"
                raise DynidError(f"the effort command for {name} is {value}; expected a number")
        self._command = values

    def update(self) -> None:
        """Write the command.

        Raises:
            DynidError: it has another size; nothing is written.
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


class _Course:
    """A trajectory from its first sample on: states, efforts, and where it ends.

    Attributes:
        time: (K,) of its points, s, after that of the state that it begins with.
        has_several_points: whether the message had more than one, so that another may be blended with it.
    """

    def __init__(self, time: np.ndarray, derivatives: np.ndarray, effort: np.ndarray, several: bool = False) -> None:
        self.has_several_points = several
        self._spline = JointSpline(time, derivatives)
        self.time = time
        self._effort = effort
        self.last_position = derivatives[-1, 0]
        self.last_effort = effort[-1]
        self.end = float(time[-1])

    def at(self, time: float) -> np.ndarray:
        """Return position, velocity and acceleration (3, n)."""
        return self._spline.at(time)

    def effort_at(self, time: float) -> np.ndarray:
        """Return the efforts (n,), N m, linear between the points."""
        return np.array([np.interp(time, self.time, column) for column in self._effort.T])


class TrajectoryController:
    """Model of the controller that follows trajectories and action goals, with the rules of the real one.

    The rules come from the sources of ros2_controllers 4.42.1 (joint_trajectory_controller.cpp, trajectory.cpp,
    tolerances.hpp):

    - An activation holds the position in its command interface (`set_last_…`) or the measured one, with the effort of
      the *hold message*.
    - The hold message has no effort until an action goal has succeeded, then that goal's last; only `configure` makes
      it zero again. Each abort, timeout and activation commands it.
    - The tolerances in force are those of the last action goal, or of the parameters at `configure`. Neither a
      trajectory of the topic nor an activation nor a parameter restores them.
    - A trajectory begins at the measured state, or at the last command (`interpolate_from_desired_state`), which counts
      as that of the cycle that wrote it; if its first point is due already, it begins there.
    - With `allow_trajectory_replacement` (of 2026-08-15, `blend_with_active_trajectory`) a new trajectory blends with
      an active one of several points: points up to the new start stay, and the state of the old one joins the two. A
      start in the past counts as now, so the new trajectory is shifted by its delay. Times count from the cycle before,
      so that the kept points come one cycle late. After a hold the rules above are in force.
    - A violated tolerance writes nothing in its cycle; the next one holds the position measured then.
    - `cmd_timeout` does not end a hold, which follows an activation, a hold and a goal's success.
    - A deactivation leaves the position in its interface and makes the effort zero at once.

    It differs from the real one: positions and speeds beyond the limits of the URDF are refused; the velocity and
    acceleration of the set-point go to the drive, which interpolates between two of them.

    Args:
        robot: joints and limits.
        interfaces: of its hardware.
        settings: parameters; they may be replaced at run time, and each takes effect when the real one's does.
        report: receives messages on aborts.

    Attributes:
        settings: current parameters.
        aborts: number of aborted trajectories.
        active: whether it commands.
        goals: states of the action goals since `configure`, in their order.
    """

    def __init__(
        self,
        robot: RobotModel,
        interfaces: CommandInterfaces,
        settings: TrajectorySettings | None = None,
        report: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self.settings = settings or TrajectorySettings()
        self.aborts = 0
        self.active = False
        self._robot = robot
        self._interfaces = interfaces
        self._report = report
        self.configure()

    def configure(self) -> None:
        """Restart as after a cleanup: tolerances of the parameters, no effort in the hold message, no goals.

        Raises:
            DynidError: it is active.
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
        """Hold the place, see above; `position` (n,) is the measured one."""
        self.active = True
        self._timeout = self.settings.timeout
        commanded = self._interfaces.position
        last = self.settings.set_last_command_interface_value_as_state_on_activation and np.isfinite(commanded).all()
        self._reference = np.zeros((3, self._robot.n_joints))
        self._reference[0] = commanded if last else position
        self._commanded_at = None
        self._course = None
        self._holding = True
        self._next = self._reference[0].copy()

    def deactivate(self) -> None:
        """Command no more; an action goal is aborted."""
        self.active = False
        self._course = self._next = None
        self._end_goal(Goal.ABORTED)
        self._interfaces.rest()
        if self.settings.has_effort:
            self._interfaces.effort = np.zeros(self._robot.n_joints)

    def topic(self, points: TrajectoryPoints, now: float, start: float | None = None) -> None:
        """Take a trajectory of the topic in place of the one before; an action goal goes on and is judged by it.

        It begins at `start`, s; None: in the next cycle after `now`.

        Raises:
            TrajectoryError: one that is refused, or the controller is inactive; the one before goes on.
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
        """Take an action goal in place of the one before, and of any trajectory; raises as `topic`."""
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
        """Execute one cycle of `period` s: check the measured state, (n,) each, then command the next set-point."""
        if not self.active:
            return
        new = self._next is not None
        if new:
            self._course = self._begin(now, position, velocity)
            self._next = None
        self._cursor = now
        course = self._course
        if course is None:
            return
        desired = course.at(now)
        on_the_way = now < course.end
        late = now - course.end
        if not on_the_way and not self._holding and late > self._timeout:
            self._abort("Aborted due to command timeout", position)
        error = desired[0] - position
        speed = desired[1] - velocity if self.settings.has_effort else np.zeros_like(velocity)
        free = not self._holding
        astray = free and (on_the_way or new) and not self._tolerances.on_the_way(error)
        missed = free and not on_the_way and not self._tolerances.at_the_end(error, speed)
        too_late = missed and 0.0 < self._tolerances.goal_time < late
        if astray or too_late:
            self._end_goal(Goal.ABORTED)
            why = "state tolerance violation" if astray else "exceeded goal_time_tolerance"
            self._abort(f"Holding position due to {why}", position)
            return
        self._command(course.at(now + period), course.effort_at(now))
        self._commanded_at = now
        if free and not on_the_way and not missed and self._end_goal(Goal.SUCCEEDED):
            self._hold_effort = course.last_effort
            self._hold(course.last_position)

    def _command(self, desired: np.ndarray, effort: np.ndarray) -> None:
        self._reference = desired
        self._interfaces.position, self._interfaces.velocity, self._interfaces.acceleration = desired.copy()
        if self.settings.has_effort:
            self._interfaces.effort = effort

    def _begin(self, now: float, position: np.ndarray, velocity: np.ndarray) -> _Course:
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
        several = len(time) > 1
        if time[0] > now:
            state = np.array([position, velocity, np.zeros_like(position)])
            at = now
            if self.settings.interpolate_from_desired_state:
                state = self._reference
                at = now if self._commanded_at is None else self._commanded_at
            time, derivatives = from_state(at, state, time, derivatives)
            effort = np.vstack([np.nan_to_num(self._interfaces.effort), effort])
        return _Course(time, derivatives, effort, several)

    def _blend(
        self, active: _Course, wait: float, time: np.ndarray, derivatives: np.ndarray, effort: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times from now, derivatives and efforts of the active trajectory for `wait` s, then of the new one."""
        new_start = self._cursor + wait
        kept = active.time[(active.time > self._cursor) & (active.time < new_start)].tolist()
        if time[0] > 0.0:
            kept.append(new_start)
        before = np.array([active.at(instant)[: derivatives.shape[1]] for instant in kept])
        efforts = np.array([active.effort_at(instant) for instant in kept])
        return (
            np.concatenate([np.array(kept) - self._cursor, time + wait]),
            np.concatenate([before.reshape(len(kept), *derivatives.shape[1:]), derivatives]),
            np.concatenate([efforts.reshape(len(kept), effort.shape[1]), effort]),
        )

    def _check(self, points: TrajectoryPoints, now: float, start: float | None) -> None:
        if not self.active:
            raise TrajectoryError("the trajectory controller is inactive; activate it first")
        if points.effort is not None and not self.settings.has_effort:
            raise TrajectoryError("it has efforts, and this controller no effort interface")
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

    def _abort(self, why: str, position: np.ndarray) -> None:
        self.aborts += 1
        self._report(why)
        self._hold(position)

    def _hold(self, position: np.ndarray) -> None:
        """Hold from the next cycle on, with the effort of the hold message, unless another trajectory comes first."""
        self._next = position.copy()
        self._holding = True

    def _end_goal(self, state: Goal) -> bool:
        if not self.goals or self.goals[-1] is not Goal.EXECUTING:
            return False
        self.goals[-1] = state
        return True
