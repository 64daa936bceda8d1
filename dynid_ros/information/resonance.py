"""At which frequencies an arm with flexible joints resonates."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import per_joint

PAST = 1.25
"""How far the highest harmonic goes past the highest resonance."""
BELOW = 0.5
"""Of the lowest resonance: the highest base frequency."""
COMMANDS_PER_CYCLE = 10
"""Of the highest harmonic, at least, for a controller to follow."""


class Resonance(NamedTuple):
    """Natural frequencies (n,) of small motions without friction and gravity, ascending, Hz.

    Attributes:
        driven: of the links, with motors whose positions are driven or held: what a design of motors' motions meets.
        free: of links and motors together, with motors that nothing drives: what a torque excites.

    """

    driven: NDArray
    free: NDArray


def resonance(
    robot: RobotModel,
    stiffness: ArrayLike,
    motor_inertia: ArrayLike,
    q: ArrayLike,
    joints: Collection[str] | None = None,
) -> Resonance:
    """Natural frequencies in a pose.

    Args:
        robot: the arm; its nominal parameters give the inertia.
        stiffness: of the springs between motors and links, one value or (n,), N m/rad or N/m.
        motor_inertia: seen from the links, one value or (n,), kg m² or kg.
        q: (n,) rad or m.
        joints: those that move; the others are taken as rigid. None: all.

    Raises:
        TrajectoryError: a stiffness or motor inertia that is not positive; links without inertia; an unknown joint.

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
    names = robot.joint_names if joints is None else tuple(joints)
    unknown = sorted(set(names) - set(robot.joint_names))
    if unknown or not names:
        raise TrajectoryError(f"resonance: joints {', '.join(names)}; expected some of {', '.join(robot.joint_names)}")
    moving = [robot.joint_names.index(name) for name in names]
    springs, motors, links = springs[moving], motors[moving], ((links + links.T) / 2)[np.ix_(moving, moving)]
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


def proposed_base_frequency(driven: ArrayLike, harmonics: int, rate: float = np.inf) -> float:
    """Base frequency, Hz, of a motion of motors whose harmonics lie on both sides of the resonances.

    Far below its resonance a link moves as its motor does, and nothing but the sums of their inertias and of their
    frictions can be told; far above it the link stands still. Harmonics below, near and above it have ratios of the
    two motions that differ most. The highest harmonic is therefore put a quarter above the highest resonance, and the
    lowest ones are left to the wide and slow motion that gravity needs: a base frequency at the resonance itself, as
    the paper's advice may be read, leaves the motion hardly any width within its velocity limits.

    Args:
        driven: resonances of the joints that move, with driven motors, Hz.
        harmonics: of the motion.
        rate: of the controller's commands, Hz. Where it keeps all harmonics far below the resonance, no motion of the
            motors tells motors and links apart.

    Raises:
        TrajectoryError: a number that is not positive.

    """
    frequencies = np.atleast_1d(np.asarray(driven, dtype=float))
    if not (frequencies.size and (frequencies > 0).all() and harmonics > 0 and rate > 0):
        raise TrajectoryError("base frequency: resonances, harmonics and rate must be positive")
    reach = min(PAST * frequencies.max(), rate / COMMANDS_PER_CYCLE)
    return float(min(reach / harmonics, BELOW * frequencies.min()))
