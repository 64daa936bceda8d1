"""What the motors must overcome before the links move: friction and the inertia of the rotors."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
from numpy.typing import ArrayLike

from dynid_ros.simulation.per_joint import per_joint
from dynid_ros.simulation.physics import derive_constants


@dataclass(frozen=True)
class Drives:
    """Friction and rotor inertia of n joints, seen at the joint; each one number for all joints or (n,).

    Attributes:
        coulomb: dry friction, N m; also the largest torque that holds the joint at rest. None: as in the URDF.
        viscous: damping, N m s/rad. None: as in the URDF's `<dynamics>`.
        rotor_inertia: kg m², gear ratio squared times that of the rotor. The servo is as stiff as inertia allows:
            on a light joint with much friction only a rotor, as every real drive has one, makes it exact.

    """

    coulomb: ArrayLike | None = None
    viscous: ArrayLike | None = None
    rotor_inertia: ArrayLike = 0.0

    def apply(self, model: mujoco.MjModel) -> Drives:
        """Put the drives into `model` and return them as (n,) arrays.

        Raises:
            DynidError: the wrong number of values, or one that is negative or not finite.

        """
        urdf = {"coulomb": model.dof_frictionloss, "viscous": model.dof_damping}
        values = {}
        for field in ("coulomb", "viscous", "rotor_inertia"):
            given = getattr(self, field)
            values[field] = per_joint(field, urdf[field] if given is None else given, model.nv, minimum=0.0)
        model.dof_frictionloss[:] = values["coulomb"]
        model.dof_damping[:] = values["viscous"]
        model.dof_armature[:] = values["rotor_inertia"]
        derive_constants(model)
        return Drives(**values)
