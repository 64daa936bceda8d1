"""What the checks of a planned motion leave open, said so that nobody takes it for checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.report.formats import listed
from dynid_ros.trajectories import MotionLimits, Workspace
from dynid_ros.trajectories.limits import unknown_torques


def not_checked(robot: RobotModel, limits: MotionLimits, workspace: Workspace) -> list[str]:
    """A sentence for each thing that was not looked at."""
    return [*_surroundings(workspace), *_links(workspace), *_torques(robot, limits), *_jerk(limits)]


def _surroundings(workspace: Workspace) -> Iterator[str]:
    if not workspace.obstacles:
        yield "No obstacles are known: tables, walls, fixtures and people are not looked at."
    if np.isneginf(workspace.floor_height):
        yield "No floor is known."
    yield "Cables, hoses and whatever else the description of the robot lacks are never looked at."


def _links(workspace: Workspace) -> Iterator[str]:
    bodies = workspace.bodies
    if len(bodies.without_shape) > 0:
        yield (
            f"No shape is known of {listed(list(bodies.without_shape))}: lines without thickness stand for them"
            + (", and with clearance 0 they are not kept apart." if not workspace.clearance else ".")
        )
    if bodies.left_out:
        yield f"Nothing tells where {listed(list(bodies.left_out))} are: they are not looked at."
    if workspace.exempt:
        yield f"These are too near in every pose, and not kept apart: {listed(list(workspace.exempt))}."


def _torques(robot: RobotModel, limits: MotionLimits) -> Iterator[str]:
    unknown = unknown_torques(limits, robot)
    if not np.any(robot.parameters):
        yield "No torque is foreseen: the description of the robot has no masses."
    elif unknown:
        yield f"No torque is foreseen for {listed(unknown)}: the description of the robot has no mass there."
    else:
        yield "Torques are foreseen from the masses of the description, without friction, rotors and load."
    free = [name for name, limit in zip(limits.joint_names, limits.torque, strict=True) if not np.isfinite(limit)]
    if free:
        yield f"No torque limit is known of {listed(free)}."


def _jerk(limits: MotionLimits) -> Iterator[str]:
    if not np.isfinite(limits.jerk).any():
        yield "Jerk is not limited."
