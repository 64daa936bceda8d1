"""Parameters of an arm with flexible joints: their order, names and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.spring import Spring

LINK_TERMS = ("coulomb", "viscous")
MOTOR_TERMS = ("motor_inertia", "motor_viscous", "motor_coulomb", "torque_offset")
"""Each linear in the motor's torque: its acceleration, velocity, direction, and one."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Order of the parameters: links, friction behind the springs, springs, motors.

    Attributes:
        robot: the arm.
        base: base parameters of the links alone.
        springs: law of each joint's spring.
        motor_terms: some of `MOTOR_TERMS`, in their order.

    """

    robot: RobotModel
    base: BaseParameters
    springs: Sequence[Spring]
    motor_terms: tuple[str, ...] = MOTOR_TERMS

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(p,) such as "Izz1", "coulomb joint_1", "stiffness joint_1", "motor_inertia joint_1"."""
        joints = self.robot.joint_names
        return (
            *(self.base.names[column] for column in self.base.columns),
            *(f"{term} {joint}" for term in LINK_TERMS for joint in joints),
            *(f"{name} {joint}" for joint, law in zip(joints, self.springs, strict=True) for name in law.names),
            *(f"{term} {joint}" for term in self.motor_terms for joint in joints),
        )

    @property
    def n_links(self) -> int:
        """Number of base parameters of links."""
        return self.base.rank

    @property
    def n_response(self) -> int:
        """Number of parameters that the links' motion depends on: all but those of the motors, which come last."""
        n = self.robot.n_joints
        return self.n_links + len(LINK_TERMS) * n + sum(len(law.names) for law in self.springs)

    def index(self, term: str) -> NDArray:
        """(n,) where a term of every joint is; its first value for springs ("stiffness")."""
        wanted = [f"{term} {joint}" for joint in self.robot.joint_names]
        unknown = [name for name in wanted if name not in self.names]
        if unknown:
            raise ValueError(f"no parameter {', '.join(unknown)}; expected {', '.join(self.names)}")
        return np.array([self.names.index(name) for name in wanted])

    def inertia_regressor(self, poses: NDArray) -> NDArray:
        """(N, n, n, 10 n) in poses (N, n): times links' parameters, the inertia matrices of the links alone."""
        n = self.robot.n_joints
        q = np.repeat(poses, n, axis=0)
        still, each = np.zeros_like(q), np.tile(np.eye(n), (len(poses), 1))
        regressor = self.robot.torque_regressor(q, still, each) - self.robot.gravity_regressor(q)
        return regressor.reshape(len(poses), n, n, -1)

    def unpack(self, values: NDArray) -> JointParameters:
        """Parameters (p,) by what they are."""
        n, r = self.robot.n_joints, self.n_links
        springs, at = [], r + len(LINK_TERMS) * n
        for law in self.springs:
            springs.append(values[at : at + len(law.names)])
            at += len(law.names)
        motors = dict(zip(self.motor_terms, values[at:].reshape(-1, n), strict=True))
        return JointParameters(values[:r], values[r : r + n], values[r + n : r + 2 * n], self.springs, springs, motors)


@dataclass(frozen=True, eq=False)
class JointParameters:
    """Values of the parameters, in SI units as seen from the links.

    Attributes:
        links: (r,) base parameters.
        coulomb, viscous: (n,) friction behind the springs.
        laws: of the springs, one per joint.
        springs: their values, one array per joint.
        motors: (n,) by term.

    """

    links: NDArray
    coulomb: NDArray
    viscous: NDArray
    laws: Sequence[Spring]
    springs: Sequence[NDArray]
    motors: dict[str, NDArray]

    def spring_torque(self, deflection: NDArray) -> NDArray:
        """Torques (N, n) of the springs at deflections (N, n)."""
        return self._each("torque", deflection)

    def spring_tangent(self, deflection: NDArray) -> NDArray:
        """Tangent stiffness (N, n)."""
        return self._each("tangent", deflection)

    def spring_columns(self, deflection: NDArray) -> NDArray:
        """Derivatives (N, n, s) of the torques by all springs' values."""
        blocks = [law.columns(deflection[:, i], self.springs[i]) for i, law in enumerate(self.laws)]
        found = np.zeros((*deflection.shape, sum(block.shape[1] for block in blocks)))
        at = 0
        for i, block in enumerate(blocks):
            found[:, i, at : at + block.shape[1]] = block
            at += block.shape[1]
        return found

    def motor_torque(self, deflection: NDArray, terms: NDArray) -> NDArray:
        """Torques (N, n) of the motors at deflections (N, n), with their `motor_columns` (t, N, n)."""
        own = (column * values for column, values in zip(terms, self.motors.values(), strict=True))
        return sum(own, start=self.spring_torque(deflection))

    def _each(self, what: str, deflection: NDArray) -> NDArray:
        return np.column_stack(
            [getattr(law, what)(deflection[:, i], self.springs[i]) for i, law in enumerate(self.laws)]
        )


def motor_columns(velocity: NDArray, acceleration: NDArray, direction: NDArray, terms: Sequence[str]) -> NDArray:
    """What each term of the motors adds to their torques, (t, N, n)."""
    values = (acceleration, velocity, direction, np.ones_like(velocity))
    by_term = dict(zip(MOTOR_TERMS, values, strict=True))
    return np.stack([by_term[term] for term in terms])
