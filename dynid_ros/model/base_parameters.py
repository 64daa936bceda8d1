"""Base parameters: the combinations of parameters that torques can determine.

Most of the ten parameters of a link have no effect on any torque, or the same effect as a combination of others
(Atkeson, An and Hollerbach 1986, section 4.2.1). The rank and the combinations are found numerically, by an orthogonal
decomposition of the regressor (Gautier 1991, "Numerical calculation of the base inertial parameters of robots").
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.estimation.rank import NEGLIGIBLE_COLUMN
from dynid_ros.model.arrays import blocks, joint_samples, require_finite
from dynid_ros.model.chain import ArmModel
from dynid_ros.model.friction import FrictionModel
from dynid_ros.model.friction_terms import TERM_KINDS

LINK_PARAMETERS: tuple[str, ...] = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
TORQUE_UNIT = "N m"
UNITS = {family: kind.unit for family, kind in TERM_KINDS.items()}
UNITS |= {"I": "kg m²", "mc": "kg m", "m": "kg", "n_": "kg m", "mass": "kg", "center": "m", "inertia": "kg m²"}
UNITS |= {"motor_inertia": "kg m²", "motor_viscous": "N m s/rad", "stiffness": "N m/rad", "cubic": "N m/rad³"}
UNITS |= {"dead_zone": "rad", "gain": ""}
"""Units for revolute joints, by the kind of a link parameter or by term; all other terms are torques."""


def parameter_names(robot: ArmModel, friction: FrictionModel | None = None) -> tuple[str, ...]:
    """Return the names of an arm's parameters, m1 ... Izz1, m2 ... (links from 1 on), then those of its friction."""
    links = [f"{name}{i}" for i in range(1, robot.n_links + 1) for name in LINK_PARAMETERS]
    return (*links, *(friction.names(robot) if friction else ()))


