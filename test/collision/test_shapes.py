"""Test faces of primitives, search for mesh files, and reading of meshes."""

import struct
import sys

import numpy as np
import pytest

from dynid_ros.collision import shapes
from dynid_ros.collision.shapes import find_mesh, read_triangles
from dynid_ros.errors import CollisionError


def compute_area(faces):
    return np.linalg.norm(np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0]), axis=1).sum() / 2


def test_faces_of_a_box_have_its_area_and_corners():
    faces = shapes.box_faces(np.array([1.0, 2.0, 3.0]))
    assert compute_area(faces) == pytest.approx(2 * (1 * 2 + 2 * 3 + 3 * 1))
    assert len(np.unique(faces.reshape(-1, 3), axis=0)) == 8


def test_faces_of_a_cylinder_contain_it():
    faces = shapes.cylinder_faces(0.1, 0.4)
    # The point of each side nearest to the axis is its middle.
    sides = faces[np.ptp(faces[:, :, 2], axis=1) > 0]
    flat = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    distance = np.abs(np.sum(flat * sides[:, 0], axis=1)) / np.linalg.norm(flat, axis=1)
    np.testing.assert_allclose(distance, 0.1)
    assert np.ptp(faces[:, :, 2]) == pytest.approx(0.4)
    assert compute_area(faces) == pytest.approx(2 * np.pi * 0.1 * (0.1 + 0.4), rel=0.02)


def test_subdivision_keeps_the_surface():
    faces = shapes.cylinder_faces(0.05, 2.0)
    fine = shapes.subdivided(faces, 0.07)
    assert compute_area(fine) == pytest.approx(compute_area(faces))
    assert np.linalg.norm(fine - np.roll(fine, 1, axis=1), axis=2).max() <= 0.07


def write_stl(path, triangles):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *np.ravel(triangle), 0) for triangle in triangles)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(triangles)) + rows)
    return path


TRIANGLES = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 1, 0], [0, 0, 2]]], dtype=float)


@pytest.fixture
def mesh(tmp_path):
    return write_stl(tmp_path / "share" / "arm" / "meshes" / "link.stl", TRIANGLES)


def test_finds_packages_by_directory_and_environment(mesh, tmp_path, monkeypatch):
    name = "package://arm/meshes/link.stl"
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    for directory in (tmp_path, tmp_path / "share", tmp_path / "share" / "arm", tmp_path / "share" / "arm" / "urdf"):
        assert find_mesh(name, [directory]).samefile(mesh)
    with pytest.raises(CollisionError, match=r"mesh 'package://arm/meshes/link.stl' is not found .*name the directory"):
        find_mesh(name, [])
    for folder in (tmp_path / "share", tmp_path / "share" / "arm"):
        monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{folder}")
        assert find_mesh(name, []).samefile(mesh)
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_mesh(name, []).samefile(mesh)


def test_finds_absolute_and_relative_mesh_files(mesh):
    assert find_mesh(f"file://{mesh}", []) == mesh
    assert find_mesh(str(mesh), []) == mesh
    absolute = "file:///home/maker/ws/arm/meshes/link.stl"
    for directory in (mesh.parents[2], mesh.parents[1], mesh.parent):
        assert find_mesh(absolute, [directory]).samefile(mesh)
    with pytest.raises(CollisionError, match="name the directory"):
        find_mesh(absolute, [mesh.parents[3]])
    assert find_mesh("../meshes/link.stl", [mesh.parents[1] / "meshes"]).samefile(mesh)
    with pytest.raises(CollisionError, match=r"'link.stl' is not found"):
        find_mesh("link.stl", [])


def test_reads_triangles_of_a_mesh(mesh):
    np.testing.assert_array_equal(read_triangles(mesh), TRIANGLES)


@pytest.mark.parametrize(("unit", "scale"), [('<unit name="centimeter" meter="0.01"/>', 0.01), ("", 1.0)])
def test_reads_collada_scenes_in_metres(tmp_path, unit, scale):
    pytest.importorskip("collada")
    text = f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
    <asset>{unit}<up_axis>Z_UP</up_axis></asset>
    <library_geometries><geometry id="g"><mesh><source id="p">
    <float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array>
    <technique_common><accessor source="#pa" count="3" stride="3"><param name="X" type="float"/>
    <param name="Y" type="float"/>
    <param name="Z" type="float"/></accessor></technique_common></source><vertices id="v"><input semantic="POSITION"
    source="#p"/></vertices><triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/>
    <p>0 1 2</p></triangles>
    </mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s"><node id="n">
    <translate>0 0 3</translate><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
    <scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
    path = tmp_path / "link.dae"
    path.write_text(text)
    np.testing.assert_allclose(read_triangles(path), scale * np.array([[[0, 0, 3], [1, 0, 3], [0, 2, 3]]]))


INCOMPLETE_OBJ = b"v 0 0 0\nv 1 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n"
"""Mesh with a vertex of two coordinates."""


def test_reports_broken_meshes(tmp_path):
    for name, content in (
        ("a.stl", b"solid nothing\nendsolid\n"),
        ("b.obj", b"nothing"),
        ("c.xyzzy", b"\0"),
        ("d.obj", INCOMPLETE_OBJ),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CollisionError, match=name):
            read_triangles(tmp_path / name)
    with pytest.raises(CollisionError, match=r"none.stl"):
        read_triangles(tmp_path / "none.stl")


def test_refuses_huge_and_invalid_meshes(tmp_path):
    with (tmp_path / "huge.stl").open("wb") as file:
        file.truncate(10**12)  # takes no space
    with pytest.raises(CollisionError, match="more than 200 MB, is it the right file"):
        read_triangles(tmp_path / "huge.stl")
    (tmp_path / "a.dae").write_text('<COLLADA><unit meter="nan"/></COLLADA>')
    with pytest.raises(CollisionError, match=r"cannot be read as \.dae \(\w+\); export it again"):
        read_triangles(tmp_path / "a.dae")


def test_reports_the_missing_trimesh_package(tmp_path, monkeypatch):
    path = write_stl(tmp_path / "other.stl", TRIANGLES)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(CollisionError, match="pip install trimesh"):
        read_triangles(path)
