"""Columns of the link equations: base inertial parameters, then every friction term that a joint may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.estimation.rank import ROUNDING_COLUMN
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import (
    TOLERANCE,
    BaseParameters,
    parameter_names,
    random_motion,
    regressor_blocks,
)
from dynid_ros.model.friction import FrictionModel, JointFriction, coupling_parts
from dynid_ros.model.friction_terms import FrictionTerm, Memory, SlidingMemory
from dynid_ros.model.gravity_direction import turn_axes
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.regressor import RegressorRows

FAR = 2.0
"""Factor above what a base parameter must leave from which on rounding cannot hide it."""
NONNEGATIVE = ("coulomb", "viscous", "stribeck", "load", "rotor_inertia")


class LinkColumns:
    """All columns at once, so that friction models can be compared without evaluating a regressor again.

    Terms that several candidates of a joint share are one column. The torque of a joint depends on few of all columns:
    only those are kept for its rows.

    Args:
        robot: the arm.
        candidates: for each joint the friction models whose terms may be chosen; a choice may combine them.
        coupled: pairs of coupled joints, see `FrictionModel`; their terms are in every choice.
        noise: (n,) of the joints' torques; a column that is below it, in a link as heavy and as long as the whole arm,
            is no base parameter. None: not known.
        load_parameters: (10 n,) of the links of terms `load`; None: the robot's.
        turned: (10 n,) of links whose torque changes as gravity turns: two columns more, see `turn_axes`. None: none.

    Attributes:
        first: the first candidate of each joint.
        base: base parameters of the links alone.
        size: number of columns.
        turns: the columns of the turns of gravity, the last ones.
        falling: names of joints whose torque falls with speed, so that their viscous terms may be negative.
        of_joint: for each joint the (k_j,) columns that its torque can depend on: base parameters from the first such
            one on, and terms of friction.
    """

    def __init__(
        self,
        robot: RobotModel,
        candidates: Sequence[Sequence[JointFriction]],
        coupled: Sequence[tuple[int, int]] = (),
        noise: NDArray | None = None,
        load_parameters: NDArray | None = None,
        *,
        turned: NDArray | None = None,
    ):
        self.robot, self._noise, self._load_parameters, self._turned = robot, noise, load_parameters, turned
        self.falling: tuple[str, ...] = ()
        self.candidates = tuple(tuple(own) for own in candidates)
        self.coupled = tuple(coupled)
        self.first = tuple(own[0] for own in self.candidates)
        self._random = self._random_regressor(self.first)
        self.base = self._base_of_links(noise)
        self._whole: dict[tuple[JointFriction, ...], BaseParameters] = {}
        norms = np.linalg.norm([np.linalg.norm(part[..., self.base.columns], axis=0) for part in self._random], axis=0)
        norms /= 1.0 if noise is None else noise[:, None]
        effect = norms > ROUNDING_COLUMN * np.linalg.norm(norms, axis=0)
        self.n_inertial = self.base.rank
        self._links = RegressorRows(robot.chain, robot.gravity, self.base.columns)
        self._sources: list[dict[FrictionTerm, int]] = []
        size = self.n_inertial
        for own in self.candidates:
            terms = dict.fromkeys(part for friction in own for part in friction.parts)
            self._sources.append({part: size + i for i, part in enumerate(terms)})
            size += len(terms)
        self._coupling: list[dict[FrictionTerm, int]] = []
        for leader, _ in self.coupled:
            terms = dict.fromkeys(part for friction in self.candidates[leader] for part in coupling_parts(friction))
            self._coupling.append({part: size + i for i, part in enumerate(terms)})
            size += len(terms)
        self.turns = () if turned is None else (size, size + 1)
        self._across = [
            RobotModel(robot.chain, turned, np.cross(axis, robot.gravity))
            for axis in (turn_axes(robot.gravity) if self.turns else ())
        ]
        self.size = size + len(self.turns)
        self._needs_load = any(friction.load for own in self.candidates for friction in own)
        self.of_joint = [
            np.concatenate(
                [
                    np.arange(self.n_inertial)[np.cumsum(effect[j]) > 0],
                    list(own.values()),
                    *self._coupling_of(j),
                    self.turns,
                ]
            ).astype(int)
            for j, own in enumerate(self._sources)
        ]
        self._place = [{int(column): i for i, column in enumerate(columns)} for columns in self.of_joint]

    @classmethod
    def of(cls, robot: RobotModel, friction: FrictionModel, turned: NDArray | None = None) -> LinkColumns:
        """Columns of one friction model; the chosen ones of `first` are in the order of its names."""
        joints = [(joint,) for joint in friction.of(robot.n_joints)]
        return cls(robot, joints, friction.coupled, None, friction.load_parameters, turned=turned)

    def memory(self, q: NDArray) -> Memory:
        """Directions (N,) of all candidates that have a memory, along positions (N, n) of consecutive samples."""
        own = [((j,), terms) for j, terms in enumerate(self._sources)]
        pairs = [(tuple(pair), terms) for pair, terms in zip(self.coupled, self._coupling, strict=True)]
        keys = [
            (joints, part.direction.sliding_length)
            for joints, terms in (*own, *pairs)
            for part in terms
            if part.direction and part.direction.sliding_length
        ]
        return SlidingMemory(keys).advance(q)

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, memory: Memory | None = None) -> list[NDArray]:
        """For each joint the matrix (N, k_j) from its columns to its torque, samples next to each other in memory.

        Args:
            q: (N, n).
            qd: (N, n).
            qdd: (N, n).
            memory: what `memory` says of these samples; None: they are the first of a run.
        """
        terms = [int(np.count_nonzero(columns >= self.n_inertial)) for columns in self.of_joint]
        rows = np.zeros((len(terms), self.n_inertial + max(terms), len(q)))
        self._links.fill(rows[:, : self.n_inertial], q, qd, qdd)
        memory = self.memory(q) if memory is None else memory
        load = self.robot.inverse_dynamics(q, qd, qdd, self._load_parameters) if self._needs_load else np.zeros_like(q)
        found = []
        for j, sources in enumerate(self._sources):
            end = self.n_inertial + terms[j]
            matrix = rows[j, end - len(self.of_joint[j]) : end].T
            directions = self._directions(sources, (j,), q[:, j], qd[:, j], memory)
            for part, column in sources.items():
                matrix[:, self._place[j][column]] = part.value(
                    q[:, j], qd[:, j], qdd[:, j], directions.get(part.direction, _NONE), load[:, j]
                )
            found.append(matrix)
        for pair, sources in zip(self.coupled, self._coupling, strict=True):
            i, j = pair
            # The direction of the sum reverses as that of the first joint does.
            directions = self._directions(sources, tuple(pair), q[:, i] + q[:, j], qd[:, i] + qd[:, j], memory)
            for part, column in sources.items():
                for own, other in ((i, j), (j, i)):
                    values = part.value(
                        q[:, other], qd[:, other], qdd[:, other], directions.get(part.direction, _NONE), load[:, other]
                    )
                    found[own][:, self._place[own][column]] = values
        for column, across in zip(self.turns, self._across, strict=True):
            for j, values in enumerate(across.gravity_torque(q).T):
                found[j][:, self._place[j][column]] = values
        return found

    @staticmethod
    def _directions(
        sources: Iterable[FrictionTerm], joints: tuple[int, ...], position: NDArray, velocity: NDArray, memory: Memory
    ) -> dict:
        ways = dict.fromkeys(part.direction for part in sources if part.direction)
        return {way: way.of(velocity, position, memory.get((joints, way.sliding_length))) for way in ways}

    def rows_of(self, regressor: NDArray) -> list[NDArray]:
        """As `rows`, of a regressor (N, n, p) of the links and of the only candidate of each joint.

        Raises:
            IdentificationError: a joint has several candidates.
        """
        if any(len(own) > 1 for own in self.candidates):
            raise IdentificationError("the integral form needs friction that is given, not 'auto'; choose its terms")
        source = np.empty(self.size, dtype=int)
        friction = self.robot.parameters.size + np.arange(self.size - self.n_inertial)
        source[self.chosen(self.first)] = [*self.base.columns, *friction]
        return [regressor[:, j, source[own]] for j, own in enumerate(self.of_joint)]

    def chosen(self, choice: Sequence[JointFriction]) -> NDArray:
        """Columns of a friction model for each joint, in the order of base parameters and of the model's names."""
        own = [
            sources[part] for sources, friction in zip(self._sources, choice, strict=True) for part in friction.parts
        ]
        pairs = [
            sources[part]
            for (first, _), sources in zip(self.coupled, self._coupling, strict=True)
            for part in coupling_parts(choice[first])
        ]
        return np.array([*range(self.n_inertial), *own, *pairs], dtype=int)

    def most_unknowns(self, choice: Sequence[JointFriction]) -> int:
        """Number of `chosen` columns of the joint that has most."""
        chosen = self.chosen(choice)
        return max(int(np.isin(own, chosen).sum()) for own in self.of_joint)

    def whole_base(self, choice: Sequence[JointFriction]) -> BaseParameters:
        """Base parameters of the links and of a friction model for each joint together."""
        choice = tuple(choice)
        if choice not in self._whole:
            names = parameter_names(self.robot, self.friction(choice))
            self._whole[choice] = self._base(self._factor(choice, self._noise), names, self._noise)
        return self._whole[choice]

    def independent(self, choice: Sequence[JointFriction]) -> NDArray:
        """Those of the `chosen` columns that are base parameters of links and friction together, in their order."""
        n_links = self.robot.parameters.size
        base = self.whole_base(choice).columns
        terms = [self.n_inertial + c - n_links for c in base if c >= n_links]
        return self.chosen(choice)[[*range(self.n_inertial), *terms]]

    def nonnegative(self, choice: Sequence[JointFriction]) -> NDArray:
        """(k,) bool: which of the `chosen` columns have coefficients that cannot be negative; coupling terms can."""
        names = self.friction(choice).names(self.robot)
        free = [name.startswith("viscous") and name.partition(" ")[2] in self.falling for name in names]
        bounded = [name.startswith(NONNEGATIVE) and not any_sign for name, any_sign in zip(names, free, strict=True)]
        return np.array([False] * self.n_inertial + bounded)

    def friction(self, choice: Sequence[JointFriction]) -> FrictionModel:
        """The friction model of all joints."""
        loads = self.robot.parameters if self._load_parameters is None else self._load_parameters
        return FrictionModel(choice, self.coupled, loads)

    def above(self, noise: NDArray) -> LinkColumns:
        """The columns without base parameters that are below this noise (n,); these themselves if there are none."""
        if self._clear(noise) or self._base_of_links(noise).rank >= self.n_inertial:
            return self
        return LinkColumns(self.robot, self.candidates, self.coupled, noise, self._load_parameters, turned=self._turned)

    def random_regressor(self, choice: Sequence[JointFriction]) -> list[NDArray]:
        """Regressor, in parts (N, n, p), of a random motion of links and of a friction model for each joint."""
        return self._random if tuple(choice) == self.first else self._random_regressor(choice)

    def _random_regressor(self, choice: Sequence[JointFriction]) -> list[NDArray]:
        return list(regressor_blocks(self.robot.structure, self.friction(choice), random_motion(self.robot)))

    def _base_of_links(self, noise: NDArray | None) -> BaseParameters:
        size = self.robot.parameters.size
        # The first columns of a triangular factor are the factor of the first columns.
        return self._base(self._factor(self.first, noise)[:size, :size], parameter_names(self.robot), noise)

    def _factor(self, choice: tuple[JointFriction, ...], noise: NDArray | None) -> NDArray:
        """Triangular factor of `random_regressor`, in parts of the noise."""
        if noise is None and choice == self.first:
            return self._first_factor
        unit = 1.0 if noise is None else noise[:, None]
        return triangular_factor([part / unit for part in self.random_regressor(choice)])

    @cached_property
    def _first_factor(self) -> NDArray:
        return triangular_factor(self._random)

    def _base(self, factor: NDArray, names: Sequence[str], noise: NDArray | None) -> BaseParameters:
        least = np.zeros(len(names))
        if noise is not None:
            least[: self.robot.parameters.size] = self._least()
        return BaseParameters(factor, names, least=least)

    def _least(self) -> NDArray:
        """(10 m,) norms of columns, in noise, that a link as heavy and as long as the arm brings to one per sample."""
        n_samples, robot, chain = sum(map(len, self._random)), self.robot, self.robot.chain
        mass = robot.parameters[::PARAMETERS_PER_LINK].sum()
        if not mass > 0:
            return np.zeros(robot.parameters.size)
        reach = np.linalg.norm([*chain.transforms[:, :3, 3], chain.tip_offset[:3, 3]], axis=1).sum()
        largest = mass * np.repeat([1.0, reach, reach**2], [1, 3, 6])
        return np.tile(np.sqrt(n_samples) / np.maximum(largest, np.finfo(float).tiny), robot.n_links)

    def _clear(self, noise: NDArray) -> bool:
        """Whether each base parameter is far above this noise (n,), so that there is no need to find them again."""
        # In the order in which they were found: link by link, in each from the last inertia to the mass.
        kept = sorted(self.base.columns.tolist(), key=lambda column: (column // PARAMETERS_PER_LINK, -column))
        factor = triangular_factor([part[..., kept] / noise[:, None] for part in self._random])
        least = np.maximum(self._least()[kept], TOLERANCE * np.linalg.norm(factor, axis=0))
        return bool(np.all(np.abs(np.diag(factor)) > FAR * least))

    def _coupling_of(self, joint: int) -> list[list[int]]:
        pairs = zip(self.coupled, self._coupling, strict=True)
        return [list(sources.values()) for pair, sources in pairs if joint in pair]


_NONE = np.empty(0)
