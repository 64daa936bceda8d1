import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.simulation import SimulatedArm, scattered_markers


def test_markers_lie_on_each_link_and_on_no_line(demo_robot):
    markers = scattered_markers(demo_robot, 4, 0.15, np.random.default_rng(0))
    assert markers.size == 24
    assert markers.names[4:6] == ("link_2 0", "link_2 1")
    assert markers.links.tolist() == np.repeat(np.arange(6), 4).tolist()
    assert np.linalg.norm(markers.places, axis=1) == pytest.approx(np.full(24, 0.15))
    for link in range(6):
        places = markers.places[markers.links == link]
        assert np.linalg.svd(places - places.mean(axis=0), compute_uv=False)[1] > 0.05


@pytest.mark.parametrize(("number", "radius"), [(2, 0.1), (3, 0.0), (3, np.inf)])
def test_markers_that_show_no_rotation_are_refused(demo_robot, number, radius):
    with pytest.raises(DynidError, match="markers per link"):
        scattered_markers(demo_robot, number, radius, np.random.default_rng(0))


def test_where_mujoco_has_the_markers_is_where_the_kinematics_has_them(demo_robot):
    """Of links and of the base, which a fixed joint may hold in the world."""
    rng = np.random.default_rng(1)
    links = [*demo_robot.link_names, demo_robot.base]
    markers = MarkerSet.on_links(demo_robot, links, rng.standard_normal((7, 3)))
    q = rng.uniform(-2.0, 2.0, (20, 6))
    poses = demo_robot.forward_kinematics(q)
    expected = np.einsum("npij,pj->npi", poses[..., :3, :3], markers.places[:6]) + poses[..., :3, 3]
    positions = SimulatedArm(demo_robot).truth.marker_positions(q, markers)
    assert positions[:, :6] == pytest.approx(expected, abs=1e-12)
    assert positions[:, 6] == pytest.approx(np.tile(markers.places[6], (20, 1)))
