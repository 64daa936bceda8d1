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
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.estimation.rank import NEGLIGIBLE_COLUMN
from dynid_ros.model.arrays import blocks, joint_samples
from dynid_ros.model.friction import FrictionModel

if TYPE_CHECKING:
    from dynid_ros.model.robot import RobotModel

TOLERANCE = 1e-4
"""What the columns before may leave of a dependent one, of its norm.

On random motions structure leaves less than 1e-13, what torques can determine more than 0.1, and right angles written
as 1.5708 some 1e-5, which no sensor distinguishes from zero.
"""

ROUNDING = 1e-14
CLEAN = 0.7  # part of a vector that, left by a projection, is orthogonal to rounding
WHOLE = 1e-9  # distance to a whole number that is rounding error of a coefficient

IDENTIFIABLE, COMBINED, UNIDENTIFIABLE = "identifiable", "combined", "unidentifiable"

LINK_PARAMETERS: tuple[str, ...] = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")

LINK_PARAMETER = re.compile(rf"({'|'.join(LINK_PARAMETERS)})(\d+)")

RANDOM_SAMPLES = 100
RANDOM_POSITION, RANDOM_SLIDE = np.pi, 1.0  # rad and m to either side, at most
RANDOM_VELOCITY, RANDOM_ACCELERATION = 3.0, 10.0  # per s and per s^2, at most


