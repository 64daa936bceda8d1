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
    marker keep to its circle. The eigenvector of noisy positions is consistent, as noise is isotropic;
    its errors are those of principal components.

    One marker is enough if its arc bows out of the noise; markers at other angles about the axis are far more
    informative.

    Args:
        markers: (N, P, 3) m, NaN where a marker is not seen; without outliers.
        towards: (3,) approximate axis; the direction is within 90° of it. None: its largest component is positive.

    Raises:
        MocapError: too few positions, or a motion too small for its noise to determine an axis.
    """
    positions = checked_markers(markers)
    seen = is_seen(positions)
    dof = int(np.sum(np.maximum(seen.sum(axis=0) - 1, 0)))
    if dof < 3:
        raise MocapError(
            f"{int(seen.sum())} marker positions determine no axis of rotation; expected many frames in motion"
        )
    offsets = (positions - column_means(positions, seen))[seen]
    variances, directions = np.linalg.eigh(offsets.T @ offsets / dof)
    noise, others = max(variances[0], 0.0), variances[1:]
    gaps = others - variances[0]
    spread = np.full(2, np.inf)
    # A gap of rounding alone is none.
    wide = gaps > 1e-12 * np.max(np.abs(offsets), initial=0.0) ** 2
    spread[wide] = noise * others[wide] / gaps[wide] ** 2 / dof
    error = float(np.sqrt(spread.sum()))
    if not error < WORST:
        raise MocapError(
            f"the markers determine no axis of rotation: they vary by {_mm(others[1])}, {_mm(others[0])} and "
            f"{_mm(noise)} mm (standard deviations along three axes) and along an axis "
            "should vary clearly least. "
            "Turn the joint further, and put markers farther from its axis and at different angles about it, not in "
            "line with it"
        )
    direction = oriented(directions[:, 0], towards)
    covariance = (directions[:, 1:] * spread) @ directions[:, 1:].T
    return Axis(direction, covariance, float(np.sqrt(noise)), float(np.sqrt(variances.sum())))


def oriented(direction: NDArray, towards: ArrayLike | None) -> NDArray:
    """The direction or its opposite, whichever is within 90° of `towards`; None: its largest component positive.

    Raises:
        MocapError: `towards` is no direction, or normal to the axis within the errors.
    """
    if towards is None:
        return direction * np.sign(direction[np.argmax(np.abs(direction))])
    cosine = float(checked_direction(towards) @ direction)
    if abs(cosine) < np.sin(WORST):
        raise MocapError(
            f"the axis found, {np.round(direction, 3)}, is at {np.degrees(np.arccos(cosine)):.0f}° to the approximate "
            f"axis {towards}: that does not determine its sign; is it in the camera's frame?"
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


# Point of an axis of rotation, from the circles of markers, without the bias that noise causes.


PASSES = 200
SETTLED = 1e-9
"""Change of the centre between two passes, in parts of the largest radius, that ends them."""

CENTER_WORST = 0.5
"""Standard error of the centre, in parts of the largest radius, beyond which it is none."""

ROUNDING = 1e-9
"""Variation of positions, m, that means nothing."""


@dataclass(frozen=True, eq=False)
class Center:
    """Point of an axis, at the mean height of the markers along it.

    Attributes:
        point: (3,) m.
        covariance: (3, 3) m²; zero along the axis.
        radii: (P,) of the markers' circles, m; NaN for a marker never seen.
        noise: standard deviation of the markers' positions along their radii, m.
    """

    point: NDArray
    covariance: NDArray
    radii: NDArray
    noise: float

    @property
    def standard_error(self) -> float:
        """Root mean square distance from the true axis, m."""
        return float(np.sqrt(np.trace(self.covariance)))


def center_of_rotation(markers: ArrayLike, axis: ArrayLike, *, compensated: bool = True) -> Center:
    """Point from which the markers' squared distances vary least.

    Least squares of squared distances (Lightcap and Banks 2007, eq. 12) are linear in the centre, but noise pulls the
    centre towards short arcs. Halvorsen 2003 takes that pull out: A m = b − 2σ² Σ(v̄_p − m), with σ² = var(r²)/(4 mean
    r²). It is solved in the plane normal to the axis: along the axis nothing holds it.

    Args:
        markers: (N, P, 3) m, NaN where a marker is not seen; without outliers.
        axis: (3,) direction of the axis.
        compensated: False: with the bias, for comparison.

    Raises:
        MocapError: too few positions, or arcs too short for their noise to determine a centre.
    """
    positions = checked_markers(markers)
    seen = is_seen(positions)
    frame = axis_frame(checked_direction(axis))
    origin = positions[seen].mean(axis=0)
    moments = _Moments(np.where(seen[..., None], positions - origin, 0.0) @ frame[:, :2], seen)
    center, normal = _compensated(moments) if compensated else (_solve(moments.normal, moments.right), moments.normal)
    # Each position's part in the equations; what is left of it is noise.
    parts = moments.parts(center)
    covariance = np.linalg.solve(normal, np.linalg.solve(normal, np.einsum("kpi,kpj->ij", parts, parts)).T)
    variance, mean_square = moments.noise_variance(center), moments.mean_square_radii(center)
    radii = np.where(moments.count > 0, np.sqrt(np.maximum(mean_square - 2 * variance, 0.0)), np.nan)
    plane = frame[:, :2]
    found = Center(origin + plane @ center, plane @ covariance @ plane.T, radii, float(np.sqrt(variance)))
    if compensated and not found.standard_error < CENTER_WORST * np.nanmax(radii):
        raise _too_short()
    return found


class _Moments:
    """Sums over the frames, of positions v (N, P, 2) about their means and of their squares s = v·v; P markers."""

    def __init__(self, plane: NDArray, seen: NDArray) -> None:
        squares = np.sum(plane**2, axis=2)
        self.seen = seen
        self.count = seen.sum(axis=0)
        self.mean, self.mean_square = column_means(plane, seen), column_means(squares, seen)
        self.offset = np.where(seen[..., None], plane - self.mean, 0.0)
        self.square = np.where(seen, squares - self.mean_square, 0.0)
        self.vv = np.einsum("kpi,kpj->pij", self.offset, self.offset)
        self.sv = np.einsum("kpi,kp->pi", self.offset, self.square)
        self.ss = np.einsum("kp,kp->p", self.square, self.square)

    @property
    def normal(self) -> NDArray:
        """A, times the number of frames."""
        return 2 * self.vv.sum(axis=0)

    @property
    def right(self) -> NDArray:
        """b, times the number of frames."""
        return self.sv.sum(axis=0)

    def mean_square_radii(self, center: NDArray) -> NDArray:
        """(P,) mean r²."""
        return self.mean_square - 2 * self.mean @ center + center @ center

    def noise_variance(self, center: NDArray) -> float:
        """σ² = var(r²)/(4 mean r²), over all markers."""
        spread = np.maximum(self.ss - 4 * self.sv @ center + 4 * np.einsum("i,pij,j->p", center, self.vv, center), 0.0)
        dof = max(int(np.sum(np.maximum(self.count - 1, 0))), 1)
        turning = self.count > 0
        return float(np.sum(spread[turning] / (4 * self.mean_square_radii(center)[turning])) / dof)

    def parts(self, center: NDArray) -> NDArray:
        """(N, P, 2) what each position adds to the equations' difference, about its marker's mean."""
        parts = self.offset * (self.square - 2 * self.offset @ center)[..., None]
        return np.where(self.seen[..., None], parts - column_means(parts, self.seen), 0.0)


def _compensated(moments: _Moments) -> tuple[NDArray, NDArray]:
    """Centre, and the normal matrix without what noise adds to it."""
    center = _solve(moments.normal, moments.right)
    for _ in range(PASSES):
        # Noise adds to both sides, for as many positions as there are.
        bias = 2 * moments.noise_variance(center) * moments.count
        normal = moments.normal - bias.sum() * np.eye(2)
        previous, center = center, _solve(normal, moments.right - bias @ moments.mean)
        if np.linalg.norm(center - previous) <= SETTLED * np.sqrt(np.max(moments.mean_square_radii(center))):
            return center, normal
    raise _too_short()


def _solve(normal: NDArray, right: NDArray) -> NDArray:
    eigenvalues = np.linalg.eigvalsh(normal)
    if not eigenvalues[0] > max(1e-12 * abs(eigenvalues[1]), ROUNDING**2):
        raise _too_short()
    return np.linalg.solve(normal, right)


def _too_short() -> MocapError:
    return MocapError(
        "the markers' arcs are too short for their noise to determine where the axis is; turn the joint further, and "
        "put markers farther from its axis and at different angles about it. Or the body turns not about one axis "
        "alone: hold the other joints still"
    )
