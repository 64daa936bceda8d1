"""`joint_trajectory_controller` with the command interfaces position and effort, and hardware that sums them."""

from __future__ import annotations

import numpy as np

from dynid_ros.errors import TrajectoryError
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.following import AT_ONCE, TrajectoryPoints


class TrajectoryController:
    """Has an arm follow trajectories whose points may have efforts; to be updated at the controller's rate.

    From that of now, effort goes linearly from point to point and stays at the last one's; a trajectory without efforts
    makes it zero at once. An abort holds the place where the arm is then. The effort at that is zero, or once an action
    goal has succeeded the last of that goal, which belongs to no pose of now; here it is the last one commanded, the
    like of it.

    Args:
        arm: in position mode.
        tolerance: rad or m from the desired position at which a trajectory is aborted, that is its way and its
            beginning; 0: none.
        timeout: s after the last point at which it is aborted; 0: none.
        keeps_effort: what an abort does with the effort, as above; False: zero.

    Attributes:
        aborts: their number.

    """

    def __init__(
        self, arm: SimulatedArm, *, tolerance: float = 0.0, timeout: float = 0.0, keeps_effort: bool = True
    ) -> None:
        self.aborts = 0
        self._arm = arm
        self._tolerance = tolerance or np.inf
        self._timeout = timeout or np.inf
        self._keeps_effort = keeps_effort
        self.reset()

    def reset(self) -> None:
        """Forget the trajectory; the arm has been reset."""
        self._holding, self._new = True, False
        self._time, self._effort = np.zeros(1), np.zeros((1, self._arm.robot.n_joints))
        self._goal = self._arm.position

    def follow(self, points: TrajectoryPoints, delay: float = 0.0) -> None:
        """Follow a trajectory in place of the one before; see `SimulatedArm.follow`.

        Raises:
            TrajectoryError: one that a controller would refuse; the one before goes on.

        """
        effort = self._efforts(points)
        self._arm.follow(self._within_reach(points, delay), delay)
        order = [list(points.joint_names).index(name) for name in self._arm.robot.joint_names]
        goal = np.asarray(points.position, dtype=float)[-1, order]
        now = self._arm.time
        time = np.asarray(points.time, dtype=float) + now + delay
        if points.effort is not None and time[0] > now:
            time, effort = np.append(now, time), np.vstack([self._at(now), effort])
        self._time, self._effort, self._goal = time, effort, goal
        self._holding, self._new = False, True

    def update(self) -> None:
        """Command the effort of now, or abort."""
        now, new = self._arm.time, self._new
        self._new = False
        if self._holding:
            return
        on_the_way = now < self._time[-1]
        error = self._arm.position_error if on_the_way else self._goal - self._arm.position
        far = (on_the_way or new) and np.abs(error).max() > self._tolerance
        if far or now - self._time[-1] > self._timeout:
            self._abort()
        else:
            self._arm.add_effort(self._at(now))

    def _within_reach(self, points: TrajectoryPoints, delay: float) -> TrajectoryPoints:
        """The same, but to a last point that is due the servo is given the time that it needs: it does not jump."""
        time, position = np.asarray(points.time, dtype=float), np.asarray(points.position, dtype=float)
        names, limits = list(self._arm.robot.joint_names), self._arm.robot.limits
        known = sorted(points.joint_names) == sorted(names) and position.shape == (1, len(names))
        if not known or time.shape != (1,) or time[0] + delay > 0.0 or not np.isfinite(position).all():
            return points
        order = [names.index(name) for name in points.joint_names]
        way = np.abs(position[0] - (self._arm.position + self._arm.position_error)[order])
        needed = max(AT_ONCE, 1.01 * float(np.max(way / limits.velocity[order])))
        return TrajectoryPoints(points.joint_names, [needed - delay], position)

    def _at(self, now: float) -> np.ndarray:
        return np.array([np.interp(now, self._time, column) for column in self._effort.T])

    def _abort(self) -> None:
        self.aborts += 1
        now = self._arm.time
        self._arm.hold()
        kept = self._at(now) if self._keeps_effort else np.zeros(self._effort.shape[1])
        self._time, self._effort = np.array([now]), kept[np.newaxis]
        self._arm.add_effort(kept)
        self._holding = True

    def _efforts(self, points: TrajectoryPoints) -> np.ndarray:
        """(K, n) in the robot's joint order; zero where the trajectory has none."""
        robot = self._arm.robot
        shape = (np.size(points.time), robot.n_joints)
        if points.effort is None:
            return np.zeros(shape)
        effort = np.asarray(points.effort, dtype=float)
        if effort.shape != shape or not np.isfinite(effort).all():
            raise TrajectoryError(f"effort of the trajectory is {effort.tolist()}; expected {shape} finite numbers")
        if sorted(points.joint_names) != sorted(robot.joint_names):
            return np.zeros(shape)  # refused with a better message
        return effort[:, [list(points.joint_names).index(name) for name in robot.joint_names]]
