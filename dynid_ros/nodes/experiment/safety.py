"""Limits and workspace of an experiment, and the check of motions against them."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.collision import Bodies, read_obstacles
from dynid_ros.collision.srdf import allowed_pairs
from dynid_ros.errors import CollisionError, DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace, check_limits, move
from dynid_ros.trajectories.workspace import WorkspaceAndTorque

AVAILABLE = "available"
SHAPES_REQUIRED = "required"
NO_SHAPES = "none"
LINK_SHAPES = (AVAILABLE, SHAPES_REQUIRED, NO_SHAPES)


class Safety:
    """Limits and workspace from the parameters of the node at its start.

    Attributes:
        limits: limits of the joints.
        workspace: space that the links may occupy.
        warnings: descriptions of checks that are missing or coarse.

    Raises:
        DynidError: a limit is neither in the URDF nor given, or a parameter is invalid.
    """

    def __init__(self, robot: RobotModel, settings: SimpleNamespace) -> None:
        self.limits = MotionLimits.of(
            robot,
            settings.acceleration_limits,
            position_lower=settings.position_lower,
            position_upper=settings.position_upper,
            velocity_limits=settings.velocity_limits,
            jerk_limits=settings.jerk_limits,
            torque_limits=settings.torque_limits,
            joint_limits=settings.joint_limits_file,
        )
        bodies, self.warnings = _bodies(robot, settings)
        box = (np.array(settings.box_lower), np.array(settings.box_upper))
        self.workspace = Workspace(
            robot,
            settings.floor_height,
            settings.clearance,
            bodies,
            box=box if any(np.isfinite(corner).any() for corner in box) else None,
            obstacles=read_obstacles(settings.obstacles_file) if settings.obstacles_file else (),
        )
        self.warnings += self.workspace.crowded
        self._torque_check = WorkspaceAndTorque(self.workspace, self.limits, robot, 0.0)
        self.warnings += self._torque_check.warnings

    def check(self, motion: Trajectory) -> None:
        """Check a motion against limits, workspace and, if the URDF has masses, torque limits.

        Raises:
            TrajectoryError: the motion violates a limit; the message names joint or link, and time.
        """
        check_limits(motion, self.limits)
        self._torque_check.check(motion)

    def check_start(self, measured: NDArray) -> None:
        """Check that the arm may rest at the positions (n,).

        Raises:
            TrajectoryError: it may not.
        """
        try:
            self.check(move(self.limits.joint_names, measured, measured, 1.0))
        except TrajectoryError as error:
            raise TrajectoryError(f"the arm cannot start from where it is: {error}; move it away by hand") from error


def _bodies(robot: RobotModel, settings: SimpleNamespace) -> tuple[Bodies | None, tuple[str, ...]]:
    """Return the bodies of the links, None if all links are lines, and warnings about them."""
    if settings.link_shapes == NO_SHAPES:
        return None, ("link_shapes is none: links are lines; leave room for their thickness",)
    directories = [directory for directory in settings.mesh_directories if directory]
    if settings.robot_description and not settings.robot_description.lstrip().startswith("<"):
        directories.append(str(Path(settings.robot_description).parent))
    warnings = []
    srdf = settings.srdf_file or None
    allowed = [pair for pair in settings.allowed_pairs if pair]
    if srdf:
        allowed_pairs(srdf, robot.tree)
    try:
        bodies = Bodies.of(robot, directories, srdf=srdf, allowed=allowed)
    except CollisionError as error:
        if settings.link_shapes == SHAPES_REQUIRED:
            raise DynidError(f"{error} (parameters mesh_directories, link_shapes)") from error
        warnings.append(f"{error}")
        bodies = Bodies.of(robot, directories, skip_unreadable=True, srdf=srdf, allowed=allowed)
    if bodies.left_out:
        warnings.append(f"it is not known where {', '.join(bodies.left_out)} are: nothing is kept clear of them")
    if len(bodies.without_shape) > robot.n_joints:
        return None, (*warnings, "no link has a shape that is known: links are lines; leave room for their thickness")
    if bodies.without_shape:
        warnings.append(
            f"no shape is known of {', '.join(bodies.without_shape)}: these are lines; leave room for their thickness"
        )
    return bodies, tuple(warnings)
