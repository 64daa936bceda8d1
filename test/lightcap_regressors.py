"""Regressors of Lightcap and Banks 2007 for links behind springs, of one joint or of n.

Base parameters of the links come first, then n columns for each of Coulomb and viscous friction of the links, stiffness
(eq. 3 only), inertia and viscous friction of the motors. They take measured motions as they are, noise and all.
"""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.signals import Motion


def regressor_with_stiffness(robot: RobotModel, link: Motion, motor: Motion) -> NDArray:
    """Eq. 3: (N, 2 n, r + 5 n), whose rows times the parameters are zero for the links and then the motors' torques.

    The last row of eq. 3 ends in [q_m, q_m] dotted alike in print; it is [qdd_m, qd_m], as in eq. 2.

    Args:
        robot: the arm; only its kinematics and gravity count.
        link: motion of the links, (N, n) each, on the right side of the springs.
        motor: motion of the motors, (N, n) each.

    Raises:
        ModelError: shapes that do not fit.
    """
    n = robot.n_joints
    springs = _diagonal(link.position - motor.position)
    none = np.zeros_like(springs)
    links = np.concatenate([_links(robot, link), springs, none, none], axis=2)
    rest = np.zeros((len(links), n, links.shape[2] - 3 * n))
    motors = np.concatenate([rest, -springs, *_motors(motor)], axis=2)
    return np.concatenate([links, motors], axis=1)


def regressor_without_stiffness(robot: RobotModel, link: Motion, motor: Motion) -> NDArray:
    """Eq. 6: (N, n, r + 4 n), whose rows times the parameters are the motors' torques; arguments as for eq. 3."""
    return np.concatenate([_links(robot, link), *_motors(motor)], axis=2)


def _links(robot: RobotModel, link: Motion) -> NDArray:
    rows = robot.base_parameters().reduce(robot.torque_regressor(*link))
    return np.concatenate([rows, _diagonal(np.sign(link.velocity)), _diagonal(link.velocity)], axis=2)


def _motors(motor: Motion) -> tuple[NDArray, NDArray]:
    return _diagonal(motor.acceleration), _diagonal(motor.velocity)


def _diagonal(values: NDArray) -> NDArray:
    """(N, n, n) with rows (N, n) on the diagonals."""
    return values[:, :, None] * np.eye(values.shape[1])
