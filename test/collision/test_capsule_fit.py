import time
from collections import OrderedDict

import numpy as np
import pytest

from dynid_ros.collision import capsules as capsule_fit, shapes
from dynid_ros.collision.capsules import cover


def outside(capsules, points):
    """How far points (M, 3) are outside all capsules, m."""
    along = capsules.end - capsules.start
    offset = points[:, np.newaxis] - capsules.start
    t = np.clip(np.sum(offset * along, axis=2) / np.maximum(np.sum(along**2, axis=1), 1e-12), 0, 1)
    distance = np.linalg.norm(offset - t[..., np.newaxis] * along, axis=2)
    return (distance - capsules.radius).min(axis=1)


def on_surface(faces, rng, count=20):
    weights = rng.dirichlet(np.ones(faces.shape[1]), (count, len(faces)))
    return np.einsum("cfp,fpx->cfx", weights, faces).reshape(-1, 3)


@pytest.mark.parametrize("seed", range(4))
def test_every_point_of_a_surface_is_covered(seed):
    """A bent tube of random pieces, points all over its triangles."""
    rng = np.random.default_rng(seed)
    pieces = []
    for _ in range(3):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        part = (
            shapes.cylinder_faces(*rng.uniform([0.02, 0.1], [0.08, 0.5]))
            if rng.random() < 0.5
            else shapes.box_faces(rng.uniform(0.05, 0.4, 3))
        )
        pieces.append(shapes.subdivided(part, 0.05) @ turn.T + rng.normal(scale=0.15, size=3))
    faces = np.concatenate(pieces)
    margins = rng.uniform(0.0, 0.02, len(faces)) if seed % 2 else np.zeros(len(faces))
    capsules = cover(faces, margins)
    assert 1 <= len(capsules.radius) <= 4
    points = on_surface(faces, rng)
    assert (outside(capsules, points) + np.tile(margins, 20)).max() <= 1e-9
    for hull, k in zip(capsules.hulls, range(len(capsules.radius)), strict=True):
        one = type(capsules)(capsules.start[[k]], capsules.end[[k]], capsules.radius[[k]], (hull,))
        assert (outside(one, hull[:, :3]) + hull[:, 3]).max() <= 1e-9


def test_a_capsule_is_found_again():
    """Points on a capsule of radius 0.05 and length 0.3: nothing smaller holds them."""
    rng = np.random.default_rng(1)
    axis = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    normals = rng.normal(size=(3000, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    ends = np.where((normals @ axis > 0)[:, np.newaxis], 0.3 * axis, 0.0)
    capsules = cover((ends + 0.05 * normals).reshape(-1, 3, 3)[:, :1], np.zeros(1000), most=1)
    assert capsules.radius[0] == pytest.approx(0.05, rel=0.03)
    assert np.linalg.norm(capsules.end - capsules.start) == pytest.approx(0.3, rel=0.05)


def test_an_elbow_takes_more_than_one_capsule():
    upper = shapes.subdivided(shapes.box_faces(np.array([0.08, 0.08, 0.6])), 0.05)
    fore = shapes.subdivided(shapes.box_faces(np.array([0.6, 0.08, 0.08])), 0.05) + np.array([0.3, 0.0, 0.3])
    faces = np.concatenate([upper, fore])
    one, more = (cover(faces, np.zeros(len(faces)), most) for most in (1, 4))
    assert len(more.radius) >= 2
    assert more.volume.sum() < 0.3 * one.volume.sum()


def test_a_sphere_is_itself_and_the_same_surface_is_fitted_once():
    sphere = cover(np.full((1, 1, 3), 0.2), np.array([0.1]))
    assert sphere.radius == pytest.approx([0.1])
    faces = shapes.subdivided(shapes.box_faces(np.ones(3)), 0.1)
    first = cover(faces, np.zeros(len(faces)))
    began = time.perf_counter()
    assert cover(faces.copy(), np.zeros(len(faces))) is first
    assert time.perf_counter() - began < 0.1


def test_capsules_of_many_robots_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(capsule_fit, "_cache", OrderedDict())
    monkeypatch.setattr(capsule_fit, "MAX_CACHED", 2)
    faces = [np.array([[[k, 0.0, 0.0]]], dtype=float) for k in range(4)]
    first = cover(faces[0], np.full(1, 0.1))
    for k in (1, 0, 2):
        cover(faces[k], np.full(1, 0.1))
    assert len(capsule_fit._cache) == 2
    assert cover(faces[0], np.full(1, 0.1)) is first
