"""One joint of an arm, the others held by their brakes, as recordings show it."""

from collections.abc import Sequence

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.model.robot import locked
from dynid_ros.recording import Recording

HELD = {"revolute": float(np.deg2rad(1.0)), "prismatic": 1e-3}
"""Way up to which a joint counts as held, rad or m."""


def single_joint(robot: RobotModel, joint: str, recordings: Sequence[Recording]) -> RobotModel:
    """The arm with all joints but one held where the recordings have them.

    Args:
        robot: the arm.
        joint: that moves.
        recordings: with all joints of the arm.

    Raises:
        ModelError: the arm has no such joint.
        RecordingError: a joint is missing, or moved though it is to be held.

    """
    positions = np.concatenate([recording.select(robot.joint_names).position for recording in recordings])
    held = locked(robot, [joint], positions.mean(axis=0))
    for name, kind, way in zip(robot.joint_names, robot.joint_types, np.ptp(positions, axis=0), strict=True):
        if name != joint and way > HELD[kind]:
            shown = f"{np.rad2deg(way):.2g}°" if kind == "revolute" else f"{1e3 * way:.2g} mm"
            raise RecordingError(
                f"{', '.join(recording.source for recording in recordings)}: joint '{name}' moves by {shown} while "
                f"only '{joint}' should; hold it with its brake, or identify all joints together"
            )
    return held
