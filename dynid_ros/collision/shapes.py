"""Shapes of the links of a URDF (collision elements, or else visual elements) in the frames of the chain's links."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import numpy as np

from dynid_ros.collision.obstacles import Placement
from dynid_ros.errors import CollisionError, ModelError
from dynid_ros.files import MEGABYTE, require_file
from dynid_ros.model.urdf import pose, read_numbers, read_origin

MAX_FILE_BYTES = 200 * MEGABYTE
MAX_NAMED_PLACES = 12
"""Largest number of searched paths in an error message."""
PACKAGE_SCHEMES = ("package://", "model://")
N_PRISM_SIDES = 16
"""Number of sides of the circumscribed prism that replaces a cylinder."""
MIN_EDGES_PER_SIZE = 10
"""Smallest ratio of the size of a shape to the longest edge of its triangles."""


def find_mesh(name: str, directories: Sequence[Path]) -> Path:
    """Return the path of a mesh, given its name in a URDF.

    `package://p/rest` is searched in `directories` (folders that contain p or share/p, or that are inside p), on
    ROS_PACKAGE_PATH and on AMENT_PREFIX_PATH; a relative path is searched in `directories`. `file://` and absolute
    paths are used directly. If such a file does not exist, for example on another computer, the last parts of its path
    are searched in `directories`.

    Raises:
        CollisionError: the mesh is not found; the message names the searched paths.
    """
    tried = list(dict.fromkeys(_candidates(name, directories)))
    for path in tried:
        if path.is_file():
            return path
    places = ", ".join(map(str, tried[:MAX_NAMED_PLACES])) or "nowhere: no directory is known"
    places += ", …" if len(tried) > MAX_NAMED_PLACES else ""
    raise CollisionError(f"mesh '{name}' is not found (looked for {places}); name the directory that holds it")


def _candidates(name: str, directories: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths where a mesh may be, most likely first."""
    scheme = next((scheme for scheme in PACKAGE_SCHEMES if name.startswith(scheme)), None)
    if scheme is not None:
        package, _, rest = unquote(name.removeprefix(scheme)).partition("/")
        folders = [directory.resolve() for directory in directories]
        for folder in folders:
            yield folder / package / rest
            yield folder / "share" / package / rest
        for folder in [*folders, *_from_environment("ROS_PACKAGE_PATH")]:
            yield from (parent / rest for parent in (folder, *folder.parents) if parent.name == package)
        yield from (folder / package / rest for folder in _from_environment("ROS_PACKAGE_PATH"))
        yield from (prefix / "share" / package / rest for prefix in _from_environment("AMENT_PREFIX_PATH"))
        return
    path = Path(unquote(name.removeprefix("file://")) if name.startswith("file://") else name)
    if path.is_absolute():
        yield path
        ends = [path.relative_to(parent) for parent in reversed(path.parents)]
    else:
        ends = [path]
    yield from (directory / end for end in ends for directory in directories)


