"""Axis of a rotating body, a point on the axis, and the places of the body's markers around it, from markers alone."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import lengths
from dynid_ros.mocap.markers import checked_markers, column_means, is_seen

MAX_AXIS_ERROR_RAD = 0.1
"""Largest standard error of a direction, rad: above, the estimate is almost random."""
MAX_CENTER_ERROR_OF_RADIUS = 0.5
"""Largest standard error of the centre, relative to the largest radius."""
MAX_ITERATIONS = 200
CONVERGENCE_STEP = 1e-9
"""Change of the centre, relative to the largest radius, at which the iteration ends."""
MIN_VARIATION_M = 1e-9
"""Smallest variation of positions, m; less may be rounding."""
TOO_SHORT_ARCS = (
    "the markers' arcs are too short for their noise to determine where the axis is; turn the joint further, and put "
    "markers farther from its axis and at different angles about it. Or the body does not turn about one axis alone: "
    "hold the other joints still"
)


@dataclass(frozen=True, eq=False)
class Axis:
    """Direction of an axis of rotation.

    Attributes:
        direction: Unit vector (3,).
        covariance: Covariance (3, 3) of the direction, rad²; zero along the direction itself.
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
    """Return the direction along which the markers' positions, each minus its mean, vary least.

    Gamage and Lasenby 2002; Lightcap and Banks 2007, eq. 11 with squared terms. The body need not be rigid, as long as
    each marker stays on its circle. For isotropic noise the eigenvector of noisy positions is consistent. Its errors
    are those of principal components, and allow for residuals that are correlated in time.

    One marker is enough if the height of its arc exceeds the noise. Markers at different angles about the axis are far
    more informative.

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
    gaps = variances[1:] - variances[0]
    # A gap that may be due to rounding determines no direction.
    if (gaps > 1e-12 * np.max(np.abs(offsets)) ** 2).all():
        along = offsets @ directions
        scores = np.einsum("kp,kpj->kj", along[..., 0], along[..., 1:]) / gaps / dof
        covariance = long_run_covariance(scores)
    else:
        covariance = np.full((2, 2), np.inf)
    if not np.sqrt(np.trace(covariance)) < MAX_AXIS_ERROR_RAD:
        least, less, most = (f"{1000 * np.sqrt(max(variance, 0.0)):.3g}" for variance in variances)
        raise MocapError(
            f"the markers determine no axis of rotation: they vary by {most}, {less} and {least} mm (standard "
            "deviations along three axes) and along an axis should vary clearly least. Turn the joint further, and put "
            "markers farther from its axis and at different angles about it, not in line with it"
        )
    direction = oriented(directions[:, 0], towards)
    return Axis(direction, directions[:, 1:] @ covariance @ directions[:, 1:].T, float(np.sqrt(noise)))


def long_run_covariance(scores: NDArray) -> NDArray:
    """Return the covariance (m, m) of the sum of scores (N, m) that are correlated over less than √N frames.

    The weights of the products are Bartlett's (Newey and West 1987). They result from the squares of all sums over √N
    successive frames.
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
            f"the estimated axis, {np.round(direction, 3)}, is at {np.degrees(np.arccos(cosine)):.0f}° to the "
            f"approximate axis {towards}: that does not determine its sign; is it in the camera's frame?"
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

    Least squares of squared distances (Lightcap and Banks 2007, eq. 12) are linear in the centre m, but noise biases
    the centre towards short arcs. Halvorsen 2003 compensates for the bias: A m = b − 2σ² Σ(v̄_p − m), with the mean
    position v̄_p of marker p and σ² = var(r²)/(4 mean r²). The equations are solved in the plane normal to the axis;
    the height of the point along the axis is arbitrary.

    Args:
        markers: Positions (N, P, 3), m; NaN where a marker is not seen; without outliers.
        axis: Direction (3,) of the axis.
        compensated: Whether the bias by noise is compensated.

    Raises:
        MocapError: There are too few positions, or the arcs are too short for their noise to determine a centre.
    """
    positions = checked_markers(markers)
    seen = is_seen(positions)
    there = seen[..., None]
    count = seen.sum(axis=0)
    plane = axis_frame(checked_direction(axis))[:, :2]
    origin = positions[seen].mean(axis=0)
    # Positions v in the plane and their squares v·v, both minus the mean of each marker.
    v = np.where(there, positions - origin, 0.0) @ plane
    mean = column_means(v, seen)
    mean_square = column_means(np.sum(v**2, axis=2), seen)
    square = np.where(seen, np.sum(v**2, axis=2) - mean_square, 0.0)
    v = np.where(there, v - mean, 0.0)
    vv = np.einsum("kpi,kpj->pij", v, v)
    sv = np.einsum("kpi,kp->pi", v, square)
    ss = np.einsum("kp,kp->p", square, square)
    dof = max(int(np.sum(np.maximum(count - 1, 0))), 1)

    def mean_square_radii(center: NDArray) -> NDArray:
        return mean_square - 2 * mean @ center + center @ center

    def noise_variance(center: NDArray) -> float:
        """Return σ² = var(r²)/(4 mean r²) over all markers."""
        spread = np.maximum(ss - 4 * sv @ center + 4 * np.einsum("i,pij,j->p", center, vv, center), 0.0)
        return float(np.sum(spread[count > 0] / (4 * mean_square_radii(center)[count > 0])) / dof)

    uncorrected = normal = 2 * vv.sum(axis=0)
    center = _solve(normal, sv.sum(axis=0))
    step = np.inf if compensated else 0.0
    for _ in range(MAX_ITERATIONS):
        if step <= CONVERGENCE_STEP * np.sqrt(np.max(mean_square_radii(center))):
            break
        # Noise adds to both sides in proportion to the number of positions.
        bias = 2 * noise_variance(center) * count
        normal = uncorrected - bias.sum() * np.eye(2)
        previous = center
        center = _solve(normal, sv.sum(axis=0) - bias @ mean)
        step = float(np.linalg.norm(center - previous))
    else:
        raise MocapError(TOO_SHORT_ARCS)
    # Contributions of the positions to b - A m.
    parts = v * (square - 2 * v @ center)[..., None]
    scores = np.where(there, parts - column_means(parts, seen), 0.0).sum(axis=1)
    covariance = np.linalg.solve(normal, np.linalg.solve(normal, long_run_covariance(scores)).T)
    variance = noise_variance(center)
    radii = np.where(count > 0, np.sqrt(np.maximum(mean_square_radii(center) - 2 * variance, 0.0)), np.nan)
    estimate = Center(origin + plane @ center, plane @ covariance @ plane.T, radii, float(np.sqrt(variance)))
    if compensated and not estimate.standard_error < MAX_CENTER_ERROR_OF_RADIUS * np.nanmax(radii):
        raise MocapError(TOO_SHORT_ARCS)
    return estimate


def _solve(normal: NDArray, right: NDArray) -> NDArray:
    """Solve for the centre (2,), unless the arcs are too short."""
    eigenvalues = np.linalg.eigvalsh(normal)
    if not eigenvalues[0] > max(1e-12 * abs(eigenvalues[1]), MIN_VARIATION_M**2):
        raise MocapError(TOO_SHORT_ARCS)
    return np.linalg.solve(normal, right)


# A rigid body that turns about a fixed axis.


NAME_WEIGHT = 0.01
"""Score of a marker that keeps its name, relative to that of a position at the place of any marker."""
MISFIT_WEIGHT = 0.01
"""Penalty on the distance of all positions from their places, relative to the score of a name."""


@dataclass(frozen=True, eq=False)
class Hinge:
    """Rigid body that rotates about a fixed axis, with markers on circles around the axis.

    Attributes:
        frame: Unit vectors (3, 3) as columns, in the camera's frame: two normal to the axis, then the axis, about which
            positive angles turn right-handed.
        center: Point on the axis in the camera's frame, (3,) m.
        template: Markers at angle zero, (P, 3) m from the centre along the columns of `frame`; NaN where unknown.
    """

    frame: NDArray
    center: NDArray
    template: NDArray

    @property
    def axis(self) -> NDArray:
        """Unit vector (3,) of the axis."""
        return self.frame[:, 2]

    @cached_property
    def radii(self) -> NDArray:
        """Distances (P,) of the markers from the axis, m."""
        return np.hypot(self.template[:, 0], self.template[:, 1])

    def to_local(self, markers: NDArray) -> NDArray:
        """Return positions (..., 3) relative to the centre along the columns of `frame`."""
        return (markers - self.center) @ self.frame

    def turned(self, angle: NDArray) -> NDArray:
        """Return the local positions (N, P, 3) of the markers at angles (N,), rad."""
        cosine = np.cos(angle)[:, None]
        sine = np.sin(angle)[:, None]
        x, y, height = self.template.T
        along = cosine * x - sine * y
        return np.stack([along, sine * x + cosine * y, np.broadcast_to(height, along.shape)], axis=2)

    def angles(self, local: NDArray) -> NDArray:
        """Return the least-squares angles (N,) of local positions (N, P, 3) in (-π, π]; NaN where no marker is seen.

        Only distances in the plane normal to the axis depend on the angle, so the sum of squared distances of Lightcap
        and Banks 2007, eq. 13, has its minimum in closed form.
        """
        x = local[..., 0]
        y = local[..., 1]
        along = np.nansum(x * self.template[:, 0] + y * self.template[:, 1], axis=1)
        across = np.nansum(y * self.template[:, 0] - x * self.template[:, 1], axis=1)
        return np.where((along == 0) & (across == 0), np.nan, np.arctan2(across, along))

    def misfits(self, local: NDArray) -> NDArray:
        """Return the distances (N, P) of local positions from their places at the least-squares angles, m."""
        return lengths(local - self.turned(self.angles(local)))

    def agreed_angles(self, local: NDArray, limit: float) -> NDArray:
        """Return the angles (N,) at which most positions (N, P, 3) are at places of markers, under any names.

        Each position is identified with each marker in turn, which gives an angle and the places of all markers. Of
        angles with equally many matches, that with more unchanged names wins. A single matching position does not
        suffice for a change of its name.
        """
        phases = np.arctan2(local[..., 1], local[..., 0])
        best = np.full(len(local), np.nan)
        best_score = np.ones(len(local))
        for position, marker in product(range(local.shape[1]), np.flatnonzero(self.radii > 2.0 * limit)):
            angle = phases[:, position] - np.arctan2(self.template[marker, 1], self.template[marker, 0])
            distance = lengths(local[:, :, None] - self.turned(angle)[:, None])  # of position p from marker q's place
            near = distance < limit * np.hypot(1.0, np.nanmax(self.radii) / self.radii[marker])
            names_kept = np.einsum("kpp->k", near.astype(float))
            misfit = np.minimum(distance.min(axis=2), limit).sum(axis=1) / limit
            score = near.any(axis=2).sum(axis=1) + NAME_WEIGHT * (names_kept - MISFIT_WEIGHT * misfit)
            better = score > best_score
            best[better] = angle[better]
            best_score[better] = score[better]
        return best

    def with_zero_at(self, angle: float) -> "Hinge":
        """Return the same hinge with the zero of its angle moved to `angle`, rad."""
        return replace(self, template=self.turned(np.array([angle]))[0])

    def reversed(self) -> "Hinge":
        """Return the same hinge with the opposite axis, so that all angles change their signs."""
        flip = np.array([1.0, -1.0, -1.0])
        return replace(self, frame=self.frame * flip, template=self.template * flip)


def start_hinge(markers: NDArray, axis: NDArray, center: NDArray) -> Hinge:
    """Return the hinge about a known axis, with medians over the frames of radii, heights and angles between markers.

    A marker stays unknown if no chain of markers that were seen together connects it to the most frequent marker.

    Args:
        markers: Positions (N, P, 3), m; NaN where not seen.
        axis: Unit vector (3,).
        center: Point (3,), m.
    """
    hinge = Hinge(axis_frame(axis), center, np.full((markers.shape[1], 3), np.nan))
    local = hinge.to_local(markers)
    seen = is_seen(local)
    phase = np.arctan2(local[..., 1], local[..., 0])
    first = int(np.argmax(seen.sum(axis=0)))
    offsets = {first: 0.0}
    turn = np.where(seen[:, first], phase[:, first], np.nan)
    waiting = set(range(markers.shape[1])) - {first}
    while waiting:
        marker = max(waiting, key=lambda p: int(np.sum(np.isfinite(turn) & seen[:, p])))
        difference = (phase[:, marker] - turn)[np.isfinite(turn) & seen[:, marker]]
        if not len(difference):
            break
        # The median about the circular mean.
        middle = np.angle(np.mean(np.exp(1j * difference)))
        offsets[marker] = float(middle + np.median(np.angle(np.exp(1j * (difference - middle)))))
        turn = np.where(np.isfinite(turn), turn, phase[:, marker] - offsets[marker])
        waiting.remove(marker)
    for marker, offset in offsets.items():
        known = local[seen[:, marker], marker]
        radius = np.median(np.hypot(known[:, 0], known[:, 1]))
        hinge.template[marker] = radius * np.cos(offset), radius * np.sin(offset), np.median(known[:, 2])
    return hinge
