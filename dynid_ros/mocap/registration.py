"""Registration of camera and arm: pose of the camera and places of the markers, from motors and markers together.

The place of a marker is its position in the frame of its link. The stray of a marker is the distance of its place in
one frame from its median place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import MEDIAN_NORM_OF_3, lengths, tukey
from dynid_ros.mocap.camera_pose import EstimablePose, SeenOnLinks, block_errors, estimable_pose, search
from dynid_ros.mocap.deflecting_registration import fit_deflecting, redundant
from dynid_ros.mocap.marker_set import BASE, MarkerSet, link_frames, require_enough
from dynid_ros.mocap.markers import require_positions
from dynid_ros.model import RobotModel

MAX_REST_MOVEMENT_M = 2e-3
"""Movement of a link's markers, m, below which they count as resting."""

MIN_FRAME_MOVEMENT = 0.02
"""Movement of a link's frame, m and rad, above which its markers must move."""

MAX_STRAY_M = 5e-3
"""Median stray of a coordinate, m, above which other conventions are tried."""

OTHER_CONVENTION_RATIO = 0.2
"""Ratio of the stray in another convention to the stray in the given one, below which the given one is wrong."""

MAX_FRAMES = 400
"""Largest number of frames that are used, at regular distances in the record."""

MAX_ITERATIONS = 30
CONVERGENCE_STEP = 3e-6
"""Largest step, rad or m, of a fit that has converged."""

MAX_DEFLECTION_STRAY_M = 0.05
"""Largest stray of a coordinate, m, that deflections may cause."""

MAX_DEFLECTION = 0.1
"""Largest plausible deflection, rad or m."""

MIN_USED_SHARE = 0.5
"""Smallest fraction of a marker's positions that must fit its link."""


# Faults of the coordinates: markers at rest, mirrored, in millimetres.


def require_moving(seen: SeenOnLinks) -> None:
    """Raise a `MocapError` if the arm rests, or if markers rest on a moving link."""
    frames = link_frames(seen.robot, seen.motor)
    travel = np.maximum(np.std(frames.origin, axis=0).max(axis=1), np.std(frames.rotation, axis=0).max(axis=(1, 2)))
    links = sorted(set(seen.markers.links[seen.markers.links >= 0]))
    if not (travel[links] > MIN_FRAME_MOVEMENT).any():
        raise MocapError(
            "the links with markers do not move: nothing determines where the camera stands; "
            "move all joints before them"
        )
    for link in links:
        on = np.flatnonzero(seen.markers.links == link)
        points = seen.positions[:, on]
        moved = np.linalg.norm(points - np.nanmedian(points, axis=0), axis=2)
        if travel[link] > MIN_FRAME_MOVEMENT and np.nanquantile(moved, 0.9) < MAX_REST_MOVEMENT_M:
            raise MocapError(
                f"markers {', '.join(seen.markers.names[p] for p in on)} stand still within "
                f"{1000 * np.nanquantile(moved, 0.9):.1f} mm while link '{seen.robot.link_names[link]}' moves: they "
                "are not on it, or the tracker has frozen"
            )


def refuse_other_conventions(seen: SeenOnLinks, misfit: float) -> None:
    """Raise a `MocapError` if the markers fit only in another unit or after a reflection.

    Args:
        seen: Markers and motors.
        misfit: Median stray of the best proper pose of the camera, m.
    """
    if misfit < MAX_STRAY_M:
        return
    metres = replace(seen, positions=seen.positions / 1000)
    trials = {
        "are in millimetres: divide them by 1000": search(metres)[2],
        "are of a left-handed frame: reverse one axis": search(seen, mirrored=True)[2],
        "are in millimetres and of a left-handed frame: divide them by 1000 and reverse one axis": search(
            metres, mirrored=True
        )[2],
    }
    fault, best = min(trials.items(), key=lambda item: item[1])
    if best < OTHER_CONVENTION_RATIO * misfit:
        raise MocapError(
            f"the marker coordinates {fault}; then markers stray {1000 * best:.1f} mm on their links, and as they are "
            f"{1000 * misfit:.0f} mm"
        )


# Registration with its errors.


