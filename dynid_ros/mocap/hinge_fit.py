"""Axis, centre and markers of a hinge by maximum likelihood."""

import contextlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import GAUSSIAN, lengths, spread
from dynid_ros.mocap.hinge import FINEST, GATE, Hinge, start_hinge
from dynid_ros.mocap.markers import is_seen, jitter, linked, pair_distances
from dynid_ros.mocap.rotation_axis import axis_of_rotation, center_of_rotation

# A first axis and centre of rotation, in spite of ghosts, jumps and exchanged markers.


CIRCLE = 1.177410
"""Median length of a vector of two standard normal numbers."""

NEIGHBOURS = 2
"""Frames before and after one whose median it is compared with."""

PASSES = 20

SUSPECT = 2.0
"""Noise in parts of that from frame to frame, beyond which other beginnings are tried."""

BEGINNINGS, FEW = 20, 20
"""How many of them, and frames in each."""


def first_hinge(markers: NDArray) -> tuple[Hinge, float]:
    """Hinge by axis and centre of rotation from positions that agree with most others, and its noise, m.

    Exchanged names are followed first. Then are left out positions off the median of their neighbours in time, pairs of
    markers at another distance than mostly, and those off their circles, until these stay the same (concentration
    steps, Rousseeuw and Van Driessen 1999). Should that end far above the noise, as a few gross errors among short arcs
    can make it, it begins again with few frames, which hardly hold one of them, and the best end is taken.

    Args:
        markers: (N, P, 3) m, NaN where not seen.

    Raises:
        MocapError: what is left determines no axis or centre.
    """
    markers = linked(markers)
    used = _steady(markers) & _at_distance(markers)
    best, noise = _concentrated(markers, used)
    if noise > SUSPECT * jitter(np.where(used[..., None], markers, np.nan)):
        rng, frames = np.random.default_rng(0), np.flatnonzero(used.any(axis=1))
        for _ in range(BEGINNINGS):
            few = np.isin(np.arange(len(markers)), rng.choice(frames, min(FEW, len(frames)), replace=False))
            with contextlib.suppress(MocapError):  # these few determine no axis
                found, there = _concentrated(markers, used & few[:, None])
                best, noise = (found, there) if there < noise else (best, noise)
    return best, noise


def _concentrated(markers: NDArray, used: NDArray) -> tuple[Hinge, float]:
    """Hinge and noise by concentration steps that begin with the positions `used` (N, P)."""
    for _ in range(PASSES):
        trusted = np.where(used[..., None], markers, np.nan)
        axis = axis_of_rotation(trusted).direction
        hinge = start_hinge(markers, axis, _center(trusted, axis))
        local = hinge.local(markers)
        radial = np.hypot(local[..., 0], local[..., 1]) - hinge.radii
        off = np.hypot(radial, local[..., 2] - hinge.template[:, 2])
        before, used = used, off < GATE * max(float(np.nanmedian(off)) / CIRCLE, FINEST)
        if np.array_equal(before, used):
            break
    residual = local - hinge.turned(hinge.angles(local))
    return hinge, float(spread(lengths(residual).ravel()))


def _center(markers: NDArray, axis: NDArray) -> NDArray:
    try:
        return center_of_rotation(markers, axis).point
    except MocapError:  # arcs too short for it; least squares of all together may still do
        return center_of_rotation(markers, axis, compensated=False).point


def _steady(markers: NDArray) -> NDArray:
    """(N, P) seen, and near the median of the neighbours in time."""
    padded = np.pad(markers, [(NEIGHBOURS, NEIGHBOURS), (0, 0), (0, 0)], constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1, axis=0)
    seen = is_seen(markers)
    off = np.full(seen.shape, np.inf)
    company = np.isfinite(windows[..., 0, :]).sum(axis=-1) > NEIGHBOURS
    # Alone in its time, a ghost looks steady; where most are alone there is no telling.
    judged = seen & company if 2 * np.sum(seen & company) > seen.sum() else seen
    off[judged] = np.linalg.norm(markers[judged] - np.nanmedian(windows[judged], axis=-1), axis=1)
    some = markers[:, seen.any(axis=0)]
    travel = np.max(np.nanpercentile(some, 75, axis=0) - np.nanpercentile(some, 25, axis=0))
    # Even without noise, a turn is no straight line.
    return off < max(GATE * GAUSSIAN * float(np.median(off[judged])), 0.01 * float(travel), FINEST)


def _at_distance(markers: NDArray) -> NDArray:
    """(N, P) at the typical distance to all other markers, as far as both are seen."""
    good = is_seen(markers)
    for i, j, distance in pair_distances(markers):
        off = np.abs(distance - np.nanmedian(distance))
        bad = off > max(GATE * GAUSSIAN * float(np.nanmedian(off)), FINEST)
        good[bad, i] = good[bad, j] = False
    return good


