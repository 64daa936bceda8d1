"""Parameters of an arm with flexible joints: their order, names and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.rank import scaled_eigh
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.spring import Spring

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.output_error import Solution
    from dynid_ros.identification.flexible.runs import Run

LINK_TERMS = ("coulomb", "viscous")
MOTOR_TERMS = ("motor_inertia", "motor_viscous", "motor_coulomb", "torque_offset")
"""Terms of a motor's torque, linear in its acceleration, velocity, direction, and one."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Order of the parameters: links, friction behind the springs, springs, motors.

    Attributes:
        base: Base parameters of the links alone.
        springs: Law of each joint's spring.
        motor_terms: Some of `MOTOR_TERMS` in their order.
    """

    robot: RobotModel
    base: BaseParameters
    springs: Sequence[Spring]
    motor_terms: tuple[str, ...] = MOTOR_TERMS

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (p,) such as "Izz1", "coulomb joint_1", "stiffness joint_1", "motor_inertia joint_1"."""
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
        """Number of parameters that the links' motion depends on: all except those of the motors, which come last."""
        n = self.robot.n_joints
        return self.n_links + len(LINK_TERMS) * n + sum(len(law.names) for law in self.springs)

    def index(self, term: str) -> NDArray:
        """Return the places (n,) of a term of every joint; of a spring that of its first value ("stiffness")."""
        wanted = [f"{term} {joint}" for joint in self.robot.joint_names]
        unknown = [name for name in wanted if name not in self.names]
        if unknown:
            raise ValueError(f"no parameter {', '.join(unknown)}; expected {', '.join(self.names)}")
        return np.array([self.names.index(name) for name in wanted])

    def inertia_regressor(self, poses: NDArray) -> NDArray:
        """Return the regressor (N, n, n, 10 n) of the links' inertia matrices in poses (N, n)."""
        n = self.robot.n_joints
        q = np.repeat(poses, n, axis=0)
        still = np.zeros_like(q)
        each = np.tile(np.eye(n), (len(poses), 1))
        regressor = self.robot.torque_regressor(q, still, each) - self.robot.gravity_regressor(q)
        return regressor.reshape(len(poses), n, n, -1)

    def unpack(self, values: NDArray) -> JointParameters:
        """Return the parameters (p,) by their meaning."""
        n = self.robot.n_joints
        r = self.n_links
        springs = []
        at = r + len(LINK_TERMS) * n
        for law in self.springs:
            springs.append(values[at : at + len(law.names)])
            at += len(law.names)
        motors = dict(zip(self.motor_terms, values[at:].reshape(-1, n), strict=True))
        return JointParameters(values[:r], values[r : r + n], values[r + n : r + 2 * n], self.springs, springs, motors)


@dataclass(frozen=True, eq=False)
class JointParameters:
    """Values of the parameters, in SI units as seen from the links.

    Attributes:
        links: Base parameters (r,).
        coulomb, viscous: Friction behind the springs, (n,) each.
        laws: Laws of the springs, one per joint.
        springs: Values of the springs, one array per joint.
        motors: Values (n,) by term.
    """

    links: NDArray
    coulomb: NDArray
    viscous: NDArray
    laws: Sequence[Spring]
    springs: Sequence[NDArray]
    motors: dict[str, NDArray]

    def spring_torque(self, deflection: NDArray) -> NDArray:
        """Return the torques (N, n) of the springs at deflections (N, n)."""
        return self._each("torque", deflection)

    def spring_tangent(self, deflection: NDArray) -> NDArray:
        """Return the tangent stiffness (N, n) at deflections (N, n)."""
        return self._each("tangent", deflection)

    def spring_columns(self, deflection: NDArray) -> NDArray:
        """Return the derivatives (N, n, s) of the torques by the values of all springs."""
        blocks = [law.columns(deflection[:, i], self.springs[i]) for i, law in enumerate(self.laws)]
        found = np.zeros((*deflection.shape, sum(block.shape[1] for block in blocks)))
        at = 0
        for i, block in enumerate(blocks):
            found[:, i, at : at + block.shape[1]] = block
            at += block.shape[1]
        return found

    def motor_torque(self, deflection: NDArray, terms: NDArray) -> NDArray:
        """Return the torques (N, n) of the motors at deflections (N, n) with their `motor_columns` (t, N, n)."""
        own = (column * values for column, values in zip(terms, self.motors.values(), strict=True))
        return sum(own, start=self.spring_torque(deflection))

    def _each(self, what: str, deflection: NDArray) -> NDArray:
        return np.column_stack(
            [getattr(law, what)(deflection[:, i], self.springs[i]) for i, law in enumerate(self.laws)]
        )


