"""Friction and drives of all joints: torque in addition to the rigid bodies, linear in its coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import ArmModel
from dynid_ros.model.friction_terms import (
    FrictionDirection,
    FrictionTerm,
    JointFriction,
    Memory,
    MemoryKey,
    SlidingMemory,
    coupling_parts,
    sum_over,
)
from dynid_ros.model.generated_code import compiled

COULOMB_AND_VISCOUS = JointFriction()


class OwnedTerms(NamedTuple):
    """Friction terms of a joint, or of a pair of coupled joints.

    Attributes:
        joints: indices of the joint or of the two joints.
        terms: the terms, each a column of the regressor.
    """

    joints: tuple[int, ...]
    terms: tuple[FrictionTerm, ...]


def friction_columns(
    owners: Sequence[OwnedTerms], motion: Sequence[NDArray], load: NDArray, memory: Memory
) -> Iterator[tuple[int, int, NDArray | float]]:
    """Yield row (joint), column and values (N,) (a float if constant) of the nonzero entries of the friction regressor.

    A term of a pair acts on both joints, with the motion of the other joint and the direction of the sum.

    Args:
        owners: terms in the order of their columns.
        motion: positions, velocities and accelerations, each (N, n).
        load: (N, n) torque of the links, N m or N.
        memory: directions that depend on earlier samples.
    """
    q, qd, qdd = motion
    column = 0
    for joints, terms in owners:
        directions: dict[FrictionDirection, NDArray] = {}
        for term in terms:
            model = term.direction
            if model is not None and model not in directions:
                velocity, position = (sum_over(array, joints) for array in (qd, q))
                directions[model] = model.evaluate(velocity, position, memory.get((joints, model.sliding_length)))
            direction = None if model is None else directions[model]
            for row, mover in zip(joints, reversed(joints), strict=True):
                values = term.column(q[:, mover], qd[:, mover], qdd[:, mover], direction, load[:, mover])
                yield row, column, values
            column += 1


class FrictionModel:
    """Friction and drives of all joints: torque = regressor @ coefficients.

    Coefficients are in N m, N m s/rad and kg m² (in N, N s/m and kg for prismatic joints). Friction that brakes and
    rotors have positive coefficients.

    Two coupled joints have a motor that drives both, as the last two of a Stäubli arm: its rotor feels the sum of their
    motions. The parts of the sum that belong to no single joint are three more terms: coupling_inertia and
    coupling_viscous take the acceleration and the velocity of each joint to the torque of the other, coupling_coulomb
    adds the direction of the sum to both torques.

    Args:
        joints: terms of every joint, or a sequence of n, from base to tip.
        coupled: pairs of indices of coupled joints.
        load_parameters: (10 n,) of the links whose torque the terms `load` use; None: no joint has such a term.
    """

    def __init__(
        self,
        joints: JointFriction | Sequence[JointFriction] = COULOMB_AND_VISCOUS,
        coupled: Iterable[tuple[int, int]] = (),
        load_parameters: ArrayLike | None = None,
    ):
        self.joints = joints
        self.coupled = tuple(coupled)
        self.load_parameters = None if load_parameters is None else np.asarray(load_parameters, dtype=float)

    @classmethod
    def by_name(
        cls,
        robot: ArmModel,
        joints: Mapping[str, JointFriction],
        others: JointFriction | None = None,
        coupled: Iterable[tuple[str, str]] = (),
    ) -> FrictionModel:
        """Make a model from terms by the names of joints.

        Args:
            robot: the arm; its links are those of the terms `load`.
            joints: terms of the named joints.
            others: terms of all others; None: no friction.
            coupled: pairs of names of coupled joints.

        Raises:
            ModelError: the robot has no joint of such a name.
        """
        pairs = [tuple(pair) for pair in coupled]
        unknown = sorted({*joints, *(name for pair in pairs for name in pair)} - set(robot.joint_names))
        if unknown:
            raise ModelError(
                f"friction: {robot.name} has no joint {', '.join(unknown)}; its joints: {', '.join(robot.joint_names)}"
            )
        rest = others or JointFriction.none()
        index = robot.joint_names.index
        return cls(
            [joints.get(name, rest) for name in robot.joint_names],
            [(index(first), index(second)) for first, second in pairs],
            robot.parameters,
        )

    def per_joint(self, n_joints: int) -> Sequence[JointFriction]:
        """Return the terms of each of n joints.

        Raises:
            ModelError: the model is for another number of joints.
        """
        joints = [self.joints] * n_joints if isinstance(self.joints, JointFriction) else self.joints
        if len(joints) != n_joints:
            raise ModelError(f"friction: it is given for {len(joints)} joints; expected the {n_joints} of the robot")
        for pair in self.coupled:
            if len(set(pair)) != 2 or not set(pair) <= set(range(n_joints)):
                raise ModelError(f"friction: coupled joints {pair}; expected two of the joints 0 to {n_joints - 1}")
        return joints

    def owners(self, n_joints: int) -> list[OwnedTerms]:
        """Return the terms of each joint and then of each pair, in the order of the coefficients.

        Raises:
            ModelError: the model is for another number of joints.
        """
        joints = self.per_joint(n_joints)
        single = [OwnedTerms((j,), joint.parts) for j, joint in enumerate(joints)]
        return [*single, *(OwnedTerms(pair, coupling_parts(joints[pair[0]])) for pair in self.coupled)]

    def keys(self, n_joints: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the term and the joints of each of the k coefficients.

        Names of joints may have blanks, so joints cannot be found by splitting the names of `names`.

        Raises:
            ModelError: the model is for another number of joints.
        """
        return tuple((term.name, joints) for joints, terms in self.owners(n_joints) for term in terms)

    def names(self, robot: ArmModel) -> tuple[str, ...]:
        """Return the names of the k coefficients, such as "coulomb joint_2" or "coupling_viscous joint_5 joint_6".

        Raises:
            ModelError: the model is for another number of joints.
        """
        joints = robot.joint_names
        return tuple(" ".join([term, *(joints[j] for j in owners)]) for term, owners in self.keys(robot.n_joints))

    def regressor(
        self,
        qd: ArrayLike,
        qdd: ArrayLike,
        q: ArrayLike | None = None,
        load: NDArray | None = None,
        memory: Memory | None = None,
    ) -> NDArray:
        """Return the matrix (N, n, k) from the coefficients to the torques.

        Args:
            qd: (N, n) velocities.
            qdd: (N, n) accelerations.
            q: (N, n) positions, of consecutive samples where a joint has a sliding length; needed by springs, harmonics
                and sliding lengths only.
            load: (N, n) torque of the links for the terms `load`; see `load_torque`.
            memory: directions that depend on earlier samples, see `memory`; None: the samples are the first.

        Raises:
            ModelError: arrays of unlike shapes, of another number of joints than the model's, or missing.
        """
        qd = np.asarray(qd, dtype=float)
        qdd = np.asarray(qdd, dtype=float)
        if qd.ndim != 2 or qd.shape != qdd.shape:
            raise ModelError(f"qd and qdd have shapes {qd.shape} and {qdd.shape}; expected (N, n) for both")
        owners = self.owners(qd.shape[1])
        terms = [term for _, own in owners for term in own]
        for name, array, is_needed in (
            ("q", q, any(term.needs_position for term in terms)),
            ("load", load, any(term.needs_load for term in terms)),
        ):
            if is_needed and (array is None or np.shape(array) != qd.shape):
                raise ModelError(f"friction: its terms need {name}, expected shape {qd.shape}")
        q = np.zeros_like(qd) if q is None else np.asarray(q, dtype=float)
        load = np.zeros_like(qd) if load is None else load
        memory = self.memory(q) if memory is None else memory
        matrix = np.zeros((*qd.shape, len(terms)))
        for row, column, values in friction_columns(owners, (q, qd, qdd), load, memory):
            matrix[:, row, column] = values
        return matrix

    def of_motion(
        self, robot: ArmModel, q: NDArray, qd: NDArray, qdd: NDArray, memory: Memory | None = None
    ) -> NDArray:
        """Return the `regressor` (N, n, k) of a motion (N, n) of the arm."""
        return self.regressor(qd, qdd, q, self.load_torque(robot, q, qd, qdd), memory)

    def load_torque(self, robot: ArmModel, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray | None:
        """Return the torque (N, n) of the links that load the gears, N m; None: no joint has a term `load`."""
        return robot.inverse_dynamics(q, qd, qdd, self.load_parameters) if self.needs_load else None

    @property
    def needs_load(self) -> bool:
        """Whether a joint has a term that depends on the torque of the links."""
        joints = [self.joints] if isinstance(self.joints, JointFriction) else self.joints
        return any(term.needs_load for joint in joints for term in joint.parts)

    def memory(self, q: NDArray, starts: Iterable[int] = ()) -> Memory:
        """Return the directions with a memory along positions (N, n) of consecutive samples.

        Args:
            q: (N, n).
            starts: samples after the first before which the joints have moved unobserved.
        """
        return SlidingMemory(self.memory_keys(q.shape[1])).advance(q, starts)

    def memory_keys(self, n_joints: int) -> list[MemoryKey]:
        """Return joints and sliding length of each direction with a memory."""
        joints = self.per_joint(n_joints)
        owners = [*((j,) for j in range(n_joints)), *self.coupled]
        return [(own, length) for own in owners if (length := joints[own[0]].sliding_length)]


def friction_code(friction: FrictionModel, n_joints: int) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Return assignments, and row, column and expression of each entry of the regressor that is not zero.

    The code is for one sample. Expressions are Python and, apart from the names of functions, C. Their variables are
    positions qi, velocities vi, accelerations ai, torques of the links li, and directions with a memory, `memory[k]` in
    the order of `FrictionModel.memory_keys`.
    """
    entries: list[tuple[int, int, str]] = []
    lines: list[str] = []
    keys = friction.memory_keys(n_joints)
    column = 0
    for number, (joints, terms) in enumerate(friction.owners(n_joints)):
        name = f"d{number}"
        model = next((term.direction for term in terms if term.direction), None)
        if model is not None:
            key = (joints, model.sliding_length)
            velocity = " + ".join(f"v{j}" for j in joints)
            velocity = f"({velocity})" if len(joints) > 1 else velocity
            lines.append(f"{name} = {model.expression(velocity, keys.index(key) if key in keys else None)}")
        for term in terms:
            entries += [
                (row, column, term.text(mover, name)) for row, mover in zip(joints, reversed(joints), strict=True)
            ]
            column += 1
    return lines, entries


class OneSampleFriction:
    """Regressor of friction at one sample, fast enough for a control loop.

    Args:
        n_joints: n.

    Attributes:
        evaluate: function from positions, velocities and accelerations, n floats each, the directions with a memory in
            the order of `FrictionModel.memory_keys`, and the n torques of the links, to a tuple of the p entries that
            are not zero.
        places: (p, n, k) of ones and zeros, the places of these entries: the regressor is the sum of entry times place.

    Raises:
        ModelError: the model is for another number of joints.
    """

    def __init__(self, friction: FrictionModel, n_joints: int):
        lines, entries = friction_code(friction, n_joints)
        arguments = (("q", "q"), ("v", "qd"), ("a", "qdd"), ("l", "load"))
        unpack = ["".join(f"{letter}{i}, " for i in range(n_joints)) + f"= {name}" for letter, name in arguments]
        body = "\n    ".join([*unpack, *lines, f"return ({''.join(f'{text}, ' for *_, text in entries)})"])
        head = "def terms(q, qd, qdd, memory, load, exp=exp, tanh=tanh, cos=cos, sin=sin):"
        self.evaluate: Callable[..., tuple[float, ...]] = compiled(f"{head}\n    {body}", "terms")
        self.places = np.zeros((len(entries), n_joints, 1 + max((column for _, column, _ in entries), default=-1)))
        for k, (row, column, _) in enumerate(entries):
            self.places[k, row, column] = 1.0
