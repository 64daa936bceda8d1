"""The motion of one static rotation: steps up, then down, each followed by a rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.excitation.rotation_search import Rotation
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.minimum_jerk import minimum_jerk, move
from dynid_ros.trajectories.trajectory import Trajectory

UP, DOWN = 1, -1


@dataclass(frozen=True)
class Dwell:
    """A rest of the whole arm in a pose at which every joint arrived in the same direction.

    Attributes:
        joint: name of the joint that turns.
        direction: 1 where all joints arrived moving upwards, -1 downwards.
        start: time of arrival, s.
        end: time of departure, s.

    """

    joint: str
    direction: int
    start: float
    end: float

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML."""
        times = {"start": round(self.start, 4), "end": round(self.end, 4)}
        return {"joint": self.joint, "direction": self.direction, **times}


def stepped_rotation(
    rotation: Rotation, limits: MotionLimits, approach: NDArray, steps: int, dwell: float
) -> tuple[Trajectory, list[Dwell]]:
    """Motion from below the first pose up through all `steps` poses and down again, and its 2 · `steps` dwells.

    On the way from pose to pose the holding joints move away by `approach` (n,) and come back, so that all joints
    arrive from below on the way up, and from above on the way down.
    """
    names = limits.joint_names
    poses = rotation.poses(steps)
    aside = np.where(np.arange(len(names)) == rotation.joint, 0.0, approach)
    nudge = limits.shortest_move(approach)
    step = max(2 * nudge, limits.shortest_move(poses[1] - poses[0]))
    parts = [move(names, poses[0] - approach, poses[0], nudge)]
    dwells = []
    time = parts[0].duration
    for direction, path in ((UP, poses), (DOWN, poses[::-1])):
        for k, pose in enumerate(path):
            parts.append(move(names, pose, pose, dwell))
            dwells.append(Dwell(names[rotation.joint], direction, time, time + dwell))
            if k + 1 < steps:
                parts.append(_transit(limits, pose, path[k + 1], -direction * aside, step))
            elif direction == UP:
                parts += [move(names, pose, pose + approach, nudge), move(names, pose + approach, pose, nudge)]
            time = sum(part.duration for part in parts)
    return Trajectory.join(parts), dwells


def _transit(limits: MotionLimits, start: NDArray, goal: NDArray, aside: NDArray, duration: float) -> Trajectory:
    """Minimum-jerk move; the joints that hold move `aside` (n,) in its first half and come back in the second."""
    time = np.array([0.0, 0.5, 1.0]) * duration
    position, velocity, acceleration = minimum_jerk(start, goal, duration, time)
    position[1] += aside
    return Trajectory(limits.joint_names, time, position, velocity, acceleration)
