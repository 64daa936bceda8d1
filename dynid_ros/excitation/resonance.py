"""At which frequencies an arm with flexible joints resonates."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import per_joint


class Resonance(NamedTuple):
    """Natural frequencies (n,) of small motions without friction and gravity, ascending, Hz.

    Attributes:
        driven: of the links, with motors whose positions are driven or held: what a design of motors' motions meets.
        free: of links and motors together, with motors that nothing drives: what a torque excites.

    """

    driven: NDArray
    free: NDArray


def resonance(robot: RobotModel, stiffness: ArrayLike, motor_inertia: ArrayLike, q: ArrayLike) -> Resonance:
    """Natural frequencies in a pose.

    Args:
        robot: the arm; its nominal parameters give the inertia.
        stiffness: of the springs between motors and links, one value or (n,), N m/rad or N/m.
        motor_inertia: seen from the links, one value or (n,), kg m² or kg.
        q: (n,) rad or m.

    Raises:
        TrajectoryError: a stiffness or motor inertia that is not positive; links without inertia.

    """
    springs, motors = (
        per_joint(value, robot.joint_names, what)
        for what, value in (("stiffness", stiffness), ("motor_inertia", motor_inertia))
    )
    if not (springs > 0).all() or not (motors > 0).all():
        raise TrajectoryError("resonance: stiffness and motor_inertia must be positive")
    n = robot.n_joints
    pose = np.broadcast_to(np.asarray(q, dtype=float), (n, n))
    still = np.zeros((n, n))
    links = robot.inverse_dynamics(pose, still, np.eye(n)) - robot.gravity_torque(pose)
    links = (links + links.T) / 2
    try:
        driven = eigh(np.diag(springs), links, eigvals_only=True)
    except np.linalg.LinAlgError as error:
        raise TrajectoryError(
            f"resonance: in this pose links of {robot.name}'s description have no inertia about a joint; give them some"
        ) from error
    # M qdd = -K (q - q_m) and J qdd_m = K (q - q_m), for the deflection alone.
    compliant = np.sqrt(springs)
    both = compliant[:, None] * (np.linalg.inv(links) + np.diag(1.0 / motors)) * compliant
    free = np.linalg.eigvalsh(both)
    return Resonance(*(np.sqrt(values) / (2 * np.pi) for values in (driven, free)))
