"""Gravity moments of an arm whose servos all have known gains, from the base parameters of its joints.

Each joint has its own base parameters θ_j, and so its own gravity torque W_j(q) θ_j. The moments m that all joints
share follow by least squares over the recorded poses, G_j(q) m = W_j(q) θ_j, weighted by the noise of each joint.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.servo.servo_runs import ServoModel
from dynid_ros.identified.gravity import gravity_section
from dynid_ros.model.gravity import GravityModel

MAX_POSES = 1000
MIN_EIGENVALUE = 1e-7
"""Smallest eigenvalue of the normal matrix with unit columns that counts as determined."""


def servo_gravity_section(
    model: ServoModel,
    position: NDArray,
    estimates: Mapping[str, tuple[NDArray, NDArray]],
    gains: Mapping[str, tuple[float, float]],
    noise: Mapping[str, float],
) -> dict:
    """Return the section `gravity`; empty if a part of the gravity torque is not determined.

    Args:
        model: columns of the joints' torques.
        position: recorded positions (N, n), rad or m.
        estimates: coefficients (c,) of the columns of each joint over its gain, and their covariance (c, c).
        gains: gain of each joint, N m/rad (N/m), and its standard error.
        noise: RMS of the unexplained torque of each joint, N m (N).
    """
    robot = model.robot
    gravity = GravityModel(robot)
    position = position[:: -(-len(position) // MAX_POSES)]
    shared = gravity.regressor(position)
    weights = model.weight(position)
    known = np.abs(shared).max(axis=(0, 1)) > 0
    normal = np.zeros((known.sum(), known.sum()))
    moves = []
    for j, name in enumerate(robot.joint_names):
        matrix = shared[:, j, known] / noise[name]
        normal += matrix.T @ matrix
        moves.append(matrix.T @ weights[j] / noise[name])
    scale = np.sqrt(np.diag(normal))
    if np.linalg.eigvalsh(normal / (scale * scale[:, None]))[0] < MIN_EIGENVALUE:
        return {}
    inverse = np.linalg.inv(normal / (scale * scale[:, None])) / (scale * scale[:, None])
    moments = np.full(len(gravity.names), np.nan)
    errors = moments.copy()
    moments[known] = 0.0
    variance = np.zeros(known.sum())
    for name, move in zip(robot.joint_names, moves, strict=True):
        values, covariance = estimates[name]
        loaded = np.abs(move).max(axis=0) > 0
        gain, error = gains[name]
        step = inverse @ move[:, loaded]
        moments[known] += gain * step @ values[loaded]
        covariance = covariance[np.ix_(loaded, loaded)]
        variance += gain**2 * np.einsum("ij,jk,ik->i", step, covariance, step) + (error * step @ values[loaded]) ** 2
    if not np.isfinite(variance).all():
        return {}
    errors[known] = np.sqrt(variance)
    return gravity_section(gravity, moments, errors, {})
