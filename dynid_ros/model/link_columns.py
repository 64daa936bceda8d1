"""Columns of the link equations: base inertial parameters, then every friction term that a joint may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.estimation.rank import ROUNDING_COLUMN
from dynid_ros.model.arrays import blocks
from dynid_ros.model.base_parameters import (
    DEPENDENCE_TOLERANCE,
    BaseParameters,
    parameter_names,
    random_motion,
    regressor_blocks,
)
from dynid_ros.model.friction import FrictionModel, OwnedTerms, friction_columns
from dynid_ros.model.friction_terms import (
    TERM_KINDS,
    FrictionTerm,
    JointFriction,
    Memory,
    SlidingMemory,
    coupling_parts,
)
from dynid_ros.model.gravity import turn_axes
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.regressor import RegressorRows
from dynid_ros.model.robot import RobotModel

CLEAR_EFFECT_FACTOR = 2.0
"""Factor between the rest of a base parameter's column and the tolerance from which on rounding cannot hide it."""
NONNEGATIVE_TERMS = tuple(family for family, kind in TERM_KINDS.items() if kind.is_nonnegative)


class LinkColumns:
    """All columns at once, so that friction models can be compared without evaluating a regressor again.

    Terms that several candidates of a joint share are one column. The torque of a joint depends on few of all columns;
    its rows hold only these.

    Args:
        candidates: for each joint the friction models whose terms may be chosen; a choice may combine them.
        coupled: pairs of coupled joints, see `FrictionModel`; their terms are in every choice.
        noise: (n,) standard deviations of the joints' torques. A column does not count as a base parameter if it is
            below the noise in a link as heavy and as long as the whole arm. None: unknown.
        load_parameters: (10 n,) of the links of the terms `load`; None: those of the robot.
        turned: (10 n,) of links whose torque changes as gravity turns: two more columns, see `turn_axes`. None: none.

    Attributes:
        first: first candidate of each joint.
        base: base parameters of the links alone.
        turns: columns of the turns of gravity, the last ones.
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
        self.robot = robot
        self._noise = noise
        self._load_parameters = load_parameters
        self._turned = turned
        self.falling: tuple[str, ...] = ()
        self.candidates = tuple(tuple(joint) for joint in candidates)
        self.coupled = tuple(coupled)
        self.first = tuple(joint[0] for joint in self.candidates)
        self._random = self._random_regressor(self.first)
        self.base = self._base_of_links(noise)
        self._whole: dict[tuple[JointFriction, ...], BaseParameters] = {}
        norms = np.linalg.norm([np.linalg.norm(part[..., self.base.columns], axis=0) for part in self._random], axis=0)
        norms /= 1.0 if noise is None else noise[:, None]
        has_effect = norms > ROUNDING_COLUMN * np.linalg.norm(norms, axis=0)
        self.n_inertial = self.base.rank
        self._links = RegressorRows(robot.chain, robot.gravity, self.base.columns)
        self._owners = [
            OwnedTerms((j,), tuple(dict.fromkeys(part for friction in joint for part in friction.parts)))
            for j, joint in enumerate(self.candidates)
        ]
        for pair in self.coupled:
            terms = dict.fromkeys(part for friction in self.candidates[pair[0]] for part in coupling_parts(friction))
            self._owners.append(OwnedTerms(tuple(pair), tuple(terms)))
        self._columns: list[dict[FrictionTerm, int]] = []
        size = self.n_inertial
        for _, own in self._owners:
            self._columns.append({term: size + i for i, term in enumerate(own)})
            size += len(own)
        self.turns = () if turned is None else (size, size + 1)
        self._across = [
            RobotModel(robot.chain, turned, np.cross(axis, robot.gravity))
            for axis in (turn_axes(robot.gravity) if self.turns else ())
        ]
        self.size = size + len(self.turns)
        self.of_joint = [
            np.concatenate(
                [
                    np.arange(self.n_inertial)[np.cumsum(effects) > 0],
                    *(
                        list(columns.values())
                        for (joints, _), columns in zip(self._owners, self._columns, strict=True)
                        if j in joints
                    ),
                    self.turns,
                ]
            ).astype(int)
            for j, effects in enumerate(has_effect)
        ]
        self._place = [{int(column): i for i, column in enumerate(columns)} for columns in self.of_joint]

    @classmethod
    def of(cls, robot: RobotModel, friction: FrictionModel, turned: NDArray | None = None) -> LinkColumns:
        """Return the columns of one friction model; the `chosen` ones of `first` are in the order of its names."""
        joints = [(joint,) for joint in friction.per_joint(robot.n_joints)]
        return cls(robot, joints, friction.coupled, None, friction.load_parameters, turned=turned)

    def memory(self, q: NDArray) -> Memory:
        """Return the directions (N,) of all candidates with a memory, along positions (N, n) of consecutive samples."""
        keys = [
            (joints, term.direction.sliding_length)
            for joints, terms in self._owners
            for term in terms
            if term.direction and term.direction.sliding_length
        ]
        return SlidingMemory(keys).advance(q)

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, memory: Memory | None = None) -> list[NDArray]:
        """Return for each joint the matrix (N, k_j) from its columns to its torque.

        Samples are next to each other in memory.

        Args:
            q: (N, n).
            qd: (N, n).
            qdd: (N, n).
            memory: directions with a memory at these samples, see `memory`; None: the samples are the first of a run.
        """
        counts = [int(np.count_nonzero(columns >= self.n_inertial)) for columns in self.of_joint]
        entries = np.zeros((len(counts), self.n_inertial + max(counts), len(q)))
        self._links.fill(entries[:, : self.n_inertial], q, qd, qdd)
        ends = [self.n_inertial + count for count in counts]
        rows = [entries[j, end - len(self.of_joint[j]) : end].T for j, end in enumerate(ends)]
        memory = self.memory(q) if memory is None else memory
        load = np.zeros_like(q)
        if any(term.needs_load for _, terms in self._owners for term in terms):
            load = self.robot.inverse_dynamics(q, qd, qdd, self._load_parameters)
        for joint, column, values in friction_columns(self._owners, (q, qd, qdd), load, memory):
            rows[joint][:, self._place[joint][self.n_inertial + column]] = values
        for column, across in zip(self.turns, self._across, strict=True):
            for j, torque in enumerate(across.gravity_torque(q).T):
                rows[j][:, self._place[j][column]] = torque
        return rows

    def filtered_rows(
        self,
        motion: Sequence[NDArray],
        memory: Memory,
        select: Callable[[NDArray, int], NDArray],
        every: int,
    ) -> list[NDArray]:
        """Return the filtered `rows` (K, k_j), with links evaluated at some samples only, since they are smooth.

        Args:
            motion: positions, velocities and accelerations (N, n).
            memory: directions with a memory at these samples.
            select: filter, given columns (M, k) and the distance between their samples.
            every: distance between the samples at which the links are evaluated.
        """
        rows = []
        for links, friction, turns in self.column_parts(motion, memory, every):
            parts = [select(links, every), select(friction, 1)]
            if turns.shape[1]:
                parts.append(select(turns, every))
            rows.append(np.hstack(parts))
        return rows

    def column_parts(
        self, motion: Sequence[NDArray], memory: Memory, every: int
    ) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
        """Yield for each joint the columns of links (M, a), friction (N, b) and turns of gravity (M, c).

        Arguments are those of `filtered_rows`; friction is evaluated at all N samples.
        """
        position, velocity, acceleration = motion
        n_samples = len(position)
        q, qd, qdd = (values[::every] for values in motion)
        links = np.zeros((self.robot.n_joints, self.n_inertial, len(q)))
        turns = np.zeros((len(self.turns), *q.T.shape))
        for block in blocks(len(q)):
            self._links.fill(links[:, :, block], q[block], qd[block], qdd[block])
            for across, torque in zip(self._across, turns, strict=True):
                torque[:, block] = across.gravity_torque(q[block]).T
        counts = [np.count_nonzero(own >= self.n_inertial) - len(self.turns) for own in self.of_joint]
        friction = [np.zeros((count, n_samples)) for count in counts]
        load = np.zeros_like(position)
        if any(term.needs_load for _, terms in self._owners for term in terms):
            for block in blocks(n_samples):
                load[block] = self.robot.inverse_dynamics(
                    position[block], velocity[block], acceleration[block], self._load_parameters
                )
        n_links = [len(own) - len(self.turns) - count for own, count in zip(self.of_joint, counts, strict=True)]
        for joint, column, values in friction_columns(self._owners, (position, velocity, acceleration), load, memory):
            friction[joint][self._place[joint][self.n_inertial + column] - n_links[joint]] = values
        for j, part in enumerate(friction):
            yield links[j, self.n_inertial - n_links[j] :].T, part.T, turns[:, j].T

    def rows_of(self, regressor: NDArray) -> list[NDArray]:
        """Return the `rows`, given a regressor (N, n, p) of the links and of the only candidate of each joint.

        Raises:
            IdentificationError: a joint has several candidates.
        """
        if any(len(joint) > 1 for joint in self.candidates):
            raise IdentificationError("the integral form needs friction that is given, not 'auto'; choose its terms")
        source = np.empty(self.size, dtype=int)
        friction = self.robot.parameters.size + np.arange(self.size - self.n_inertial)
        source[self.chosen(self.first)] = [*self.base.columns, *friction]
        return [regressor[:, j, source[columns]] for j, columns in enumerate(self.of_joint)]

    def chosen(self, choice: Sequence[JointFriction]) -> NDArray:
        """Return the columns of one friction model per joint, base parameters first, then in the order of the names."""
        owners = FrictionModel(choice, self.coupled).owners(len(choice))
        terms = [columns[term] for (_, own), columns in zip(owners, self._columns, strict=True) for term in own]
        return np.array([*range(self.n_inertial), *terms], dtype=int)

    def most_unknowns(self, choice: Sequence[JointFriction]) -> int:
        """Return the number of `chosen` columns of the joint that has most."""
        chosen = self.chosen(choice)
        return max(int(np.isin(columns, chosen).sum()) for columns in self.of_joint)

    def whole_base(self, choice: Sequence[JointFriction]) -> BaseParameters:
        """Return the base parameters of the links and of one friction model per joint together."""
        choice = tuple(choice)
        if choice not in self._whole:
            names = parameter_names(self.robot, self.friction(choice))
            self._whole[choice] = self._base(self._factor(choice, self._noise), names, self._noise)
        return self._whole[choice]

    def independent(self, choice: Sequence[JointFriction]) -> NDArray:
        """Return those `chosen` columns that are base parameters of links and friction together, in their order."""
        n_links = self.robot.parameters.size
        base = self.whole_base(choice).columns
        terms = [self.n_inertial + c - n_links for c in base if c >= n_links]
        return self.chosen(choice)[[*range(self.n_inertial), *terms]]

    def nonnegative(self, choice: Sequence[JointFriction]) -> NDArray:
        """Return a mask (k,) of the `chosen` columns whose coefficients cannot be negative."""
        names = self.friction(choice).names(self.robot)
        may_fall = [name.startswith("viscous") and name.partition(" ")[2] in self.falling for name in names]
        bounded = [
            name.startswith(NONNEGATIVE_TERMS) and not falls for name, falls in zip(names, may_fall, strict=True)
        ]
        return np.array([False] * self.n_inertial + bounded)

    def friction(self, choice: Sequence[JointFriction]) -> FrictionModel:
        """Return the friction model of all joints."""
        loads = self.robot.parameters if self._load_parameters is None else self._load_parameters
        return FrictionModel(choice, self.coupled, loads)

    def above(self, noise: NDArray) -> LinkColumns:
        """Return the columns without base parameters below this noise (n,); these columns if all are above it."""
        if self._is_clear(noise) or self._base_of_links(noise).rank >= self.n_inertial:
            return self
        return self._with(self.candidates, noise)

    def of_choice(self, choice: Sequence[JointFriction]) -> LinkColumns:
        """Return the columns with one friction model per joint as the only candidates."""
        only = self._with([(joint,) for joint in choice], self._noise)
        only.falling = self.falling
        return only

    def _with(self, candidates: Sequence[Sequence[JointFriction]], noise: NDArray | None) -> LinkColumns:
        return LinkColumns(self.robot, candidates, self.coupled, noise, self._load_parameters, turned=self._turned)

    def random_regressor(self, choice: Sequence[JointFriction]) -> list[NDArray]:
        """Return the regressor, in parts (N, n, p), of a random motion for links and one friction model per joint."""
        return self._random if tuple(choice) == self.first else self._random_regressor(choice)

    def _random_regressor(self, choice: Sequence[JointFriction]) -> list[NDArray]:
        return list(regressor_blocks(self.robot.structure, self.friction(choice), random_motion(self.robot)))

    def _base_of_links(self, noise: NDArray | None) -> BaseParameters:
        size = self.robot.parameters.size
        # The first columns of a triangular factor are the factor of the first columns.
        return self._base(self._factor(self.first, noise)[:size, :size], parameter_names(self.robot), noise)

    def _factor(self, choice: tuple[JointFriction, ...], noise: NDArray | None) -> NDArray:
        """Return the triangular factor of `random_regressor`, divided by the noise."""
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
            least[: self.robot.parameters.size] = self._least_norms()
        return BaseParameters(factor, names, least=least)

    def _least_norms(self) -> NDArray:
        """Return the norms (10 m,) of columns, in noise, that bring a link of the arm's size to one per sample.

        The link is as heavy and as long as the arm.
        """
        chain = self.robot.chain
        n_samples = sum(map(len, self._random))
        mass = self.robot.parameters[::PARAMETERS_PER_LINK].sum()
        reach = np.linalg.norm([*chain.transforms[:, :3, 3], chain.tip_offset[:3, 3]], axis=1).sum()
        if not (mass > 0 and reach > 0):
            return np.zeros(self.robot.parameters.size)
        largest = mass * np.repeat([1.0, reach, reach**2], [1, 3, 6])
        return np.tile(np.sqrt(n_samples) / np.maximum(largest, np.finfo(float).tiny), self.robot.n_links)

    def _is_clear(self, noise: NDArray) -> bool:
        """Return whether each base parameter is far above this noise (n,), so that the base need not be found again."""
        # In the order of the decomposition: link by link, in each from the last inertia to the mass.
        kept = sorted(self.base.columns.tolist(), key=lambda column: (column // PARAMETERS_PER_LINK, -column))
        factor = triangular_factor([part[..., kept] / noise[:, None] for part in self._random])
        least = np.maximum(self._least_norms()[kept], DEPENDENCE_TOLERANCE * np.linalg.norm(factor, axis=0))
        return bool(np.all(np.abs(np.diag(factor)) > CLEAR_EFFECT_FACTOR * least))