COMMON = 4
"""Parameters of the axis: turned about the two first columns of its frame, rad, and moved along them, m."""

ITERATIONS = 100
SETTLED = 1e-7
"""Decrease of the squares that an iteration promises, in parts of a position's, that ends them."""

ROUNDING = 1e-9
"""Change of a position, m, that means nothing."""


@dataclass(frozen=True, eq=False)
class HingeFit:
    """A hinge with its errors.

    Attributes:
        hinge: as estimated.
        noise: standard deviation of a marker's coordinate, m.
        covariance: (4 + 3P, 4 + 3P) of the tilts about the two first columns of the frame, rad, of the shifts along
            them, m, and of the template's coordinates, m. It allows for residuals that are correlated in time.
    """

    hinge: Hinge
    noise: float
    covariance: NDArray

    @property
    def axis_error(self) -> float:
        """Root mean square angle between estimated and true axis, rad."""
        return float(np.sqrt(np.trace(self.covariance[:2, :2])))

    @property
    def center_error(self) -> float:
        """Root mean square distance between estimated and true axis at the centre, m."""
        return float(np.sqrt(np.trace(self.covariance[2:COMMON, 2:COMMON])))

    def reset(self, angle: float) -> "HingeFit":
        """The same fit, with what was `angle` (rad) as the hinge's angle zero."""
        turn = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix()
        turns = block_diag(np.eye(COMMON), *[turn] * len(self.hinge.template))
        return replace(self, hinge=self.hinge.reset(angle), covariance=turns @ self.covariance @ turns.T)

    def angle_errors(self, markers: NDArray, reference: NDArray) -> NDArray:
        """(N,) standard errors of angles less the mean angle of reference frames (mask), by the hinge alone, rad."""
        hinge = self.hinge
        local, seen = _local(hinge, markers)
        lever = _Sums(hinge, hinge.angles(local), seen).lever
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = lever / hinge.reach(seen)[:, None] ** 2
        slope = slope - np.nanmean(slope[reference], axis=0)
        return np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", slope, self.covariance, slope), 0.0))


class _Sums:
    """Derivatives of the positions by axis and template, multiplied out; the angle of each frame is free.

    Local predicted positions m of markers a move by ω×m for tilts, d for shifts, R(θ)δa for the template.
    """

    def __init__(self, hinge: Hinge, angle: NDArray, seen: NDArray) -> None:
        angle = np.where(np.isfinite(angle), angle, 0.0)
        weight = seen[..., None]
        self.cosine, self.sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
        predicted = np.where(weight, hinge.turned(angle), 0.0)
        x, y, z = np.moveaxis(predicted, 2, 0)
        zero, one = np.zeros_like(x), seen.astype(float)
        # (4, 3, N, P): tilts and shifts.
        self.common = np.array([[zero, -z, y], [z, zero, -x], [one, zero, zero], [zero, one, zero]])
        tangent = np.array([-y, x, zero])
        # Derivative by the angle times all others, (N, 4 + 3P).
        a = np.where(weight, hinge.template, 0.0)
        by_template = np.stack([-a[..., 1], a[..., 0], np.zeros_like(x)], axis=2)
        by_common = np.einsum("cikp,ikp->kc", self.common, tangent)
        self.lever = np.concatenate([by_common, by_template.reshape(len(seen), -1)], axis=1)
        self.square = np.sum(tangent**2, axis=(0, 2))
        self.count = seen.sum(axis=0)

    def normal(self) -> NDArray:
        """Normal matrix of axis and template with the angles eliminated."""
        size = COMMON + 3 * len(self.count)
        total = np.zeros((size, size))
        total[:COMMON, :COMMON] = np.einsum("cikp,dikp->cd", self.common, self.common)
        mixed = np.moveaxis(self._unturned(self.common).sum(axis=2), 2, 1).reshape(COMMON, -1)
        total[:COMMON, COMMON:], total[COMMON:, :COMMON] = mixed, mixed.T
        total[COMMON:, COMMON:] = np.diag(np.repeat(self.count, 3).astype(float))
        turning = self.square > 0
        root = self.lever[turning] / np.sqrt(self.square[turning])[:, None]
        return total - root.T @ root

    def scores(self, residual: NDArray) -> NDArray:
        """(N, 4 + 3P) derivatives times residuals (N, P, 3), which leave nothing to the angles."""
        along = np.moveaxis(residual, 2, 0)
        by_common = np.einsum("cikp,ikp->kc", self.common, along)
        by_template = np.moveaxis(self._unturned(along[None])[0], 0, 2)
        return np.concatenate([by_common, by_template.reshape(len(residual), -1)], axis=1)

    def _unturned(self, vectors: NDArray) -> NDArray:
        """Vectors (c, 3, N, P) turned back by the angles."""
        x, y, z = vectors[:, 0], vectors[:, 1], vectors[:, 2]
        return np.stack([self.cosine * x + self.sine * y, self.cosine * y - self.sine * x, z], axis=1)


