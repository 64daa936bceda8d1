"""The gravity torque as a linear function of as few parameters as possible.

Ma and Hollerbach 1996, "Identifying mass parameters for gravity compensation and automatic torque sensor calibration",
section 3, generalized to chains with branches, prismatic joints and joints that mimic others.

A tilt of the base turns gravity in its frame. Two angles turn a direction; a turn about gravity itself turns the base
about the vertical and has no effect. Torques are linear in gravity, so a small turn about an axis a changes them by the
torques of a gravity a × g.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.arrays import blocks, cross, dot, finite_vector, joint_samples
from dynid_ros.model.chain import Chain, joint_frames
from dynid_ros.model.generated_code import Lines, compiled, constants, function_text, variable
from dynid_ros.model.recursion import gravity_lines, link_moments
from dynid_ros.model.robot import RobotModel


def turn_axes(gravity: ArrayLike) -> NDArray:
    """Return two unit axes (2, 3) across gravity (3,) and each other, the first near an axis of the base frame."""
    down = np.asarray(gravity, dtype=float) / np.linalg.norm(gravity)
    first = np.eye(3)[np.argmin(np.abs(down))]
    first = first - (first @ down) * down
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(first, down)])


def turned(gravity: ArrayLike, turn: ArrayLike) -> NDArray:
    """Return gravity (3,) turned by a rotation vector (3,), rad."""
    g = np.asarray(gravity, dtype=float)
    vector = np.asarray(turn, dtype=float)
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return g
    axis = vector / angle
    return g * np.cos(angle) + np.cross(axis, g) * np.sin(angle) + axis * (axis @ g) * (1 - np.cos(angle))


def angle_between(one: ArrayLike, other: ArrayLike) -> float:
    """Return the angle between two vectors (3,), rad, exact for small angles, too."""
    a = np.asarray(one, dtype=float)
    b = np.asarray(other, dtype=float)
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def mount_rotation(robot: RobotModel, frame: str, where: str) -> NDArray:
    """Return the rotation (3, 3) to the base frame from the frame of a sensor that the URDF fixes to the base.

    Args:
        robot: the arm.
        frame: name of the link; empty for the base frame.
        where: beginning of error messages.

    Raises:
        ModelError: the URDF has no such link, or a joint moves it.
    """
    frame = frame.lstrip("/")
    if frame in ("", robot.base):
        return np.eye(3)
    fixed: dict[str, NDArray] = {}
    if robot.urdf is not None:
        root = robot.base
        above = robot.tree.parent_joint
        while root in above and above[root].type == "fixed":
            root = above[root].parent
        fixed = robot.tree.fixed_to(root)
    if frame not in fixed:
        raise ModelError(
            f"{where}: its frame '{frame}' is no link that is fixed to '{robot.base}' in the URDF; expected "
            f"{', '.join(fixed) or robot.base}: add the sensor's link with its mounting"
        )
    return fixed[robot.base][:3, :3].T @ fixed[frame][:3, :3]


PARALLEL_SINE = 1e-3
"""Sine of the angle (0.06 degrees) below which an axis counts as parallel, or perpendicular, to gravity."""
N_PROBE_POSES = 64


class GravityModel:
    """Gravity torque of an arm as a linear function of its k minimal moments.

    A revolute joint has two moments, n_x and n_y (kg m): the mass moment about the joint of all that it carries, as far
    as it is constant in the joint frame, whose z is the axis. A prismatic joint has one, the mass (kg) of all that it
    carries. Joints that mimic it have such moments, too, unless these are combinations of others.

    Args:
        robot: the arm; its parameters are not used.

    Attributes:
        names: names of the moments, such as "n_x joint_2" or "mass joint_3", joint by joint.
        projection: (k, 10 m) matrix from parameters to moments.
    """

    def __init__(self, robot: RobotModel):
        self.robot = robot
        chain = robot.chain
        # Moments of all links: those of each joint's own link first, then those of links that mimic it.
        links = np.lexsort((np.arange(chain.n_links), chain.drivers))
        kinds = [
            (link, row, kind)
            for link in links
            for row, kind in enumerate(("mass",) if chain.slides[link] else ("n_x", "n_y"))
        ]
        self._link_columns = [[c for c, (i, *_) in enumerate(kinds) if i == link] for link in range(chain.n_links)]
        names = [f"{kind} {chain.mover_names[link]}" for link, _, kind in kinds]
        projection = link_moments(chain)[[link for link, *_ in kinds], [row for _, row, _ in kinds]]
        self._kept = np.arange(len(names))
        if chain.has_mimics:
            self._kept, combinations = self._minimal(names)
            projection = combinations @ projection
        self.names: tuple[str, ...] = tuple(names[c] for c in self._kept)
        self.projection = projection
        drivers = [chain.drivers[kinds[c][0]] for c in self._kept]
        starts = np.searchsorted(drivers, np.arange(chain.n_joints + 1))
        self._columns = [slice(int(start), int(stop)) for start, stop in pairwise(starts)]

    def columns(self, joint: int) -> slice:
        """Return the slice of a joint's entries among the moments."""
        return self._columns[joint]

    def project(self, parameters: ArrayLike) -> np.ndarray:
        """Return the moments (k,) of parameters (10 m,)."""
        return self.projection @ finite_vector(parameters, self.projection.shape[1], "parameters (ten per link)")

    def regressor(self, q: ArrayLike) -> np.ndarray:
        """Return the matrix (N, n, k) from the moments to the torques that hold the arm at rest at q (N, n)."""
        (q,) = joint_samples(self.robot.joint_names, q=q)
        matrix = np.empty((q.shape[1], len(self.names), len(q)))
        for block in blocks(len(q)):
            every = self._regressor_of_all_links(q[block])
            matrix[..., block] = every[:, self._kept] if self.robot.chain.has_mimics else every
        return matrix.transpose(2, 0, 1)

    def unobservable_axes(self) -> np.ndarray:
        """Return a mask (n,) of the joints whose moments have no effect on any torque in any pose.

        Gravity never loads a leading revolute joint whose axis is parallel to gravity in every pose, nor a prismatic
        joint whose axis is perpendicular to gravity in every pose, both within 0.06 degrees.
        """
        return self.loads() < PARALLEL_SINE

    def loads(self) -> np.ndarray:
        """Return the fraction (n,) of gravity that loads each joint in its most loaded pose, between 0 and 1."""
        magnitude = np.linalg.norm(self.robot.gravity)
        if magnitude == 0.0:
            return np.zeros(self.robot.n_joints)
        chain = self.robot.chain
        down = self.robot.gravity / magnitude
        axes = joint_frames(chain, self._probe_poses())[0][:, :, 2].transpose(2, 0, 1)
        load = np.where(chain.slides, np.abs(axes @ down), np.linalg.norm(np.cross(axes, down), axis=-1)).max(axis=0)
        return np.array([load[chain.drivers == joint].max() for joint in range(chain.n_joints)])

    def compile(self, moments: ArrayLike) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function from positions (n,) to gravity torques (n,), fast enough for a control loop.

        NaN positions give NaN torques; infinite positions and arrays of another length raise ValueError.
        """
        chain = self.robot.chain
        source = gravity_source(chain, self.robot.gravity, self.by_link(self._checked(moments).tolist(), 0.0))
        return compiled(source, "gravity_torque", np.fromiter)

    def bind(
        self, moments: ArrayLike, down: Callable[[], Sequence[float]] | None = None
    ) -> Callable[[Sequence[float]], list[float]]:
        """Return a function from n positions to a list of n gravity torques, for moments that change while a loop runs.

        After the first call a new function takes microseconds.

        Args:
            moments: (k,).
            down: returns gravity (3,) in the frame of a base that tilts, m/s²; None: gravity of the robot.
        """
        links = self.by_link(self._checked(moments).tolist(), 0.0)
        first = [link[0] for link in links]
        second = [link[-1] for link in links]  # the function ignores the second moment of a prismatic joint
        if down is not None:
            tilting = self._tilting_function
            return lambda q: tilting(q, first, second, down())
        fixed = self._fixed_function
        return lambda q: fixed(q, first, second)

    @cached_property
    def _fixed_function(self) -> Callable[..., list[float]]:
        return compiled(gravity_source(self.robot.chain, self.robot.gravity, given=""), "gravity_torque", list)

    @cached_property
    def _tilting_function(self) -> Callable[..., list[float]]:
        return compiled(gravity_source(self.robot.chain, None, given=""), "gravity_torque", list)

    def by_link(self, moments: Sequence[Any], missing: Any) -> list[list[Any]]:
        """Return the moments (k,), numbers or terms, link by link, with `missing` for those that are not minimal."""
        every = [missing] * sum(map(len, self._link_columns))
        for column, moment in zip(self._kept, moments, strict=True):
            every[column] = moment
        return [[every[column] for column in columns] for columns in self._link_columns]

    def _checked(self, moments: ArrayLike) -> np.ndarray:
        return finite_vector(moments, len(self.names), f"moments ({', '.join(self.names)})")

    def _probe_poses(self) -> np.ndarray:
        return np.random.default_rng(0).uniform(-np.pi, np.pi, (N_PROBE_POSES, self.robot.n_joints))

    def _minimal(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of the minimal moments among those of all links, and the combinations (k, all)."""
        from dynid_ros.model.base_parameters import BaseParameters  # noqa: PLC0415 - only arms with mimics need it

        base = BaseParameters(self._regressor_of_all_links(self._probe_poses()).transpose(2, 0, 1), names)
        # The moments of joints that gravity never loads stay, as in an arm without joints that mimic.
        unloaded = np.flatnonzero(self.unobservable_axes()[self.robot.chain.drivers])
        kept = np.union1d(base.columns, [c for link in unloaded for c in self._link_columns[link]]).astype(int)
        combinations = np.eye(len(names))[kept]
        combinations[np.isin(kept, base.columns)] = base.combinations
        return kept, combinations

    def _regressor_of_all_links(self, q: np.ndarray) -> np.ndarray:
        """Return the matrix (n, all, N) from the moments of all links.

        The torque that holds link i is (z_i × g) · moment (Ma and Hollerbach, eq. 7 with its sign reversed).
        """
        chain = self.robot.chain
        gravity = self.robot.gravity
        rotations, _ = joint_frames(chain, q)
        (positions,) = chain.of_links(q)
        axes = rotations[:, :, 2]
        levers = cross(axes, gravity[:, None])
        levers[chain.slides] = 0.0
        matrix = np.zeros((chain.n_links, sum(map(len, self._link_columns)), len(q)))
        for j, columns in enumerate(self._link_columns):
            before = chain.path(j)
            if chain.slides[j]:
                matrix[before, columns[0]] = dot(levers[before], axes[j]) * positions[:, j]
                matrix[j, columns[0]] = -(gravity @ axes[j])
            else:
                for k, column in enumerate(columns):
                    matrix[before, column] = dot(levers[before], rotations[j, :, k])
        return chain.of_joints(matrix)


