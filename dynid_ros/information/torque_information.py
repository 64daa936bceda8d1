"""Information that the torques of a motion contain on the parameters, with its gradient by the motion."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks
from dynid_ros.model.base_parameters import (
    UNIDENTIFIABLE,
    BaseParameters,
    describe_parameters,
    parameter_names,
    random_motion,
)
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.model.regressor import DifferentiableRegressor, RegressorRows
from dynid_ros.trajectories.limits import per_joint


class MotionWithJerk(NamedTuple):
    """Positions and their derivatives at N instants, or gradients by them, (N, n) each."""

    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    jerk: NDArray


LINKS = "links"
GRAVITY = "gravity"
LOAD = "load"
FRICTION = {
    LINKS: JointFriction(offset=True, rotor_inertia=True),
    GRAVITY: JointFriction(viscous=False, offset=True),
    LOAD: JointFriction.none(),
}
"""Default friction terms for each target.

At standstill Coulomb friction shows the direction from which a pose was reached. A load is identified from the
difference to the empty arm, where friction cancels.
"""


class TorqueColumns:
    """Independent columns of the torque regressor: the base parameters that some motion of the arm distinguishes.

    Args:
        friction: friction terms of the joints; None: `FRICTION`.
        model: "links": all parameters of the links; "gravity": masses and mass moments, at rest; "load": the ten
            parameters of a load on the last link, about its frame.

    Attributes:
        robot, model: as in the arguments.
        base: base parameters of the model.
        expressions: (k,) expressions of the base parameters.
        names: (k,) leading parameter of each base parameter, such as "Izz1".
        units: (k,) units of the base parameters.
        hidden: parameters of links that no motion of this arm shows.
        links: indices of the leading parameters of links, out of all 10 m.
        drives: indices of the leading parameters of joints, out of friction's coefficients.

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
        chosen = {LINKS: links, GRAVITY: links[links % PARAMETERS_PER_LINK < STATIC], LOAD: links[robot.tip_columns]}
        candidates = chosen[model]
        names = parameter_names(robot, self.friction)
        q, qd, qdd = random_motion(robot)
        exact = robot.structure
        rigid = exact.gravity_regressor(q) if model == GRAVITY else exact.torque_regressor(q, qd, qdd)
        regressor = np.concatenate([rigid[..., candidates], self._friction_columns(q, qd, qdd)], axis=-1)
        self.base = BaseParameters(regressor, [*(names[i] for i in candidates), *names[len(links) :]])
        self.expressions = self.base.expressions
        self.names = tuple(self.base.names[column] for column in self.base.columns)
        self.units = tuple(_unit(robot, name) for name in self.names)
        categories = zip(self.base.names[: len(candidates)], self.base.categories, strict=False)
        self.hidden = tuple(name for name, category in categories if category == UNIDENTIFIABLE)
        is_link = self.base.columns < len(candidates)
        self.links = candidates[self.base.columns[is_link]]
        self.drives = self.base.columns[~is_link] - len(candidates)
        self._rigid = RegressorRows(robot.chain, robot.gravity, self.links)
        # The torque of a joint depends neither on the links before it nor on other drives.
        self._columns_of_joint = [np.flatnonzero(matrix.any(axis=1)) for matrix in self.rows(q, qd, qdd)]

    @property
    def size(self) -> int:
        """Number k of columns."""
        return len(self.names)

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Return the regressor (n, k, N) of the base parameters at q, qd and qdd, each (N, n)."""
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
        """Accumulate the normal equations (n, k, k) of each torque for q, qd and qdd, (N, n) each, in blocks."""
        total = np.zeros((self.robot.n_joints, self.size, self.size))
        for block in blocks(len(motion[0])):
            rows = self.rows(*(x[block] for x in motion))
            for sums, matrix, columns in zip(total, rows, self._columns_of_joint, strict=True):
                reduced = matrix[columns]
                sums[np.ix_(columns, columns)] += reduced @ reduced.T
        return total


def checked_noise(robot: RobotModel, noise: ArrayLike | None) -> NDArray:
    """Return the standard deviations (n,) of the torques; 1 if the noise is unknown.

    Raises:
        TrajectoryError: a wrong number of values, or a value that is not positive and finite; names the joint.
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
    """Return the unit of a parameter of a link or of a joint."""
    return describe_parameters(robot, [name])["unit"][0]


