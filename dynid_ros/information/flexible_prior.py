"""What is known of flexible joints before they are identified."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import per_joint


@dataclass(frozen=True, eq=False)
class FlexibleJoints:
    """Prior model of n flexible joints; each one value for all or (n,), of sliding joints N/m, kg and so on.

    Attributes:
        stiffness: k, of the spring between motor and link, N m/rad.
        motor_inertia: J, seen from the link, kg m².
        motor_viscous: b, of the motor's side, N m s/rad.
        coulomb: c, of the link's side, N m.
        viscous: v, of the link's side, N m s/rad. It is all that keeps a resonance finite, Coulomb friction aside.

    """

    stiffness: ArrayLike
    motor_inertia: ArrayLike = 0.0
    motor_viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    viscous: ArrayLike = 0.0

    def of(self, robot: RobotModel) -> tuple[NDArray, ...]:
        """The five, (n,) each.

        Raises:
            TrajectoryError: another number of values, a stiffness that is not positive, or others below zero.

        """
        values = []
        for what in ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous"):
            value = per_joint(getattr(self, what), robot.joint_names, what)
            for name, number in zip(robot.joint_names, value, strict=True):
                if not (np.isfinite(number) and (number > 0 or (number == 0 and what != "stiffness"))):
                    least = "positive" if what == "stiffness" else "zero or more"
                    raise TrajectoryError(f"{what} of joint '{name}' is {number:g}; it must be finite and {least}")
            values.append(value)
        return tuple(values)