class BaseParameters:
    """The independent columns of a regressor, and what the p parameters add to each of them.

    Columns are taken in a fixed order, whatever the motion and its noise: links from base to tip, in each link the
    inertia from Izz to Ixx, then the mass moments, then the mass, and friction last. A column that the ones before
    leave less than `tolerance` of is dependent; one of less than 1e-5 of the largest is zero. So moments are kept and
    masses go into the links before, as in the reduced set of Atkeson, An and Hollerbach.

    Args:
        regressor: (..., p) of some motion, or a matrix with the same row space such as its triangular factor.
        names: of the p parameters.
        tolerance: of the norm of a column; above rounding errors, below the smallest effect that counts.
        least: (p,) norms; a column that the ones before leave less than that of is dependent too. None: zero.

    Attributes:
        names: as given.
        rank: number of independent columns.
        columns: (rank,) their indices, ascending.
        combinations: (rank, p); base parameters = combinations @ parameters, torques = reduced regressor @ them.
        expressions: (rank,) the combinations to read, such as "Izz1 + Ixx2 + Ixx3 + 0.2025 m3"; coefficients are
            rounded to six digits, and terms of less than 1e-5 of the effect of their parameter left out.
        categories: (p,) "identifiable" (by itself, but for such terms), "combined" (with others) or "unidentifiable"
            (without effect).

    Raises:
        ModelError: the regressor is not finite, or has not one column per name.
    """

    def __init__(
        self,
        regressor: ArrayLike,
        names: Sequence[str],
        tolerance: float = TOLERANCE,
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
        moving = norms > NEGLIGIBLE_COLUMN * norms.max(initial=0.0)
        scaled = matrix / np.where(moving, norms, 1.0)
        order = [column for column in _preference(self.names) if moving[column]]
        floor = np.zeros(len(norms)) if least is None else least / np.where(moving, norms, 1.0)
        self.columns = np.array(sorted(_independent(scaled, order, np.maximum(tolerance, floor))), dtype=int)
        self.rank = len(self.columns)
        self._scaled, self._norms, self._order = scaled, norms, order

    @cached_property
    def combinations(self) -> np.ndarray:  # noqa: D102 - see the class, as those below
        combinations = self._shares * self._norms / self._norms[self.columns, None]
        whole = np.rint(combinations)
        return np.where(np.abs(combinations - whole) < WHOLE, whole, combinations) + 0.0  # no -0.0

    @cached_property
    def expressions(self) -> tuple[str, ...]:  # noqa: D102
        acts = np.abs(self._shares) > NEGLIGIBLE_COLUMN
        return tuple(self._expression(row, [i for i in self._order if acts[row, i]]) for row in range(self.rank))

    @cached_property
    def categories(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(self._categories(np.abs(self._shares) > NEGLIGIBLE_COLUMN))

    @classmethod
    def of_robot(
        cls,
        robot: RobotModel,
        friction: FrictionModel | None = None,
        motion: Sequence[ArrayLike] | None = None,
        tolerance: float = TOLERANCE,
    ) -> BaseParameters:
        """Base parameters of an arm and its friction, see also `RobotModel.structure`.

        Args:
            robot: the arm.
            friction: of its joints; None: none.
            motion: q, qd and qdd, each (N, n); None: a random motion within limits, which shows what any motion can.
            tolerance: as above.

        Raises:
            ModelError: a motion of another shape or not finite; friction of another number of joints.
        """
        motion = random_motion(robot) if motion is None else motion
        factor = triangular_factor(regressor_blocks(robot.structure, friction, motion))
        return cls(factor, parameter_names(robot, friction), tolerance)

    def reduce(self, regressor: np.ndarray) -> np.ndarray:
        """The independent columns (..., rank) of a regressor (..., p)."""
        self._check(regressor)
        return np.take(regressor, self.columns, axis=-1)

    def project(self, parameters: ArrayLike) -> np.ndarray:
        """Base parameters (..., rank) of parameters (..., p)."""
        parameters = np.asarray(parameters, dtype=float)
        self._check(parameters)
        return parameters @ self.combinations.T

    def _check(self, array: np.ndarray) -> None:
        if array.ndim == 0 or array.shape[-1] != len(self.names):
            raise ModelError(
                f"base parameters: shape {array.shape}; expected (..., {len(self.names)}), one per parameter"
            )

    @cached_property
    def _shares(self) -> np.ndarray:
        """Parts (rank, p) that each column of unit norm has along the independent ones."""
        shares = np.zeros((self.rank, len(self.names)))
        if self.rank:
            acting = sorted(self._order)
            base, moving = self._scaled[:, self.columns], self._scaled[:, acting]
            found, _, _, singular = np.linalg.lstsq(base, moving, rcond=None)
            # What the independent columns leave of another moves its shares by up to so much: smaller ones say nothing.
            rest = np.linalg.norm(moving - base @ found, axis=0)
            found[np.abs(found) < singular[0] / singular[-1] * (rest + ROUNDING)] = 0.0
            shares[:, acting] = found
            shares[:, self.columns] = np.eye(self.rank)
        return shares

    def _expression(self, row: int, columns: Sequence[int]) -> str:
        terms = [self.names[self.columns[row]]]
        for column in columns:
            if column != self.columns[row]:
                coefficient = self.combinations[row, column]
                size = f"{abs(coefficient):.6g}"
                terms += ["-" if coefficient < 0 else "+", *[size] * (size != "1"), self.names[column]]
        return " ".join(terms)

    def _categories(self, acts: np.ndarray) -> Iterator[str]:
        alone = set(self.columns[np.count_nonzero(acts, axis=1) == 1])
        for column, effect in enumerate(np.any(acts, axis=0)):
            yield IDENTIFIABLE if column in alone else COMBINED if effect else UNIDENTIFIABLE


def parameter_names(robot: RobotModel, friction: FrictionModel | None = None) -> tuple[str, ...]:
    """Names of the parameters of an arm, m1 ... Izz1, m2 ... (links counted from 1), then those of its friction."""
    links = [f"{name}{i}" for i in range(1, robot.n_links + 1) for name in LINK_PARAMETERS]
    return (*links, *(friction.names(robot) if friction else ()))


UNITS = {"I": "kg m²", "mc": "kg m", "m": "kg", "n_": "kg m", "mass": "kg", "center": "m", "gain": "", "load": ""}
UNITS |= {
    "inertia": "kg m²",
    "viscous": "N m s/rad",
    "rotor_inertia": "kg m²",
    "motor_inertia": "kg m²",
    "stiffness": "N m/rad",
}
UNITS |= {"motor_viscous": "N m s/rad", "spring": "N m/rad", "cubic": "N m/rad³", "dead_zone": "rad"}
TORQUE = "N m"


def described(robot: RobotModel, names: Sequence[str]) -> dict[str, list[str]]:
    """Of parameters, friction among them: "of", the link or joint, and "unit"."""
    owners, units = [], []
    for name in names:
        first, _, owner = name.partition(" ")
        link = re.fullmatch(r"(m|mc|I)[xyz]{0,2}(\d*)", first)
        if link:
            owner = robot.link_names[int(link[2]) - 1] if link[2] else owner
        term = re.sub(r"^coupling_|_(positive|negative)$", "", first)
        unit = UNITS.get(link[1] if link else "n_" if first.startswith("n_") else term, TORQUE)
        if not link and _slides(robot, owner):
            unit = prismatic_unit(unit)
        owners.append(owner)
        units.append(unit)
    return {"of": owners, "unit": units}


def prismatic_unit(unit: str) -> str:
    """Return the unit that a quantity of a revolute joint has for a prismatic one."""
    return {"kg m²": "kg", "rad/(N m)": "m/N"}.get(unit, unit.replace("N m", "N").replace("rad", "m"))


def _slides(robot: RobotModel, owner: str) -> bool:
    """Return whether a joint, or the first joint of a coupled pair, is prismatic."""
    joints = zip(robot.joint_names, robot.chain.prismatic, strict=True)
    return any(slides for joint, slides in joints if owner == joint or owner.startswith(f"{joint} "))


class Estimated(Protocol):
    """What knows how sure it is: errors (k,), and intervals (k, 2)."""

    @property
    def standard_errors(self) -> NDArray: ...  # noqa: D102

    def confidence_intervals(self) -> NDArray: ...  # noqa: D102


def parameter_table(robot: RobotModel, names: Sequence[str], values: NDArray, found: Estimated) -> dict[str, Sequence]:
    """Columns of a table of estimates (k,)."""
    low, high = found.confidence_intervals().T
    numbers = {"value": values, "std": found.standard_errors, "low": low, "high": high}
    return {"parameter": names, **described(robot, names), **{key: own.tolist() for key, own in numbers.items()}}


def regressor_blocks(
    robot: RobotModel, friction: FrictionModel | None, motion: Sequence[ArrayLike]
) -> Iterator[np.ndarray]:
    """The regressor (N, n, p) of q, qd and qdd, each (N, n), a block of samples at a time; friction's columns are last.

    Raises:
        ModelError: arrays of another shape, or a sample that is not finite.
    """
    names = ("q", "qd", "qdd")
    samples = joint_samples(robot.joint_names, **dict(zip(names, motion, strict=True)))
    for block in blocks(len(samples[0])):
        part = [array[block] for array in samples]
        for name, array in zip(names, part, strict=True):
            if not np.isfinite(array).all():
                row, joint = np.argwhere(~np.isfinite(array))[0]
                raise ModelError(
                    f"motion: {name} of {robot.joint_names[joint]} is {array[row, joint]} in sample "
                    f"{block.start + row}; leave such samples out"
                )
        rigid = robot.torque_regressor(*part)
        yield (
            rigid
            if friction is None
            else np.concatenate([rigid, friction.of_motion(robot, part[0], part[1], part[2])], axis=-1)
        )


def random_motion(robot: RobotModel, n_samples: int = RANDOM_SAMPLES, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Independent random positions, velocities and accelerations, each (N, n), within the robot's limits.

    Low speeds are more frequent than high ones, so that a Stribeck term or a dead zone shows too. Limits that leave no
    motion, as CAD programs write them, are taken as none.
    """
    rng = np.random.default_rng(seed)
    shape = (n_samples, robot.n_joints)
    limits = robot.limits
    reach = np.where(robot.chain.prismatic, RANDOM_SLIDE, RANDOM_POSITION)
    middle = np.clip(0.0, limits.lower, limits.upper)
    moves = limits.upper > limits.lower
    lower = np.where(moves, np.maximum(limits.lower, middle - reach), -reach)
    upper = np.where(moves, np.minimum(limits.upper, middle + reach), reach)
    speed = np.where(limits.velocity > 0, np.minimum(limits.velocity, RANDOM_VELOCITY), RANDOM_VELOCITY)
    qd = speed * rng.uniform(-1.0, 1.0, shape) ** 3
    return rng.uniform(lower, upper, shape), qd, RANDOM_ACCELERATION * rng.uniform(-1.0, 1.0, shape)


@lru_cache(maxsize=8)
def _preference(names: tuple[str, ...]) -> list[int]:
    """Columns in the order in which they are kept: each link backwards, then all others."""

    def key(column: int) -> tuple[float, int]:
        match = LINK_PARAMETER.fullmatch(names[column])
        return (int(match[2]), -LINK_PARAMETERS.index(match[1])) if match else (math.inf, column)

    return sorted(range(len(names)), key=key)


def _independent(scaled: np.ndarray, order: Sequence[int], tolerance: np.ndarray) -> list[int]:
    """Columns, in that order, of which the ones before leave more than `tolerance` (p,); columns have unit norm."""
    basis = np.empty((min(scaled.shape[0], len(order)), scaled.shape[0]))
    kept: list[int] = []
    for column in order:
        own, rest, size = basis[: len(kept)], scaled[:, column], 1.0
        for _ in range(2):
            rest = rest - (own @ rest) @ own
            before, size = size, math.sqrt(rest @ rest)
            # Again where rounding has left parts along the basis: the more was removed, the more. Then it only shrinks.
            if size <= tolerance[column] or size > CLEAN * before:
                break
        if size > tolerance[column] and len(kept) < len(basis):
            basis[len(kept)] = rest / size
            kept.append(column)
    return kept
