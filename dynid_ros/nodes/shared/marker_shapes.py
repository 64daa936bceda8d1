"""Shapes for RViz in the colours of the reports."""

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray
from rclpy.duration import Duration
from scipy.spatial.transform import Rotation
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker

from dynid_ros.report.drawing import DARK

STEP = np.deg2rad(6.0)
"""Of the chords of an arc."""


class Shapes:
    """Collects markers in one frame, which vanish when no newer ones come; lengths in m.

    Args:
        header: the frame that all places are in, and when.
        lifetime: s.

    Attributes:
        markers: so far.

    """

    def __init__(self, header: Header, lifetime: float) -> None:
        self.markers: list[Marker] = []
        self._header = header
        self._lifetime = Duration(seconds=lifetime).to_msg()

    def sphere(self, kind: str, center: NDArray, diameter: float, color: str) -> None:
        """A ball; `color` is a name of the palette."""
        marker = self._add(kind, Marker.SPHERE, color, alpha=0.85)
        marker.pose.position = _point(center)
        marker.scale.x = marker.scale.y = marker.scale.z = diameter

    def text(self, kind: str, place: NDArray, height: float, words: str, color: str = "ink") -> None:
        """Words that face who looks."""
        marker = self._add(kind, Marker.TEXT_VIEW_FACING, color)
        marker.pose.position = _point(place)
        marker.scale.z = height
        marker.text = words

    def arrow(self, kind: str, start: NDArray, end: NDArray, width: float, color: str) -> None:
        """An arrow between two places; none if they are one."""
        if np.allclose(start, end, atol=1e-9):
            return
        marker = self._add(kind, Marker.ARROW, color)
        marker.points = [_point(start), _point(end)]
        marker.scale.x, marker.scale.y = width, 2.5 * width
        marker.scale.z = min(4 * width, 0.5 * float(np.linalg.norm(end - start)))

    def arc(self, kind: str, rotation: NDArray, center: NDArray, *, angle: float, radius: float, color: str) -> None:
        """An arc of `angle`, rad, about z of a frame from its x on, with a tip that says which way round."""
        angles = np.linspace(0.0, angle, max(2, int(np.ceil(abs(angle) / STEP)) + 1))
        points = radius * np.column_stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)])
        line = self._add(kind, Marker.LINE_STRIP, color)
        line.pose = _pose(rotation, center)
        line.points = [_point(point) for point in points]
        line.scale.x = radius / 12
        ahead = points[-1] + np.sign(angle) * 0.35 * radius * np.array([-np.sin(angle), np.cos(angle), 0.0])
        self.arrow(kind, center + rotation @ points[-1], center + rotation @ ahead, radius / 10, color)

    def _add(self, kind: str, shape: int, color: str, alpha: float = 1.0) -> Marker:
        marker = Marker(
            header=self._header,
            ns=kind,
            id=sum(other.ns == kind for other in self.markers),
            type=shape,
            action=Marker.ADD,
        )
        marker.pose.orientation.w = 1.0
        marker.color = _color(color, alpha)
        marker.lifetime = self._lifetime
        self.markers.append(marker)
        return marker


def _color(name: str, alpha: float) -> ColorRGBA:
    red, green, blue = (int(DARK[name][i : i + 2], 16) / 255 for i in (1, 3, 5))
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def _point(place: Sequence[float] | NDArray) -> Point:
    x, y, z = map(float, place)
    return Point(x=x, y=y, z=z)


def _pose(rotation: NDArray, origin: NDArray) -> Pose:
    x, y, z, w = map(float, Rotation.from_matrix(rotation).as_quat())
    return Pose(position=_point(origin), orientation=Quaternion(x=x, y=y, z=z, w=w))
