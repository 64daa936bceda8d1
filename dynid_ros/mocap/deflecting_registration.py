"""Registration of an arm with elastic joints, whose deflections in each frame are estimated together with it.

A stiff registration assumes that links follow their motors, so it absorbs a part of the deflections, which move markers
by millimetres. Here the deflections of each frame are unknowns with a normal prior of mean zero and typical size. They
are eliminated frame by frame (a bundle adjustment; Triggs et al. 2000), which leaves the camera's pose and the places
of the markers. The typical deflection of each joint follows from the data (expectation maximisation; Dempster, Laird
and Rubin 1977).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.estimation.covariance import jackknife_variance, left_out_steps
from dynid_ros.estimation.robust import MEDIAN_NORM_OF_3, tukey
from dynid_ros.mocap.camera_pose import SeenOnLinks, turning
from dynid_ros.mocap.marker_set import link_frames, marker_jacobian, marker_positions

MAX_ITERATIONS = 40
CONVERGENCE_STEP = 1e-6
"""Largest step of any parameter (rad, m) at which the iteration ends."""
FIRST_DEFLECTION_RAD = np.deg2rad(1.0)
"""Initial typical deflection, rad; that of a prismatic joint in m is a tenth of the number."""

FIRST_NOISE_M = 1e-3
"""Initial standard deviation of a coordinate, m."""

MIN_DEFLECTION = 1e-6
"""Smallest typical deflection, rad or m."""
N_LEFT_OUT_BLOCKS = 10
"""Number of blocks of consecutive frames that are left out in turn for the standard errors."""


@dataclass
class DeflectingRegistration:
    """State of the fit, and its result.

    Attributes:
        rotation: Rotation (3, 3) from the camera frame to the base frame.
        shift: Shift (3,) from the camera frame to the base frame, m.
        places: Places (P, 3) of the markers in the frames of their links, m.
        deflection: Link minus motor positions (K, n), rad or m.
        typical: Typical sizes (n,) of the deflections, RMS, rad or m.
        noise: Standard deviation of a marker's coordinate, m.
        weights: Weights (K, P) of squared residuals; zero for outliers and where not seen.
        errors: Standard errors (6 + 3 P,) of rotation (rad) and shift (m) of the base, and of the places, m.
    """

    rotation: NDArray
    shift: NDArray
    places: NDArray
    deflection: NDArray
    typical: NDArray
    noise: float
    weights: NDArray
    errors: NDArray

    def residual(self, seen: SeenOnLinks) -> NDArray:
        """Return measured minus predicted positions (K, P, 3) in the base frame, m."""
        frames = link_frames(seen.robot, seen.motor + self.deflection)
        predicted = marker_positions(frames, replace(seen.markers, places=self.places))
        return seen.positions @ self.rotation.T + self.shift - predicted


def fit_deflecting(
    seen: SeenOnLinks, rotation: NDArray, shift: NDArray, places: NDArray, weights: NDArray
) -> DeflectingRegistration:
    """Fit the registration, starting from the result of a stiff one.

    All `places` must be finite, and `redundant(seen)` must hold.

    Args:
        seen: Positions of markers and motors.
        rotation: Rotation (3, 3) from the camera frame to the base frame.
        shift: Shift (3,) from the camera frame to the base frame, m.
        places: Places (P, 3), m.
        weights: Initial weights (K, P).
    """
    n = seen.robot.n_joints
    typical = np.where(seen.robot.chain.prismatic, FIRST_DEFLECTION_RAD / 10, FIRST_DEFLECTION_RAD)
    state = DeflectingRegistration(
        rotation,
        shift,
        places,
        np.zeros((len(seen.motor), n)),
        typical,
        FIRST_NOISE_M,
        weights,
        np.full(6 + places.size, np.nan),
    )
    for iteration in range(MAX_ITERATIONS):
        normals, gradients, moves = _linearised(seen, state, reweigh=iteration > 0)
        step = -np.linalg.lstsq(normals.sum(axis=0), gradients.sum(axis=0), rcond=1e-12)[0]
        turned = Rotation.from_rotvec(step[:3]).as_matrix()
        state.rotation = turned @ state.rotation
        state.shift = turned @ state.shift + step[3:6]
        state.places = state.places + step[6:].reshape(-1, 3)
        state.deflection = state.deflection + np.concatenate([alone + coupled @ step for alone, coupled in moves])
        if iteration > 5 and np.max(np.abs(step)) < CONVERGENCE_STEP:
            break
    state.errors = _errors(*_linearised(seen, state, reweigh=False), state)
    return state


def _errors(
    normals: NDArray, gradients: NDArray, moves: list[tuple[NDArray, NDArray]], state: DeflectingRegistration
) -> NDArray:
    """Return the standard errors (6 + 3 P,) from a jackknife over blocks and from the mean deflection of each joint.

    Where the mean deflection over all frames is undetermined (first and last joint), its estimate is zero, and its
    uncertainty is the typical size of the deflections.
    """
    whole = normals.sum(axis=0)
    left_out = left_out_steps(normals, gradients, rcond=1e-12)
    followed = np.sum([follow.sum(axis=0) for _, follow in moves], axis=0)
    common = np.linalg.lstsq(whole, followed.T * (state.noise**2 / state.typical), rcond=1e-12)[0]
    return np.sqrt(jackknife_variance(left_out) + np.sum(common**2, axis=1))


def _linearised(
    seen: SeenOnLinks, state: DeflectingRegistration, *, reweigh: bool
) -> tuple[NDArray, NDArray, list[tuple[NDArray, NDArray]]]:
    """Return the linearised problem of B blocks of frames, with the deflections eliminated.

    With `reweigh`, weights, noise and typical deflections in `state` are updated.

    Returns:
        Normal matrices (B, 6 + 3 P, 6 + 3 P), gradients (B, 6 + 3 P), and for each block the steps (k, n) of the
        deflections without other steps, and their dependence (k, n, 6 + 3 P) on the other steps.
    """
    markers = replace(seen.markers, places=state.places)
    blocks = np.array_split(np.arange(len(seen.motor)), min(N_LEFT_OUT_BLOCKS, len(seen.motor)))
    frames = link_frames(seen.robot, seen.motor + state.deflection)
    predicted = marker_positions(frames, markers)
    residual = seen.positions @ state.rotation.T + state.shift - predicted
    turn = frames.rotation[:, markers.links]
    if reweigh:
        # Distances are taken from each marker's median place, so that a marker with a wrong place can recover.
        places = np.einsum("kpji,kpj->kpi", turn, residual)
        length = markers.distances(places - np.nanmedian(places, axis=0))
        scale = np.median(length[np.isfinite(length)]) / MEDIAN_NORM_OF_3
        state.weights = tukey(length, max(float(scale), 1e-6))
    residual = np.where(state.weights[..., None] > 0, residual, 0.0)
    prior = (state.noise / state.typical) ** 2
    joints = marker_jacobian(seen.robot, frames, predicted, markers)
    normals = []
    gradients = []
    moves = []
    deflection_dof = 0.0  # effective number of parameters of the deflections
    variances = []
    for rows in blocks:
        weight = np.repeat(state.weights[rows], 3, axis=1)[..., None]
        J = joints[rows].reshape(len(rows), -1, seen.robot.n_joints)
        A = _others(predicted[rows], turn[rows])
        r = residual[rows].reshape(len(rows), -1, 1)
        Jw = np.swapaxes(J * weight, 1, 2)
        inner = Jw @ J
        inverse = np.linalg.inv(inner + np.diag(prior))
        across = Jw @ A
        alone = inverse @ (Jw @ r - prior[:, None] * state.deflection[rows][..., None])
        follow = inverse @ across
        moves.append((alone[..., 0], follow))
        Aw = (A * weight).reshape(-1, A.shape[-1])
        normals.append(Aw.T @ A.reshape(Aw.shape) - np.einsum("kia,kib->ab", across, follow, optimize=True))
        gradients.append(Aw.T @ r.ravel() - np.einsum("kia,ki->a", across, alone[..., 0]))
        deflection_dof += float(np.einsum("kij,kji->", inverse, inner))
        variances.append(np.einsum("kjj->kj", inverse))
    if reweigh:
        dof = ((state.weights > 0) @ markers.dof).sum() - deflection_dof - (6 + markers.dof.sum())
        squares = float(np.sum(residual**2))
        state.noise = float(np.sqrt(squares / max(dof, 1.0)))
        power = np.mean(state.deflection**2 + state.noise**2 * np.concatenate(variances), axis=0)
        state.typical = np.maximum(np.sqrt(power), MIN_DEFLECTION)
    return np.array(normals), np.array(gradients), moves


def _others(predicted: NDArray, turn: NDArray) -> NDArray:
    """Return the derivatives (K, 3 P, 6 + 3 P) of the residuals by rotation and shift of the base and by the places."""
    n_frames, n_markers = predicted.shape[:2]
    matrix = np.zeros((n_frames, n_markers, 3, 6 + 3 * n_markers))
    matrix[..., :3] = turning(predicted)
    matrix[..., 3:6] = np.eye(3)
    for p in range(n_markers):
        matrix[:, p, :, 6 + 3 * p : 9 + 3 * p] = -turn[:, p]
    return matrix.reshape(n_frames, 3 * n_markers, -1)


def redundant(seen: SeenOnLinks) -> bool:
    """Return whether the markers in most frames have more degrees of freedom than there are joints that move them."""
    is_seen = np.isfinite(seen.positions).all(axis=2)
    n_joints = int(seen.markers.beyond(seen.robot).any(axis=0).sum())
    return bool(np.median(is_seen @ seen.markers.dof) > n_joints) and len(set(seen.markers.links)) > 1
