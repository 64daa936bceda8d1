"""Test the scene: shapes of the URDF, lines without shapes, and missing meshes."""

import planar_arm
import pytest
import viser

from dynid_ros.collision.obstacles import Obstacle
from dynid_ros.files.bounded import share_path
from dynid_ros.guide.scene import Scene
from dynid_ros.model.arm import arm_from_urdf

MISSING_MESH = '<visual><geometry><mesh filename="package://nowhere/arm.stl"/></geometry></visual></link>'


@pytest.fixture(scope="module")
def server():
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    yield server
    server.stop()


def make_scene(server, path):
    robot = arm_from_urdf(path, None)[0]
    scene = Scene(server, path, robot)
    scene.arm.place([0.3] * robot.n_joints)
    return scene


def test_shapes_are_drawn(server):
    scene = make_scene(server, share_path("config/demo_arm.urdf"))
    assert scene.arm.has_shapes
    assert scene.remarks == []
    assert not scene.ghost.frame.visible
    scene.show_obstacles([Obstacle("table", (0.5, 0.0, 0.0), (1.0, 1.0, 0.1))])


def test_arm_without_shapes_is_drawn_as_lines(server, tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(planar_arm.urdf())
    assert ["drawn as lines" in remark for remark in make_scene(server, path).remarks] == [True]


def test_missing_mesh_is_named(server, tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(planar_arm.urdf().replace("</link>", MISSING_MESH, 1))
    assert "package://nowhere/arm.stl" in make_scene(server, path).remarks[0]
