"""Axis about which a body turns and a point on it, from its markers alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.mocap.markers import checked_markers, column_means, is_seen

MAX_AXIS_ERROR_RAD = 0.1
"""Largest standard error of a direction: beyond, the estimate is as good as random."""
MAX_CENTER_ERROR_OF_RADIUS = 0.5
"""Largest standard error of the centre, in parts of the largest radius."""
MAX_ITERATIONS = 200
CONVERGENCE_STEP = 1e-9
"""Change of the centre between two iterations, in parts of the largest radius, that ends them."""
MIN_VARIATION_M = 1e-9
"""Variation of positions that is told from rounding."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Direction of an axis of rotation.

    Attributes:
        direction: Unit vector (3,).
        covariance: Covariance (3, 3) of the direction, rad²; zero along it.
        noise: Standard deviation of the markers' positions along the axis, m.
    """

    direction: NDArray
    covariance: NDArray
    noise: float

    @property
    def standard_error(self) -> float:
        """RMS angle to the true axis, rad."""
        return float(np.sqrt(np.trace(self.covariance)))


def axis_of_rotation(markers: ArrayLike, towards: ArrayLike | None = None) -> Axis:
    """Return the direction along which the markers' positions, each about its own mean, vary least.

    Gamage and Lasenby 2002; Lightcap and Banks 2007, eq. 11 with its square. The body need not be rigid as long as
    each marker keeps to its circle. Noise is isotropic, so the eigenvector of noisy positions is consistent. Its errors
    are those of principal components, and allow for residuals that are correlated in time.

    One marker is enough if its arc bows out of the noise. Markers at different angles about the axis are far more
    informative.

    Args:
        markers: Positions (N, P, 3), m; NaN where a marker is not seen; without outliers.
        towards: Approximate axis (3,); the direction is within 90° of it. None: its largest component is positive.

    Raises:
        MocapError: There are too few positions, or the motion is too small for its noise to determine an axis.
    """
    positions = checked_markers(markers)
    seen = is_seen(positions)
    dof = int(np.sum(np.maximum(seen.sum(axis=0) - 1, 0)))
    if dof < 3:
        raise MocapError(
            f"{int(seen.sum())} marker positions determine no axis of rotation; expected many frames in motion"
        )
    offsets = np.where(seen[..., None], positions - column_means(positions, seen), 0.0)
    variances, directions = np.linalg.eigh(np.einsum("kpi,kpj->ij", offsets, offsets) / dof)
    noise = max(variances[0], 0.0)
    others = variances[1:]
    gaps = others - variances[0]
    # Rounding alone makes no gap.
    if (gaps > 1e-12 * np.max(np.abs(offsets)) ** 2).all():
        along = offsets @ directions
        scores = np.einsum("kp,kpj->kj", along[..., 0], along[..., 1:]) / gaps / dof
        covariance = long_run_covariance(scores)
    else:
        covariance = np.full((2, 2), np.inf)
    if not np.sqrt(np.trace(covariance)) < MAX_AXIS_ERROR_RAD:
        raise MocapError(
            f"the markers determine no axis of rotation: they vary by {_mm(others[1])}, {_mm(others[0])} and "
            f"{_mm(noise)} mm (standard deviations along three axes) and along an axis "
            "should vary clearly least. "
            "Turn the joint further, and put markers farther from its axis and at different angles about it, not in "
            "line with it"
        )
    direction = oriented(directions[:, 0], towards)
    return Axis(direction, directions[:, 1:] @ covariance @ directions[:, 1:].T, float(np.sqrt(noise)))


def long_run_covariance(scores: NDArray) -> NDArray:
    """Return the covariance (m, m) of the sum of scores (N, m) that are correlated over less than √N frames.

    Bartlett's weights (Newey and West 1987): squares of sums over so many frames, wherever they begin, hold all
    products with these weights.
    """
    length = int(np.sqrt(len(scores))) + 1
    total = np.cumsum(np.pad(scores, [(length, length - 1), (0, 0)]), axis=0)
    sums = total[length:] - total[:-length]
    return sums.T @ sums / length


def oriented(direction: NDArray, towards: ArrayLike | None) -> NDArray:
    """Return the direction or its opposite, within 90° of `towards`; None: with its largest component positive."""
    if towards is None:
        return direction * np.sign(direction[np.argmax(np.abs(direction))])
    cosine = float(checked_direction(towards) @ direction)
    if abs(cosine) < np.sin(MAX_AXIS_ERROR_RAD):
        raise MocapError(
            f"the axis found, {np.round(direction, 3)}, is at {np.degrees(np.arccos(cosine)):.0f}° to the approximate "
            f"axis {towards}: that does not determine its sign; is it in the camera's frame?"
        )
    return direction * np.sign(cosine)


def checked_direction(direction: ArrayLike) -> NDArray:
    """Return the unit vector (3,) along a direction."""
    given = np.asarray(direction, dtype=float)
    if given.shape != (3,) or not 0 < np.linalg.norm(given) < np.inf:
        raise MocapError(f"axis {given} is none: expected three finite numbers, not all zero")
    return given / np.linalg.norm(given)


def axis_frame(axis: NDArray) -> NDArray:
    """Return right-handed, orthonormal columns (3, 3): two normal to the axis, and the axis."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def _mm(variance: float) -> str:
    return f"{1000 * np.sqrt(max(variance, 0.0)):.3g}"