def fit_hinge(markers: NDArray, start: Hinge) -> HingeFit:
    """Least squares of all distances over axis, centre, template and the angle of every frame.

    For isotropic noise this is maximum likelihood; beyond a circle of its own for each marker it knows
    that the body is rigid, which helps where arcs are short. Gauss-Newton with Levenberg's damping; the angles, one per
    frame, are eliminated. The errors allow for correlation in time (Newey and West 1987).

    Args:
        markers: (N, P, 3) m, NaN where not seen; without outliers.
        start: near enough; markers unknown there stay so.

    Raises:
        MocapError: fewer positions than unknowns, or no least squares found.
    """
    known = np.isfinite(start.template[:, 0])
    whole, markers = start, markers[:, known]
    hinge = replace(start, template=start.template[known])
    seen = is_seen(markers)
    size = COMMON + 3 * int(known.sum())
    dof = 3 * int(seen.sum()) - int(seen.any(axis=1).sum()) - size + 1
    if dof < 1:
        raise MocapError(f"{int(seen.sum())} marker positions are too few for an axis of rotation; record longer")
    residual, sums = _evaluate(hinge, markers)
    cost, damping = float(np.sum(residual**2)), 0.0
    for _ in range(ITERATIONS):
        normal, gradient = _fixed_turn(sums.normal(), hinge), sums.scores(residual).sum(axis=0)
        step = np.linalg.lstsq(normal + damping * np.diag(np.diag(normal)), gradient, rcond=1e-15)[0]
        if float(gradient @ step) <= SETTLED * cost / dof + ROUNDING**2:
            break
        moved = _moved(hinge, step)
        residual_there, sums_there = _evaluate(moved, markers)
        if (cost_there := float(np.sum(residual_there**2))) < cost:
            hinge, residual, sums, cost = moved, residual_there, sums_there, cost_there
            damping = 0.0 if damping < 1e-6 else damping / 10
        else:
            damping = max(10 * damping, 1e-4)
            if damping > 1e8:  # rounding is all that is left
                break
    else:
        raise MocapError(
            "no axis of rotation fits the markers best: does the body turn about one axis alone? Hold the other joints "
            "still, and turn this one further"
        )
    inverse = np.linalg.pinv(_fixed_turn(sums.normal(), hinge), rcond=1e-15, hermitian=True)
    covariance = inverse @ _long_run(sums.scores(residual)) @ inverse * (3 * seen.sum() / dof)
    template = np.full_like(whole.template, np.nan)
    template[known] = hinge.template
    every = np.concatenate([np.full(COMMON, True), np.repeat(known, 3)])
    full = np.zeros((len(every), len(every)))
    full[np.ix_(every, every)] = covariance
    return HingeFit(replace(hinge, template=template), float(np.sqrt(cost / dof)), full)


def _local(hinge: Hinge, markers: NDArray) -> tuple[NDArray, NDArray]:
    """Local positions of markers that are seen and known, NaN for others; and which those are."""
    local = hinge.local(markers)
    seen = np.isfinite(local[..., 0]) & np.isfinite(hinge.template[:, 0])
    return np.where(seen[..., None], local, np.nan), seen


def _evaluate(hinge: Hinge, markers: NDArray) -> tuple[NDArray, _Sums]:
    """Residuals (N, P, 3), zero where not seen, and derivatives, at the best angles."""
    local, seen = _local(hinge, markers)
    angle = hinge.angles(local)
    return np.nan_to_num(local - hinge.turned(angle)), _Sums(hinge, angle, seen)


def _moved(hinge: Hinge, step: NDArray) -> Hinge:
    tilt, shift = np.append(step[:2], 0.0), np.append(step[2:COMMON], 0.0)
    return Hinge(
        hinge.frame @ Rotation.from_rotvec(tilt).as_matrix(),
        hinge.center + hinge.frame @ shift,
        hinge.template + step[COMMON:].reshape(-1, 3),
    )


def _fixed_turn(normal: NDArray, hinge: Hinge) -> NDArray:
    """With the turn of the template held, which the angles of all frames could undo."""
    turn = np.zeros(len(normal))
    turn[COMMON::3], turn[COMMON + 1 :: 3] = -hinge.template[:, 1], hinge.template[:, 0]
    turn /= max(float(np.linalg.norm(turn)), np.finfo(float).tiny)
    return normal + np.trace(normal) / len(normal) * np.outer(turn, turn)


def _long_run(scores: NDArray) -> NDArray:
    """Covariance of the sum of scores (N, m) that are correlated over less than √N frames; Bartlett's weights."""
    length = int(np.sqrt(len(scores))) + 1
    # Squares of sums over so many frames, wherever they begin, hold all products with just these weights.
    total = np.cumsum(np.pad(scores, [(length, length - 1), (0, 0)]), axis=0)
    sums = total[length:] - total[:-length]
    return sums.T @ sums / length