def motor_columns(velocity: NDArray, acceleration: NDArray, direction: NDArray, terms: Sequence[str]) -> NDArray:
    """Return the columns (t, N, n) of the terms of the motors' torques."""
    values = (acceleration, velocity, direction, np.ones_like(velocity))
    by_term = dict(zip(MOTOR_TERMS, values, strict=True))
    return np.stack([by_term[term] for term in terms])


class Combination(NamedTuple):
    """Sum of parameters: expression, value and standard error."""

    expression: str
    value: float
    standard_error: float


# Sums of link and motor, which slow motion and stiff springs determine where the parts are undetermined.


RIGID_TERM_PARTS = {
    "rotor_inertia": ("motor_inertia",),
    "viscous": ("viscous", "motor_viscous"),
    "coulomb": ("coulomb", "motor_coulomb"),
    "offset": ("torque_offset",),
}
"""Terms of the flexible joint that make up each term of a rigid one."""


def rigid_sums(layout: Layout, solution: Solution) -> tuple[Combination, ...]:
    """Return those base parameters of the rigid arm that contain a motor term, as sums of the flexible arm's."""
    robot = layout.robot
    names = layout.names
    terms = {
        term for term, parts in RIGID_TERM_PARTS.items() if set(parts) & {*layout.motor_terms, "coulomb", "viscous"}
    }
    friction = FrictionModel(JointFriction(offset="offset" in terms, rotor_inertia="rotor_inertia" in terms))
    rigid = robot.base_parameters(friction)
    n_links = robot.parameters.size
    # Links add to a rigid arm's parameters as to a flexible one's: its own are combinations of the flexible one's.
    shares = np.linalg.lstsq(layout.base.combinations.T, rigid.combinations[:, :n_links].T, rcond=None)[0].T
    found = []
    for row, expression in enumerate(rigid.expressions):
        weights = np.zeros(len(names))
        weights[: layout.n_links] = shares[row]
        motors = False
        for column in np.flatnonzero(np.abs(rigid.combinations[row, n_links:]) > 1e-9):
            term, joint = rigid.names[n_links + column].split(" ", 1)
            for part in RIGID_TERM_PARTS[term]:
                name = f"{part} {joint}"
                if name in names:
                    weights[names.index(name)] += rigid.combinations[row, n_links + column]
                    motors |= part in layout.motor_terms
        involved = np.abs(weights) > 1e-9
        if motors and involved.sum() > 1:
            error = np.sqrt(_variance(weights, solution.information, involved))
            found.append(Combination(_words(expression, layout), float(weights @ solution.values), float(error)))
    return tuple(found)


def resonances(layout: Layout, solution: Solution, runs: Sequence[Run]) -> tuple[NDArray, NDArray]:
    """Return resonance frequencies (n,) of each joint with its motor held, Hz, and their standard errors."""
    n = layout.robot.n_joints
    r = layout.n_links
    pose = np.mean(np.concatenate([run.motor.position for run in runs]), axis=0)
    own = np.arange(n)
    rows = layout.base.reduce(layout.inertia_regressor(pose[None])[0])[own, own]
    inertia = rows @ solution.values[:r]
    at = layout.index("stiffness")
    stiffness = solution.values[at]
    found = np.full(n, np.nan)
    errors = np.full(n, np.nan)
    for i in range(n):
        if inertia[i] > 0 and stiffness[i] > 0:
            found[i] = np.sqrt(stiffness[i] / inertia[i]) / (2 * np.pi)
            gradient = np.zeros(len(layout.names))
            gradient[:r] = -found[i] / 2 * rows[i] / inertia[i]
            gradient[at[i]] = found[i] / 2 / stiffness[i]
            errors[i] = np.sqrt(_variance(gradient, solution.information, gradient != 0))
    return found, errors


def _variance(weights: NDArray, information: NDArray, involved: NDArray) -> float:
    """Return the variance of a combination of parameters; infinite where the combination is undetermined."""
    if (np.diagonal(information)[involved] == 0).any():
        return np.inf
    eigenvalues, vectors, scale = scaled_eigh(information)
    along = vectors.T @ (weights / scale)
    good = eigenvalues > 1e-12 * eigenvalues[-1]
    if (along[~good] ** 2).sum() > 1e-8 * (along**2).sum():
        return np.inf
    return float((along[good] ** 2 / eigenvalues[good]).sum())


def _words(expression: str, layout: Layout) -> str:
    """Return an expression with a rigid joint's terms replaced by their parts."""
    for term, parts in RIGID_TERM_PARTS.items():
        for joint in layout.robot.joint_names:
            present = [f"{part} {joint}" for part in parts if f"{part} {joint}" in layout.names]
            expression = expression.replace(f"{term} {joint}", " + ".join(present))
    return expression
