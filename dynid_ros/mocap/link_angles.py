"""Link angles of a whole chain from markers on several links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import OUTLIER_SIGMAS, lengths, spread
from dynid_ros.mocap.frame_fit import FrameFit, Weights, cautious, fit_frames, follow, unknown_joints
from dynid_ros.mocap.marker_set import MarkerSet, link_frames, marker_positions, require_enough
from dynid_ros.mocap.markers import reordered, require_positions
from dynid_ros.model import RobotModel

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