def _from_environment(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def read_triangles(path: Path) -> np.ndarray:
    """Return the triangles (F, 3, 3) of a mesh file in the axes of the file (read-only).

    The triangles of a .dae file, which contains its unit, are in metres. Others are in the unit of the file; the scale
    in the URDF converts them.

    Raises:
        CollisionError: the file cannot be read, or has no valid triangles.
    """
    try:
        require_file(path, MAX_FILE_BYTES)
        return _triangles(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise CollisionError(f"mesh '{path}' cannot be read ({error.strerror or error})") from error


@lru_cache(maxsize=16)
def _triangles(path: Path, _changed: int) -> np.ndarray:
    try:
        import trimesh  # noqa: PLC0415  # only meshes need it
    except ImportError as error:
        raise CollisionError(f"mesh '{path}' needs the library trimesh; install it: pip install trimesh") from error
    try:
        mesh: Any = trimesh.load(path, force="mesh", process=False)
        triangles = np.asarray(mesh.triangles, dtype=np.float64) * _unit(path)
    except Exception as error:  # a broken file can make a parser raise anything
        raise CollisionError(
            f"mesh '{path}' cannot be read as {path.suffix or 'a mesh'} ({type(error).__name__}); {_remedy(path)}"
        ) from error
    is_solid = triangles.shape[1:] == (3, 3)  # false if corners have two coordinates
    if not is_solid or not len(triangles) or not np.isfinite(triangles).all():
        raise CollisionError(f"mesh '{path}' has no triangles in space, or some that are not finite; {_remedy(path)}")
    triangles.flags.writeable = False
    return triangles


def _unit(path: Path) -> float:
    """Return the unit of a .dae file in metres, which trimesh does not apply; 1 for other files."""
    if path.suffix.lower() != ".dae":
        return 1.0
    unit = re.search(rb"""<unit\b[^>]*\bmeter\s*=\s*["']([^"']+)["']""", path.read_bytes())
    return float(unit[1]) if unit else 1.0


def _remedy(path: Path) -> str:
    if path.suffix.lower() == ".dae" and find_spec("collada") is None:
        return ".dae files need the library pycollada: pip install pycollada"
    return "export it again, for example as binary .stl"


def box_faces(size: np.ndarray) -> np.ndarray:
    """Return the triangles (12, 3, 3) of a box about the origin with sides `size` (3,)."""
    triangles = []
    for axis in range(3):
        u = (axis + 1) % 3
        v = (axis + 2) % 3
        for side in (-0.5, 0.5):
            corners = np.zeros((4, 3))
            corners[:, axis] = side
            corners[:, u] = [-0.5, 0.5, 0.5, -0.5]
            corners[:, v] = [-0.5, -0.5, 0.5, 0.5]
            triangles += [corners[[0, 1, 2]], corners[[0, 2, 3]]]
    return np.array(triangles) * size


def cylinder_faces(radius: float, length: float) -> np.ndarray:
    """Return the triangles (4 N_PRISM_SIDES, 3, 3) of a prism that contains a cylinder along z about the origin."""
    angles = np.arange(N_PRISM_SIDES + 1) * (2.0 * np.pi / N_PRISM_SIDES)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (radius / np.cos(np.pi / N_PRISM_SIDES))
    low, high = (np.column_stack([rim, np.full(N_PRISM_SIDES + 1, z)]) for z in (-length / 2, length / 2))
    centres = (np.array([0.0, 0.0, -length / 2]), np.array([0.0, 0.0, length / 2]))
    triangles = []
    for i in range(N_PRISM_SIDES):
        triangles += [[low[i], low[i + 1], high[i]], [high[i], low[i + 1], high[i + 1]]]
        triangles += [[centres[0], low[i], low[i + 1]], [centres[1], high[i], high[i + 1]]]
    return np.array(triangles)


def subdivided(triangles: np.ndarray, longest: float) -> np.ndarray:
    """Divide triangles (F, 3, 3) by halving their longest edges until no edge is longer than `longest`, m."""
    done = []
    while len(triangles):
        edges = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        short = edges.max(axis=1) <= longest
        done.append(triangles[short])
        rest = triangles[~short]
        k = edges[~short].argmax(axis=1)
        a, b, c = (rest[np.arange(len(rest)), (k + i) % 3] for i in range(3))
        middle = (a + b) / 2
        triangles = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return np.concatenate(done) if done else triangles


@dataclass(frozen=True, eq=False)
class LinkShape:
    """Surface of one link of the URDF.

    Attributes:
        link: link of the chain that carries it, from 0; -1 for the base.
        name: name of the link of the URDF.
        faces: (F, P, 3) points in the frame of the chain's link; a face is the hull of P points.
        margins: (F,) thickness around the hull, m.
    """

    link: int
    name: str
    faces: np.ndarray
    margins: np.ndarray


class ShapeReader:
    """Reader of the shapes of links.

    Args:
        urdf: text of the URDF.
        directories: folders of meshes, see `find_mesh`.
    """

    def __init__(self, urdf: str, directories: Sequence[Path]) -> None:
        self._elements = {link.get("name"): link for link in ET.fromstring(urdf).findall("link")}
        self._directories = directories

    def shape(self, placement: Placement) -> LinkShape | None:
        """Return the space that a link covers in all its poses; None if it has neither collision nor visual elements.

        A face of the result is the convex hull of one triangle in all poses.

        Raises:
            CollisionError: a geometry is not valid, or a mesh cannot be read; the message names the link.
        """
        try:
            parts = list(self._parts(self._elements[placement.name]))
        except CollisionError as error:
            raise CollisionError(f"link '{placement.name}': {error}") from error
        if not parts:
            return None
        faces = np.concatenate([points for points, _ in parts])
        margins = np.concatenate([np.full(len(points), margin) for points, margin in parts])
        reach = float((np.linalg.norm(faces, axis=2) + margins[:, None]).max())
        placed = np.concatenate([faces @ place[:3, :3].T + place[:3, 3] for place in placement.places], axis=1)
        return LinkShape(placement.link, placement.name, placed, margins + placement.sagitta(reach))

    @staticmethod
    def _geometries(link: ET.Element) -> Iterator[tuple[ET.Element, ET.Element]]:
        for tag in ("collision", "visual"):
            elements = link.findall(tag)
            for element in elements:
                geometry = element.find("geometry")
                if geometry is None or not len(geometry):
                    raise CollisionError(f"<{tag}> has no geometry; give a box, cylinder, capsule, sphere or mesh")
                yield element, geometry[0]
            if elements:
                return

    def _parts(self, link: ET.Element) -> Iterator[tuple[np.ndarray, float]]:
        """Yield triangles (F, 3, 3) of each geometry in the frame of the link of the URDF, and their margin, m."""
        for element, geometry in self._geometries(link):
            points, margin = self._points(geometry)
            size = np.ptp(points.reshape(-1, 3), axis=0).max()
            points = subdivided(points, max(size / MIN_EDGES_PER_SIZE, 1e-6))
            where = f"<{element.tag}>"
            try:
                place = pose(read_origin(element.find("origin"), where), where)
            except ModelError as error:
                raise CollisionError(str(error)) from error
            yield points @ place[:3, :3].T + place[:3, 3], margin

    def _points(self, geometry: ET.Element) -> tuple[np.ndarray, float]:
        if geometry.tag == "box":
            return box_faces(np.array(_numbers(geometry, "size", 3))), 0.0
        if geometry.tag in ("cylinder", "capsule"):
            radius, length = (_numbers(geometry, name, 1)[0] for name in ("radius", "length"))
            if geometry.tag == "cylinder":
                return cylinder_faces(radius, length), 0.0
            # A capsule is a degenerate triangle (a segment) with a margin around it, and a sphere is a point with one.
            return np.array([[[0.0, 0.0, -length / 2], [0.0, 0.0, length / 2], [0.0, 0.0, length / 2]]]), radius
        if geometry.tag == "sphere":
            return np.zeros((1, 3, 3)), _numbers(geometry, "radius", 1)[0]
        if geometry.tag == "mesh":
            name = geometry.get("filename", "")
            scale = np.array(_numbers(geometry, "scale", 3, (1.0, 1.0, 1.0)))
            return read_triangles(find_mesh(name, self._directories)) * scale, 0.0
        raise CollisionError(f"geometry <{geometry.tag}> is not known; expected box, cylinder, capsule, sphere or mesh")


def _numbers(element: ET.Element, name: str, count: int, default: Sequence[float] | None = None) -> list[float]:
    text = element.get(name)
    if text is None and default is not None:
        return list(default)
    values = read_numbers(text or "", count)
    if values is None or not np.isfinite(values).all():
        raise CollisionError(f'<{element.tag}> has {name}="{text}"; expected {count} finite number(s)')
    return values
