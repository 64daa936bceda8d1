"""Test the shapes of the markers for RViz."""

import numpy as np
import pytest
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from dynid_ros.nodes.gravity_markers import Shapes

RADIUS = 0.2


@pytest.fixture
def shapes():
    return Shapes(Header(frame_id="base"), lifetime=2.5)


def coordinates(point):
    return [point.x, point.y, point.z]


@pytest.mark.parametrize("angle", [2.0, -2.0])
def test_tip_continues_the_end_of_the_arc(shapes, angle):
    rotation = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    center = np.array([1.0, 2.0, 3.0])
    shapes.arc("torque", rotation, center, angle=angle, radius=RADIUS, color="ink")
    arc, tip = shapes.markers
    assert (arc.type, tip.type) == (Marker.LINE_STRIP, Marker.ARROW)
    assert coordinates(arc.points[0]) == pytest.approx([RADIUS, 0.0, 0.0])
    assert coordinates(arc.points[-1]) == pytest.approx([RADIUS * np.cos(angle), RADIUS * np.sin(angle), 0.0])
    chords = np.diff([coordinates(point) for point in arc.points], axis=0)
    assert np.linalg.norm(chords, axis=1).max() <= RADIUS * np.deg2rad(6.0)
    start, end = (np.array(coordinates(point)) for point in tip.points)
    assert start == pytest.approx(center + rotation @ coordinates(arc.points[-1]))
    tangent = np.sign(angle) * np.array([-np.sin(angle), np.cos(angle), 0.0])
    assert rotation.T @ (end - start) == pytest.approx(0.35 * RADIUS * tangent)


def test_tip_of_a_short_arc_is_no_longer_than_the_arc(shapes):
    """Otherwise a negligible torque would look large."""
    shapes.arc("torque", np.eye(3), np.zeros(3), angle=0.06, radius=RADIUS, color="ink")
    _, tip = shapes.markers
    start, end = (np.array(coordinates(point)) for point in tip.points)
    assert np.linalg.norm(end - start) == pytest.approx(0.06 * RADIUS)
    assert max(tip.scale.x, tip.scale.y, tip.scale.z) <= 0.06 * RADIUS


def test_markers_keep_their_ids_without_the_others(shapes):
    shapes.skip_ids("torque", 3)
    shapes.sphere("torque", np.zeros(3), 0.1, "ink")
    shapes.sphere("load", np.zeros(3), 0.1, "ink")
    assert [(marker.ns, marker.id) for marker in shapes.markers] == [("torque", 3), ("load", 0)]
