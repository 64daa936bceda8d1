"""Test distances of segments and boxes against numerical searches and Coal."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dynid_ros.collision.distances import few_corners, segment_box, segment_segment


def test_segment_distance_matches_a_search():
    rng = np.random.default_rng(3)
    segments = rng.normal(size=(40, 4, 3))
    segments[:10, 3] = segments[:10, 2] + (segments[:10, 1] - segments[:10, 0])  # parallel
    segments[10:15, 1] = segments[10:15, 0]  # a point
    segments[15:20, 3] = segments[15:20, 2]
    result = segment_segment(*np.moveaxis(segments, 1, 0)[..., np.newaxis])
    for (a0, a1, b0, b1), distance in zip(segments, result.distance[:, 0], strict=True):

        def squared(x, a0=a0, a1=a1, b0=b0, b1=b1):
            return np.sum((a0 + x[0] * (a1 - a0) - b0 - x[1] * (b1 - b0)) ** 2)

        best = min(minimize(squared, start, bounds=[(0, 1)] * 2).fun for start in ([0, 0], [1, 1], [0, 1], [1, 0]))
        assert distance == pytest.approx(np.sqrt(best), abs=1e-4)
    np.testing.assert_allclose(np.linalg.norm(result.normal, axis=1), 1.0)


def test_normal_of_crossing_segments_is_perpendicular_to_both():
    ends = np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]])
    result = segment_segment(*ends[:, np.newaxis, :, np.newaxis])
    assert result.distance == pytest.approx(0.0)
    np.testing.assert_allclose(np.abs(result.normal[0, :, 0]), [0, 0, 1])


def compute_signed_distance(points, half):
    """Return the signed distance of points (..., 3) from a box."""
    excess = np.abs(points) - half
    return np.linalg.norm(np.maximum(excess, 0), axis=-1) + np.minimum(excess.max(axis=-1), 0)


def test_segment_box_distance_matches_dense_points():
    """The reference is 4001 points of each segment: crossing, touching, inside, along edges, parallel or degenerate."""
    rng = np.random.default_rng(4)
    half = np.array([0.3, 0.5, 0.2])
    start, end = rng.uniform(-1, 1, (2, 600, 3))
    start[:100] *= 0.3
    end[:100] *= 0.3
    end[100:150, 0] = start[100:150, 0]
    end[150:200, :2] = start[150:200, :2]
    end[200:220] = start[200:220]
    result = segment_box(start[..., np.newaxis], end[..., np.newaxis], half)
    t = np.linspace(0, 1, 4001)[:, np.newaxis]
    best = np.array([compute_signed_distance(a + t * (b - a), half).min() for a, b in zip(start, end, strict=True)])
    assert np.sum(best < 0) > 100
    np.testing.assert_allclose(result.distance[:, 0], best, atol=2e-3)
    assert np.all(result.distance[:, 0] <= best + 1e-12)


def test_box_normal_matches_finite_differences():
    rng = np.random.default_rng(5)
    half = np.array([0.3, 0.5, 0.2])
    start, end = rng.uniform(-0.7, 0.7, (2, 300, 3))
    result = segment_box(start[..., np.newaxis], end[..., np.newaxis], half)
    assert np.sum(result.distance < 0) > 50
    step = 1e-6
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        up, down = (
            segment_box((start + s)[..., np.newaxis], (end + s)[..., np.newaxis], half).distance
            for s in (shift, -shift)
        )
        difference = (up - down)[:, 0] / (2 * step)
        # Rarely a kink lies between the two sides of the difference.
        assert np.mean(np.abs(difference - result.normal[:, axis, 0]) < 1e-5) > 0.99


def test_segment_box_distance_matches_coal():
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(6)
    half = np.array([0.3, 0.5, 0.2])
    box = coal.Box(*(2 * half))
    for _ in range(100):
        ends = rng.uniform(-1.2, 1.2, (2, 3))
        radius = 0.05
        length = np.linalg.norm(ends[1] - ends[0])
        axis = (ends[1] - ends[0]) / length
        rotation = np.linalg.svd(axis[np.newaxis])[2][[1, 2, 0]].T
        rotation[:, 2] = axis
        rotation[:, 0] = np.cross(rotation[:, 1], axis)
        transform = coal.Transform3s(rotation, ends.mean(axis=0))
        result = coal.DistanceResult()
        coal.distance(coal.Capsule(radius, length), transform, box, coal.Transform3s(), coal.DistanceRequest(), result)
        distance = segment_box(*ends[:, np.newaxis, :, np.newaxis], half).distance[0, 0] - radius
        assert (result.min_distance <= 0) == (distance <= 0)
        if distance > 0:
            assert distance == pytest.approx(result.min_distance, abs=1e-6)


def test_few_corners_contain_all_others():
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(5000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    shell = np.column_stack([ball * [0.05, 0.1, 0.3] + 0.2, np.zeros(5000)])
    few = few_corners(shell)
    assert len(few) <= 400
    assert few[0, 3] < 0.01
    directions = rng.normal(size=(1000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach, covered = ((corners[:, :3] @ directions.T + corners[:, 3:]).max(axis=0) for corners in (shell, few))
    assert np.all(covered >= reach - 1e-12)
    flat = shell * [1.0, 1.0, 0.0, 1.0]
    assert few_corners(flat) is flat
