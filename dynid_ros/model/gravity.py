"""The gravity torque with as few parameters as it can have.

Ma and Hollerbach 1996, "Identifying mass parameters for gravity compensation and automatic torque sensor calibration",
section 3, generalised to any serial chain and to prismatic joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.model.arrays import blocks, cross, dot, finite_vector, joint_samples
from dynid_ros.model.chain import Chain, joint_frames
from dynid_ros.model.generated_code import Lines, Term, compiled, function_text, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.robot import RobotModel


def gravity_function(
    chain: Chain, gravity: np.ndarray, moments: Sequence[np.ndarray] | None = None
) -> Callable[..., np.ndarray]:
    """Function from positions (n,) to gravity torques (n,); the arguments are those of `gravity_source`."""
    return compiled(gravity_source(chain, gravity, moments), "gravity_torque")


def gravity_function_of_lists(chain: Chain, gravity: np.ndarray) -> Callable[..., list[float]]:
    """As above with moments left open, from lists to a list: half the time for who has no arrays."""
    return compiled(gravity_source(chain, gravity, given=""), "gravity_torque", list)


def gravity_source(
    chain: Chain, gravity: np.ndarray, moments: Sequence[np.ndarray] | None = None, *, given: str = ".tolist()"
) -> str:
    """Text of a function `gravity_torque(q)`, or without moments of `gravity_torque(q, x, y)`.

    Gravity is turned from frame to frame towards the tip, the mass moment of all that is carried from frame to frame
    towards the base (Ma and Hollerbach 1996, eqs 7 and 18).

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        moments: for each joint its minimal moments, (n_x, n_y), or (mass,) if it is prismatic. None: the function takes
            them as x (n,), n_x or mass, and y (n,), n_y.
        given: what makes the arguments lists; none if they are.
    """
    if moments is None:
        arguments = {"q": "q", "x": "x", "y": "y"}
        owns = [[variable(f"x{i}"), variable(f"y{i}")] for i in range(chain.n_joints)]
    else:
        arguments = {"q": "q"}
        owns = [[Term(float(own)) for own in joint] for joint in moments]
    lines = Lines()
    torques = gravity_lines(lines, chain, gravity, owns)
    return function_text("gravity_torque", arguments, lines, torques, chain.n_joints, given=given)


def gravity_lines(lines: Lines, chain: Chain, gravity: np.ndarray, moments: Sequence[Sequence[Term]]) -> list[Term]:
    """Add the lines of `gravity_source`, and return the torques (n,); of the moments as terms, constant or not."""
    n = chain.n_joints
    rotations = chain.transforms[:, :3, :3]
    cos, sin, slide = ([variable(f"{letter}{i}") for i in range(n)] for letter in "csq")
    down = [Term(float(component)) for component in gravity]
    downs = []
    for i in range(n):
        down = lines.rotated(f"d{i}", rotations[i].T, down)
        if not chain.prismatic[i]:
            down = lines.turned(f"g{i}", cos[i], -sin[i], down)
        downs.append(down)
    moment = [Term(0.0)] * 3
    torques = [Term(0.0)] * n
    for i in reversed(range(n)):
        if chain.prismatic[i]:
            mass = moments[i][0]
            torques[i] = lines.sum(f"t{i}", -mass.times(downs[i][2]))
            moment[2] = lines.sum(f"m{i}z", moment[2], mass.times(slide[i]))
        else:
            for k, own in enumerate(moments[i]):
                moment[k] = lines.sum(f"m{i}{'xy'[k]}", moment[k], own)
            torques[i] = lines.sum(f"t{i}", downs[i][0].times(moment[1]), -downs[i][1].times(moment[0]))
            moment = lines.turned(f"r{i}", cos[i], sin[i], moment)
        moment = lines.rotated(f"p{i}", rotations[i], moment)
    return torques


ALWAYS = 1e-3  # sine of the angle below which an axis counts as parallel, or perpendicular, to gravity
PROBE_POSES = 64


class GravityModel:
    """Gravity torque of an arm as a linear function of its k minimal moments.

    A revolute joint has two: n_x and n_y (kg m), the mass moment about the joint of all that it carries, as far as it
    is constant in its joint frame (z is the axis). A prismatic joint has one: the mass (kg) of all that it carries.

    Args:
        robot: the arm; its parameters are not used.

    Attributes:
        robot: the arm.
        names: what the moments are, such as "n_x joint_2" or "mass joint_3".
        projection: (k, 10 n) matrix from parameters to moments.
    """

    def __init__(self, robot: RobotModel):
        self.robot = robot
        prismatic = robot.chain.prismatic
        self.names: tuple[str, ...] = tuple(
            f"{moment} {joint}"
            for joint, slides in zip(robot.joint_names, prismatic, strict=True)
            for moment in (("mass",) if slides else ("n_x", "n_y"))
        )
        sizes = np.where(prismatic, 1, 2)
        self._columns = [slice(int(e - s), int(e)) for e, s in zip(np.cumsum(sizes), sizes, strict=True)]
        self.projection = self._projection()

    def columns(self, joint: int) -> slice:
        """Where the entries of a joint, counted from 0, are among the moments."""
        return self._columns[joint]

    def project(self, parameters: ArrayLike) -> np.ndarray:
        """Moments (k,) of parameters (10 n,)."""
        return self.projection @ finite_vector(parameters, self.projection.shape[1], "parameters (ten per link)")

    def regressor(self, q: ArrayLike) -> np.ndarray:
        """Matrix (N, n, k) from the moments to the torques that hold the arm at rest at q (N, n)."""
        (q,) = joint_samples(self.robot.joint_names, q=q)
        matrix = np.zeros((*q.shape, len(self.names)))
        for block in blocks(len(q)):
            self._fill(matrix[block], q[block])
        return matrix

    def unobservable_axes(self) -> np.ndarray:
        """(n,) bool: joints whose moments have no effect on any torque in any pose.

        They are the leading revolute joints whose axes are parallel to gravity in every pose and the prismatic joints
        whose axes are perpendicular to it in every pose (within 0.06 deg): gravity never loads them.
        """
        magnitude = np.linalg.norm(self.robot.gravity)
        if magnitude == 0.0:
            return np.ones(self.robot.n_joints, dtype=bool)
        poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE_POSES, self.robot.n_joints))
        axes, down = self.robot.joint_axes(poses), self.robot.gravity / magnitude
        load = np.where(self.robot.chain.prismatic, np.abs(axes @ down), np.linalg.norm(np.cross(axes, down), axis=-1))
        return load.max(axis=0) < ALWAYS

    def compile(self, moments: ArrayLike) -> Callable[[np.ndarray], np.ndarray]:
        """Function from positions (n,) to gravity torques (n,) of one sample, fast enough for a control loop.

        NaN positions give NaN torques; infinite ones and arrays of another length raise ValueError.
        """
        moments = finite_vector(moments, len(self.names), f"moments ({', '.join(self.names)})")
        return gravity_function(self.robot.chain, self.robot.gravity, [moments[columns] for columns in self._columns])

    def bind(self, moments: ArrayLike) -> Callable[[Sequence[float]], list[float]]:
        """What `compile` gives, within microseconds after the first time, for moments that change in a running loop.

        Positions come as n floats and torques go as a list.
        """
        moments = finite_vector(moments, len(self.names), f"moments ({', '.join(self.names)})")
        first = moments[[columns.start for columns in self._columns]].tolist()
        second = [float(moments[columns][-1]) for columns in self._columns]  # of a prismatic joint not looked at
        general = self._general
        return lambda q: general(q, first, second)

    @cached_property
    def _general(self) -> Callable[..., list[float]]:
        return gravity_function_of_lists(self.robot.chain, self.robot.gravity)

    def _projection(self) -> np.ndarray:
        """The recursion from tip to base (eq. 16), for all parameters at once.

        What a joint does not show, the moment along a revolute axis and all of it for a prismatic one, is constant in
        the frame before as well and is passed on.
        """
        chain = self.robot.chain
        size = PARAMETERS_PER_LINK * chain.n_joints
        projection = np.empty((len(self.names), size))
        passed_on, mass = np.zeros((3, size)), np.zeros(size)
        for i in reversed(range(chain.n_joints)):
            own_mass, *own_moment = np.eye(4, size, PARAMETERS_PER_LINK * i)
            offset, transform = chain.link_offsets[i], chain.transforms[i]
            moment = passed_on + offset[:3, :3] @ own_moment + np.outer(offset[:3, 3], own_mass)
            mass = mass + own_mass
            if chain.prismatic[i]:
                projection[self._columns[i]] = mass
            else:
                projection[self._columns[i]] = moment[:2]
                moment[:2] = 0.0
            passed_on = transform[:3, :3] @ moment + np.outer(transform[:3, 3], mass)
        return projection

    def _fill(self, matrix: np.ndarray, q: np.ndarray) -> None:
        """The torque of joint i is (z_i x g) . moment (eq. 7 with its sign turned: the torque that holds)."""
        chain, gravity = self.robot.chain, self.robot.gravity
        rotations, _ = joint_frames(chain, q)
        axes = rotations[:, :, 2]
        levers = cross(axes, gravity[:, None])
        levers[chain.prismatic] = 0.0
        for j, columns in enumerate(self._columns):
            if chain.prismatic[j]:
                matrix[:, :j, columns.start] = (dot(levers[:j], axes[j]) * q[:, j]).T
                matrix[:, j, columns.start] = -(gravity @ axes[j])
            else:
                for k in range(2):
                    matrix[:, : j + 1, columns.start + k] = dot(levers[: j + 1], rotations[j, :, k]).T
