"""Link angles of a whole chain from markers on several links: robust Gauss-Newton, for many frames at once.

The cost is eq. 13 of Lightcap and Banks 2007 for the whole chain instead of one joint: the sum over markers of the
squared distance between the measured position and that of the kinematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import OUTLIER_SIGMAS, lengths, spread, tukey
from dynid_ros.mocap.marker_set import MarkerSet, link_frames, marker_jacobian, marker_positions, require_enough
from dynid_ros.mocap.markers import reordered, require_positions
from dynid_ros.model import RobotModel

MIN_LEVER_M = 2e-3
"""Movement of all markers together, m, per unit (rad, m) of a combination of joints. Below this value the combination
is undetermined: its markers lie on the axis, or the pose is singular."""

MAX_NULL_SHARE = 1e-4
"""Largest squared component of a joint in undetermined combinations for which the joint itself is determined."""

MAX_STEP = 0.5
"""Longest step of a joint in one iteration, rad or m."""

CONVERGENCE_STEP = 1e-6
"""Largest step, rad or m, of a frame that has converged: a hundredth of the effect of noise."""

FRAMES_PER_BLOCK = 1000

SEED_STRIDE = 10
"""Number of consecutive frames that start from the same earlier frame; at the rates of a camera this is as good as
starting each from the frame before, and faster."""

N_STARTS = 200
"""Number of random positions within the limits from which the first frame is fitted."""

MAX_FIRST_DISTANCE_M = 0.02
"""Largest median distance of markers, m, of a valid first frame."""

MAX_PREDICTION_ERRORS = 3.0
"""Largest distance at which a marker is recognised, as a multiple of the usual error of its predicted position."""

MIN_RECOGNITION_SIGMAS = 10.0
"""Smallest value of that distance, in standard deviations of the noise."""

MIN_NOISE_M = 1e-5
DEFAULT_NOISE_M = 1e-3
"""Smallest noise of a coordinate, m, and its value if no frame determines it."""

MAX_OUTLIER_SHARE = 0.3
"""Fraction of outliers above which a marker is reported."""

Weights = Callable[[NDArray], NDArray]
"""Function from lengths of residuals (M, P), see `MarkerSet.distances`, to weights of their squares (M, P)."""


@dataclass(frozen=True, eq=False)
class FrameFit:
    """Fit of M frames, see `fit_frames`.

    Attributes:
        position: Joint positions (M, n), rad or m; undetermined combinations stay at their seeds.
        residual: Measured minus predicted positions (M, P, 3) in the base frame, m; NaN where not seen.
        weights: Weights (M, P) of the last iteration.
        determined: Mask (M, n) of the determined joint positions.
        reach: Movement (M, n) of all weighted markers together per unit of the joint, m.
        variance: Variances (M, n) of the positions for markers of unit variance; NaN where undetermined.
        rank: Numbers (M,) of determined combinations of joints.
    """

    position: NDArray
    residual: NDArray
    weights: NDArray
    determined: NDArray
    reach: NDArray
    variance: NDArray
    rank: NDArray


def fit_frames(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, seed: NDArray, weights: Weights, *, iterations: int = 8
) -> FrameFit:
    """Return the joint positions that bring the markers nearest to those seen, from a seed for each frame.

    Args:
        robot: Model of the arm.
        markers: Markers with known places.
        seen: Marker positions (M, P, 3) in the base frame, m; NaN where not seen.
        seed: Joint positions (M, n), finite.
        weights: Function from lengths of residuals to weights; called in every iteration for a block of frames.
        iterations: Largest number of iterations.
    """
    parts = [
        _fit_block(robot, markers, seen[rows], seed[rows], weights, iterations=iterations)
        for rows in _frame_blocks(len(seen))
    ]
    return FrameFit(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in vars(parts[0])})


def _frame_blocks(n_frames: int) -> Iterator[slice]:
    for start in range(0, n_frames, FRAMES_PER_BLOCK):
        yield slice(start, start + FRAMES_PER_BLOCK)


def _fit_block(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, seed: NDArray, weights: Weights, *, iterations: int
) -> FrameFit:
    """Return the fit of a block of frames, by Gauss-Newton steps in the determined eigenvectors of J'WJ."""
    q = seed.copy()
    active = np.arange(len(q))  # frames that have not converged
    for _ in range(iterations):
        _, _, normal, gradient = _linearised(robot, markers, seen[active], q[active], weights)
        values, vectors = np.linalg.eigh(normal)
        inverse = np.where(values > MIN_LEVER_M**2, 1 / np.maximum(values, MIN_LEVER_M**2), 0.0)
        components = np.einsum("mji,mj->mi", vectors, gradient) * inverse
        step = np.einsum("mij,mj->mi", vectors, components)
        longest = np.max(np.abs(step), axis=1, keepdims=True)
        q[active] += step * np.minimum(1.0, MAX_STEP / np.maximum(longest, MAX_STEP))
        active = active[longest[:, 0] > CONVERGENCE_STEP]
        if not active.size:
            break
    residual, weight, normal, _ = _linearised(robot, markers, seen, q, weights)
    values, vectors = np.linalg.eigh(normal)
    determined = values > MIN_LEVER_M**2
    null_share = np.einsum("mij,mj->mi", vectors**2, (~determined).astype(float))
    variance = np.einsum("mij,mj->mi", vectors**2, np.where(determined, 1 / np.maximum(values, MIN_LEVER_M**2), 0.0))
    is_known = null_share < MAX_NULL_SHARE
    reach = np.sqrt(np.einsum("mjj->mj", normal))
    return FrameFit(q, residual, weight, is_known, reach, np.where(is_known, variance, np.nan), determined.sum(axis=1))