@dataclass(frozen=True, eq=False)
class Registration:
    """Pose of a camera before an arm, and places of the markers.

    Deflections that all poses have in common shift the estimated camera or markers: an arm that always reaches forward
    sags forward, and no camera can distinguish that. Deflections that change between poses are fitted if the joints may
    give way. With stiff joints, deflections are part of the residual and of the standard errors.

    Attributes:
        markers: Markers with their places; NaN for markers that do not fit their link.
        camera: Pose (4, 4) of the base in the camera frame, m.
        offsets: Offsets (n,) that are added to the motor positions, rad or m; zero where not requested or not
            estimable.
        camera_errors: Standard errors (6,) of rotation about the base's axes, rad, and of shift along them, m.
        place_errors: Standard errors (P, 3) of the places, m.
        offset_errors: Standard errors (n,) of the offsets, rad or m; NaN where the offset was not estimated.
        deflection: Typical deflections (n,) of the joints, rad or m; None for stiff joints.
        noise: Standard deviation of a coordinate, m, due to markers and to deflections that are not fitted.
        residual_rms: RMS lengths (P,) of the markers' residuals without outliers, m.
        used: Fractions (P,) of the markers' positions that are no outliers.
        undecided: Sentences on undetermined directions of the pose; link angles do not depend on them.
        remarks: Sentences on markers that do not fit.
    """

    markers: MarkerSet
    camera: NDArray
    offsets: NDArray
    camera_errors: NDArray
    place_errors: NDArray
    offset_errors: NDArray
    deflection: NDArray | None
    noise: float
    residual_rms: NDArray
    used: NDArray
    undecided: tuple[str, ...]
    remarks: tuple[str, ...]

    def summary(self) -> str:
        """Return text with standard errors in mm and degrees, residual per marker and undetermined directions."""
        turn = np.rad2deg(self.camera_errors[:3])
        shift = 1000 * self.camera_errors[3:]
        lines = [
            f"residual {1000 * self.noise:.2f} mm per coordinate",
            f"camera: standard errors {_numbers(turn, 3)} deg about, {_numbers(shift, 2)} mm along x, y, z of the base",
        ]
        for p, name in enumerate(self.markers.names):
            lines.append(
                f"  {name}: at {_numbers(1000 * self.markers.places[p], 1)} mm, standard errors "
                f"{_numbers(1000 * self.place_errors[p], 2)}, residual {1000 * self.residual_rms[p]:.2f} RMS, "
                f"{self.used[p]:.0%} used"
            )
        return "\n".join([*lines, *(f"  {line}" for line in (*self.undecided, *self.remarks))])


def _numbers(values: NDArray, digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def register(
    robot: RobotModel,
    markers: MarkerSet,
    motor: ArrayLike,
    positions: ArrayLike,
    *,
    offsets: bool = False,
    stiff: bool = False,
    camera: ArrayLike | None = None,
) -> Registration:
    """Estimate the pose of the base in the camera frame and the places of the markers, from a motion or poses at rest.

    A global search over the camera's orientation needs no first guess; Gauss-Newton with Tukey's weights follows.
    Markers that keep their distances exactly belong to a body that a tracker has fitted. They count as one pose, which
    is an outlier as a whole or not at all, see `MarkerSet.with_bodies`. Standard errors are those of a jackknife over
    blocks of consecutive frames, which allows for the correlation of deflections between neighbouring frames.

    Args:
        robot: Model of the arm.
        markers: Markers with their links; the places are estimated.
        motor: Joint positions (K, n) at the camera's frames, rad or m; frames with a non-finite one are left out.
        positions: Marker positions (K, P, 3) in the camera frame, m; NaN where not seen.
        offsets: Whether constant offsets of the joints' zeros are estimated, where possible.
        stiff: Whether the links follow the motors exactly. Otherwise the joints may give way if there are enough
            markers: on several links, with more coordinates in a frame than joints that move them.
        camera: Initial pose (4, 4) of the base in the camera frame, right to some degrees; None: searched for.

    Raises:
        MocapError: Shapes do not fit, a motor does not move, markers do not move with the arm, fewer than three are
            beyond a joint or all are on one line, coordinates are mirrored or in millimetres, or no pose fits.
    """
    measured = require_positions(positions, markers.size)
    angles = np.asarray(motor, dtype=float)
    if angles.shape != (len(measured), robot.n_joints):
        raise MocapError(
            f"motor positions have shape {angles.shape}; expected ({len(measured)}, {robot.n_joints}): one row for "
            "each frame of the camera"
        )
    rows = np.flatnonzero(np.isfinite(angles).all(axis=1) & np.isfinite(measured).all(axis=2).any(axis=1))
    if len(rows) < 3:
        raise MocapError(
            f"{len(rows)} frames with markers and motor positions: expected many; do the clocks of robot and camera "
            "overlap?"
        )
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, MAX_FRAMES).astype(int))]
    seen = SeenOnLinks(robot, markers.with_bodies(measured[rows]), angles[rows], measured[rows])
    require_enough(robot, markers, seen.positions)
    require_moving(seen)
    if camera is None:
        rotation, shift, misfit = search(seen)
        refuse_other_conventions(seen, misfit)
    else:
        start = np.asarray(camera, dtype=float)
        rotation, shift = _to_base(start)
    registration = _fit(seen, rotation, shift, offsets=offsets)
    if stiff:
        return registration
    # Deflections move markers near the tip most: decide which markers fit only after deflections are estimated.
    candidates = np.isfinite(registration.markers.places).all(axis=1) | _on_own_link(seen, registration)
    while redundant(_selected(seen, candidates, registration)):
        deflecting = _fit_with_deflections(registration, seen, candidates)
        fits = candidates & ~(deflecting.used < MIN_USED_SHARE)
        if (fits == candidates).all() or not fits.any():
            return deflecting
        candidates = fits
    return registration


