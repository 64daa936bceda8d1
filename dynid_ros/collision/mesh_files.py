"""Where the meshes of a URDF are, and the triangles in them."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from dynid_ros.errors import CollisionError
from dynid_ros.files import MEGABYTE, require_file

LARGEST_FILE = 200 * MEGABYTE
PACKAGE_SCHEMES = ("package://", "model://")


def find_mesh(name: str, directories: Sequence[Path]) -> Path:
    """Path of a mesh, from the name that a URDF gives it.

    `package://p/rest` is looked for in `directories` (those that hold a folder p or share/p, or are in p themselves),
    on ROS_PACKAGE_PATH and on AMENT_PREFIX_PATH; a relative path in `directories`; `file://` and absolute paths are
    taken as they are.

    Raises:
        CollisionError: there is no such file; says where it was looked for.

    """
    tried = list(_candidates(name, directories))
    for path in tried:
        if path.is_file():
            return path
    places = ", ".join(str(path) for path in dict.fromkeys(tried)) or "nowhere: no directory is known"
    raise CollisionError(f"mesh '{name}' is not found (looked for {places}); name the directory that holds it")


def _candidates(name: str, directories: Sequence[Path]) -> Iterator[Path]:
    scheme = next((scheme for scheme in PACKAGE_SCHEMES if name.startswith(scheme)), None)
    if scheme is not None:
        package, _, rest = unquote(name.removeprefix(scheme)).partition("/")
        given = [directory.resolve() for directory in directories]
        for folder in given:
            yield folder / package / rest
            yield folder / "share" / package / rest
        for folder in [*given, *_from_environment("ROS_PACKAGE_PATH")]:
            yield from (parent / rest for parent in (folder, *folder.parents) if parent.name == package)
        yield from (folder / package / rest for folder in _from_environment("ROS_PACKAGE_PATH"))
        yield from (prefix / "share" / package / rest for prefix in _from_environment("AMENT_PREFIX_PATH"))
        return
    path = Path(unquote(name.removeprefix("file://")) if name.startswith("file://") else name)
    if path.is_absolute():
        yield path
    else:
        yield from (directory / path for directory in directories)


def _from_environment(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def read_triangles(path: Path) -> np.ndarray:
    """Triangles (F, 3, 3) of a mesh file, in the axes of the file (read-only).

    A .dae file says what its unit is: these are in metres. Others are in the unit of the file; a URDF scales them.

    Raises:
        CollisionError: the file cannot be read, or `trimesh` (for .dae `pycollada` too) is not installed.

    """
    try:
        require_file(path, LARGEST_FILE)
        return _triangles(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise CollisionError(f"mesh '{path}' cannot be read ({error.strerror or error})") from error


@lru_cache(maxsize=64)
def _triangles(path: Path, _changed: int) -> np.ndarray:
    try:
        import trimesh  # noqa: PLC0415  # only meshes need it
    except ImportError as error:
        raise CollisionError(f"mesh '{path}' needs the library trimesh; install it: pip install trimesh") from error
    try:
        mesh: Any = trimesh.load(path, force="mesh", process=False)
        triangles = np.asarray(mesh.triangles, dtype=np.float64) * _unit(path)
    except Exception as error:  # whatever a broken file makes a parser raise
        raise CollisionError(
            f"mesh '{path}' cannot be read as {path.suffix or 'a mesh'} ({type(error).__name__}); {_way_out(path)}"
        ) from error
    is_solid = triangles.shape[1:] == (3, 3)  # not so where corners have two coordinates
    if not is_solid or not len(triangles) or not np.isfinite(triangles).all():
        raise CollisionError(f"mesh '{path}' has no triangles in space, or some that are not finite; {_way_out(path)}")
    triangles.flags.writeable = False
    return triangles


def _unit(path: Path) -> float:
    """Metres in the unit of a .dae file, which trimesh leaves to us; 1 for others."""
    if path.suffix.lower() != ".dae":
        return 1.0
    found = re.search(rb"""<unit\b[^>]*\bmeter\s*=\s*["']([^"']+)["']""", path.read_bytes())
    return float(found[1]) if found else 1.0


def _way_out(path: Path) -> str:
    if path.suffix.lower() == ".dae" and find_spec("collada") is None:
        return ".dae files need the library pycollada: pip install pycollada"
    return "export it anew, as binary .stl for example"