def _linearised(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, q: NDArray, weights: Weights
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return residuals (M, P, 3), weights (M, P), normal matrices J'WJ (M, n, n) and right-hand sides J'Wr (M, n)."""
    frames = link_frames(robot, q)
    predicted = marker_positions(frames, markers)
    residual = seen - predicted
    weight = weights(markers.distances(residual))
    root = np.sqrt(weight)[..., None]
    rows = (marker_jacobian(robot, frames, predicted, markers) * root[..., None]).reshape(len(q), -1, robot.n_joints)
    target = (np.where(root > 0, residual, 0.0) * root).reshape(len(q), -1, 1)
    transposed = rows.transpose(0, 2, 1)
    return residual, weight, transposed @ rows, (transposed @ target)[..., 0]


# Reasons for undetermined joints.


def unknown_joints(robot: RobotModel, markers: MarkerSet, fit: FrameFit) -> list[str]:
    """Return a sentence for each joint that some frames do not determine, with the reasons and the number of frames."""
    used = (fit.weights > 0).astype(int)
    beyond = used @ markers.beyond(robot).astype(int)
    remarks = []
    for j, name in enumerate(robot.joint_names):
        unknown = ~fit.determined[:, j]
        if not unknown.any():
            continue
        if not markers.beyond(robot)[:, j].any():
            remarks.append(f"{name}: not known, it moves no marker")
            continue
        unseen = unknown & (beyond[:, j] == 0)
        axial = unknown & ~unseen & (fit.reach[:, j] < MIN_LEVER_M)
        singular = unknown & ~unseen & ~axial
        reasons = []
        if unseen.any():
            reasons.append(f"no marker beyond it was seen ({unseen.sum()})")
        if axial.any():
            reasons.append(f"those seen lie on its axis ({axial.sum()})")
        if singular.any():
            reasons.append(
                f"the markers seen do not distinguish it from {_partners(robot, fit, j, singular)} ({singular.sum()}): "
                "too few, or a singular pose"
            )
        remarks.append(f"{name}: not known in {unknown.sum()} of {len(unknown)} frames: {'; '.join(reasons)}")
    return remarks


def _partners(robot: RobotModel, fit: FrameFit, joint: int, frames: NDArray) -> str:
    """Return the names of the joints that are undetermined together with `joint` in most of these frames."""
    together = (~fit.determined[frames]).mean(axis=0) > 0.5
    together &= (fit.reach[frames] >= MIN_LEVER_M).mean(axis=0) > 0.5
    together[joint] = False
    return ", ".join(name for name, other in zip(robot.joint_names, together, strict=True) if other) or "other joints"


# Initial joint positions without encoders: each frame starts from the result of an earlier frame.


def cautious(floor: float) -> Weights:
    """Return Tukey's weights with the spread of each frame's residuals, at least `floor`, m, as standard deviation.

    Most markers of each frame then have a weight, even if the frame fits badly.
    """
    return lambda length: tukey(length, np.maximum(np.nan_to_num(spread(length)), floor)[:, None])


def follow(robot: RobotModel, markers: MarkerSet, seen: NDArray, first: NDArray | None) -> NDArray:
    """Return seeds (M, n) for all frames, found from frame to frame.

    The search begins at the first frame with at least the median number of markers, and goes forward and backward.

    Args:
        robot: Model of the arm.
        markers: Markers with known places.
        seen: Marker positions (M, P, 3) in the base frame, m; NaN where not seen.
        first: Joint positions (n,) near those of that frame; None: they are searched for within the limits.

    Raises:
        MocapError: No start was found.
    """
    n_seen = np.isfinite(seen).all(axis=2).sum(axis=1)
    start = int(np.flatnonzero(n_seen >= np.quantile(n_seen, 0.5))[0])
    q = _first(robot, markers, seen[start]) if first is None else np.asarray(first, dtype=float)
    seeds = np.empty((len(seen), robot.n_joints))
    for forward in (True, False):
        order = np.arange(start, len(seen)) if forward else np.arange(start)[::-1]
        current = q
        for begin in range(0, len(order), SEED_STRIDE):
            rows = order[begin : begin + SEED_STRIDE]
            fit = fit_frames(robot, markers, seen[rows], np.tile(current, (len(rows), 1)), cautious(1e-4))
            seeds[rows] = fit.position
            for position, determined in zip(fit.position, fit.determined, strict=True):
                current = np.where(determined, position, current)
    return seeds


def _first(robot: RobotModel, markers: MarkerSet, seen: NDArray) -> NDArray:
    """Return joint positions (n,) of one frame with markers (P, 3), the best of fits from random starts."""
    limits = robot.limits
    lower = np.maximum(limits.lower, -np.pi)
    upper = np.minimum(limits.upper, np.pi)
    starts = np.random.default_rng(0).uniform(lower, upper, (N_STARTS, robot.n_joints))
    frames = np.repeat(seen[None], N_STARTS, axis=0)
    fit = fit_frames(robot, markers, frames, starts, lambda length: np.isfinite(length).astype(float), iterations=40)
    misfit = spread(np.linalg.norm(fit.residual, axis=2))
    best = int(np.nanargmin(misfit))
    if not misfit[best] < MAX_FIRST_DISTANCE_M:
        raise MocapError(
            f"no joint positions within the limits bring the markers of the first frame nearer than "
            f"{1000 * misfit[best]:.0f} mm to where they are seen: give the motors' positions, or look at the "
            "registration"
        )
    q = fit.position[best]
    full_turns = np.where(robot.chain.prismatic, 0.0, 2 * np.pi * np.round(q / (2 * np.pi)))
    return q - full_turns


# Link angles with their errors.


@dataclass(frozen=True, eq=False)
class LinkAngles:
    """Positions of the links of an arm of n joints at M frames, on the camera's clock.

    Attributes:
        time: Times (M,), s.
        position: Positions (M, n) by the kinematics, rad or m; NaN where the seen markers do not determine them.
        standard_errors: Standard errors (M, n) due to the markers' noise, rad or m. Errors of the registration are not
            included: they are common to all frames.
        residual_rms: RMS residuals (P,) of the markers without outliers, m; NaN for one that was never used.
        noise: Standard deviation of a marker's coordinate, m; NaN without redundancy.
        remarks: Sentences on missing angles with reasons, and on dropped or exchanged markers.
        marker_names: Names (P,).
        offsets: Offsets (n,) of the motor positions to the zero of `position`; zero if not requested.
    """

    time: NDArray
    position: NDArray
    standard_errors: NDArray
    residual_rms: NDArray
    noise: float
    remarks: tuple[str, ...]
    marker_names: tuple[str, ...]
    offsets: NDArray

    def summary(self, joint_names: tuple[str, ...]) -> str:
        """Return text with frames and standard errors per joint, residual per marker, and remarks."""
        lines = [f"{len(self.time)} frames, noise of a marker's coordinate {1000 * self.noise:.2f} mm"]
        for j, name in enumerate(joint_names):
            known = np.isfinite(self.position[:, j])
            error = f"{np.median(self.standard_errors[known, j]):.1e}" if known.any() else "none"
            lines.append(f"  {name}: known in {known.mean():.1%} of the frames, standard error {error} (rad or m)")
        lines += [
            f"  {name}: residual {1000 * rms:.2f} mm RMS"
            for name, rms in zip(self.marker_names, self.residual_rms, strict=True)
        ]
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])


def chain_angles(
    robot: RobotModel,
    markers: MarkerSet,
    positions: ArrayLike,
    camera: ArrayLike,
    time: ArrayLike | None = None,
    *,
    seed: ArrayLike | None = None,
    first: ArrayLike | None = None,
) -> LinkAngles:
    """Estimate link angles by least squares in each frame (Lightcap and Banks 2007, eq. 13, for the whole chain).

    All frames are solved at once, in three passes. The first pass is robust within each frame. For the second pass,
    frames in which some marker is far off start from their neighbours, and each point is assigned to the nearest marker
    that is predicted there: this restores exchanged names and drops ghosts. The third pass is ordinary least squares of
    all markers within 4.5 standard deviations of the noise, which is common to all frames. Markers of a body that the
    tracker has fitted are kept or dropped together, and keep their order.

    Standard errors contain the noise of the markers. Errors of the markers' places and of the camera's pose shift all
    frames in the same way and are not included.

    Args:
        robot: Model of the arm.
        markers: Markers with their links and places.
        positions: Marker positions (M, P, 3) in the camera frame, m; NaN where not seen.
        camera: Pose (4, 4) of the arm's base in the camera frame.
        time: Times (M,), s; None: frames are counted.
        seed: Initial joint positions (M, n), such as those of the motors, right within some 0.3 rad; those that are not
            finite are interpolated. None: each frame starts from an earlier frame.
        first: Initial joint positions (n,) of the first frame without `seed`; None: searched for within the limits.

    Returns:
        Angles, NaN where a frame does not determine a joint, with the reasons.

    Raises:
        MocapError: Shapes do not fit, a marker has no place, the pose of the camera is mirrored, fewer than three
            markers are beyond a joint or all on one line, or no first frame was found.
    """
    seen = in_base(require_positions(positions, markers.size), camera)
    stamps = np.arange(len(seen), dtype=float) if time is None else np.asarray(time, dtype=float)
    if stamps.shape != (len(seen),):
        raise MocapError(f"time has shape {stamps.shape} for {len(seen)} frames; expected one stamp each")
    unplaced = ~np.isfinite(markers.places).all(axis=1)
    seen[:, unplaced] = np.nan
    placed = replace(markers, places=np.nan_to_num(markers.places)).with_bodies(seen)
    require_enough(robot, placed, seen)
    if seed is None:
        start = follow(robot, placed, seen, None if first is None else np.asarray(first, dtype=float))
        reference = np.zeros_like(start)
    else:
        start = reference = _filled(robot, seed, len(seen))
    # First pass: robust within each frame.
    fit = fit_frames(robot, placed, seen, start, cautious(1e-5))
    noise = _usual_noise(fit, placed)
    # Second pass: exchanged names restored.
    seen, start, n_reordered = _reorder(robot, placed, seen, reference, fit, noise=noise)
    fit = fit_frames(robot, placed, seen, start, cautious(noise))
    # Third pass: least squares without outliers, alternating with the estimate of the noise.
    for _ in range(3):
        fit = fit_frames(robot, placed, seen, fit.position, _within(OUTLIER_SIGMAS * noise), iterations=4)
        noise = _noise(fit, placed)
    redundant = bool((_dof(fit, placed) > 0).any())
    remarks = unknown_joints(robot, placed, fit) + _describe_dropped(placed, positions, fit, n_reordered, unplaced)
    if not redundant:
        remarks.append("no standard errors: no frame shows more numbers than there are joints; add markers")
    squares = np.einsum("mpi,mpi->mp", fit.residual, fit.residual)
    used = fit.weights > 0
    with np.errstate(invalid="ignore"):
        rms = np.sqrt(np.sum(np.where(used, squares, 0.0), axis=0) / used.sum(axis=0))
    return LinkAngles(
        time=stamps,
        position=np.where(fit.determined, fit.position, np.nan),
        standard_errors=(noise if redundant else np.nan) * np.sqrt(fit.variance),
        residual_rms=rms,
        noise=noise if redundant else np.nan,
        remarks=tuple(remarks),
        marker_names=markers.names,
        offsets=np.zeros(robot.n_joints),
    )


def in_base(positions: NDArray, camera: ArrayLike) -> NDArray:
    """Return positions (..., 3) in the base frame; `camera` (4, 4) is the pose of the base in the camera frame."""
    pose = np.asarray(camera, dtype=float)
    if pose.shape != (4, 4) or not np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-6):
        raise MocapError("the base's pose in the camera frame is no 4 x 4 transform with a rotation: register first")
    if np.linalg.det(pose[:3, :3]) < 0:
        raise MocapError("the base's pose in the camera frame is mirrored: the camera's axes must be right-handed")
    return (positions - pose[:3, 3]) @ pose[:3, :3]


def _filled(robot: RobotModel, seed: ArrayLike, n_frames: int) -> NDArray:
    """Return the seeds (M, n) with interpolated gaps."""
    start = np.array(seed, dtype=float)
    if start.shape != (n_frames, robot.n_joints):
        raise MocapError(f"seed has shape {start.shape}; expected ({n_frames}, {robot.n_joints})")
    return _interpolated(start, np.isfinite(start))


def _interpolated(values: NDArray, good: NDArray) -> NDArray:
    """Return values (M, n), interpolated where `good` (M, n) is false; zero in a column without good rows."""
    row = np.arange(len(values))
    columns = [
        np.interp(row, row[ok], column[ok]) if ok.any() else np.zeros(len(row))
        for column, ok in zip(values.T, good.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def _reorder(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, reference: NDArray, fit: FrameFit, *, noise: float
) -> tuple[NDArray, NDArray, int]:
    """Return points in the right order, better starts, and the number of frames with exchanged markers.

    Markers of a tracked body already are in the tracker's order. `reference` (M, n) has the motors' positions if they
    are available, otherwise zeros. The difference from it is interpolated over frames, because deflections are smaller
    than positions and change more slowly.
    """
    worst = np.max(np.where(np.isfinite(seen).all(axis=2), markers.distances(fit.residual), 0.0), axis=1)
    good = worst < OUTLIER_SIGMAS * noise
    if good.all() or not good.any():
        return seen, fit.position, 0
    difference = fit.position - reference
    trusted = good[:, None] & fit.determined
    guess = reference + _interpolated(difference, trusted)
    starts = np.where(trusted, fit.position, guess)
    neighbours = reference + _from_neighbours(difference, good)
    expected = marker_positions(link_frames(robot, neighbours[good]), markers)
    errors = lengths(seen[good] - expected)
    errors = errors[np.isfinite(errors)]
    gate = max(
        MIN_RECOGNITION_SIGMAS * noise,
        MAX_PREDICTION_ERRORS * float(np.quantile(errors, 0.95)) if errors.size else 0.0,
        1e-4,
    )
    bad = np.ix_(~good, markers.alone)
    ordered = seen.copy()
    ordered[bad] = reordered(seen[bad], marker_positions(link_frames(robot, guess), markers)[bad], gate)
    is_reordered = np.isfinite(ordered[bad]).all(axis=2) & ~np.all(ordered[bad] == seen[bad], axis=2)
    return ordered, starts, int(is_reordered.any(axis=1).sum())


def _from_neighbours(values: NDArray, good: NDArray) -> NDArray:
    """Return values (M, n) in which each good row is replaced by the mean of its good neighbours on both sides."""
    rows = np.flatnonzero(good)
    inner = np.empty((len(rows), values.shape[1]))
    before = np.maximum(np.arange(len(rows)) - 1, 0)
    after = np.minimum(np.arange(len(rows)) + 1, len(rows) - 1)
    inner[:] = (values[rows[before]] + values[rows[after]]) / 2
    result = values.copy()
    result[rows] = inner
    return result


def _within(gate: float) -> Weights:
    """Return weights of 1 for residuals shorter than `gate`, m, and 0 for others."""
    return lambda length: (length < gate).astype(float)


def _dof(fit: FrameFit, markers: MarkerSet) -> NDArray:
    """Return the numbers (M,) of degrees of freedom of the residuals."""
    return np.maximum((fit.weights > 0) @ markers.dof - fit.rank, 0.0)


def _usual_noise(fit: FrameFit, markers: MarkerSet) -> float:
    """Return the standard deviation of a coordinate, m: median of the redundant frames, or a default without any."""
    free = _dof(fit, markers)
    is_redundant = free > 0
    if not is_redundant.any():
        return DEFAULT_NOISE_M
    # Residuals of a fit are smaller than the noise: sqrt(number of coordinates / degrees of freedom) corrects this.
    correction = np.sqrt((fit.weights[is_redundant] > 0) @ markers.dof / free[is_redundant])
    spreads = spread(markers.distances(fit.residual[is_redundant]))
    return max(float(np.median(spreads * correction)), MIN_NOISE_M)


def _noise(fit: FrameFit, markers: MarkerSet) -> float:
    """Return the standard deviation of a coordinate from all frames, m; a default without redundancy."""
    free = _dof(fit, markers)
    used = (fit.weights > 0) & (free > 0)[:, None]
    squares = float(np.sum(np.where(used, lengths(fit.residual) ** 2, 0.0)))
    return max(float(np.sqrt(squares / free.sum())), MIN_NOISE_M) if free.sum() > 0 else DEFAULT_NOISE_M


def _describe_dropped(
    markers: MarkerSet, positions: ArrayLike, fit: FrameFit, n_reordered: int, unplaced: NDArray
) -> list[str]:
    """Return sentences on points that were dropped or had exchanged names."""
    remarks = [f"{markers.names[p]}: left out, its place on the link is not known" for p in np.flatnonzero(unplaced)]
    seen = np.isfinite(np.asarray(positions, dtype=float)).all(axis=2) & ~unplaced
    dropped = seen & ~(fit.weights > 0)
    if n_reordered:
        remarks.append(f"markers that had changed places were put back in {n_reordered} of {len(seen)} frames")
    if dropped.any():
        # The pose of a tracked body counts once: at its first marker.
        first = np.unique(markers.bodies, return_index=True)[1]
        remarks.append(f"{dropped[:, first].sum()} of {seen[:, first].sum()} positions left out as outliers")
    for p in np.flatnonzero(dropped.sum(axis=0) > MAX_OUTLIER_SHARE * seen.sum(axis=0)):
        remarks.append(
            f"{markers.names[p]}: {dropped[:, p].sum() / seen[:, p].sum():.0%} of its positions are outliers; on "
            "another link, or elsewhere on it?"
        )
    return remarks