def _on_own_link(seen: SeenOnLinks, registration: Registration) -> NDArray:
    """Return a mask (P,) of the markers that stray less on their named link than on any other."""
    rotation, shift = _to_base(registration.camera)
    links = (*range(seen.robot.chain.n_links), BASE)
    is_on_link = np.zeros(seen.markers.size, dtype=bool)
    for p in np.flatnonzero(np.isfinite(seen.positions).all(axis=2).any(axis=0)).tolist():
        strays = seen.stray_by_link(p, rotation, shift, registration.offsets)
        is_on_link[p] = links[int(np.argmin(strays))] == seen.markers.links[p]
    return is_on_link


def _selected(seen: SeenOnLinks, keep: NDArray, registration: Registration) -> SeenOnLinks:
    """Return the markers of a mask (P,), with the estimated offsets added to the motor positions."""
    return SeenOnLinks(
        seen.robot, seen.markers.select(keep), seen.motor + registration.offsets, seen.positions[:, keep]
    )


def _to_base(camera: NDArray) -> tuple[NDArray, NDArray]:
    """Return rotation (3, 3) and shift (3,) from the camera frame to the base frame."""
    return camera[:3, :3].T, -camera[:3, :3].T @ camera[:3, 3]


def _fit_with_deflections(stiff: Registration, everything: SeenOnLinks, fits: NDArray) -> Registration:
    """Return the registration with joints that give way, from that with stiff joints and the markers in a mask (P,)."""
    rotation, shift = _to_base(stiff.camera)
    seen = _selected(everything, fits, stiff)
    places = seen.places(rotation, shift)
    length = seen.markers.distances(places - np.nanmedian(places, axis=0))
    # Each marker has its own spread, because deflections add up towards the tip.
    marker_spread = np.array([np.median(column[np.isfinite(column)]) for column in length.T]) / MEDIAN_NORM_OF_3
    weights = tukey(length, np.maximum(marker_spread, 1e-6))
    fit = fit_deflecting(seen, rotation, shift, np.nanmedian(places, axis=0), weights)
    excessive = np.flatnonzero(fit.typical > MAX_DEFLECTION)
    if excessive.size:
        raise MocapError(
            f"joint(s) {', '.join(seen.robot.joint_names[j] for j in excessive)} would have to give way by "
            f"{fit.typical[excessive].max():.2f} rad or m for the markers to fit: do clocks, links of the markers and "
            "joint order fit?"
        )
    places, errors = np.full((2, *stiff.markers.places.shape), np.nan)
    places[fits] = fit.places
    errors[fits] = fit.errors[6:].reshape(-1, 3)
    residual = fit.residual(seen)
    inside = fit.weights > 0
    rms, used = np.full((2, len(fits)), np.nan)
    rms[fits] = np.sqrt(
        np.sum(np.where(inside, lengths(residual), 0.0) ** 2, axis=0) / np.maximum(inside.sum(axis=0), 1)
    )
    used[fits] = inside.sum(axis=0) / np.isfinite(seen.positions).all(axis=2).sum(axis=0)
    used = np.where(fits, used, stiff.used)
    return replace(
        stiff,
        markers=replace(stiff.markers, places=places),
        camera=_inverse(fit.rotation, fit.shift),
        camera_errors=fit.errors[:6],
        place_errors=errors,
        deflection=fit.typical,
        noise=fit.noise,
        residual_rms=rms,
        used=used,
        remarks=tuple(_misfits(everything, rotation, shift, stiff.offsets, used)),
    )


