"""Random Fourier motions that keep to all limits."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.design.motion_room import MotionRoom
from dynid_ros.errors import TrajectoryError
from dynid_ros.information.torque_information import InformationSource, MotionWithJerk
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits

POSES = (256, 4096)
"""Poses looked at (powers of two), the second number where the first has none that is allowed."""
PART = 0.99
"""Of the limits, that a motion takes at most."""
SHRINK = 0.8
SHRINKS = 16
"""How often a motion that leaves its room is made smaller, down to a thirtieth."""


class RandomFourier:
    """Draws motions, each joint's as wide as its limits allow, and makes smaller what leaves the room.

    Args:
        robot: the arm.
        limits: what the joints may do.
        room: the same limits, those of torque and the workspace.
        source: foresees torques.
        base_frequency: Hz.
        harmonics: at least 2.
        held: (n,) positions of the joints that stand still, NaN for the others; None: all move.

    Attributes:
        centres: (M, n) poses that are allowed.

    Raises:
        TrajectoryError: no pose is allowed; says what stands in the way.

    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        room: MotionRoom,
        source: InformationSource,
        *,
        base_frequency: float,
        harmonics: int,
        held: NDArray | None = None,
    ) -> None:
        self._robot, self._limits, self._room, self._source = robot, limits, room, source
        self._base_frequency, self._harmonics = base_frequency, harmonics
        self._held = np.full(robot.n_joints, np.nan) if held is None else held
        self.centres = self._allowed_poses()

    def draw(self, rng: np.random.Generator) -> FourierSeries:
        """A motion about a pose that is allowed; it may still leave its room if even a small one does so there."""
        sine, cosine = rng.standard_normal((2, self._robot.n_joints, self._harmonics))
        series = FourierSeries.at_rest(self._limits.joint_names, self._base_frequency, sine, cosine)
        centre = self.centres[rng.integers(len(self.centres))]
        low, high, speed, most = series.largest()
        limits = self._limits
        bounds = [(limits.upper - limits.lower) / (high - low), limits.velocity / speed, limits.acceleration / most]
        series = series.scaled(PART * np.min([*bounds, limits.jerk / series.largest_jerk()], axis=0))
        series = series.scaled(np.isnan(self._held))
        middle, reach = (limits.upper + limits.lower) / 2, PART * (limits.upper - limits.lower) / 2
        for _ in range(SHRINKS):
            low, high, _, _ = series.largest()
            room = np.maximum(reach - (high - low) / 2, 0.0)
            placed = series.shifted(np.clip(centre, middle - room, middle + room) - (low + high) / 2)
            if self._fits(placed):
                break
            series = series.scaled(SHRINK)
        return placed

    def _fits(self, series: FourierSeries) -> bool:
        try:
            return bool(excess(self._source, self._room, series).max() <= PART - 1)
        except TrajectoryError:
            return False

    def _allowed_poses(self) -> NDArray:
        for count in POSES:
            poses = np.where(np.isnan(self._held), self._limits.poses(count), self._held)
            still = np.zeros_like(poses)
            excess = self._room.excess(MotionWithJerk(poses, still, still, still), self._robot.gravity_torque(poses))
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


def excess(source: InformationSource, room: MotionRoom, series: FourierSeries, times: NDArray | None = None) -> NDArray:
    """Excess (N, C) of a series at times (N,), evenly over a period; None: those of its samples.

    Raises:
        TrajectoryError: the source cannot foresee the torques.

    """
    times = series.times()[:-1] if times is None else times
    motion = MotionWithJerk(*series.at(times), series.jerk(times))
    return room.excess(motion, source.torque(motion))
