"""Shapes for RViz, in the colours of the palette."""

import numpy as np
import pytest

pytest.importorskip("rclpy")

from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from dynid_ros.nodes.gravity_markers import Shapes
from dynid_ros.report.drawing import DARK

RADIUS = 0.2


@pytest.fixture
def shapes():
    return Shapes(Header(frame_id="base"), lifetime=2.5)


def place(point):
    return [point.x, point.y, point.z]


@pytest.mark.parametrize("angle", [2.0, -2.0])
def test_the_tip_of_an_arc_goes_on_where_it_ends(shapes, angle):
    turned = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    center = np.array([1.0, 2.0, 3.0])
    shapes.arc("torque", turned, center, angle=angle, radius=RADIUS, color="ink")
    arc, tip = shapes.markers
    assert (arc.type, tip.type) == (Marker.LINE_STRIP, Marker.ARROW)
    assert place(arc.points[0]) == pytest.approx([RADIUS, 0.0, 0.0])
    assert place(arc.points[-1]) == pytest.approx([RADIUS * np.cos(angle), RADIUS * np.sin(angle), 0.0])
    chords = np.diff([place(point) for point in arc.points], axis=0)
    assert np.linalg.norm(chords, axis=1).max() <= RADIUS * np.deg2rad(6.0)
    start, end = (np.array(place(point)) for point in tip.points)
    assert start == pytest.approx(center + turned @ place(arc.points[-1]))
    along = np.sign(angle) * np.array([-np.sin(angle), np.cos(angle), 0.0])
    assert turned.T @ (end - start) == pytest.approx(0.35 * RADIUS * along)


def test_colours_are_those_of_the_palette(shapes):
    shapes.sphere("mass", np.zeros(3), 0.1, "ink")
    color = shapes.markers[0].color
    written = "#" + "".join(f"{round(255 * part):02x}" for part in (color.r, color.g, color.b))
    assert written == DARK["ink"].lower()
    assert color.a == pytest.approx(0.85)


def test_an_arrow_to_where_it_starts_is_none(shapes):
    shapes.arrow("force", np.ones(3), np.ones(3), 0.01, "ink")
    assert not shapes.markers
