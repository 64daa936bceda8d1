import numpy as np
import pytest

from dynid_ros.collision import shapes


def area(faces):
    return np.linalg.norm(np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0]), axis=1).sum() / 2


def test_box_has_its_area_and_corners():
    faces = shapes.box_faces(np.array([1.0, 2.0, 3.0]))
    assert area(faces) == pytest.approx(2 * (1 * 2 + 2 * 3 + 3 * 1))
    assert len(np.unique(faces.reshape(-1, 3), axis=0)) == 8


def test_prism_holds_the_cylinder():
    faces = shapes.cylinder_faces(0.1, 0.4)
    # The nearest point of every side to the axis is its middle.
    sides = faces[np.ptp(faces[:, :, 2], axis=1) > 0]
    flat = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    distance = np.abs(np.sum(flat * sides[:, 0], axis=1)) / np.linalg.norm(flat, axis=1)
    np.testing.assert_allclose(distance, 0.1)
    assert np.ptp(faces[:, :, 2]) == pytest.approx(0.4)
    assert area(faces) == pytest.approx(2 * np.pi * 0.1 * (0.1 + 0.4), rel=0.02)


def test_divided_surface_is_the_same_in_small_pieces():
    faces = shapes.cylinder_faces(0.05, 2.0)
    fine = shapes.divided(faces, 0.07)
    assert area(fine) == pytest.approx(area(faces))
    assert np.linalg.norm(fine - np.roll(fine, 1, axis=1), axis=2).max() <= 0.07
