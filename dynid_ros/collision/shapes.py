"""What the links of a URDF occupy: its collision elements, else its visual ones, in the frames of the chain's links."""

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

LARGEST_FILE = 200 * MEGABYTE
MOST_PLACES = 12
"""Places that an error names."""
PACKAGE_SCHEMES = ("package://", "model://")


def find_mesh(name: str, directories: Sequence[Path]) -> Path:
    """Path of a mesh, from the name that a URDF gives it.

    `package://p/rest` is looked for in `directories` (those that hold a folder p or share/p, or are in p themselves),
    on ROS_PACKAGE_PATH and on AMENT_PREFIX_PATH; a relative path in `directories`; `file://` and absolute paths are
    taken as they are; where they lead nowhere, as from another computer, their ends are looked for in `directories`.

    Raises:
        CollisionError: there is no such file; says where it was looked for.
    """
    tried = list(dict.fromkeys(_candidates(name, directories)))
    for path in tried:
        if path.is_file():
            return path
    places = ", ".join(map(str, tried[:MOST_PLACES])) or "nowhere: no directory is known"
    places += ", …" * (len(tried) > MOST_PLACES)
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
        ends = [path.relative_to(parent) for parent in reversed(path.parents)]
    else:
        ends = [path]
    yield from (directory / end for end in ends for directory in directories)


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


@lru_cache(maxsize=16)
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


SIDES = 16
"""Number of sides of the prism about a cylinder."""


def box_faces(size: np.ndarray) -> np.ndarray:
    """Triangles (12, 3, 3) of a box about the origin with sides `size` (3,)."""
    triangles = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (-0.5, 0.5):
            corners = np.zeros((4, 3))
            corners[:, axis] = side
            corners[:, u] = [-0.5, 0.5, 0.5, -0.5]
            corners[:, v] = [-0.5, -0.5, 0.5, 0.5]
            triangles += [corners[[0, 1, 2]], corners[[0, 2, 3]]]
    return np.array(triangles) * size


def cylinder_faces(radius: float, length: float) -> np.ndarray:
    """Triangles (4 SIDES, 3, 3) of a prism about a cylinder whose axis is z, the origin in its middle."""
    angles = np.arange(SIDES + 1) * (2.0 * np.pi / SIDES)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (radius / np.cos(np.pi / SIDES))
    low, high = (np.column_stack([rim, np.full(SIDES + 1, z)]) for z in (-length / 2, length / 2))
    centres = (np.array([0.0, 0.0, -length / 2]), np.array([0.0, 0.0, length / 2]))
    triangles = []
    for i in range(SIDES):
        triangles += [[low[i], low[i + 1], high[i]], [high[i], low[i + 1], high[i + 1]]]
        triangles += [[centres[0], low[i], low[i + 1]], [centres[1], high[i], high[i + 1]]]
    return np.array(triangles)


def divided(triangles: np.ndarray, longest: float) -> np.ndarray:
    """The same surface in triangles (F, 3, 3) with no edge above `longest`: long edges are halved, again and again."""
    done = []
    while len(triangles):
        edges = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        short = edges.max(axis=1) <= longest
        done.append(triangles[short])
        rest, k = triangles[~short], edges[~short].argmax(axis=1)
        a, b, c = (rest[np.arange(len(rest)), (k + i) % 3] for i in range(3))
        middle = (a + b) / 2
        triangles = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return np.concatenate(done) if done else triangles


FINEST = 10
"""A triangle's edge is at most this part of the size of its shape."""


@dataclass(frozen=True, eq=False)
class LinkShape:
    """Surface of one link of the URDF.

    Attributes:
        link: link of the chain that it moves with, from 0; -1 for what stands still.
        name: link of the URDF.
        faces: (F, P, 3) points in the frame of the chain's link; the hull of the P points of a face belongs to it.
        margins: (F,) thickness around the hull, m.
    """

    link: int
    name: str
    faces: np.ndarray
    margins: np.ndarray


class ShapeReader:
    """Reads the shapes of links.

    Args:
        urdf: text of the URDF.
        directories: where meshes are looked for.
    """

    def __init__(self, urdf: str, directories: Sequence[Path]) -> None:
        self._elements = {link.get("name"): link for link in ET.fromstring(urdf).findall("link")}
        self._directories = directories

    def shape(self, placement: Placement) -> LinkShape | None:
        """The link of the URDF at all its places; None if it has neither collision nor visual elements.

        Raises:
            CollisionError: an element makes no sense, or its mesh is not found or cannot be read; names the link.
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
        """Triangles (F, 3, 3) in the frame of the link of the URDF, and their margin."""
        for element, geometry in self._geometries(link):
            points, margin = self._points(geometry)
            size = np.ptp(points.reshape(-1, 3), axis=0).max()
            points = divided(points, max(size / FINEST, 1e-6))
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
            # A triangle without area, and for a sphere without extent.
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
