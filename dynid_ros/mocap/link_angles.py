"""Link angles of a whole chain from markers on several links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import OUTLIER_SIGMAS, lengths, spread
from dynid_ros.mocap.frame_fit import FrameFit, Weights, cautious, fit_frames, follow, unknown_joints
from dynid_ros.mocap.marker_set import MarkerSet, link_frames, marker_positions, require_enough
from dynid_ros.mocap.markers import mended, require_positions
from dynid_ros.model import RobotModel

# Link angles from motion capture, with what is known of their errors.


@dataclass(frozen=True, eq=False)
class LinkAngles:
    """Positions of the links of an arm of n joints at M frames, on the camera's clock.

    Attributes:
        time: (M,) s.
        position: (M, n) rad or m, of the kinematics; NaN where the markers seen do not determine it.
        standard_errors: (M, n) from the markers' noise alone: errors of the registration are common to all frames.
        residual_rms: (P,) m, of each marker, its outliers left out; NaN for one that was never used.
        noise: standard deviation of a marker's coordinate, m; NaN without redundancy.
        remarks: what is missing and why, what was left out or mended.
        marker_names: (P,).
        offsets: (n,) to add to motor positions so that they have the same zero as `position`; zero if not asked for.
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
        """Text: frames and standard errors per joint, residual per marker, remarks."""
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


PREDICTED = 3.0
"""Times the typical error of a prediction from other frames that a marker may be off to be recognised."""

NEAREST = 10.0
"""The same in standard deviations of the noise, at least."""

LEAST, UNKNOWN = 1e-5, 1e-3
"""Noise of a coordinate, m, that is taken at least, and where no frame shows it."""

SUSPECT = 0.3
"""Share of outliers from which a marker is named."""


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
    """Link angles by least squares in each frame (Lightcap and Banks 2007, eq. 13, for the whole chain).

    All frames are solved at once, in three passes. The first is robust within each frame. Frames in which some marker
    stays far off get a new start from their neighbours, and there every seen point goes to the marker that it is
    nearest to: this mends swapped markers and drops ghosts. The last is plain least squares of all markers within
    4.5 standard deviations of the noise, which is that of all frames. Markers of a body that the tracker has fitted are
    judged together, and stay in their order.

    Standard errors hold the noise of the markers. Errors of the markers' places and of the camera's pose shift all
    frames alike.

    Args:
        robot: the arm.
        markers: which link each is on, and where.
        positions: (M, P, 3) m in the camera frame, NaN where not seen.
        camera: (4, 4) pose of the arm's base in the camera frame.
        time: (M,) s; None: frames are counted.
        seed: (M, n) joint positions to start from, as from the motors, within some 0.3 rad; where one is not finite, it
            is interpolated. None: each frame starts from those before it.
        first: (n,) where the first frame starts without `seed`; None: searched for within the limits.

    Returns:
        Angles, NaN where a frame does not determine a joint, with the reasons.

    Raises:
        MocapError: wrong shapes, a marker without a place, a mirrored pose of the camera, fewer than three markers
            beyond a joint or all on one line, or no first frame.
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
    """Positions (..., 3) from the camera's frame in the base's, `camera` (4, 4) being the pose of the base there.

    Raises:
        MocapError: `camera` is no pose.
    """
    pose = np.asarray(camera, dtype=float)
    if pose.shape != (4, 4) or not np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-6):
        raise MocapError("the base's pose in the camera frame is no 4 x 4 transform with a rotation: register first")
    if np.linalg.det(pose[:3, :3]) < 0:
        raise MocapError("the base's pose in the camera frame is mirrored: the camera's axes must be right-handed")
    return (positions - pose[:3, 3]) @ pose[:3, :3]


def _filled(robot: RobotModel, seed: ArrayLike, n_frames: int) -> NDArray:
    """Seeds (M, n), holes interpolated."""
    start = np.array(seed, dtype=float)
    if start.shape != (n_frames, robot.n_joints):
        raise MocapError(f"seed has shape {start.shape}; expected ({n_frames}, {robot.n_joints})")
    return _interpolated(start, np.isfinite(start))


def _interpolated(values: NDArray, good: NDArray) -> NDArray:
    """Columns (M, n) with what is not good taken from its neighbours; zero in a column without any good."""
    row = np.arange(len(values))
    columns = [
        np.interp(row, row[ok], column[ok]) if ok.any() else np.zeros(len(row))
        for column, ok in zip(values.T, good.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def _mend(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, reference: NDArray, fit: FrameFit, *, noise: float
) -> tuple[NDArray, NDArray, int]:
    """Points in the right order, better starts, and the number of frames in which some changed places.

    Markers of a tracked body are in their order: they are the tracker's, not cameras'.

    What is interpolated over frames is the way (M, n) from `reference` (M, n), the motors' positions if there are any:
    deflections change slowly, and far less than positions.
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
    gate = max(NEAREST * noise, PREDICTED * float(np.quantile(typical, 0.95)) if typical.size else 0.0, 1e-4)
    bad = np.ix_(~good, markers.alone)
    ordered = seen.copy()
    ordered[bad] = mended(seen[bad], marker_positions(link_frames(robot, guess), markers)[bad], gate)
    moved = np.isfinite(ordered[bad]).all(axis=2) & ~np.all(ordered[bad] == seen[bad], axis=2)
    return ordered, begin, int(moved.any(axis=1).sum())


