"""Where the limits of a motion come from: the robot's description, or who asked for the motion."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.report.formats import listed
from dynid_ros.trajectories import MotionLimits

URDF, GIVEN, NONE = "the description's", "given", "none"


def limit_sources(robot: RobotModel, limits: MotionLimits) -> dict[str, str]:
    """In words, by the kind of limit."""
    described = robot.limits
    nothing = np.full(len(limits.joint_names), np.nan)
    pairs = {
        "position": np.stack([limits.lower, limits.upper, described.lower, described.upper]),
        "velocity": np.stack([limits.velocity, described.velocity]),
        "acceleration": np.stack([limits.acceleration, nothing]),
        "jerk": np.stack([limits.jerk, nothing]),
        "torque": np.stack([limits.torque, described.effort]),
    }
    return {kind: _words(limits.joint_names, *np.split(values, 2)) for kind, values in pairs.items()}


def _words(joint_names: tuple[str, ...], used: NDArray, described: NDArray) -> str:
    """Source of the limits (1 or 2, n) in use; joints that differ from most are named."""
    from_urdf = np.all(used == described, axis=0)
    sources = np.where(np.isinf(used).all(axis=0), NONE, np.where(from_urdf, URDF, GIVEN))
    found, counts = np.unique(sources, return_counts=True)
    usual = found[np.argmax(counts)]
    others = [
        f"{source} for {listed([name for name, own in zip(joint_names, sources, strict=True) if own == source])}"
        for source in found
        if source != usual
    ]
    return ", ".join([str(usual), *others])
