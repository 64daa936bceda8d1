"""Test that fitted capsules cover surfaces tightly."""

import time
from collections import OrderedDict

import numpy as np
import pytest

from dynid_ros.collision import capsules as capsule_fit, shapes
from dynid_ros.collision.capsules import cover


def compute_excess(capsules, points):
    """Return the distance in m of points (M, 3) from the nearest capsule, negative inside."""
    axis = capsules.end - capsules.start
    offset = points[:, np.newaxis] - capsules.start
    t = np.clip(np.sum(offset * axis, axis=2) / np.maximum(np.sum(axis**2, axis=1), 1e-12), 0, 1)
    distance = np.linalg.norm(offset - t[..., np.newaxis] * axis, axis=2)
    return (distance - capsules.radius).min(axis=1)


def draw_surface_points(faces, rng, count=20):
    """Return random points (N, 3) of all faces."""
    weights = rng.dirichlet(np.ones(faces.shape[1]), (count, len(faces)))
    return np.einsum("cfp,fpx->cfx", weights, faces).reshape(-1, 3)


@pytest.mark.parametrize("seed", range(4))
def test_capsules_cover_the_whole_surface(seed):
    """The surface is a bent tube of random pieces."""
    rng = np.random.default_rng(seed)
    pieces = []
    for _ in range(3):
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        if rng.random() < 0.5:
            part = shapes.cylinder_faces(*rng.uniform([0.02, 0.1], [0.08, 0.5]))
        else:
            part = shapes.box_faces(rng.uniform(0.05, 0.4, 3))
        pieces.append(shapes.subdivided(part, 0.05) @ rotation.T + rng.normal(scale=0.15, size=3))
    faces = np.concatenate(pieces)
    margins = rng.uniform(0.0, 0.02, len(faces)) if seed % 2 else np.zeros(len(faces))
    capsules = cover(faces, margins)
    assert 1 <= len(capsules.radius) <= 4
    points = draw_surface_points(faces, rng)
    assert (compute_excess(capsules, points) + np.tile(margins, 20)).max() <= 1e-9
    for hull, k in zip(capsules.hulls, range(len(capsules.radius)), strict=True):
        one = type(capsules)(capsules.start[[k]], capsules.end[[k]], capsules.radius[[k]], (hull,))
        assert (compute_excess(one, hull[:, :3]) + hull[:, 3]).max() <= 1e-9


def test_recovers_a_capsule():
    """The points lie on a capsule of radius 0.05 and length 0.3, the smallest one that contains them."""
    rng = np.random.default_rng(1)
    axis = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    normals = rng.normal(size=(3000, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    ends = np.where((normals @ axis > 0)[:, np.newaxis], 0.3 * axis, 0.0)
    capsules = cover((ends + 0.05 * normals).reshape(-1, 3, 3)[:, :1], np.zeros(1000), most=1)
    assert capsules.radius[0] == pytest.approx(0.05, rel=0.03)
    assert np.linalg.norm(capsules.end - capsules.start) == pytest.approx(0.3, rel=0.05)


def test_elbows_need_several_capsules():
    upper = shapes.subdivided(shapes.box_faces(np.array([0.08, 0.08, 0.6])), 0.05)
    fore = shapes.subdivided(shapes.box_faces(np.array([0.6, 0.08, 0.08])), 0.05) + np.array([0.3, 0.0, 0.3])
    faces = np.concatenate([upper, fore])
    single = cover(faces, np.zeros(len(faces)), 1)
    several = cover(faces, np.zeros(len(faces)), 4)
    assert len(several.radius) >= 2
    assert several.volume.sum() < 0.3 * single.volume.sum()


def test_fits_spheres_exactly_and_caches_surfaces():
    sphere = cover(np.full((1, 1, 3), 0.2), np.array([0.1]))
    assert sphere.radius == pytest.approx([0.1])
    faces = shapes.subdivided(shapes.box_faces(np.ones(3)), 0.1)
    first = cover(faces, np.zeros(len(faces)))
    start = time.perf_counter()
    assert cover(faces.copy(), np.zeros(len(faces))) is first
    assert time.perf_counter() - start < 0.1


def test_cache_of_capsules_is_limited(monkeypatch):
    monkeypatch.setattr(capsule_fit, "_cache", OrderedDict())
    monkeypatch.setattr(capsule_fit, "MAX_CACHED", 2)
    faces = [np.array([[[k, 0.0, 0.0]]], dtype=float) for k in range(4)]
    first = cover(faces[0], np.full(1, 0.1))
    for k in (1, 0, 2):
        cover(faces[k], np.full(1, 0.1))
    assert len(capsule_fit._cache) == 2
    assert cover(faces[0], np.full(1, 0.1)) is first
