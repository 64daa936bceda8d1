"""Whether another gravity model, or another load, can be meant: how far its torque is from that of the one before."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.control.gravity_feedforward import LoadedGravity
from dynid_ros.errors import ControlError
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK

POSES = 2000
"""Poses within the joints' limits, at random, in which torques are compared."""
FELT = 0.05
"""Part of a joint's effort limit from which on the URDF's gravity torque has a sign that a model must have, too."""


class ModelChange:
    """Compares gravity torques in all poses.

    Args:
        model: of the arm, whose robot has the URDF's masses and effort limits.
        torque: (n,) limits, N m (N), where the URDF has none.
        largest: part of them by which a torque may differ, or change, in any pose; inf: any.

    Raises:
        ControlError: `largest` is no such part.
    """

    def __init__(self, model: GravityModel, torque: ArrayLike, largest: float) -> None:
        if not largest > 0.0:
            raise ControlError(f"max_model_change is {largest}; expected a part of the effort limits above 0, or .inf")
        robot = model.robot
        self._names = robot.joint_names
        effort = np.asarray(robot.limits.effort, dtype=float)
        self._effort = np.where(np.isfinite(effort) & (effort > 0.0), effort, np.asarray(torque, dtype=float))
        self._largest = largest
        lower, upper = (np.asarray(bound, dtype=float) for bound in (robot.limits.lower, robot.limits.upper))
        turns = ~(np.isfinite(lower) & np.isfinite(upper))
        poses = np.random.default_rng(0).uniform(
            np.where(turns, -math.pi, lower), np.where(turns, math.pi, upper), (POSES, robot.n_joints)
        )
        self._matrix = model.regressor(poses)
        mass = robot.parameters[::PARAMETERS_PER_LINK]
        self._described = np.cumsum(mass[::-1])[::-1] > 0.0
        self._urdf = model.project(robot.parameters)

    def check_arm(self, gravity: LoadedGravity) -> None:
        """Hold the arm, without its load, against the URDF, where that has masses.

        Raises:
            ControlError: it is too far off, or a joint's torque has the other sign.
        """
        if math.isinf(self._largest):
            return
        expected = np.where(self._described, self._torque(self._urdf), 0.0)
        torque = self._torque(gravity.arm_moments)
        agree = np.sum(expected * torque, axis=0) >= 0.0
        felt = np.abs(expected).max(axis=0) > FELT * self._effort
        for name in (name for name, wrong in zip(self._names, felt & ~agree, strict=True) if wrong):
            raise ControlError(
                f"the gravity torque of joint '{name}' has the other sign than by the URDF; check the sign of its "
                "effort and identify again"
            )
        self._check(
            np.abs(torque - expected).max(axis=0),
            np.where(self._described, self._largest, max(self._largest, 1.0)),
            "differs from the URDF's",
            "check model and URDF, or raise max_model_change",
        )

    def check_load(self, gravity: LoadedGravity) -> None:
        """Look at the load alone.

        Raises:
            ControlError: no joint could hold it.
        """
        if math.isinf(self._largest):
            return
        load = np.abs(self._torque(gravity.moments - gravity.arm_moments)).max(axis=0)
        self._check(load, max(self._largest, 1.0), "changes with the load", "check mass and centre")

    def check_change(self, before: "ModelChange", in_force: LoadedGravity, gravity: LoadedGravity) -> None:
        """Compare with the torque in force, to which `before` belongs, and by which the arm is held.

        Raises:
            ControlError: the step is too large.
        """
        self._check(
            np.abs(self._torque(gravity.moments) - before._torque(in_force.moments)).max(axis=0),
            self._largest,
            "changes",
            "disable and enable, or raise max_model_change",
        )

    def _torque(self, moments: NDArray) -> NDArray:
        """(N, n) in all poses."""
        return self._matrix @ moments

    def _check(self, largest: NDArray, allowed: ArrayLike, what: str, otherwise: str) -> None:
        part = largest / self._effort
        excess = part / np.asarray(allowed)
        i = int(np.argmax(excess))
        if excess[i] > 1.0:
            bound = float(np.broadcast_to(allowed, part.shape)[i])
            raise ControlError(
                f"the gravity torque of joint '{self._names[i]}' {what} by up to {largest[i]:.3g} N m (N), "
                f"{part[i]:.2g} of its effort limit; at most {bound:.2g} is taken: {otherwise}"
            )