def _from_neighbours(values: NDArray, good: NDArray) -> NDArray:
    """Each good row as its good neighbours on both sides would have it."""
    rows = np.flatnonzero(good)
    inner = np.empty((len(rows), values.shape[1]))
    before, after = np.maximum(np.arange(len(rows)) - 1, 0), np.minimum(np.arange(len(rows)) + 1, len(rows) - 1)
    inner[:] = (values[rows[before]] + values[rows[after]]) / 2
    result = values.copy()
    result[rows] = inner
    return result


def _within(gate: float) -> Weights:
    return lambda length: (length < gate).astype(float)


def _dof(fit: FrameFit, markers: MarkerSet) -> NDArray:
    """(M,) independent numbers beyond those that the fit needs."""
    return np.maximum((fit.weights > 0) @ markers.dof - fit.rank, 0.0)


def _usual_noise(fit: FrameFit, markers: MarkerSet) -> float:
    """Standard deviation of a coordinate, m, from the median frame with redundancy; `UNKNOWN` without one."""
    free = _dof(fit, markers)
    some = free > 0
    if not some.any():
        return UNKNOWN
    # A fit makes residuals smaller than the noise.
    shrunk = np.sqrt((fit.weights[some] > 0) @ markers.dof / free[some])
    return max(float(np.median(spread(markers.distances(fit.residual[some])) * shrunk)), LEAST)


def _noise(fit: FrameFit, markers: MarkerSet) -> float:
    """Standard deviation of a coordinate, m, from all frames; `UNKNOWN` without redundancy."""
    free = _dof(fit, markers)
    used = (fit.weights > 0) & (free > 0)[:, None]
    squares = float(np.sum(np.where(used, lengths(fit.residual) ** 2, 0.0)))
    return max(float(np.sqrt(squares / free.sum())), LEAST) if free.sum() > 0 else UNKNOWN


def _left_out(markers: MarkerSet, positions: ArrayLike, fit: FrameFit, n_mended: int, unplaced: NDArray) -> list[str]:
    """Sentences on points that were not used, or not as they came."""
    remarks = [f"{markers.names[p]}: left out, its place on the link is not known" for p in np.flatnonzero(unplaced)]
    there = np.isfinite(np.asarray(positions, dtype=float)).all(axis=2) & ~unplaced
    lost = there & ~(fit.weights > 0)
    if n_mended:
        remarks.append(f"markers that had changed places were put back in {n_mended} of {len(there)} frames")
    if lost.any():
        # A pose of a tracked body counts once.
        first = np.unique(markers.bodies, return_index=True)[1]
        remarks.append(f"{lost[:, first].sum()} of {there[:, first].sum()} positions left out as outliers")
    for p in np.flatnonzero(lost.sum(axis=0) > SUSPECT * there.sum(axis=0)):
        remarks.append(
            f"{markers.names[p]}: {lost[:, p].sum() / there[:, p].sum():.0%} of its positions are outliers; on another "
            "link, or elsewhere on it?"
        )
    return remarks