SMOOTHING_FRACTION = 0.02
"""Velocity range of the reversal of Coulomb friction, relative to the speed limit; a step has no gradient."""


class Rows(NamedTuple):
    """Equations of a motion.

    Attributes:
        regressor: (p, n, N) rows of each joint, divided by its noise.
        torque: (N, n) nominal torque of the links, N m or N.
    """

    regressor: NDArray
    torque: NDArray


class TorqueInformation:
    """Information that joint torques contain on the base parameters of links and joints.

    Args:
        robot: the arm; its nominal parameters give the torques.
        speeds: (n,) speed limits, which scale the smoothing of Coulomb friction.
        target: "links", "gravity" or "load" (see `TorqueColumns`).
        drive: friction terms of each joint; None: those of the target.
        noise: standard deviation of the torques, one value or (n,), N m or N.
        columns: (p,) parameters that represent the base parameters, ascending; None: as `BaseParameters` chooses. A
            condition number without scaling depends on this choice.

    Attributes:
        names: (p,) names of the parameters.

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
        self._robot = robot
        self._weight = 1.0 / checked_noise(robot, noise)
        torque_columns = TorqueColumns(robot, drive, target)
        self.base = torque_columns.base
        chosen = torque_columns.links if columns is None else _checked_columns(torque_columns, columns)
        drives = torque_columns.drives if columns is None else np.zeros(0, dtype=int)
        every_name = parameter_names(robot, torque_columns.friction)
        size = robot.parameters.size
        self.names = tuple(every_name[column] for column in (*chosen, *(size + drives)))
        self._n_links = len(chosen)
        self._drives = _DriveColumns(
            torque_columns.friction.per_joint(robot.n_joints), drives, SMOOTHING_FRACTION * speeds
        )
        links = robot.base_parameters()
        every = np.union1d(links.columns, chosen)
        self._regressor = DifferentiableRegressor(robot.chain, robot.gravity, every)
        self._rest = DifferentiableRegressor(robot.chain, robot.gravity, chosen) if target == GRAVITY else None
        self._chosen = np.searchsorted(every, chosen)
        self._parameters = np.zeros(len(every))
        self._parameters[np.searchsorted(every, links.columns)] = links.project(robot.parameters)

    def rows(self, motion: MotionWithJerk) -> Rows:
        """Compute the equations of a motion, and keep them for `gradient`."""
        q, qd, qdd, _ = motion
        matrix = self._regressor.matrix(q, qd, qdd)
        torque = np.einsum("icm,c->mi", matrix, self._parameters)
        chosen_columns = matrix[:, self._chosen] if self._rest is None else self._rest.matrix(q, 0.0 * q, 0.0 * q)
        regressor = np.concatenate([chosen_columns.transpose(1, 0, 2), self._drives.columns(qd, qdd)])
        self._drive_motion = qd, qdd
        return Rows(regressor * self._weight[:, None], torque)

    def gradient(self, by: Rows) -> MotionWithJerk:
        """Return the gradient by the motion of the last rows, for gradients by the rows."""
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
        """Return the nominal torques (N, n) of the links, N m or N."""
        return self._robot.inverse_dynamics(*motion[:3])

    def over_time(self, time: NDArray, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Integrate the information (p, p) of a recorded motion (N, n) over times (N,), s."""
        total = np.zeros((len(self.names), len(self.names)))
        steps = np.gradient(time)
        for block in blocks(len(time)):
            motion = MotionWithJerk(q[block], qd[block], qdd[block], np.zeros_like(q[block]))
            flat = (self.rows(motion).regressor * np.sqrt(steps[block])).reshape(len(total), -1)
            total += flat @ flat.T
        return total


