"""The springs of flexible joints, between motor and link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.simulation.per_joint import per_joint

LARGEST_STEP = 0.5
"""Timestep times the natural frequency of motor and link on their spring; above 2 the integration diverges."""
ITERATIONS = 50


@dataclass(frozen=True)
class Springs:
    """Flexibility of n joints, seen from the link (Spong 1987); each one number for all joints or (n,).

    The spring passes k e + k3 e^3 on, e being what the deflection d = q_m - q exceeds a play of -a to +a, and a little
    damping times the rate of d. The friction of `Drives` is then the link's, their rotor inertia the motor's.

    Attributes:
        stiffness: k, N m/rad.
        cubic: k3, N m/rad^3.
        dead_zone: half the play a, rad.
        damping: in parallel to the spring, N m s/rad.
        motor_viscous: b, friction on the motor's side, N m s/rad.

    """

    stiffness: np.ndarray | float
    cubic: np.ndarray | float = 0.0
    dead_zone: np.ndarray | float = 0.0
    damping: np.ndarray | float = 0.0
    motor_viscous: np.ndarray | float = 0.0

    def of(self, n_joints: int) -> Springs:
        """The same as (n,) arrays.

        Raises:
            DynidError: the wrong number of values, one that is negative or not finite, or a stiffness of 0.

        """
        values = {field: per_joint(field, getattr(self, field), n_joints, minimum=0.0) for field in vars(self)}
        if not np.all(values["stiffness"] > 0.0):
            raise DynidError(
                f"stiffness is {values['stiffness'].tolist()} N m/rad; expected more than 0 for each joint"
            )
        return Springs(**values)

    def torque(self, deflection: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Torque (n,) from motor to link, N m, at a deflection in rad and its rate in rad/s, (n,) each."""
        excess = np.sign(deflection) * np.maximum(np.abs(deflection) - self.dead_zone, 0.0)
        return self.stiffness * excess + self.cubic * excess**3 + self.damping * rate

    def deflection(self, torque: np.ndarray) -> np.ndarray:
        """Deflection (n,) in rad at which the spring passes on `torque` at rest; without torque, the middle."""
        size = np.abs(torque)
        excess = size / self.stiffness
        for _ in range(ITERATIONS):  # Newton from above on a convex law
            excess -= (self.stiffness * excess + self.cubic * excess**3 - size) / (
                self.stiffness + 3 * self.cubic * excess**2
            )
        return np.sign(torque) * (excess + self.dead_zone)

    def check_timestep(
        self, joint_names: Sequence[str], link_inertia: np.ndarray, motor_inertia: np.ndarray, timestep: float
    ) -> None:
        """Refuse springs between inertias (n,), kg m^2, that a timestep (s) does not resolve.

        Raises:
            DynidError: a motor without inertia, or a timestep that is too long; says for which joint.

        """
        for joint in np.flatnonzero(~(motor_inertia > 0.0)).tolist():
            raise DynidError(
                f"joint '{joint_names[joint]}' is flexible, its motor has no inertia; expected a rotor_inertia above 0"
            )
        frequency = np.sqrt(self.stiffness * (1.0 / link_inertia + 1.0 / motor_inertia))
        for joint in np.flatnonzero(timestep * frequency > LARGEST_STEP).tolist():
            raise DynidError(
                f"joint '{joint_names[joint]}' swings on its spring at {frequency[joint] / (2 * np.pi):.0f} Hz; a "
                f"timestep of {timestep:g} s is too long for that: take at most {LARGEST_STEP / frequency[joint]:.2g} s"
            )
