"""Elements of a URDF as numbers."""

import math
from collections.abc import Iterable

import numpy as np
from urdf_parser_py.urdf import Inertial, Joint, Pose

from dynid_ros.errors import ModelError
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed

LARGEST = 1e6
"""m, rad, kg or kg m^2: no arm has more, and the products of what it has stay numbers."""
SHORTEST_AXIS = 1e-9


def pose(origin: Pose | None, where: str) -> np.ndarray:
    """Transform (4, 4) of an origin: Rz(yaw) Ry(pitch) Rx(roll), shifted by xyz.

    Args:
        origin: the element; None: no shift and no turn.
        where: what to call the element that it belongs to in an error, here and below.

    Raises:
        ModelError: a number is not finite, or beyond all arms.

    """
    transform = np.eye(4)
    if origin is not None:
        angles = _finite(origin.rpy or (0.0, 0.0, 0.0), "rpy", where)
        (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
        transform[:3, :3] = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        transform[:3, 3] = _finite(origin.xyz or (0.0, 0.0, 0.0), "xyz", where)
    return transform


def axis_rotation(joint: Joint, where: str) -> np.ndarray:
    """Transform (4, 4) that turns z into the axis of the joint; no turn for an axis along z.

    Raises:
        ModelError: the axis is zero, not finite, or beyond all arms.

    """
    axis = _finite(joint.axis or (1.0, 0.0, 0.0), "axis", where)
    length = np.linalg.norm(axis)
    if length < SHORTEST_AXIS:
        shown = " ".join(f"{value:g}" for value in axis)
        raise ModelError(f"{where}: axis is {shown}; give the direction that the joint moves about or along")
    # The shortest turn is not defined for -z: an axis that points down is reached by way of half a turn about x.
    flip = np.diag([1.0, -1.0, -1.0] if axis[2] < 0.0 else [1.0, 1.0, 1.0])
    x, y, z = flip @ axis / length
    transform = np.eye(4)
    transform[:3, :3] = flip @ [
        [1.0 - x * x / (1.0 + z), -x * y / (1.0 + z), x],
        [-x * y / (1.0 + z), 1.0 - y * y / (1.0 + z), y],
        [-x, -y, z],
    ]
    return transform


def displacement(joint: Joint, position: float, where: str) -> np.ndarray:
    """Transform (4, 4) of a joint's child by its position, rad or m; none for a joint that has not one position.

    Raises:
        ModelError: as `axis_rotation`.

    """
    transform = np.eye(4)
    if joint.type not in ("revolute", "continuous", "prismatic"):
        return transform
    turn = axis_rotation(joint, where)
    if joint.type == "prismatic":
        transform[:3, 3] = position * turn[:3, 2]
        return transform
    sine, cosine = math.sin(position), math.cos(position)
    transform[:2, :2] = [[cosine, -sine], [sine, cosine]]
    return turn @ transform @ turn.T


def inertial_parameters(inertial: Inertial | None, where: str) -> np.ndarray:
    """Parameters (10,) of a link about its frame: none means no mass, no inertia a point mass.

    Moments of inertia are taken as they are, though no body may have them: that a URDF's lie is why it is read here.

    Raises:
        ModelError: the mass is negative, or a number is not finite or beyond all arms.

    """
    parameters = np.zeros(PARAMETERS_PER_LINK)
    if inertial is None:
        return parameters
    parameters[0] = _finite([inertial.mass], "mass", where)[0]
    if parameters[0] < 0.0:
        raise ModelError(f"{where}: mass is {parameters[0]:g} kg; expected zero or more")
    if inertial.inertia is not None:
        inertia = np.array(inertial.inertia.to_matrix())
        parameters[4:] = _finite(inertia[np.triu_indices(3)], "inertia", where)
    return transformed(parameters, pose(inertial.origin, where))


def joint_limits(joint: Joint, where: str) -> tuple[float, float, float, float]:
    """Lower and upper position, velocity and effort; infinite where there are none.

    Raises:
        ModelError: a limit is NaN, or the lower is above the upper.

    """
    lower, upper, velocity, effort = -math.inf, math.inf, math.inf, math.inf
    if joint.limit is not None:
        velocity, effort = joint.limit.velocity, joint.limit.effort
        if joint.type != "continuous":
            lower, upper = joint.limit.lower, joint.limit.upper
    if any(math.isnan(limit) for limit in (lower, upper, velocity, effort)):
        raise ModelError(f"{where}: a limit is NaN; give numbers")
    if lower > upper:
        raise ModelError(f"{where}: lower limit {lower:g} is above upper limit {upper:g}; correct them")
    return lower, upper, velocity, effort


def _finite(values: Iterable[float], what: str, where: str) -> np.ndarray:
    array = np.array(values, dtype=float)
    if not (np.abs(array) <= LARGEST).all():
        raise ModelError(f"{where}: {what} is {' '.join(map(str, array))}; expected finite numbers up to {LARGEST:g}")
    return array