@dataclass(frozen=True, eq=False)
class Center:
    """Point on an axis, at the mean height of the markers along it.

    Attributes:
        point: Position (3,), m.
        covariance: Covariance (3, 3), m²; zero along the axis.
        radii: Radii (P,) of the markers' circles, m; NaN for a marker never seen.
        noise: Standard deviation of the markers' positions along their radii, m.
    """

    point: NDArray
    covariance: NDArray
    radii: NDArray
    noise: float

    @property
    def standard_error(self) -> float:
        """RMS distance from the true axis, m."""
        return float(np.sqrt(np.trace(self.covariance)))


def center_of_rotation(markers: ArrayLike, axis: ArrayLike, *, compensated: bool = True) -> Center:
    """Return the point from which the markers' squared distances vary least.

    Least squares of squared distances (Lightcap and Banks 2007, eq. 12) are linear in the centre, but noise pulls the
    centre towards short arcs. Halvorsen 2003 takes that pull out: A m = b − 2σ² Σ(v̄_p − m), with σ² = var(r²)/(4 mean
    r²). The equations are solved in the plane normal to the axis, along which nothing determines the point.

    Args:
        markers: Positions (N, P, 3), m; NaN where a marker is not seen; without outliers.
        axis: Direction (3,) of the axis.
        compensated: Whether the pull of the noise is taken out.

    Raises:
        MocapError: There are too few positions, or the arcs are too short for their noise to determine a centre.
    """
    positions = checked_markers(markers)
    seen = is_seen(positions)
    frame = axis_frame(checked_direction(axis))
    origin = positions[seen].mean(axis=0)
    moments = _Moments(np.where(seen[..., None], positions - origin, 0.0) @ frame[:, :2], seen)
    center, normal = _compensated(moments) if compensated else (_solve(moments.normal, moments.right), moments.normal)
    scores = moments.parts(center).sum(axis=1)
    covariance = np.linalg.solve(normal, np.linalg.solve(normal, long_run_covariance(scores)).T)
    variance = moments.noise_variance(center)
    mean_square = moments.mean_square_radii(center)
    radii = np.where(moments.count > 0, np.sqrt(np.maximum(mean_square - 2 * variance, 0.0)), np.nan)
    plane = frame[:, :2]
    estimate = Center(origin + plane @ center, plane @ covariance @ plane.T, radii, float(np.sqrt(variance)))
    if compensated and not estimate.standard_error < MAX_CENTER_ERROR_OF_RADIUS * np.nanmax(radii):
        raise _too_short()
    return estimate


class _Moments:
    """Sums over the frames, of positions v (N, P, 2) about their means and of their squares s = v·v; P markers."""

    def __init__(self, plane: NDArray, seen: NDArray) -> None:
        squares = np.sum(plane**2, axis=2)
        self.seen = seen
        self.count = seen.sum(axis=0)
        self.mean = column_means(plane, seen)
        self.mean_square = column_means(squares, seen)
        self.offset = np.where(seen[..., None], plane - self.mean, 0.0)
        self.square = np.where(seen, squares - self.mean_square, 0.0)
        self.vv = np.einsum("kpi,kpj->pij", self.offset, self.offset)
        self.sv = np.einsum("kpi,kp->pi", self.offset, self.square)
        self.ss = np.einsum("kp,kp->p", self.square, self.square)

    @property
    def normal(self) -> NDArray:
        """Normal matrix A (2, 2), times the number of frames."""
        return 2 * self.vv.sum(axis=0)

    @property
    def right(self) -> NDArray:
        """Right-hand side b (2,), times the number of frames."""
        return self.sv.sum(axis=0)

    def mean_square_radii(self, center: NDArray) -> NDArray:
        """Return the mean squared radii (P,)."""
        return self.mean_square - 2 * self.mean @ center + center @ center

    def noise_variance(self, center: NDArray) -> float:
        """Return σ² = var(r²)/(4 mean r²) over all markers."""
        spread = np.maximum(self.ss - 4 * self.sv @ center + 4 * np.einsum("i,pij,j->p", center, self.vv, center), 0.0)
        dof = max(int(np.sum(np.maximum(self.count - 1, 0))), 1)
        turning = self.count > 0
        return float(np.sum(spread[turning] / (4 * self.mean_square_radii(center)[turning])) / dof)

    def parts(self, center: NDArray) -> NDArray:
        """Return the contributions (N, P, 2) of the positions to b - A m, about the mean of each marker."""
        parts = self.offset * (self.square - 2 * self.offset @ center)[..., None]
        return np.where(self.seen[..., None], parts - column_means(parts, self.seen), 0.0)


def _compensated(moments: _Moments) -> tuple[NDArray, NDArray]:
    """Return the centre, and the normal matrix without the contribution of the noise."""
    center = _solve(moments.normal, moments.right)
    for _ in range(MAX_ITERATIONS):
        # Noise adds to both sides in proportion to the number of positions.
        bias = 2 * moments.noise_variance(center) * moments.count
        normal = moments.normal - bias.sum() * np.eye(2)
        previous = center
        center = _solve(normal, moments.right - bias @ moments.mean)
        if np.linalg.norm(center - previous) <= CONVERGENCE_STEP * np.sqrt(np.max(moments.mean_square_radii(center))):
            return center, normal
    raise _too_short()


def _solve(normal: NDArray, right: NDArray) -> NDArray:
    eigenvalues = np.linalg.eigvalsh(normal)
    if not eigenvalues[0] > max(1e-12 * abs(eigenvalues[1]), MIN_VARIATION_M**2):
        raise _too_short()
    return np.linalg.solve(normal, right)


def _too_short() -> MocapError:
    return MocapError(
        "the markers' arcs are too short for their noise to determine where the axis is; turn the joint further, and "
        "put markers farther from its axis and at different angles about it. Or the body does not turn about one axis "
        "alone: hold the other joints still"
    )
