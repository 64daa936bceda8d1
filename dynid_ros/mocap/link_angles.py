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
"""Movement of all markers together, m, per unit of a combination of joints (rad, m), below which it is undetermined: a
marker on the axis, or a singular pose."""

MAX_NULL_SHARE = 1e-4
"""Squared share of a joint in an undetermined combination above which the joint's own position is unknown."""

MAX_STEP = 0.5
"""Longest step of a joint in one iteration, rad or m."""

CONVERGENCE_STEP = 1e-6
"""Step, rad or m, below which a frame has converged: a hundredth of the effect of noise."""

FRAMES_PER_BLOCK = 1000

Weights = Callable[[NDArray], NDArray]
"""Function from lengths of residuals (M, P), see `MarkerSet.distances`, to weights of their squares (M, P)."""


@dataclass(frozen=True, eq=False)
class FrameFit:
    """Fit of M frames, see `fit_frames`.

    Attributes:
        position: Joint positions (M, n), rad or m; undetermined ones stay at their seeds.
        residual: Measured minus predicted positions (M, P, 3) in the base frame, m; NaN where not seen.
        weights: Weights (M, P) of the last iteration.
        determined: Mask (M, n) of the determined joint positions.
        reach: Movement (M, n) of all weighted markers together per unit of the joint, m.
        variance: Variances (M, n) of the positions for markers of unit variance; NaN where undetermined.
        rank: Numbers (M,) of determined combinations.
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
        weights: Function to weights of squared residuals; called in every iteration for a block of frames.
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
    q = seed.copy()
    moving = np.arange(len(q))
    for _ in range(iterations):
        _, _, normal, gradient = _linearised(robot, markers, seen[moving], q[moving], weights)
        values, vectors = np.linalg.eigh(normal)
        inverse = np.where(values > MIN_LEVER_M**2, 1 / np.maximum(values, MIN_LEVER_M**2), 0.0)
        along = np.einsum("mji,mj->mi", vectors, gradient) * inverse
        step = np.einsum("mij,mj->mi", vectors, along)
        longest = np.max(np.abs(step), axis=1, keepdims=True)
        q[moving] += step * np.minimum(1.0, MAX_STEP / np.maximum(longest, MAX_STEP))
        moving = moving[longest[:, 0] > CONVERGENCE_STEP]
        if not moving.size:
            break
    residual, weight, normal, _ = _linearised(robot, markers, seen, q, weights)
    values, vectors = np.linalg.eigh(normal)
    determined = values > MIN_LEVER_M**2
    hidden = np.einsum("mij,mj->mi", vectors**2, (~determined).astype(float))
    variance = np.einsum("mij,mj->mi", vectors**2, np.where(determined, 1 / np.maximum(values, MIN_LEVER_M**2), 0.0))
    known = hidden < MAX_NULL_SHARE
    reach = np.sqrt(np.einsum("mjj->mj", normal))
    return FrameFit(q, residual, weight, known, reach, np.where(known, variance, np.nan), determined.sum(axis=1))


def _linearised(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, q: NDArray, weights: Weights
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return residuals, weights, normal matrices (M, n, n) and their right-hand sides (M, n)."""
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
    """Return one sentence for each joint that some frame does not determine, with the reasons and their frequency."""
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
        mingled = unknown & ~unseen & ~axial
        reasons = []
        if unseen.any():
            reasons.append(f"no marker beyond it was seen ({unseen.sum()})")
        if axial.any():
            reasons.append(f"those seen lie on its axis ({axial.sum()})")
        if mingled.any():
            reasons.append(
                f"the markers seen do not distinguish it from {_partners(robot, fit, j, mingled)} ({mingled.sum()}): "
                "too few, or a singular pose"
            )
        remarks.append(f"{name}: not known in {unknown.sum()} of {len(unknown)} frames: {'; '.join(reasons)}")
    return remarks


def _partners(robot: RobotModel, fit: FrameFit, joint: int, frames: NDArray) -> str:
    """Return the joints that are undetermined together with one in most of these frames."""
    together = (~fit.determined[frames]).mean(axis=0) > 0.5
    together &= (fit.reach[frames] >= MIN_LEVER_M).mean(axis=0) > 0.5
    together[joint] = False
    return ", ".join(name for name, other in zip(robot.joint_names, together, strict=True) if other) or "other joints"


# Joint positions to start from, where no encoder gives them: frame after frame.


SEED_STRIDE = 10
"""Number of consecutive frames that start from the same earlier one: as good as one after the other at a camera's
rates, and faster."""

N_STARTS = 200
"""Number of random positions within the limits from which the first frame is tried."""

