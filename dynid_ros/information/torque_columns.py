"""What of an arm is asked of its torques, and the columns of the regressor that belong to it."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import BLOCK, blocks
from dynid_ros.model.base_parameters import UNIDENTIFIABLE, BaseParameters, parameter_names, random_motion
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.model.regressor import RegressorRows

LINKS, GRAVITY, LOAD = "links", "gravity", "load"
FRICTION = {
    LINKS: JointFriction(offset=True, rotor_inertia=True),
    GRAVITY: JointFriction(viscous=False, offset=True),
    LOAD: JointFriction.none(),
}
"""What the torque of a joint holds beside that of the links. At rest it tells the side that a pose was reached from; a
load is known from its difference to the empty arm, in which friction cancels."""


class TorqueColumns:
    """Independent columns of the torque regressor, as few as any motion of the arm can tell apart.

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
        links: the leading parameters of links, out of all 10 n.
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
        self.friction = terms if isinstance(terms, FrictionModel) else FrictionModel(terms)
        links = np.arange(robot.parameters.size)
        chosen = {
            LINKS: links,
            GRAVITY: links[links % PARAMETERS_PER_LINK < STATIC],
            LOAD: links[-PARAMETERS_PER_LINK:],
        }
        asked = chosen[model]
        names = parameter_names(robot, self.friction)
        q, qd, qdd = random_motion(robot)
        exact = robot.structure
        rigid = exact.gravity_regressor(q) if model == GRAVITY else exact.torque_regressor(q, qd, qdd)
        regressor = np.concatenate([rigid[..., asked], self.friction.regressor(qd, qdd)], axis=-1)
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
        matrix[:, len(self.links) :] = self.friction.regressor(qd, qdd)[..., self.drives].transpose(1, 2, 0)
        return matrix

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


def _unit(robot: RobotModel, name: str) -> str:
    """Unit of a parameter of a link or of a joint's own torque."""
    term, _, joint = name.partition(" ")
    if not joint:
        return "kg m²" if name.startswith("I") else "kg m" if name.startswith("mc") else "kg"
    slides = joint in robot.joint_names and robot.joint_types[robot.joint_names.index(joint)] == "prismatic"
    effort, unit = ("N", "m") if slides else ("N m", "rad")
    if "inertia" in term:
        return "kg" if slides else "kg m²"
    return f"{effort} s/{unit}" if "viscous" in term else effort
