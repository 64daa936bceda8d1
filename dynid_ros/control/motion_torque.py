"""Torque of inertia, Coriolis effects and friction of an identified arm, for one sample of a planned motion."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identified.links import LinkModel
from dynid_ros.model.dynamics import inverse_dynamics_function
from dynid_ros.model.friction import FrictionModel, OneSampleFriction
from dynid_ros.model.friction_terms import acts_at_standstill, term_family

PLANNED_SMOOTHING = 2e-3
"""Speed at which the direction of a planned motion is three quarters of its sign, rad/s (m/s); plans have no noise."""


class MotionTorque:
    """Function from a planned motion to its torque without gravity, with the load that the arm carries.

    Friction follows the planned velocity: a memory of earlier displacements would follow the measured motion. Offsets
    and terms of the joint's position belong to gravity.
    """

    def __init__(self, model: LinkModel) -> None:
        robot = model.robot
        n = robot.n_joints
        joints = [
            replace(joint, sliding_length=0.0, dead_zone=0.0, smoothing=joint.smoothing or PLANNED_SMOOTHING)
            for joint in model.joints
        ]
        terms = OneSampleFriction(FrictionModel(joints, model.friction.coupled), n)
        moves = np.array(
            [not (acts_at_standstill(term) or term_family(term) == "offset") for term, _ in model.friction.keys(n)]
        )
        weights = terms.places @ np.where(moves, model.coefficients, 0.0) if moves.size else np.zeros((0, n))
        self._friction = [(int(k), int(i), float(weights[k, i])) for k, i in np.argwhere(weights)]
        self._terms = terms.evaluate
        self._links, self._lumping = inverse_dynamics_function(robot.chain, (False,) * 3, one_sample=True)
        self._parameters = model.parameters
        self._bodies: list[float] = (self._lumping @ self._parameters).tolist()

    def carrying(self, parameters: NDArray | float) -> MotionTorque:
        """Return a copy with a load, whose inertial parameters (10 m,) are added to those of the links."""
        loaded = copy(self)
        loaded._bodies = (self._lumping @ (self._parameters + parameters)).tolist()
        return loaded

    def __call__(
        self, q: Sequence[float], qd: Sequence[float], qdd: Sequence[float], gravity: Sequence[float]
    ) -> list[float]:
        """Return the torque (n,), N m (N).

        Args:
            q: (n,) positions, rad (m).
            qd: (n,) velocities, rad/s (m/s).
            qdd: (n,) accelerations, rad/s² (m/s²).
            gravity: (n,) gravity torque, which loads the gears, N m (N).
        """
        torque = list(self._links(q, qd, qdd, (0.0, 0.0, 0.0), self._bodies))
        load = [weight + inertial for weight, inertial in zip(gravity, torque, strict=True)]
        values = self._terms(q, qd, qdd, (), load)
        for k, i, weight in self._friction:
            torque[i] += weight * values[k]
        return torque