MAX_FIRST_DISTANCE_M = 0.02
"""Largest median distance of markers, m, of a valid first frame."""


def cautious(floor: float) -> Weights:
    """Return Tukey's weights by the spread of each frame's own residuals, so that most of its markers always count."""
    return lambda length: tukey(length, np.maximum(np.nan_to_num(spread(length)), floor)[:, None])


def follow(robot: RobotModel, markers: MarkerSet, seen: NDArray, first: NDArray | None) -> NDArray:
    """Return seeds (M, n) for all frames, each found from those before it.

    Args:
        robot: Model of the arm.
        markers: Markers with known places.
        seen: Marker positions (M, P, 3) in the base frame, m; NaN where not seen.
        first: Joint positions (n,) near those of the first frames; None: they are searched for within the limits.

    Raises:
        MocapError: No start was found.
    """
    most = np.isfinite(seen).all(axis=2).sum(axis=1)
    start = int(np.flatnonzero(most >= np.quantile(most, 0.5))[0])
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
    turn = np.where(robot.chain.prismatic, 0.0, 2 * np.pi * np.round(q / (2 * np.pi)))
    return q - turn


# Link angles with their errors.


@dataclass(frozen=True, eq=False)
class LinkAngles:
    """Positions of the links of an arm of n joints at M frames, on the camera's clock.

    Attributes:
        time: Times (M,), s.
        position: Positions (M, n) by the kinematics, rad or m; NaN where the seen markers do not determine them.
        standard_errors: Standard errors (M, n) by the markers' noise alone: errors of the registration are common to
            all frames.
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


MAX_PREDICTION_ERRORS = 3.0
"""Distance within which a marker is recognised, in typical errors of the prediction from other frames."""

MIN_RECOGNITION_SIGMAS = 10.0
"""Smallest such distance, in standard deviations of the noise."""

MIN_NOISE_M = 1e-5
DEFAULT_NOISE_M = 1e-3
"""Smallest noise of a coordinate, m, and its value where no frame determines it."""

MAX_OUTLIER_SHARE = 0.3
"""Share of outliers above which a marker is named."""


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

    All frames are solved at once, in three passes. The first is robust within each frame. Frames in which some marker
    is far off get a new start from their neighbours, and every point goes to the nearest marker there: this restores
    exchanged names and drops ghosts. The last is plain least squares of all markers within 4.5 standard deviations of
    the noise, which is common to all frames. Markers of a body that the tracker has fitted are judged together, and
    keep their order.

    Standard errors hold the noise of the markers. Errors of the markers' places and of the camera's pose shift all
    frames alike.

    Args:
        robot: Model of the arm.
        markers: Markers with their links and places.
        positions: Marker positions (M, P, 3) in the camera frame, m; NaN where not seen.
        camera: Pose (4, 4) of the arm's base in the camera frame.
        time: Times (M,), s; None: frames are counted.
        seed: Initial joint positions (M, n), as of the motors, within some 0.3 rad; non-finite ones are interpolated.
            None: each frame starts from those before it.
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
    known = replace(markers, places=np.nan_to_num(markers.places)).with_bodies(seen)
    require_enough(robot, known, seen)
    if seed is None:
        start = follow(robot, known, seen, None if first is None else np.asarray(first, dtype=float))
        reference = np.zeros_like(start)
    else:
        start = reference = _filled(robot, seed, len(seen))
    fit = fit_frames(robot, known, seen, start, cautious(1e-5))
    noise = _usual_noise(fit, known)
    seen, start, n_mended = _mend(robot, known, seen, reference, fit, noise=noise)
    fit = fit_frames(robot, known, seen, start, cautious(noise))
    for _ in range(3):
        fit = fit_frames(robot, known, seen, fit.position, _within(OUTLIER_SIGMAS * noise), iterations=4)
        noise = _noise(fit, known)
    redundant = bool((_dof(fit, known) > 0).any())
    remarks = unknown_joints(robot, known, fit) + _left_out(known, positions, fit, n_mended, unplaced)
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
    """Return positions (..., 3) of the camera's frame in the base's; `camera` (4, 4) is the pose of the base there."""
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
    """Return columns (M, n) with bad rows interpolated from their neighbours; zero in a column without good rows."""
    row = np.arange(len(values))
    columns = [
        np.interp(row, row[ok], column[ok]) if ok.any() else np.zeros(len(row))
        for column, ok in zip(values.T, good.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def _mend(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, reference: NDArray, fit: FrameFit, *, noise: float
) -> tuple[NDArray, NDArray, int]:
    """Return points in the right order, better starts, and the number of frames with exchanged markers.

    Markers of a tracked body are in their order: it is the tracker's. The difference (M, n) from `reference` (M, n),
    the motors' positions if available, is interpolated over frames: deflections change slowly, and far less than
    positions.
    """
    worst = np.max(np.where(np.isfinite(seen).all(axis=2), markers.distances(fit.residual), 0.0), axis=1)
    good = worst < OUTLIER_SIGMAS * noise
    if good.all() or not good.any():
        return seen, fit.position, 0
    way = fit.position - reference
    trusted = good[:, None] & fit.determined
    guess = reference + _interpolated(way, trusted)
    begin = np.where(trusted, fit.position, guess)
    neighbours = reference + _from_neighbours(way, good)
    expected = marker_positions(link_frames(robot, neighbours[good]), markers)
    typical = lengths(seen[good] - expected)
    typical = typical[np.isfinite(typical)]
    gate = max(
        MIN_RECOGNITION_SIGMAS * noise,
        MAX_PREDICTION_ERRORS * float(np.quantile(typical, 0.95)) if typical.size else 0.0,
        1e-4,
    )
    bad = np.ix_(~good, markers.alone)
    ordered = seen.copy()
    ordered[bad] = reordered(seen[bad], marker_positions(link_frames(robot, guess), markers)[bad], gate)
    moved = np.isfinite(ordered[bad]).all(axis=2) & ~np.all(ordered[bad] == seen[bad], axis=2)
    return ordered, begin, int(moved.any(axis=1).sum())


def _from_neighbours(values: NDArray, good: NDArray) -> NDArray:
    """Return each good row as predicted by its good neighbours on both sides."""
    rows = np.flatnonzero(good)
    inner = np.empty((len(rows), values.shape[1]))
    before = np.maximum(np.arange(len(rows)) - 1, 0)
    after = np.minimum(np.arange(len(rows)) + 1, len(rows) - 1)
    inner[:] = (values[rows[before]] + values[rows[after]]) / 2
    result = values.copy()
    result[rows] = inner
    return result


def _within(gate: float) -> Weights:
    return lambda length: (length < gate).astype(float)


def _dof(fit: FrameFit, markers: MarkerSet) -> NDArray:
    """Return the numbers (M,) of degrees of freedom of the residuals."""
    return np.maximum((fit.weights > 0) @ markers.dof - fit.rank, 0.0)


def _usual_noise(fit: FrameFit, markers: MarkerSet) -> float:
    """Return the standard deviation of a coordinate from the median frame with redundancy, m; a default without one."""
    free = _dof(fit, markers)
    some = free > 0
    if not some.any():
        return DEFAULT_NOISE_M
    # A fit makes residuals smaller than the noise.
    shrunk = np.sqrt((fit.weights[some] > 0) @ markers.dof / free[some])
    return max(float(np.median(spread(markers.distances(fit.residual[some])) * shrunk)), MIN_NOISE_M)


def _noise(fit: FrameFit, markers: MarkerSet) -> float:
    """Return the standard deviation of a coordinate from all frames, m; a default without redundancy."""
    free = _dof(fit, markers)
    used = (fit.weights > 0) & (free > 0)[:, None]
    squares = float(np.sum(np.where(used, lengths(fit.residual) ** 2, 0.0)))
    return max(float(np.sqrt(squares / free.sum())), MIN_NOISE_M) if free.sum() > 0 else DEFAULT_NOISE_M


def _left_out(markers: MarkerSet, positions: ArrayLike, fit: FrameFit, n_mended: int, unplaced: NDArray) -> list[str]:
    """Return sentences on points that were dropped or had exchanged names."""
    remarks = [f"{markers.names[p]}: left out, its place on the link is not known" for p in np.flatnonzero(unplaced)]
    there = np.isfinite(np.asarray(positions, dtype=float)).all(axis=2) & ~unplaced
    lost = there & ~(fit.weights > 0)
    if n_mended:
        remarks.append(f"markers that had changed places were put back in {n_mended} of {len(there)} frames")
    if lost.any():
        # A pose of a tracked body counts once.
        first = np.unique(markers.bodies, return_index=True)[1]
        remarks.append(f"{lost[:, first].sum()} of {there[:, first].sum()} positions left out as outliers")
    for p in np.flatnonzero(lost.sum(axis=0) > MAX_OUTLIER_SHARE * there.sum(axis=0)):
        remarks.append(
            f"{markers.names[p]}: {lost[:, p].sum() / there[:, p].sum():.0%} of its positions are outliers; on another "
            "link, or elsewhere on it?"
        )
    return remarks
