"""Random Fourier motions that keep to all limits."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_basis import Motion
from dynid_ros.excitation.motion_room import MotionRoom
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits

POSES = (256, 4096)
"""Poses looked at (powers of two), the second number where the first has none that is allowed."""
SHRINK = 0.8
SHRINKS = 16
"""How often a motion that leaves its room is made smaller, down to a thirtieth."""


class RandomFourier:
    """Draws motions, each joint's as wide as its limits allow, and makes smaller what leaves the room.

    Args:
        robot: the arm.
        limits: what the joints may do.
        room: the same limits, those of torque and the workspace.
        base_frequency: Hz.
        harmonics: at least 2.

    Attributes:
        centres: (M, n) poses that are allowed.

    Raises:
        TrajectoryError: no pose is allowed; says what stands in the way.

    """

    def __init__(
        self, robot: RobotModel, limits: MotionLimits, room: MotionRoom, base_frequency: float, harmonics: int
    ) -> None:
        self._robot, self._limits, self._room = robot, limits, room
        self._base_frequency, self._harmonics = base_frequency, harmonics
        self.centres = self._allowed_poses()

    def draw(self, rng: np.random.Generator) -> FourierSeries:
        """A motion about a pose that is allowed; it may still leave its room if even a small one does so there."""
        sine, cosine = rng.standard_normal((2, self._robot.n_joints, self._harmonics))
        series = FourierSeries.at_rest(self._limits.joint_names, self._base_frequency, sine, cosine)
        centre = self.centres[rng.integers(len(self.centres))]
        low, high, speed, most = series.largest()
        limits = self._limits
        bounds = [(limits.upper - limits.lower) / (high - low), limits.velocity / speed, limits.acceleration / most]
        series = series.scaled(np.min([*bounds, limits.jerk / series.largest_jerk()], axis=0))
        for _ in range(SHRINKS):
            low, high, _, _ = series.largest()
            half = (high - low) / 2
            placed = series.shifted(np.clip(centre, limits.lower + half, limits.upper - half) - (low + high) / 2)
            if excess(self._robot, self._room, placed).max() <= 0:
                break
            series = series.scaled(SHRINK)
        return placed

    def _allowed_poses(self) -> NDArray:
        for count in POSES:
            poses = self._limits.poses(count)
            still = np.zeros_like(poses)
            excess = self._room.excess(Motion(poses, still, still, still), self._robot.gravity_torque(poses))
            allowed = np.all(excess <= 0, axis=1)
            if allowed.any():
                return poses[allowed]
        raise TrajectoryError(f"none of {count} poses is allowed: {self._obstacle(excess)}")

    def _obstacle(self, excess: NDArray) -> str:
        """What forbids poses (M, C)."""
        broken = excess > 0
        alone = broken & (broken.sum(axis=1) == 1)[:, None]
        worst = np.argmax(alone.sum(axis=0) if alone.any() else broken.sum(axis=0))
        how = "forbidden by nothing else" if alone.any() else "forbidden by that among others"
        share = np.mean(alone[:, worst] if alone.any() else broken[:, worst])
        return f"in the way is {self._room.names[worst]} ({100 * share:.0f} % of the poses are {how})"


def excess(robot: RobotModel, room: MotionRoom, series: FourierSeries, times: NDArray | None = None) -> NDArray:
    """Excess (N, C) of a series at times (N,); None: those of its samples."""
    times = series.times()[:-1] if times is None else times
    motion = Motion(*series.at(times), series.jerk(times))
    return room.excess(motion, robot.inverse_dynamics(*motion[:3]))