def information_matrix(rows: Rows) -> NDArray:
    """Return the information matrix (p, p), a mean over the samples."""
    flat = rows.regressor.reshape(len(rows.regressor), -1)
    return flat @ flat.T / rows.torque.shape[0]


class _DriveColumns:
    """Columns of the friction terms of the joints, with smooth Coulomb friction.

    Args:
        chosen: (k,) indices of the chosen terms, joint after joint.
        smoothing: (n,) velocity range of the reversal of Coulomb friction.
    """

    def __init__(self, terms: Sequence[JointFriction], chosen: NDArray, smoothing: NDArray) -> None:
        every = [(name, joint) for joint, friction in enumerate(terms) for name in friction.terms]
        unknown = {name for name, _ in every} - {"coulomb", "viscous", "offset", "rotor_inertia"}
        if unknown:
            raise TrajectoryError(f"no motion can be designed for the friction terms {', '.join(sorted(unknown))}")
        self._columns = chosen
        self._chosen = [every[column] for column in chosen]
        self._smoothing = smoothing
        widths = zip(terms, smoothing.tolist(), strict=True)
        self._model = FrictionModel([replace(friction, smoothing=width, dead_zone=0.0) for friction, width in widths])

    def columns(self, qd: NDArray, qdd: NDArray) -> NDArray:
        """Return the columns (k, n, N)."""
        return self._model.regressor(qd, qdd)[..., self._columns].transpose(2, 1, 0)

    def gradient(self, qd: NDArray, qdd: NDArray, by_columns: NDArray) -> tuple[NDArray, NDArray]:
        """Return the gradients (N, n) by velocity and acceleration, for gradients (k, n, N) by the columns."""
        by_velocity = np.zeros_like(qd)
        by_acceleration = np.zeros_like(qdd)
        slope = (1.0 - np.tanh(qd / self._smoothing) ** 2) / self._smoothing
        for by_column, (term, joint) in zip(by_columns, self._chosen, strict=True):
            if term == "coulomb":
                by_velocity[:, joint] += by_column[joint] * slope[:, joint]
            elif term == "viscous":
                by_velocity[:, joint] += by_column[joint]
            elif term == "rotor_inertia":
                by_acceleration[:, joint] += by_column[joint]
        return by_velocity, by_acceleration


def _checked_columns(torque_columns: TorqueColumns, columns: ArrayLike) -> NDArray:
    """Return columns of links in ascending order."""
    base = torque_columns.base
    ordered = np.sort(np.asarray(columns, dtype=int))
    size = torque_columns.robot.parameters.size
    is_valid = len(base.names) == size and len(ordered) == base.rank and ordered.min() >= 0 and ordered.max() < size
    if not is_valid or np.linalg.matrix_rank(base.combinations[:, ordered], tol=1e-9) < base.rank:
        raise TrajectoryError(
            f"columns: {len(ordered)} are given; expected {base.rank} parameters of links that are a base, and no "
            "friction"
        )
    return ordered


class InformationSource(Protocol):
    """Equations that a motion of the motors contributes to an identification, with gradients, for a motion design.

    A motion is one period at N equidistant times. `rows` and `torque` raise `TrajectoryError` if the motion of the
    links cannot be predicted.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the p parameters."""

    def rows(self, motion: MotionWithJerk) -> Rows:
        """Compute the equations of a motion, and keep them for `gradient`."""

    def gradient(self, by: Rows) -> MotionWithJerk:
        """Return the gradient by the motion of the last rows, for gradients by the rows."""

    def torque(self, motion: MotionWithJerk) -> NDArray:
        """Return the nominal torques (N, n) of a motion, N m or N."""

    def over_time(self, time: NDArray, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Integrate the information (p, p) of a recorded motion (N, n) over times (N,), s.

        Raises:
            TrajectoryError: the source supports planned motions only.
        """
