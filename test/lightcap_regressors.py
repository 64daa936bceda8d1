"""Build the regressors of Lightcap and Banks 2007 for links behind springs, of one joint or of n.

Base parameters of the links come first, then n columns each for Coulomb and viscous friction of the links, stiffness
(eq. 3 only), inertia and viscous friction of the motors. Measured motions are used without filtering.
"""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.signals import Motion


def regressor_with_stiffness(robot: RobotModel, link: Motion, motor: Motion) -> NDArray:
    """Return the regressor (N, 2 n, r + 5 n) of eq. 3, which predicts zero for the links and the motors' torques.

    The last row of eq. 3 is printed with equal dots in [q_m, q_m]; it is [qdd_m, qd_m], as in eq. 2.

    Args:
        robot: the arm; only its kinematics and gravity are used.
        link: motion of the links, (N, n) each, on the right side of the springs.
        motor: motion of the motors, (N, n) each.

    Raises:
        ModelError: Shapes do not match.
    """
    n = robot.n_joints
    springs = _diagonal(link.position - motor.position)
    none = np.zeros_like(springs)
    links = np.concatenate([_links(robot, link), springs, none, none], axis=2)
    rest = np.zeros((len(links), n, links.shape[2] - 3 * n))
    motors = np.concatenate([rest, -springs, *_motors(motor)], axis=2)
    return np.concatenate([links, motors], axis=1)


def regressor_without_stiffness(robot: RobotModel, link: Motion, motor: Motion) -> NDArray:
    """Return the regressor (N, n, r + 4 n) of eq. 6, which predicts the motors' torques; see eq. 3."""
    return np.concatenate([_links(robot, link), *_motors(motor)], axis=2)


def _links(robot: RobotModel, link: Motion) -> NDArray:
    rows = robot.base_parameters().reduce(robot.torque_regressor(*link))
    return np.concatenate([rows, _diagonal(np.sign(link.velocity)), _diagonal(link.velocity)], axis=2)


def _motors(motor: Motion) -> tuple[NDArray, NDArray]:
    return _diagonal(motor.acceleration), _diagonal(motor.velocity)


def _diagonal(values: NDArray) -> NDArray:
    """Return matrices (N, n, n) with rows (N, n) on the diagonals."""
    return values[:, :, None] * np.eye(values.shape[1])
