"""Columns of the link equations: base inertial parameters, then every friction term that a joint may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import (
    BaseParameters,
    parameter_names,
    random_motion,
    regressor_blocks,
)
from dynid_ros.model.friction import COUPLING_TERMS, FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.regressor import RegressorRows

NO_EFFECT = 1e-9
NONNEGATIVE = ("coulomb", "viscous", "rotor_inertia")


class LinkColumns:
    """All columns at once, so that friction models can be compared without evaluating a regressor again.

    Terms that several candidates of a joint share are one column. The torque of a joint depends on few of all columns:
    only those are kept for its rows.

    Args:
        robot: the arm.
        candidates: for each joint the friction models among which one is chosen.
        coupled: pairs of coupled joints, see `FrictionModel`; their terms are in every choice.
        noise: (n,) of the joints' torques; a column that is below it, in a link as heavy and as long as the whole arm,
            is no base parameter. None: not known.

    Attributes:
        base: base parameters of the links alone.
        size: number of columns.
        of_joint: for each joint the (k_j,) columns that its torque can depend on: base parameters from the first such
            one on, and terms of friction.
    """

    def __init__(
        self,
        robot: RobotModel,
        candidates: Sequence[Sequence[JointFriction]],
        coupled: Sequence[tuple[int, int]] = (),
        noise: NDArray | None = None,
    ):
        self.robot, self._noise = robot, noise
        self.candidates = tuple(tuple(own) for own in candidates)
        self.coupled = tuple(coupled)
        first = (0,) * robot.n_joints
        random = list(self._random_regressor(first))
        self.base = self._base([part[..., : robot.parameters.size] for part in random], parameter_names(robot))
        self._whole = {first: self._base(random, parameter_names(robot, self.friction(first)))}
        norms = np.linalg.norm(
            [np.linalg.norm(self.base.reduce(part[..., : robot.parameters.size]), axis=0) for part in random], axis=0
        )
        effect = norms > NO_EFFECT * np.linalg.norm(norms, axis=0)
        self.n_inertial = self.base.rank
        self._links = RegressorRows(robot.chain, robot.gravity, self.base.columns)
        self._sources: list[dict[tuple, int]] = []
        size = self.n_inertial
        for own in self.candidates:
            keys = dict.fromkeys(key for friction in own for key in _keys(friction))
            self._sources.append({key: size + i for i, key in enumerate(keys)})
            size += len(keys)
        self._coupling: list[dict[tuple, int]] = []
        for leader, _ in self.coupled:
            keys = dict.fromkeys(key for friction in self.candidates[leader] for key in _coupling_keys(friction))
            self._coupling.append({key: size + i for i, key in enumerate(keys)})
            size += len(keys)
        self.size = size
        self.of_joint = [
            np.concatenate(
                [np.arange(self.n_inertial)[np.cumsum(effect[j]) > 0], list(own.values()), *self._coupling_of(j)]
            ).astype(int)
            for j, own in enumerate(self._sources)
        ]
        self._place = [{int(column): i for i, column in enumerate(columns)} for columns in self.of_joint]

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> list[NDArray]:
        """For each joint the matrix (N, k_j) from its columns to its torque, samples next to each other in memory."""
        terms = [int(np.count_nonzero(columns >= self.n_inertial)) for columns in self.of_joint]
        rows = np.empty((len(terms), self.n_inertial + max(terms), len(q)))
        self._links.fill(rows[:, : self.n_inertial], q, qd, qdd)
        found = []
        for j, (own, sources) in enumerate(zip(self.candidates, self._sources, strict=True)):
            end = self.n_inertial + terms[j]
            matrix = rows[j, end - len(self.of_joint[j]) : end].T
            for friction in own:
                for key, value in zip(_keys(friction), friction.values(qd[:, j], qdd[:, j]), strict=True):
                    matrix[:, self._place[j][sources[key]]] = value
            found.append(matrix)
        for pair, sources in zip(self.coupled, self._coupling, strict=True):
            # The direction of the sum reverses as that of the first joint does.
            for keys, friction in {_coupling_keys(friction): friction for friction in self.candidates[pair[0]]}.items():
                joints = [JointFriction.none()] * self.robot.n_joints
                joints[pair[0]] = replace(
                    JointFriction.none(), smoothing=friction.smoothing, dead_zone=friction.dead_zone
                )
                values = FrictionModel(joints, [pair]).regressor(qd, qdd)
                for key, value in zip(keys, np.moveaxis(values, -1, 0), strict=True):
                    for j in pair:
                        found[j][:, self._place[j][sources[key]]] = value[:, j]
        return found

    def rows_of(self, regressor: NDArray) -> list[NDArray]:
        """As `rows`, of a regressor (N, n, p) of the links and of the only candidate of each joint.

        Raises:
            IdentificationError: a joint has several candidates.
        """
        if any(len(own) > 1 for own in self.candidates):
            raise IdentificationError("the integral form needs friction that is given, not 'auto'; choose its terms")
        source = np.empty(self.size, dtype=int)
        friction = self.robot.parameters.size + np.arange(self.size - self.n_inertial)
        source[self.chosen([0] * len(self.candidates))] = [*self.base.columns, *friction]
        return [regressor[:, j, source[own]] for j, own in enumerate(self.of_joint)]

    def chosen(self, choice: Sequence[int]) -> NDArray:
        """Columns of one candidate per joint, in the order of base parameters and `friction(choice).names(robot)`."""
        own = [
            sources[key]
            for candidates, sources, index in zip(self.candidates, self._sources, choice, strict=True)
            for key in _keys(candidates[index])
        ]
        pairs = [
            sources[key]
            for (first, _), sources in zip(self.coupled, self._coupling, strict=True)
            for key in _coupling_keys(self.candidates[first][choice[first]])
        ]
        return np.array([*range(self.n_inertial), *own, *pairs], dtype=int)

    def whole_base(self, choice: Sequence[int]) -> BaseParameters:
        """Base parameters of the links and of the friction of one candidate per joint together."""
        choice = tuple(choice)
        if choice not in self._whole:
            names = parameter_names(self.robot, self.friction(choice))
            self._whole[choice] = self._base(self._random_regressor(choice), names)
        return self._whole[choice]

    def independent(self, choice: Sequence[int]) -> NDArray:
        """Those of the `chosen` columns that are base parameters of links and friction together, in their order."""
        n_links = self.robot.parameters.size
        base = self.whole_base(choice).columns
        terms = [self.n_inertial + c - n_links for c in base if c >= n_links]
        return self.chosen(choice)[[*range(self.n_inertial), *terms]]

    def nonnegative(self, choice: Sequence[int]) -> NDArray:
        """(k,) bool: which of the `chosen` columns have coefficients that cannot be negative; coupling terms can."""
        names = self.friction(choice).names(self.robot)
        return np.array([False] * self.n_inertial + [name.startswith(NONNEGATIVE) for name in names])

    def friction(self, choice: Sequence[int]) -> FrictionModel:
        """The friction model of one candidate per joint."""
        return FrictionModel([own[index] for own, index in zip(self.candidates, choice, strict=True)], self.coupled)

    def above(self, noise: NDArray) -> LinkColumns:
        """The columns without base parameters that are below this noise (n,); these themselves if there are none."""
        found = LinkColumns(self.robot, self.candidates, self.coupled, noise)
        return found if found.n_inertial < self.n_inertial else self

    def _random_regressor(self, choice: Sequence[int]) -> Iterator[NDArray]:
        """Regressor (N, n, p) of a random motion, each joint's rows in units of its noise where that is known."""
        for part in regressor_blocks(self.robot.structure, self.friction(choice), random_motion(self.robot)):
            yield part if self._noise is None else part / self._noise[:, None]

    def _base(self, regressor: Iterable[NDArray], names: Sequence[str]) -> BaseParameters:
        parts = list(regressor)
        factor, mass = triangular_factor(parts), self.robot.parameters[::PARAMETERS_PER_LINK].sum()
        if self._noise is None or not mass > 0:
            return BaseParameters(factor, names)
        chain = self.robot.chain
        reach = np.linalg.norm([*chain.transforms[:, :3, 3], chain.tip_offset[:3, 3]], axis=1).sum()
        largest = mass * np.repeat([1.0, reach, reach**2], [1, 3, 6])
        least = np.zeros(len(names))
        least[: self.robot.parameters.size] = np.tile(
            np.sqrt(sum(map(len, parts))) / np.maximum(largest, np.finfo(float).tiny), self.robot.n_joints
        )
        return BaseParameters(factor, names, least=least)

    def _coupling_of(self, joint: int) -> list[list[int]]:
        pairs = zip(self.coupled, self._coupling, strict=True)
        return [list(sources.values()) for pair, sources in pairs if joint in pair]


def _keys(friction: JointFriction) -> list[tuple]:
    """What makes two terms the same column."""
    shape = (friction.smoothing, friction.dead_zone)
    return [
        (term, *shape, friction.stribeck_velocity if term == "stribeck" else None)
        if term.startswith(("coulomb", "stribeck"))
        else (term,)
        for term in friction.terms
    ]


def _coupling_keys(friction: JointFriction) -> tuple[tuple, ...]:
    """Return the keys of a pair's terms; `friction` is that of its first joint."""
    inertia, viscous, coulomb = COUPLING_TERMS
    return (inertia,), (viscous,), (coulomb, friction.smoothing, friction.dead_zone)