def describe_parameters(robot: ArmModel, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns "of" (link or joint) and "unit" of parameters, friction among them."""
    owners = []
    units = []
    for name in names:
        term, _, owner = name.partition(" ")
        link = re.fullmatch(r"(m|mc|I)[xyz]{0,2}(\d*)", term)
        if link:
            owner = robot.link_names[int(link[2]) - 1] if link[2] else owner
            unit = UNITS[link[1]]
        else:
            term = re.sub(r"^coupling_|_(positive|negative)$", "", term)
            unit = UNITS.get("n_" if term.startswith("n_") else term, TORQUE_UNIT)
            unit = prismatic_unit(unit) if _is_prismatic(robot, owner) else unit
        owners.append(owner)
        units.append(unit)
    return {"of": owners, "unit": units}


def prismatic_unit(unit: str) -> str:
    """Return the unit that a quantity of a revolute joint has for a prismatic one."""
    return {"kg m²": "kg", "rad/(N m)": "m/N"}.get(unit, unit.replace("N m", "N").replace("rad", "m"))


def _is_prismatic(robot: ArmModel, owner: str) -> bool:
    """Return whether a joint, or the first joint of a coupled pair, is prismatic."""
    joints = zip(robot.joint_names, robot.chain.prismatic, strict=True)
    return any(prismatic for joint, prismatic in joints if owner == joint or owner.startswith(f"{joint} "))


class Estimated(Protocol):
    """Result that has standard errors (k,) and confidence intervals (k, 2)."""

    @property
    def standard_errors(self) -> NDArray: ...  # noqa: D102

    def confidence_intervals(self) -> NDArray: ...  # noqa: D102


def parameter_table(robot: ArmModel, names: Sequence[str], values: NDArray, result: Estimated) -> dict[str, Sequence]:
    """Return the columns of a table of estimates (k,)."""
    low, high = result.confidence_intervals().T
    numbers = {"value": values, "std": result.standard_errors, "low": low, "high": high}
    columns = {key: array.tolist() for key, array in numbers.items()}
    return {"parameter": names, **describe_parameters(robot, names), **columns}


DEPENDENCE_TOLERANCE = 1e-4
"""Largest fraction of its norm that a dependent column keeps after projection on the columns before it.

On random motions structure leaves less than 1e-13, what torques can determine more than 0.1, and right angles written
as 1.5708 some 1e-5, which no sensor distinguishes from zero.
"""
ROUNDING_FRACTION = 1e-14
REORTHOGONALIZE_BELOW = 0.7
"""Fraction of a vector left by a projection above which the rest is orthogonal to rounding."""
INTEGER_TOLERANCE = 1e-9
"""Distance of a coefficient to an integer that is rounding error."""

IDENTIFIABLE = "identifiable"
COMBINED = "combined"
UNIDENTIFIABLE = "unidentifiable"

LINK_PARAMETER_NAME = re.compile(rf"({'|'.join(LINK_PARAMETERS)})(\d+)")

N_RANDOM_SAMPLES = 100
MAX_RANDOM_ANGLE_RAD = np.pi
MAX_RANDOM_SLIDE_M = 1.0
MAX_RANDOM_VELOCITY = 3.0
"""Per s."""
MAX_RANDOM_ACCELERATION = 10.0
"""Per s²."""


class BaseParameters:
    """Independent columns of a regressor, and the contribution of each of the p parameters to them.

    Columns are taken in a fixed order, whatever the motion and its noise: links from base to tip, in each link the
    inertia from Izz to Ixx, then the mass moments, then the mass, and friction last. A column is dependent if the
    columns before it leave less than `tolerance` of its norm, and zero if its norm is below 1e-5 of the largest. So
    moments are kept and masses go into the links before, as in the reduced set of Atkeson, An and Hollerbach.

    Args:
        regressor: (..., p) of some motion, or a matrix with the same row space such as its triangular factor.
        names: names of the p parameters.
        tolerance: fraction of the norm of a column; above rounding errors, below the smallest effect that counts.
        least: (p,) norms below which the rest of a column counts as dependent, too. None: zero.

    Attributes:
        names: names of the p parameters.
        rank: number of independent columns.
        columns: (rank,) their indices, ascending.
        combinations: (rank, p); base parameters = combinations @ parameters, torques = reduced regressor @ them.
        expressions: (rank,) readable combinations, such as "Izz1 + Ixx2 + Ixx3 + 0.2025 m3". Coefficients are rounded
            to six digits; terms of less than 1e-5 of the effect of their parameter are left out.
        categories: (p,) "identifiable" (alone, apart from such terms), "combined" (with others) or "unidentifiable"
            (without effect).

    Raises:
        ModelError: the regressor is not finite, or has not one column per name.
    """

    def __init__(
        self,
        regressor: ArrayLike,
        names: Sequence[str],
        tolerance: float = DEPENDENCE_TOLERANCE,
        least: NDArray | None = None,
    ):
        self.names = tuple(names)
        matrix = np.asarray(regressor, dtype=float)
        self._check(matrix)
        matrix = matrix.reshape(-1, len(self.names))
        if len(matrix) > len(self.names):
            matrix = triangular_factor([matrix])
        if not np.isfinite(matrix).all():
            raise ModelError("base parameters: the regressor is not finite; leave out samples with NaN")
        norms = np.linalg.norm(matrix, axis=0)
        acts = norms > NEGLIGIBLE_COLUMN * norms.max(initial=0.0)
        divisors = np.where(acts, norms, 1.0)
        floor = np.zeros(len(norms)) if least is None else least / divisors
        self._norms = norms
        self._scaled = matrix / divisors
        self._order = [column for column in _preferred_order(self.names) if acts[column]]
        independent = _independent_columns(self._scaled, self._order, np.maximum(tolerance, floor))
        self.columns = np.array(sorted(independent), dtype=int)
        self.rank = len(self.columns)

    @cached_property
    def combinations(self) -> np.ndarray:  # noqa: D102 - see the class, as those below
        combinations = self._combination_weights * self._norms / self._norms[self.columns, None]
        rounded = np.rint(combinations)
        return np.where(np.abs(combinations - rounded) < INTEGER_TOLERANCE, rounded, combinations) + 0.0  # no -0.0

    @cached_property
    def expressions(self) -> tuple[str, ...]:  # noqa: D102
        acts = np.abs(self._combination_weights) > NEGLIGIBLE_COLUMN
        return tuple(self._expression(row, [i for i in self._order if acts[row, i]]) for row in range(self.rank))

    @cached_property
    def categories(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(self._categories(np.abs(self._combination_weights) > NEGLIGIBLE_COLUMN))

    @classmethod
    def of_robot(
        cls,
        robot: ArmModel,
        friction: FrictionModel | None = None,
        motion: Sequence[ArrayLike] | None = None,
        tolerance: float = DEPENDENCE_TOLERANCE,
    ) -> BaseParameters:
        """Return the base parameters of an arm and its friction, see also `RobotModel.structure`.

        Args:
            robot: the arm.
            friction: friction of its joints; None: none.
            motion: q, qd and qdd, each (N, n); None: a random motion within limits, which excites all that any motion
                can excite.
            tolerance: see the class.

        Raises:
            ModelError: a motion of another shape or not finite; friction of another number of joints.
        """
        motion = random_motion(robot) if motion is None else motion
        factor = triangular_factor(regressor_blocks(robot.structure, friction, motion))
        return cls(factor, parameter_names(robot, friction), tolerance)

    def reduce(self, regressor: np.ndarray) -> np.ndarray:
        """Return the independent columns (..., rank) of a regressor (..., p)."""
        self._check(regressor)
        return np.take(regressor, self.columns, axis=-1)

    def project(self, parameters: ArrayLike) -> np.ndarray:
        """Return the base parameters (..., rank) of parameters (..., p)."""
        parameters = np.asarray(parameters, dtype=float)
        self._check(parameters)
        return parameters @ self.combinations.T

    def _check(self, array: np.ndarray) -> None:
        if array.ndim == 0 or array.shape[-1] != len(self.names):
            raise ModelError(
                f"base parameters: shape {array.shape}; expected (..., {len(self.names)}), one per parameter"
            )

    @cached_property
    def _combination_weights(self) -> np.ndarray:
        """Components (rank, p) of each column of unit norm along the independent columns."""
        weights = np.zeros((self.rank, len(self.names)))
        if self.rank:
            acting = sorted(self._order)
            independent = self._scaled[:, self.columns]
            columns = self._scaled[:, acting]
            solution, _, _, singular_values = np.linalg.lstsq(independent, columns, rcond=None)
            # The part of a column outside the span changes its weights by up to this much; smaller weights are rounding
            # errors.
            residual = np.linalg.norm(columns - independent @ solution, axis=0)
            condition_number = singular_values[0] / singular_values[-1]
            solution[np.abs(solution) < condition_number * (residual + ROUNDING_FRACTION)] = 0.0
            weights[:, acting] = solution
            weights[:, self.columns] = np.eye(self.rank)
        return weights

    def _expression(self, row: int, columns: Sequence[int]) -> str:
        terms = [self.names[self.columns[row]]]
        for column in columns:
            if column != self.columns[row]:
                coefficient = self.combinations[row, column]
                size = f"{abs(coefficient):.6g}"
                factor = [] if size == "1" else [size]
                terms += ["-" if coefficient < 0 else "+", *factor, self.names[column]]
        return " ".join(terms)

    def _categories(self, acts: np.ndarray) -> Iterator[str]:
        alone = set(self.columns[np.count_nonzero(acts, axis=1) == 1])
        for column, has_effect in enumerate(np.any(acts, axis=0)):
            yield IDENTIFIABLE if column in alone else COMBINED if has_effect else UNIDENTIFIABLE


def regressor_blocks(
    robot: ArmModel, friction: FrictionModel | None, motion: Sequence[ArrayLike]
) -> Iterator[np.ndarray]:
    """Yield the regressor (N, n, p) of q, qd and qdd, each (N, n), a block of samples at a time; friction comes last.

    Raises:
        ModelError: arrays of another shape, or a sample that is not finite.
    """
    names = ("q", "qd", "qdd")
    samples = joint_samples(robot.joint_names, **dict(zip(names, motion, strict=True)))
    for block in blocks(len(samples[0])):
        part = [array[block] for array in samples]
        require_finite(robot.joint_names, ModelError, block.start, **dict(zip(names, part, strict=True)))
        rigid = robot.torque_regressor(*part)
        if friction is None:
            yield rigid
        else:
            yield np.concatenate([rigid, friction.of_motion(robot, part[0], part[1], part[2])], axis=-1)


def random_motion(robot: ArmModel, n_samples: int = N_RANDOM_SAMPLES, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return independent random positions, velocities and accelerations, each (N, n), within the robot's limits.

    Low speeds are more frequent than high ones, so that a Stribeck term or a dead zone shows, too. Limits that leave no
    motion, as CAD programs write them, are ignored.
    """
    rng = np.random.default_rng(seed)
    shape = (n_samples, robot.n_joints)
    limits = robot.limits
    reach = np.where(robot.chain.prismatic, MAX_RANDOM_SLIDE_M, MAX_RANDOM_ANGLE_RAD)
    middle = np.clip(0.0, limits.lower, limits.upper)
    has_range = limits.upper > limits.lower
    lower = np.where(has_range, np.maximum(limits.lower, middle - reach), -reach)
    upper = np.where(has_range, np.minimum(limits.upper, middle + reach), reach)
    speed = np.where(limits.velocity > 0, np.minimum(limits.velocity, MAX_RANDOM_VELOCITY), MAX_RANDOM_VELOCITY)
    qd = speed * rng.uniform(-1.0, 1.0, shape) ** 3
    return rng.uniform(lower, upper, shape), qd, MAX_RANDOM_ACCELERATION * rng.uniform(-1.0, 1.0, shape)


@lru_cache(maxsize=8)
def _preferred_order(names: tuple[str, ...]) -> list[int]:
    """Return the columns by preference: each link backwards, then all others."""

    def key(column: int) -> tuple[float, int]:
        match = LINK_PARAMETER_NAME.fullmatch(names[column])
        return (int(match[2]), -LINK_PARAMETERS.index(match[1])) if match else (math.inf, column)

    return sorted(range(len(names)), key=key)


def _independent_columns(scaled: np.ndarray, order: Sequence[int], tolerance: np.ndarray) -> list[int]:
    """Return the columns, in the given order, that keep more than `tolerance` (p,) after projection on those before."""
    basis = np.empty((min(scaled.shape[0], len(order)), scaled.shape[0]))
    kept: list[int] = []
    for column in order:
        directions = basis[: len(kept)]
        rest = scaled[:, column]
        size = 1.0
        for _ in range(2):
            rest = rest - (directions @ rest) @ directions
            size_before = size
            size = math.sqrt(rest @ rest)
            # Rounding leaves parts along the basis, the more the more was removed; a second projection removes them.
            if size <= tolerance[column] or size > REORTHOGONALIZE_BELOW * size_before:
                break
        if size > tolerance[column] and len(kept) < len(basis):
            basis[len(kept)] = rest / size
            kept.append(column)
    return kept
