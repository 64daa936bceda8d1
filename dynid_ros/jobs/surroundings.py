"""The workspace of an arm, from its URDF and the files of what stands around it."""

from collections.abc import Sequence
from pathlib import Path

from dynid_ros.collision import Bodies, read_obstacles
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import Workspace

FLOOR_HEIGHT, CLEARANCE = 0.0, 0.05
"""Unless told otherwise, m: the arm stands on something, and is kept away from what it might touch."""


def surroundings(
    robot: RobotModel,
    urdf: Path,
    *,
    floor_height: float = FLOOR_HEIGHT,
    clearance: float = CLEARANCE,
    box: Sequence[float] | None = None,
    obstacles: Sequence[Path] = (),
    mesh_directories: Sequence[Path] = (),
    skip_meshes: bool = False,
) -> Workspace:
    """Where the links, with their shapes, may be.

    Args:
        robot: the arm.
        urdf: its file; meshes with relative paths are looked for beside it.
        floor_height: lowest height of a moving link, m.
        clearance: smallest distance, m.
        box: lower and then upper corner, six numbers, m; None: no box.
        obstacles: YAML files, see `read_obstacles`.
        mesh_directories: where to look for meshes besides.
        skip_meshes: take a link whose mesh cannot be read for a line.

    Raises:
        CollisionError: a mesh or a file of obstacles cannot be read.
        TrajectoryError: the arm has no room at all.

    """
    try:
        bodies = Bodies.of(robot, [urdf.parent, *mesh_directories], skip_meshes)
    except CollisionError as error:
        raise CollisionError(f"{error} (--mesh-directory, --skip-meshes)") from error
    around = [obstacle for path in obstacles for obstacle in read_obstacles(path)]
    corners = None if box is None else (box[:3], box[3:])
    return Workspace(robot, floor_height, clearance, bodies, box=corners, obstacles=around)
