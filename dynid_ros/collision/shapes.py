"""What the links of a URDF occupy: its collision elements, else its visual ones, in the frames of the chain's links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from urdf_parser_py.urdf import Pose

from dynid_ros.collision.mesh_files import find_mesh, read_triangles
from dynid_ros.collision.placements import Placement
from dynid_ros.collision.triangles import box_faces, cylinder_faces, divided
from dynid_ros.errors import CollisionError
from dynid_ros.model.urdf import pose

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
                    raise CollisionError(f"<{tag}> has no geometry; give a box, cylinder, sphere or mesh")
                yield element, geometry[0]
            if elements:
                return

    def _parts(self, link: ET.Element) -> Iterator[tuple[np.ndarray, float]]:
        """Faces (F, P, 3) in the frame of the link of the URDF, and their margin."""
        for element, geometry in self._geometries(link):
            points, margin = self._points(geometry)
            if points.shape[1] > 1:
                size = np.ptp(points.reshape(-1, 3), axis=0).max()
                points = divided(points, max(size / FINEST, 1e-6))
            origin = element.find("origin")
            if origin is not None:
                place = pose(
                    Pose(_numbers(origin, "xyz", 3, (0.0,) * 3), _numbers(origin, "rpy", 3, (0.0,) * 3)), "<origin>"
                )
                points = points @ place[:3, :3].T + place[:3, 3]
            yield points, margin

    def _points(self, geometry: ET.Element) -> tuple[np.ndarray, float]:
        if geometry.tag == "box":
            return box_faces(np.array(_numbers(geometry, "size", 3))), 0.0
        if geometry.tag in ("cylinder", "capsule"):
            radius, length = (_numbers(geometry, name, 1)[0] for name in ("radius", "length"))
            if geometry.tag == "cylinder":
                return cylinder_faces(radius, length), 0.0
            return np.array([[[0.0, 0.0, -length / 2], [0.0, 0.0, length / 2]]]), radius
        if geometry.tag == "sphere":
            return np.zeros((1, 1, 3)), _numbers(geometry, "radius", 1)[0]
        if geometry.tag == "mesh":
            name = geometry.get("filename", "")
            scale = np.array(_numbers(geometry, "scale", 3, (1.0, 1.0, 1.0)))
            return read_triangles(find_mesh(name, self._directories)) * scale, 0.0
        raise CollisionError(f"geometry <{geometry.tag}> is not known; expected box, cylinder, sphere or mesh")


def _numbers(element: ET.Element, name: str, count: int, default: Sequence[float] | None = None) -> list[float]:
    text = element.get(name)
    if text is None and default is not None:
        return list(default)
    try:
        values = [float(word) for word in (text or "").split()]
    except ValueError:
        values = []
    if len(values) != count or not np.isfinite(values).all():
        raise CollisionError(f'<{element.tag}> has {name}="{text}"; expected {count} finite number(s)')
    return values
