"""How well a motion tells the parameters of links and joints apart."""

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import FrictionModel, JointFriction

DRIVE = JointFriction(offset=True, rotor_inertia=True)
"""What the torque of a joint holds beside that of the links."""


class Conditioning:
    """Condition number of the regressor of all base parameters, friction and drives, its columns brought to unit norm.

    With columns of unit norm it does not depend on units, and is close to the least that scaling can reach (van der
    Sluis 1969). It bounds how much errors in the torques grow in the parameters (Gautier and Khalil 1992).

    Attributes:
        base: the base parameters.

    """

    def __init__(self, robot: RobotModel, drive: JointFriction = DRIVE) -> None:
        self._robot = robot
        self._friction = FrictionModel(drive)
        self.base = BaseParameters.of_robot(robot, self._friction)

    def of(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> float:
        """For a motion (N, n) each; infinite where it leaves a parameter open."""
        links = self._robot.torque_regressor(q, qd, qdd)
        matrix = self.base.reduce(np.concatenate([links, self._friction.regressor(qd, qdd)], axis=-1))
        matrix = matrix.reshape(-1, self.base.rank)
        norms = np.linalg.norm(matrix, axis=0)
        if not norms.all():
            return np.inf
        return float(np.linalg.cond(matrix / norms))