def _inverse(rotation: NDArray, shift: NDArray) -> NDArray:
    """Return the pose (4, 4) of the base in the camera frame from the transform to the base frame."""
    camera = np.eye(4)
    camera[:3, :3] = rotation.T
    camera[:3, 3] = -rotation.T @ shift
    return camera


def _fit(seen: SeenOnLinks, rotation: NDArray, shift: NDArray, *, offsets: bool) -> Registration:
    """Return the registration with stiff joints, by iterations from a transform to the base frame."""
    delta = np.zeros(seen.robot.n_joints)
    weights = _weights(seen, rotation, shift, delta)
    for _ in range(MAX_ITERATIONS):
        scatter = seen.scatter(rotation, shift, delta, weights)
        free = estimable_pose(scatter, weights, seen.robot, offsets=offsets)
        step = free.step(scatter, weights)
        turned = Rotation.from_rotvec(step[:3]).as_matrix()
        rotation = turned @ rotation
        shift = turned @ shift + step[3:6]
        delta = delta + step[6:]
        weights = _weights(seen, rotation, shift, delta)
        if np.max(np.abs(step)) < CONVERGENCE_STEP:
            break
    return _result(seen, rotation, shift, delta, weights, free=free)


def _weights(seen: SeenOnLinks, rotation: NDArray, shift: NDArray, offsets: NDArray | float) -> NDArray:
    """Return Tukey's weights (K, P) for the strays of the markers; ghosts do not shift a median place."""
    places = seen.places(rotation, shift, offsets)
    length = seen.markers.distances(places - np.nanmedian(places, axis=0))
    scale = max(float(np.median(length[np.isfinite(length)])) / MEDIAN_NORM_OF_3, 1e-6)
    return tukey(length, scale)


def _result(
    seen: SeenOnLinks, rotation: NDArray, shift: NDArray, delta: NDArray, weights: NDArray, *, free: EstimablePose
) -> Registration:
    """Return the registration with errors from the last iteration; `delta` (n,) are the offsets of the motors."""
    there = np.isfinite(seen.positions).all(axis=2)
    scatter = seen.scatter(rotation, shift, delta, weights)
    length = np.where(there, lengths(scatter.residual), np.inf)
    used = (weights > 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    fits = used >= MIN_USED_SHARE
    inside = (weights > 0) & fits
    squares = np.where(inside, length, 0.0) ** 2
    # The shape of a tracked body is known, so the places of its markers have the six degrees of freedom of a pose.
    n_free = free.basis.shape[1] + seen.markers.dof[fits].sum()
    dof = float((inside * seen.markers.dof).sum() - n_free)
    noise = float(np.sqrt(squares.sum() / dof)) if dof > 0 else np.nan
    if not fits.any() or noise > MAX_DEFLECTION_STRAY_M:
        raise MocapError(
            f"markers stray by {1000 * noise:.0f} mm per coordinate on their links: do clocks, links of the markers "
            "and joint order fit?"
        )
    parameter_errors, place_errors = block_errors(scatter, np.where(fits, weights, 0.0), free.basis)
    with np.errstate(invalid="ignore", divide="ignore"):
        rms = np.sqrt(squares.sum(axis=0) / inside.sum(axis=0))
    places = np.where(fits[:, None], scatter.places, np.nan)
    return Registration(
        markers=replace(seen.markers, places=places),
        camera=_inverse(rotation, shift),
        offsets=delta,
        camera_errors=parameter_errors[:6],
        place_errors=np.where(fits[:, None], place_errors, np.nan),
        offset_errors=np.where(free.offsets, parameter_errors[6:], np.nan),
        deflection=None,
        noise=noise,
        residual_rms=rms,
        used=used,
        undecided=free.undecided,
        remarks=tuple(_misfits(seen, rotation, shift, delta, used)),
    )


def _misfits(seen: SeenOnLinks, rotation: NDArray, shift: NDArray, delta: NDArray, used: NDArray) -> list[str]:
    """Return sentences on markers that stray on their link, with the link on which they are at rest."""
    remarks = []
    for p in np.flatnonzero(used < MIN_USED_SHARE):
        strays = seen.stray_by_link(int(p), rotation, shift, delta)
        best = int(np.argmin(strays))
        name = (*seen.robot.link_names, seen.robot.base)[best]
        remarks.append(
            f"{seen.markers.names[p]}: {1 - used[p]:.0%} of its positions do not fit its link; it strays least on "
            f"'{name}' ({1000 * strays[best]:.1f} mm)"
        )
    return remarks
