"""Which links are kept apart from which."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from dynid_ros.collision.checks import PairChecks
from dynid_ros.collision.placed import Placed, Placing
from dynid_ros.collision.separating_axis import SeparatingAxes, helpful_axes

USUAL = 0.9
"""Capsules of links two joints apart that have the clearance in less than this part of all poses lack it by design."""
NEAR = 3
"""Of links up to so many joints apart, capsules that overlap in OFTEN of all poses are looked at more closely."""
OFTEN = 0.02


def capsule_pairs(placing: Placing, clearance: float, placed: Placed) -> PairChecks:
    """Pairs of capsules on links that are no neighbours in the chain.

    Left out are pairs of capsules that overlap in every pose of `placed`: the parts of two links beside the joint
    between them, which would allow no pose at all. The other capsules of the same two links are still looked at.
    Capsules of links few joints apart that often overlap are looked at more closely, along separating axes. Capsules
    of links two joints apart that are nearer than the clearance by design may come as near as they like, but not
    touch.

    Args:
        placing: the capsules.
        clearance: least distance, m.
        placed: they in poses within the limits.

    """
    bodies = placing.bodies
    pairs = np.array(
        [(b, a) for a, b in combinations(range(len(bodies.link)), 2) if bodies.link[b] - bodies.link[a] > 1], dtype=int
    ).reshape(-1, 2)
    checks = PairChecks(bodies, pairs[:, 0], np.zeros(len(pairs)), pairs[:, 1])
    distance = checks.contact(placed).distance
    apart = bodies.link[pairs[:, 0]] - bodies.link[pairs[:, 1]]
    axes: list[SeparatingAxes] = []
    for k in np.flatnonzero((apart <= NEAR) & (np.mean(distance < 0, axis=1) > OFTEN)):
        axes += helpful_axes(placing, int(k), pairs[k], near=placed.only(distance[k] < 0), n_poses=distance.shape[1])
    checks = replace(checks, axes=tuple(axes))
    distance = checks.contact(placed).distance
    by_design = (apart == 2) & (np.mean(distance >= clearance, axis=1) < USUAL)
    asked = np.where(by_design, 0.0, clearance)
    return replace(checks, clearance=asked).only(np.any(distance > 1e-9, axis=1))


def line_pairs(placing: Placing, clearance: float, placed: Placed) -> PairChecks:
    """Pairs of lines from link to link, as `Bodies.lines`; none for clearance zero.

    Lines that are less than three times the clearance apart along the arm, as those of a wrist, are close by design and
    not looked at.
    """
    bodies, points = placing.bodies, placed.points
    n = len(bodies.link)
    lengths = np.linalg.norm(points[n:] - points[:n], axis=1).min(axis=-1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    pairs = np.array(
        [
            (b, a)
            for a, b in combinations(np.flatnonzero(lengths > 1e-9), 2)
            if clearance > 0 and along[b] - along[a + 1] > 3 * clearance
        ],
        dtype=int,
    ).reshape(-1, 2)
    return PairChecks(bodies, pairs[:, 0], np.full(len(pairs), clearance), pairs[:, 1])
