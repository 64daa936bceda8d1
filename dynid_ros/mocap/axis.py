"""Axis about which a body turns, from its markers alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.mocap.markers import checked_markers, column_means, is_seen

WORST = 0.1
"""Standard error of a direction, rad, beyond which it is none: its estimate is then as good as random."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Direction of an axis of rotation.

    Attributes:
        direction: (3,) unit vector.
        covariance: (3, 3) of the direction, rad²; zero along it.
        noise: standard deviation of the markers' positions along the axis, m.
        travel: root mean square distance of the markers from their mean positions, m.

    """

    direction: NDArray
    covariance: NDArray
    noise: float
    travel: float

    @property
    def standard_error(self) -> float:
        """Root mean square angle to the true axis, rad."""
        return float(np.sqrt(np.trace(self.covariance)))


def axis_of_rotation(markers: ArrayLike, towards: ArrayLike | None = None) -> Axis:
    """Direction along which the markers' positions, each about its own mean, vary least.

    Gamage and Lasenby 2002; Lightcap and Banks 2007, eq. 11 with its square. The body need not be rigid, only each
    marker keep to its circle. The eigenvector of noisy positions is consistent, as noise adds alike in all directions;
    its errors are those of principal components.

    One marker is enough if its arc bows out of the noise; markers at other angles about the axis tell far more.

    Args:
        markers: (N, P, 3) m, NaN where a marker is not seen; without outliers.
        towards: (3,) approximate axis; the direction is within 90° of it. None: its largest component is positive.

    Raises:
        MocapError: too few positions, or a motion too small for its noise to tell an axis.

    """
    positions = checked_markers(markers)
    seen = is_seen(positions)
    freedom = int(np.sum(np.maximum(seen.sum(axis=0) - 1, 0)))
    if freedom < 3:
        raise MocapError(f"{int(seen.sum())} marker positions tell no axis of rotation; expected many frames in motion")
    offsets = (positions - column_means(positions, seen))[seen]
    variances, directions = np.linalg.eigh(offsets.T @ offsets / freedom)
    noise, others = max(variances[0], 0.0), variances[1:]
    gaps = others - variances[0]
    spread = np.full(2, np.inf)
    # A gap of rounding alone is none.
    wide = gaps > 1e-12 * np.max(np.abs(offsets), initial=0.0) ** 2
    spread[wide] = noise * others[wide] / gaps[wide] ** 2 / freedom
    error = float(np.sqrt(spread.sum()))
    if not error < WORST:
        raise MocapError(
            f"the markers tell no axis of rotation: they vary by {_mm(others[1])}, {_mm(others[0])} and {_mm(noise)} "
            "mm (standard deviations along three axes) and along an axis should vary clearly least. Turn the joint "
            "further, and put markers farther from its axis and at different angles about it, not in line with it"
        )
    direction = oriented(directions[:, 0], towards)
    covariance = (directions[:, 1:] * spread) @ directions[:, 1:].T
    return Axis(direction, covariance, float(np.sqrt(noise)), float(np.sqrt(variances.sum())))


def oriented(direction: NDArray, towards: ArrayLike | None) -> NDArray:
    """The direction or its opposite, whichever is within 90° of `towards`; None: its largest component positive.

    Raises:
        MocapError: `towards` is no direction, or normal to the axis as far as one can tell.

    """
    if towards is None:
        return direction * np.sign(direction[np.argmax(np.abs(direction))])
    cosine = float(checked_direction(towards) @ direction)
    if abs(cosine) < np.sin(WORST):
        raise MocapError(
            f"the axis found, {np.round(direction, 3)}, is at {np.degrees(np.arccos(cosine)):.0f}° to the approximate "
            f"axis {towards}: that does not tell its sign; is it in the camera's frame?"
        )
    return direction * np.sign(cosine)


def checked_direction(direction: ArrayLike) -> NDArray:
    """(3,) unit vector.

    Raises:
        MocapError: not three finite numbers, or all zero.

    """
    given = np.asarray(direction, dtype=float)
    if given.shape != (3,) or not 0 < np.linalg.norm(given) < np.inf:
        raise MocapError(f"axis {given} is none: expected three finite numbers, not all zero")
    return given / np.linalg.norm(given)


def axis_frame(axis: NDArray) -> NDArray:
    """(3, 3) right-handed, orthonormal columns: two normal to the axis, and the axis."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def _mm(variance: float) -> str:
    return f"{1000 * np.sqrt(max(variance, 0.0)):.3g}"
