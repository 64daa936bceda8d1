"""What a rigid arm shows too: sums of link and motor, decided where slow motion or stiff springs hide the parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.flexible.combination import Combination
from dynid_ros.identification.flexible.joint_parameters import Layout
from dynid_ros.identification.flexible.output_error import Solution
from dynid_ros.identification.flexible.run import Run
from dynid_ros.model.friction import FrictionModel, JointFriction

PARTS = {
    "rotor_inertia": ("motor_inertia",),
    "viscous": ("viscous", "motor_viscous"),
    "coulomb": ("coulomb", "motor_coulomb"),
    "offset": ("torque_offset",),
}
"""What each term of a rigid joint is made of."""


def rigid_sums(layout: Layout, solution: Solution) -> tuple[Combination, ...]:
    """Base parameters of the rigid arm that hold a motor's part, by those of the flexible one."""
    robot, names = layout.robot, layout.names
    terms = {term for term, parts in PARTS.items() if set(parts) & {*layout.motor_terms, "coulomb", "viscous"}}
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
            for part in PARTS[term]:
                name = f"{part} {joint}"
                if name in names:
                    weights[names.index(name)] += rigid.combinations[row, n_links + column]
                    motors |= part in layout.motor_terms
        told = np.abs(weights) > 1e-9
        if motors and told.sum() > 1:
            error = np.sqrt(_variance(weights, solution.information, told))
            found.append(Combination(_words(expression, layout), float(weights @ solution.values), float(error)))
    return tuple(found)


def resonances(layout: Layout, solution: Solution, runs: Sequence[Run]) -> tuple[NDArray, NDArray]:
    """Frequencies (n,) of each joint alone, Hz, its motor held, in the middle of the motion; and standard errors."""
    n, r = layout.robot.n_joints, layout.n_links
    pose = np.mean(np.concatenate([run.motor.position for run in runs]), axis=0)
    own = np.arange(n)
    rows = layout.base.reduce(layout.inertia_regressor(pose[None])[0])[own, own]
    inertia, at = rows @ solution.values[:r], layout.index("stiffness")
    stiffness = solution.values[at]
    found, errors = np.full(n, np.nan), np.full(n, np.nan)
    for i in range(n):
        if inertia[i] > 0 and stiffness[i] > 0:
            found[i] = np.sqrt(stiffness[i] / inertia[i]) / (2 * np.pi)
            gradient = np.zeros(len(layout.names))
            gradient[:r] = -found[i] / 2 * rows[i] / inertia[i]
            gradient[at[i]] = found[i] / 2 / stiffness[i]
            errors[i] = np.sqrt(_variance(gradient, solution.information, gradient != 0))
    return found, errors


def _variance(weights: NDArray, information: NDArray, told: NDArray) -> float:
    """Of a combination, though parts of it may not be decided: infinite if it is not either."""
    scale = np.sqrt(np.diagonal(information))
    if (scale[told] == 0).any():
        return np.inf
    scale = np.where(scale > 0, scale, 1.0)
    eigenvalues, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    along = vectors.T @ (weights / scale)
    good = eigenvalues > 1e-12 * eigenvalues[-1]
    if (along[~good] ** 2).sum() > 1e-8 * (along**2).sum():
        return np.inf
    return float((along[good] ** 2 / eigenvalues[good]).sum())


def _words(expression: str, layout: Layout) -> str:
    """An expression with a rigid joint's terms by their parts."""
    for term, parts in PARTS.items():
        for joint in layout.robot.joint_names:
            present = [f"{part} {joint}" for part in parts if f"{part} {joint}" in layout.names]
            expression = expression.replace(f"{term} {joint}", " + ".join(present))
    return expression
