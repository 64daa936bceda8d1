"""What the torques of a motion determine of the parameters, and how that changes with the motion."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import BLOCK, blocks
from dynid_ros.model.base_parameters import UNIDENTIFIABLE, BaseParameters, random_motion
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.model.parameter_words import describe_parameters, parameter_names
from dynid_ros.model.regressor import DifferentiableRegressor, RegressorRows
from dynid_ros.trajectories.limits import per_joint

# A motion at some of its instants.


class MotionWithJerk(NamedTuple):
    """Positions and their derivatives, or gradients by them, (N, n) each."""

    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    jerk: NDArray


# What of an arm is asked of its torques, and the columns of the regressor that belong to it.


LINKS, GRAVITY, LOAD = "links", "gravity", "load"
FRICTION = {
    LINKS: JointFriction(offset=True, rotor_inertia=True),
    GRAVITY: JointFriction(viscous=False, offset=True),
    LOAD: JointFriction.none(),
}
"""What the torque of a joint holds besides that of the links. At standstill it shows the side that a pose was reached
from; a load is known from its difference to the empty arm, in which friction cancels."""


class TorqueColumns:
    """Independent columns of the torque regressor, as few as any motion of the arm can distinguish.

    Args:
        robot: the arm.
        friction: terms of its joints; None: those of `FRICTION`.
        model: "links": all parameters of the links; "gravity": masses and mass moments, at rest; "load": the ten
            parameters of what the last link carries, about its frame.

    Attributes:
        robot, model: as given.
        friction: of the joints.
        base: base parameters of what is asked.
        expressions: (k,) base parameters, to read.
        names: (k,) the parameter that leads each of them, such as "Izz1".
        units: (k,) of each of them.
        hidden: parameters of links that no motion of this arm shows.
        links: the leading parameters of links, out of all 10 m.
        drives: those of joints, out of friction's coefficients.

    Raises:
        TrajectoryError: an unknown model.
        ModelError: friction of another number of joints.
    """

    def __init__(
        self, robot: RobotModel, friction: FrictionModel | JointFriction | None = None, model: str = LINKS
    ) -> None:
        if model not in FRICTION:
            raise TrajectoryError(f"target is '{model}'; expected {', '.join(FRICTION)}")
        terms = FRICTION[model] if friction is None else friction
        self.robot, self.model = robot, model
        self.friction = terms if isinstance(terms, FrictionModel) else FrictionModel(terms, (), robot.parameters)
        links = np.arange(robot.parameters.size)
        chosen = {
            LINKS: links,
            GRAVITY: links[links % PARAMETERS_PER_LINK < STATIC],
            LOAD: links[robot.tip_columns],
        }
        asked = chosen[model]
        names = parameter_names(robot, self.friction)
        q, qd, qdd = random_motion(robot)
        exact = robot.structure
        rigid = exact.gravity_regressor(q) if model == GRAVITY else exact.torque_regressor(q, qd, qdd)
        regressor = np.concatenate([rigid[..., asked], self._friction_columns(q, qd, qdd)], axis=-1)
        self.base = BaseParameters(regressor, [*(names[i] for i in asked), *names[len(links) :]])
        self.expressions = self.base.expressions
        self.names = tuple(self.base.names[column] for column in self.base.columns)
        self.units = tuple(_unit(robot, name) for name in self.names)
        categories = zip(self.base.names[: len(asked)], self.base.categories, strict=False)
        self.hidden = tuple(name for name, category in categories if category == UNIDENTIFIABLE)
        own = self.base.columns < len(asked)
        self.links = asked[self.base.columns[own]]
        self.drives = self.base.columns[~own] - len(asked)
        self._rigid = RegressorRows(robot.chain, robot.gravity, self.links)
        # Links before a joint and drives of others have no part in its torque.
        self._shown = [np.flatnonzero(matrix.any(axis=1)) for matrix in self.rows(q, qd, qdd)]

    @property
    def size(self) -> int:
        """Number k of columns."""
        return len(self.names)

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Matrix (n, k, N) from the base parameters to the torques of q, qd and qdd, each (N, n)."""
        matrix = np.zeros((q.shape[1], self.size, len(q)))
        motion = (q, 0.0 * q, 0.0 * q) if self.model == GRAVITY else (q, qd, qdd)
        self._rigid.fill(matrix[:, : len(self.links)], *motion)
        matrix[:, len(self.links) :] = self._friction_columns(q, qd, qdd)[..., self.drives].transpose(1, 2, 0)
        return matrix

    def _friction_columns(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Return the friction columns (N, n, f) of motion (N, n).

        Samples may be of many motions, so a direction with memory is that of the velocity.
        """
        at_rest = 0.0 * q
        motion = (q, at_rest, at_rest) if self.model == GRAVITY else (q, qd, qdd)
        load = self.friction.load_torque(self.robot, *motion)
        memory = {key: np.sign(qd[:, key[0]].sum(axis=1)) for key in self.friction.memory_keys(self.robot.n_joints)}
        return self.friction.regressor(qd, qdd, q, load, memory)

    def information(self, motion: Sequence[NDArray]) -> NDArray:
        """Normal equations (n, k, k) of each joint's torque for q, qd and qdd, (N, n) each, a block at a time."""
        total = np.zeros((self.robot.n_joints, self.size, self.size))
        for block in blocks(len(motion[0])):
            rows = self.rows(*(x[block] for x in motion))
            for sums, matrix, shown in zip(total, rows, self._shown, strict=True):
                own = matrix[shown]
                sums[np.ix_(shown, shown)] += own @ own.T
        return total

    def informations(self, motions: NDArray, noise: NDArray) -> Iterator[NDArray]:
        """Normal equations (k, k) of all torques, a mean over the samples, of each of many short motions.

        Args:
            motions: (C, 3, N, n), q, qd and qdd of each.
            noise: (n,) standard deviation of each torque, which weighs it, N m or N.
        """
        count, _, samples, n = motions.shape
        step = max(1, BLOCK // samples)
        for start in range(0, count, step):
            part = motions[start : start + step]
            q, qd, qdd = part.transpose(1, 0, 2, 3).reshape(3, -1, n)
            rows = self.rows(q, qd, qdd) / noise[:, None, None]
            # (motions, k, n N): all rows of one motion next to each other.
            rows = (
                rows.reshape(n, self.size, len(part), samples).transpose(2, 1, 0, 3).reshape(len(part), self.size, -1)
            )
            yield from rows @ rows.transpose(0, 2, 1) / samples


def checked_noise(robot: RobotModel, noise: ArrayLike | None) -> NDArray:
    """(n,) standard deviations of the torques; 1 where nothing is known.

    Raises:
        TrajectoryError: another number of them, or one that is not positive and finite; names the joint.
    """
    known = per_joint(1.0 if noise is None else noise, robot.joint_names, "noise")
    for name, value in zip(robot.joint_names, known, strict=True):
        if not (np.isfinite(value) and value > 0):
            raise TrajectoryError(
                f"the noise of {name} is {value:g}; it must be positive and finite, the standard deviation of its "
                "torque in N m or N"
            )
    return known


def _unit(robot: RobotModel, name: str) -> str:
    """Unit of a parameter of a link or of a joint's own torque."""
    return describe_parameters(robot, [name])["unit"][0]


SMOOTHING = 0.02
"""Velocity within which Coulomb friction reverses, in parts of the speed limit: a step has no gradient."""


class Rows(NamedTuple):
    """Equations of a motion.

    Attributes:
        regressor: (p, n, N) rows of each joint, in units of its noise.
        torque: (N, n) nominal torque of the links, N m or N.
    """

    regressor: NDArray
    torque: NDArray


class TorqueInformation:
    """Information that joint torques hold on the base parameters of links and joints.

    Args:
        robot: the arm; its nominal parameters give the torques.
        target: "links", "gravity" or "load" (see `TorqueColumns`).
        drive: terms of each joint besides the links; None: those of the target.
        noise: standard deviation of the torques, one value or (n,), N m or N.
        speeds: (n,) speed limits, which set where Coulomb friction changes its sign.
        columns: (p,) parameters that stand for the base parameters, ascending; None: as `BaseParameters` chooses. What
            a condition number without scaling is depends on it.

    Attributes:
        names: (p,) the parameters.
        base: what they are combinations of.

    Raises:
        TrajectoryError: an unknown target, friction that a motion cannot be designed for, a noise that is not
            positive, or columns that are no base.
    """

    def __init__(
        self,
        robot: RobotModel,
        speeds: NDArray,
        *,
        target: str = LINKS,
        drive: JointFriction | None = None,
        noise: ArrayLike = 1.0,
        columns: ArrayLike | None = None,
    ) -> None:
        self._robot, self._weight = robot, 1.0 / checked_noise(robot, noise)
        asked = TorqueColumns(robot, drive, target)
        self.base = asked.base
        chosen, drives = asked.links, asked.drives
        if columns is not None:
            chosen, drives = _checked(asked, columns), np.zeros(0, dtype=int)
        every_name = parameter_names(robot, asked.friction)
        size = robot.parameters.size
        self.names = tuple(every_name[column] for column in (*chosen, *(size + drives)))
        self._n_links = len(chosen)
        self._drives = _Drives(asked.friction.per_joint(robot.n_joints), drives, SMOOTHING * speeds)
        links = robot.base_parameters()
        every = np.union1d(links.columns, chosen)
        self._regressor = DifferentiableRegressor(robot.chain, robot.gravity, every)
        self._rest = DifferentiableRegressor(robot.chain, robot.gravity, chosen) if target == GRAVITY else None
        self._chosen = np.searchsorted(every, chosen)
        self._parameters = np.zeros(len(every))
        self._parameters[np.searchsorted(every, links.columns)] = links.project(robot.parameters)

    def rows(self, motion: MotionWithJerk) -> Rows:
        """Equations of a motion, remembered for `gradient`."""
        q, qd, qdd, _ = motion
        matrix = self._regressor.matrix(q, qd, qdd)
        torque = np.einsum("icm,c->mi", matrix, self._parameters)
        chosen_columns = matrix[:, self._chosen] if self._rest is None else self._rest.matrix(q, 0.0 * q, 0.0 * q)
        regressor = np.concatenate([chosen_columns.transpose(1, 0, 2), self._drives.columns(qd, qdd)])
        self._drive_motion = qd, qdd
        return Rows(regressor * self._weight[:, None], torque)

    def gradient(self, by: Rows) -> MotionWithJerk:
        """Gradient by the motion, of the last rows."""
        by_regressor = by.regressor * self._weight[:, None]
        by_links = by_regressor[: self._n_links].transpose(1, 0, 2)
        by_matrix = by.torque.T[:, None] * self._parameters[:, None]
        if self._rest is None:
            by_matrix[:, self._chosen] += by_links
        by_position, by_velocity, by_acceleration = self._regressor.gradient(by_matrix)
        if self._rest is not None:
            by_position = by_position + self._rest.gradient(by_links)[0]
        by_drives = self._drives.gradient(*self._drive_motion, by_regressor[self._n_links :])
        return MotionWithJerk(
            by_position, by_velocity + by_drives[0], by_acceleration + by_drives[1], np.zeros_like(by_position)
        )

    def torque(self, motion: MotionWithJerk) -> NDArray:
        """Nominal torques (N, n) of the links, N m or N."""
        return self._robot.inverse_dynamics(*motion[:3])

    def over_time(self, time: NDArray, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Information (p, p) of a motion (N, n) that took place, at times (N,), integrated over time, s."""
        total = np.zeros((len(self.names), len(self.names)))
        steps = np.gradient(time)
        for block in blocks(len(time)):
            motion = MotionWithJerk(q[block], qd[block], qdd[block], np.zeros_like(q[block]))
            flat = (self.rows(motion).regressor * np.sqrt(steps[block])).reshape(len(total), -1)
            total += flat @ flat.T
        return total


def information_matrix(rows: Rows) -> NDArray:
    """Information matrix (p, p), a mean over the samples."""
    flat = rows.regressor.reshape(len(rows.regressor), -1)
    return flat @ flat.T / rows.torque.shape[0]


class _Drives:
    """Columns of the joints' own terms, with Coulomb friction that has a gradient.

    Args:
        terms: of each joint.
        chosen: (k,) which of them, joint after joint.
        smoothing: (n,) velocity within which the direction of motion changes.
    """

    def __init__(self, terms: Sequence[JointFriction], chosen: NDArray, smoothing: NDArray) -> None:
        every = [(name, joint) for joint, own in enumerate(terms) for name in own.terms]
        unknown = {name for name, _ in every} - {"coulomb", "viscous", "offset", "rotor_inertia"}
        if unknown:
            raise TrajectoryError(f"no motion can be designed for the friction terms {', '.join(sorted(unknown))}")
        self._columns, self._chosen = chosen, [every[column] for column in chosen]
        self._smoothing = smoothing
        widths = zip(terms, smoothing.tolist(), strict=True)
        self._model = FrictionModel([replace(own, smoothing=width, dead_zone=0.0) for own, width in widths])

    def columns(self, qd: NDArray, qdd: NDArray) -> NDArray:
        """(k, n, N)."""
        return self._model.regressor(qd, qdd)[..., self._columns].transpose(2, 1, 0)

    def gradient(self, qd: NDArray, qdd: NDArray, by_columns: NDArray) -> tuple[NDArray, NDArray]:
        """Gradients (N, n) by velocity and acceleration; by_columns (k, n, N)."""
        by_velocity, by_acceleration = np.zeros_like(qd), np.zeros_like(qdd)
        slope = (1.0 - np.tanh(qd / self._smoothing) ** 2) / self._smoothing
        for by_column, (term, joint) in zip(by_columns, self._chosen, strict=True):
            if term == "coulomb":
                by_velocity[:, joint] += by_column[joint] * slope[:, joint]
            elif term == "viscous":
                by_velocity[:, joint] += by_column[joint]
            elif term == "rotor_inertia":
                by_acceleration[:, joint] += by_column[joint]
        return by_velocity, by_acceleration


def _checked(asked: TorqueColumns, columns: ArrayLike) -> NDArray:
    """Columns of links that stand for the base parameters as well as our own do."""
    given, rank = np.sort(np.asarray(columns, dtype=int)), asked.base.rank
    size = asked.robot.parameters.size
    known = len(asked.base.names) == size and len(given) == rank and given.min() >= 0 and given.max() < size
    if not known or np.linalg.matrix_rank(asked.base.combinations[:, given], tol=1e-9) < rank:
        raise TrajectoryError(
            f"columns: {len(given)} are given; expected {rank} parameters of links that are a base, and no friction"
        )
    return given


# What the design of a motion needs to know of what the motion excites.


class InformationSource(Protocol):
    """Rows of the equations that a motion of the motors gives, with a gradient.

    Motions are one period, at N times spread evenly over it. `rows` and `torque` raise `TrajectoryError` where they
    cannot foresee what a motion does.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The p parameters that are asked for."""

    def rows(self, motion: MotionWithJerk) -> Rows:
        """Equations of a motion, remembered for `gradient`."""

    def gradient(self, by: Rows) -> MotionWithJerk:
        """Gradient by the motion, of the last rows."""

    def torque(self, motion: MotionWithJerk) -> NDArray:
        """Nominal torques (N, n) of a motion, N m or N."""

    def over_time(self, time: NDArray, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Information (p, p) of a motion (N, n) that took place, at times (N,), integrated over time, s.

        Raises:
            TrajectoryError: the source knows of planned motions alone.
        """
