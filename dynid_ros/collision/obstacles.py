"""What stands around an arm: boxes such as tables and walls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from urdf_parser_py.urdf import Pose

from dynid_ros.errors import CollisionError, ModelError
from dynid_ros.files import MEGABYTE, read_yaml
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.urdf import pose as transform

LARGEST_FILE = MEGABYTE
KEYS = {"name", "size", "position", "rpy"}


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A box.

    Attributes:
        name: what to call it in an error.
        lower: (3,) corner in the frame of the box, m.
        upper: (3,) the opposite corner.
        pose: (4, 4) of that frame in the base frame; None: the base frame itself.

    Raises:
        CollisionError: a corner or the pose is not finite numbers of that shape, or lower is not below upper.

    """

    name: str
    lower: ArrayLike
    upper: ArrayLike
    pose: ArrayLike | None = None
    centre: np.ndarray = field(init=False)
    half: np.ndarray = field(init=False)
    rotation: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        where = f"obstacle '{self.name}'"
        try:
            lower, upper = (
                finite_vector(corner, 3, f"{where}, {side} corner (m)")
                for side, corner in (("lower", self.lower), ("upper", self.upper))
            )
            place = np.eye(4) if self.pose is None else np.asarray(self.pose, dtype=float)
        except (ModelError, TypeError, ValueError) as error:
            raise CollisionError(f"{error}") from error
        if not np.all(lower < upper):
            raise CollisionError(f"{where}: lower corner {lower} is not below upper corner {upper} on each axis")
        rigid = place.shape == (4, 4) and np.allclose(place[:3, :3] @ place[:3, :3].T, np.eye(3), atol=1e-6)
        if not rigid or not np.isfinite(place).all():
            raise CollisionError(f"{where}: pose is not a (4, 4) transform; expected a rotation and a shift")
        object.__setattr__(self, "half", (upper - lower) / 2)
        object.__setattr__(self, "rotation", place[:3, :3])
        object.__setattr__(self, "centre", place[:3, :3] @ ((lower + upper) / 2) + place[:3, 3])


def read_obstacles(path: str | Path) -> tuple[Obstacle, ...]:
    """Obstacles from a YAML file: a list of boxes, each with `name`, `size`, `position` and, if it is turned, `rpy`.

    `size` (3,) are the sides, `position` (3,) is the middle in the base frame, m; `rpy` are roll, pitch and yaw about
    the fixed axes of the base frame, rad, as in a URDF.

    Raises:
        CollisionError: the file cannot be read, or an entry makes no sense; names the file and the entry.

    """
    try:
        entries = read_yaml(path, LARGEST_FILE)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CollisionError(f"obstacles '{path}': cannot be read ({reason}); give a YAML file") from error
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise CollisionError(f"obstacles '{path}': expected a list of boxes with {', '.join(sorted(KEYS))}")
    found = tuple(_obstacle(entry, f"obstacles '{path}', entry {i}") for i, entry in enumerate(entries, start=1))
    repeated = sorted(name for name, count in Counter(obstacle.name for obstacle in found).items() if count > 1)
    if repeated:
        raise CollisionError(f"obstacles '{path}': several are named '{repeated[0]}'; give each a name of its own")
    return found


def _obstacle(entry: object, where: str) -> Obstacle:
    if not isinstance(entry, dict):
        raise CollisionError(f"{where}: expected a mapping with {', '.join(sorted(KEYS))}")
    for key in entry:
        if key not in KEYS:
            raise CollisionError(f"{where}: key '{key}' is not known; expected {', '.join(sorted(KEYS))}")
    for key in sorted(KEYS - {"rpy"}):
        if key not in entry:
            raise CollisionError(f"{where}: '{key}' is missing")
    where = f"{where} ('{entry['name']}')"
    try:
        size, position, rpy = (
            finite_vector(entry.get(key, (0.0, 0.0, 0.0)), 3, f"{where}: {key}") for key in ("size", "position", "rpy")
        )
    except (ModelError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ModelError) else f"{where}: {error}; expected three numbers"
        raise CollisionError(f"{reason}") from error
    if not np.all(size > 0.0):
        raise CollisionError(f"{where}: size is {size}; expected three sides above zero")
    return Obstacle(str(entry["name"]), -size / 2, size / 2, transform(Pose(list(position), list(rpy)), where))