def gravity_source(
    chain: Chain,
    gravity: np.ndarray | None,
    moments: Sequence[Sequence[float]] | None = None,
    *,
    given: str = ".tolist()",
) -> str:
    """Return the text of a function `gravity_torque(q)`, or without moments of `gravity_torque(q, x, y)`.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s². None: the function takes it as w (3,), last.
        moments: of each link about its joint, (n_x, n_y), or (mass, …) for a prismatic joint. None: the function takes
            them as x (m,), n_x or mass, and y (m,), n_y.
        given: text that makes lists of the arguments; empty if they are lists.
    """
    lines = Lines()
    links = range(chain.n_links)
    # Gravity along an axis of the base has the factor 1 if the moments take the magnitude, which saves products.
    unit = 1.0 if gravity is None or not moments else float(np.max(np.abs(gravity))) or 1.0
    terms = [constants(np.multiply(own, unit)) for own in moments] if moments else []
    terms = terms or [[variable(f"x{i}"), variable(f"y{i}")] for i in links]
    down = [variable(f"w{k}") for k in range(3)] if gravity is None else constants(gravity / unit)
    torques = gravity_lines(lines, chain, down, terms)
    arguments = {letter: letter for letter in ("q" if moments else "qxy") + ("w" if gravity is None else "")}
    sizes = {"x": chain.n_links, "y": chain.n_links, "w": 3}
    n = chain.n_joints
    # `numpy.fromiter`, which takes type and count, is quicker than `numpy.array`.
    made = f"array(({{}},), float, {n})" if given else "array(({},))"
    return function_text("gravity_torque", arguments, lines, torques, n, given=given, sizes=sizes, made=made)
