"""Errors of moments that rest on a handful of poses."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.rotations import HOLD_TOLERANCE
from dynid_ros.identification.samples import Samples

FEW_POSES = 20
"""More of them tell the noise of each joint well enough."""


def widened(
    covariance: NDArray,
    names: Sequence[str],
    samples: Samples,
    refit: Callable[[Samples], Mapping[str, float]],
) -> NDArray:
    """Covariance (k, k) with errors no smaller than the jackknife over few poses has them (Efron 1982, chapter 3).

    A fit weighs each joint by a noise that it estimates along. From a handful of poses it believes most what fits by
    chance, and its errors come out too small; what the solution changes by when a pose is left out does not.

    Args:
        covariance: of the solution.
        names: (k,) unknowns.
        samples: that were fitted.
        refit: what other samples decide, by name.

    """
    pose = _poses(samples)
    count = int(pose.max()) + 1
    if not 2 < count <= FEW_POSES:
        return covariance
    found = np.full((count, len(names)), np.nan)
    for k in range(count):
        values = refit(samples.take(np.flatnonzero(pose != k)))
        found[k] = [values.get(name, np.nan) for name in names]
    jackknife = np.sqrt((count - 1) / count * ((found - found.mean(axis=0)) ** 2).sum(axis=0))
    errors = np.sqrt(np.diagonal(covariance))
    # What hangs on a single pose has no jackknife.
    factor = np.where(jackknife > errors, jackknife / np.where(errors > 0, errors, 1.0), 1.0)
    return covariance * np.outer(factor, factor)


def _poses(samples: Samples) -> NDArray:
    """(M,) number of the pose of each sample; it stops to tell them apart where they are many."""
    poses: list[NDArray] = []
    number = np.zeros(len(samples), int)
    for i, position in enumerate(samples.position):
        same = [k for k, pose in enumerate(poses) if np.abs(pose - position).max() < HOLD_TOLERANCE]
        number[i] = same[0] if same else len(poses)
        if not same:
            poses.append(position)
        if len(poses) > FEW_POSES:
            break
    return number
