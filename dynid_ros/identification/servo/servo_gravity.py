"""Gravity moments of an arm whose servos all have known gains, from the base parameters of its joints.

Each joint has its own base parameters θ_j. The part of them that gravity loads is a linear function of the moments m
that all joints share, θ_j = A_j m. The moments follow by weighted least squares over all joints.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.servo.servo_runs import ServoModel
from dynid_ros.identified.gravity import gravity_section
from dynid_ros.model.base_parameters import random_motion
from dynid_ros.model.gravity import GravityModel

MIN_WEIGHT_SHARE = 1e-9
"""Smallest column that gravity loads, as a fraction of the largest."""
MIN_EIGENVALUE_SHARE = 1e-12


def servo_gravity_section(
    model: ServoModel, estimates: Mapping[str, tuple[NDArray, NDArray]], gains: Mapping[str, tuple[float, float]]
) -> dict:
    """Return the section `gravity`; empty if a part of the gravity torque is not determined.

    Args:
        model: columns of the joints' torques.
        estimates: coefficients (c,) of the columns of each joint over its gain, and their covariance (c, c).
        gains: gain of each joint, N m/rad (N/m), and its standard error.
    """
    robot = model.robot
    gravity = GravityModel(robot)
    position = random_motion(robot)[0]
    shared = gravity.regressor(position)
    weights = model.weight(position)
    size = len(gravity.names)
    information = np.zeros((size, size))
    right = np.zeros(size)
    for j, name in enumerate(robot.joint_names):
        norms = np.linalg.norm(weights[j], axis=0)
        loaded = norms > MIN_WEIGHT_SHARE * max(norms.max(), np.finfo(float).tiny)
        if not loaded.any() or not np.abs(shared[:, j]).max() > 0:
            continue
        values, covariance = (part[np.ix_(*[loaded] * part.ndim)] for part in estimates[name])
        if not np.isfinite(covariance).all():
            return {}
        gain, error = gains[name]
        moments_to_values = np.linalg.lstsq(weights[j][:, loaded], shared[:, j], rcond=None)[0]
        covariance = gain**2 * covariance + error**2 * np.outer(values, values)
        weight = np.linalg.pinv(covariance, rcond=MIN_EIGENVALUE_SHARE, hermitian=True)
        information += moments_to_values.T @ weight @ moments_to_values
        right += moments_to_values.T @ weight @ (gain * values)
    known = np.diag(information) > 0
    moments = np.full(size, np.nan)
    errors = np.full(size, np.nan)
    inverse = np.linalg.pinv(information[np.ix_(known, known)], rcond=MIN_EIGENVALUE_SHARE, hermitian=True)
    moments[known] = inverse @ right[known]
    errors[known] = np.sqrt(np.diag(inverse))
    return gravity_section(gravity, moments, errors, {})
