"""The gravity torque with as few parameters as it can have.

Ma and Hollerbach 1996, "Identifying mass parameters for gravity compensation and automatic torque sensor calibration",
section 3, generalised to any chain, with branches too, to prismatic joints and to joints that mimic others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.model.arrays import blocks, cross, dot, finite_vector, joint_samples
from dynid_ros.model.chain import Chain, joint_frames
from dynid_ros.model.generated_code import Lines, Term, compiled, function_text, link_numbers, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.robot import RobotModel


def gravity_function(
    chain: Chain, gravity: np.ndarray, moments: Sequence[Sequence[float]] | None = None
) -> Callable[..., np.ndarray]:
    """Function from positions (n,) to gravity torques (n,); the arguments are those of `gravity_source`."""
    return compiled(gravity_source(chain, gravity, moments), "gravity_torque", np.fromiter)


def gravity_function_of_lists(chain: Chain, gravity: np.ndarray | None) -> Callable[..., list[float]]:
    """As above with moments left open, and gravity if None, from lists to a list: half the time without arrays."""
    return compiled(gravity_source(chain, gravity, given=""), "gravity_torque", list)


def gravity_source(
    chain: Chain,
    gravity: np.ndarray | None,
    moments: Sequence[Sequence[float]] | None = None,
    *,
    given: str = ".tolist()",
) -> str:
    """Text of a function `gravity_torque(q)`, or without moments of `gravity_torque(q, x, y)`.

    Gravity is turned from frame to frame towards the tip, the mass moment of all that is carried from frame to frame
    towards the base (Ma and Hollerbach 1996, eqs 7 and 18).

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2. None: the function takes it as w (3,), last.
        moments: of each link about its joint, (n_x, n_y), or (mass,) if that is prismatic. None: the function takes
            them as x (m,), n_x or mass, and y (m,), n_y.
        given: what makes the arguments lists; none if they are.
    """
    # Constants times gravity are constants too: along an axis of the base it is then one.
    unit = 1.0 if gravity is None or not moments else float(np.max(np.abs(gravity))) or 1.0
    if not moments:
        owns = [[variable(f"x{i}"), variable(f"y{i}")] for i in range(chain.n_links)]
    else:
        owns = [[Term(float(own) * unit) for own in link] for link in moments]
    lines = Lines()
    down = [variable(f"w{k}") for k in range(3)] if gravity is None else [Term(float(g) / unit) for g in gravity]
    torques = gravity_lines(lines, chain, down, owns)
    arguments = {letter: letter for letter in ("q" if moments else "qxy") + "w" * (gravity is None)}
    sizes = {**dict.fromkeys("xy", chain.n_links), "w": 3}
    n = chain.n_joints
    made = f"array(({{}},), float, {n})" if given else "array(({},))"  # `numpy.fromiter`, quicker than `numpy.array`
    return function_text("gravity_torque", arguments, lines, torques, n, given=given, sizes=sizes, made=made)


def gravity_lines(lines: Lines, chain: Chain, gravity: Sequence[Term], moments: Sequence[Sequence[Term]]) -> list[Term]:
    """Add the lines of `gravity_source`, and return the torques (n,); gravity and moments may be constant terms."""
    links = range(chain.n_links)
    numbers = link_numbers(lines, chain)
    rotations = chain.transforms[:, :3, :3]
    cos, sin, slide = ([variable(f"{letter}{i}") for i in numbers] for letter in "csq")
    downs = [list(gravity)] * (chain.n_links + 1)  # the last is the base's
    still = [list(gravity)] * chain.n_links
    for i in links:
        still[i] = downs[i] = lines.rotated(f"d{i}", rotations[i].T, downs[chain.parents[i]])
        if not chain.slides[i]:
            downs[i] = lines.turned(f"g{i}", cos[i], -sin[i], downs[i])
    carried: list[list[list[Term]]] = [[] for _ in (*links, -1)]
    of_joints: list[list[Term]] = [[] for _ in chain.joint_names]
    for i in reversed(links):
        moment = [lines.sum(f"b{i}{axis}", *(part[k] for part in carried[i])) for k, axis in enumerate("xyz")]
        if chain.slides[i]:
            mass = moments[i][0]
            torque = lines.sum(f"t{i}", -mass.times(downs[i][2]))
            moment[2] = lines.sum(f"m{i}z", moment[2], mass.times(slide[i]))
        else:
            for k, own in enumerate(moments[i]):
                moment[k] = lines.sum(f"m{i}{'xy'[k]}", moment[k], own)
            turned = lines.turned(f"r{i}", cos[i], sin[i], moment)
            # Both before or both after the joint: gravity after it is there for links beyond, moments for links before.
            down, lever = (downs[i], moment) if i in chain.parents or chain.parents[i] < 0 else (still[i], turned)
            torque = lines.sum(f"t{i}", down[0].times(lever[1]), -down[1].times(lever[0]))
            moment = turned
        carried[chain.parents[i]].append(lines.rotated(f"p{i}", rotations[i], moment))
        of_joints[chain.drivers[i]].append(Term(float(chain.ratios[i])).times(torque))
    return [lines.sum(f"j{i}", *parts) for i, parts in enumerate(of_joints)]


ALWAYS = 1e-3  # sine of the angle below which an axis counts as parallel, or perpendicular, to gravity
PROBE_POSES = 64


class GravityModel:
    """Gravity torque of an arm as a linear function of its k minimal moments.

    A revolute joint has two: n_x and n_y (kg m), the mass moment about the joint of all that it carries, as far as it
    is constant in its joint frame (z is the axis). A prismatic joint has one: the mass (kg) of all that it carries.
    Joints that mimic it have such moments too, as far as they are no combination of others.

    Args:
        robot: the arm; its parameters are not used.

    Attributes:
        robot: the arm.
        names: what the moments are, such as "n_x joint_2" or "mass joint_3", joint by joint.
        projection: (k, 10 m) matrix from parameters to moments.
    """

    def __init__(self, robot: RobotModel):
        self.robot = robot
        chain = robot.chain
        # Moments of all links, each joint's own first and those that follow it next.
        self._links = np.lexsort((np.arange(chain.n_links), chain.drivers))
        kinds = [(link, kind) for link in self._links for kind in (("mass",) if chain.slides[link] else ("n_x", "n_y"))]
        self._link_columns = [[c for c, (i, _) in enumerate(kinds) if i == link] for link in range(chain.n_links)]
        names = [f"{kind} {chain.mover_names[link]}" for link, kind in kinds]
        projection = self._projection(len(names))
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
        """Where the entries of a joint, counted from 0, are among the moments."""
        return self._columns[joint]

    def project(self, parameters: ArrayLike) -> np.ndarray:
        """Moments (k,) of parameters (10 m,)."""
        return self.projection @ finite_vector(parameters, self.projection.shape[1], "parameters (ten per link)")

    def regressor(self, q: ArrayLike) -> np.ndarray:
        """Matrix (N, n, k) from the moments to the torques that hold the arm at rest at q (N, n)."""
        (q,) = joint_samples(self.robot.joint_names, q=q)
        matrix = np.empty((q.shape[1], len(self.names), len(q)))
        for block in blocks(len(q)):
            of_links = self._of_links(q[block])
            matrix[..., block] = of_links[:, self._kept] if self.robot.chain.has_mimics else of_links
        return matrix.transpose(2, 0, 1)

    def unobservable_axes(self) -> np.ndarray:
        """(n,) bool: joints whose moments have no effect on any torque in any pose.

        They are the leading revolute joints whose axes are parallel to gravity in every pose and the prismatic joints
        whose axes are perpendicular to it in every pose (within 0.06 deg): gravity never loads them.
        """
        return self.loads() < ALWAYS

    def loads(self) -> np.ndarray:
        """(n,) 0 to 1: part of gravity that loads each joint, in the pose in which it is most."""
        magnitude = np.linalg.norm(self.robot.gravity)
        if magnitude == 0.0:
            return np.zeros(self.robot.n_joints)
        poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE_POSES, self.robot.n_joints))
        chain, down = self.robot.chain, self.robot.gravity / magnitude
        axes = joint_frames(chain, poses)[0][:, :, 2].transpose(2, 0, 1)
        load = np.where(chain.slides, np.abs(axes @ down), np.linalg.norm(np.cross(axes, down), axis=-1))
        most = load.max(axis=0)
        return np.array([most[chain.drivers == joint].max() for joint in range(chain.n_joints)])

    def compile(self, moments: ArrayLike) -> Callable[[np.ndarray], np.ndarray]:
        """Function from positions (n,) to gravity torques (n,) of one sample, fast enough for a control loop.

        NaN positions give NaN torques; infinite ones and arrays of another length raise ValueError.
        """
        return gravity_function(
            self.robot.chain, self.robot.gravity, self.by_link(self._checked(moments).tolist(), 0.0)
        )

    def bind(
        self, moments: ArrayLike, down: Callable[[], Sequence[float]] | None = None
    ) -> Callable[[Sequence[float]], list[float]]:
        """What `compile` gives, within microseconds after the first time, for moments that change in a running loop.

        Positions come as n floats and torques go as a list. `down` says gravity (3,) in the frame of a base that tilts,
        m/s^2, at each call; None: it is that of the robot.
        """
        every = self.by_link(self._checked(moments).tolist(), 0.0)
        first, second = ([link[k] for link in every] for k in (0, -1))  # the second of a prismatic joint not looked at
        if down is not None:
            tilting = self._tilting
            return lambda q: tilting(q, first, second, down())
        general = self._general
        return lambda q: general(q, first, second)

    @cached_property
    def _general(self) -> Callable[..., list[float]]:
        return gravity_function_of_lists(self.robot.chain, self.robot.gravity)

    @cached_property
    def _tilting(self) -> Callable[..., list[float]]:
        return gravity_function_of_lists(self.robot.chain, None)

    def by_link(self, moments: Sequence[Any], none: Any) -> list[list[Any]]:
        """The moments (k,), numbers or terms, of each link; `none` for those that others stand for."""
        every = [none] * sum(map(len, self._link_columns))
        for column, moment in zip(self._kept, moments, strict=True):
            every[column] = moment
        return [[every[column] for column in own] for own in self._link_columns]

    def _checked(self, moments: ArrayLike) -> np.ndarray:
        return finite_vector(moments, len(self.names), f"moments ({', '.join(self.names)})")

    def _minimal(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Columns of the minimal moments among those of all links, and these as combinations of all, (k, all)."""
        from dynid_ros.model.base_parameters import BaseParameters  # noqa: PLC0415 - no control loop of other arms needs it

        n = self.robot.n_joints
        poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE_POSES, n))
        base = BaseParameters(self._of_links(poses).transpose(2, 0, 1), names)
        # Those of joints that gravity never loads stay, as in an arm without joints that mimic.
        idle = self.unobservable_axes()[self.robot.chain.drivers]
        kept = np.union1d(base.columns, [c for link in np.flatnonzero(idle) for c in self._link_columns[link]]).astype(
            int
        )
        combinations = np.eye(len(names))[kept]
        combinations[np.isin(kept, base.columns)] = base.combinations
        return kept, combinations

    def _projection(self, n_moments: int) -> np.ndarray:
        """The recursion from tip to base (eq. 16), for all parameters at once, to the moments of all links.

        What a joint does not show, the moment along a revolute axis and all of it for a prismatic one, is constant in
        the frame before as well and is passed on.
        """
        chain = self.robot.chain
        size = PARAMETERS_PER_LINK * chain.n_links
        projection = np.empty((n_moments, size))
        passed_on, masses = np.zeros((chain.n_links + 1, 3, size)), np.zeros((chain.n_links + 1, size))
        for i in reversed(range(chain.n_links)):
            own_mass, *own_moment = np.eye(4, size, PARAMETERS_PER_LINK * i)
            offset, transform = chain.link_offsets[i], chain.transforms[i]
            moment = passed_on[i] + offset[:3, :3] @ own_moment + np.outer(offset[:3, 3], own_mass)
            mass = masses[i] + own_mass
            if chain.slides[i]:
                projection[self._link_columns[i]] = mass
            else:
                projection[self._link_columns[i]] = moment[:2]
                moment[:2] = 0.0
            passed_on[chain.parents[i]] += transform[:3, :3] @ moment + np.outer(transform[:3, 3], mass)
            masses[chain.parents[i]] += mass
        return projection

    def _of_links(self, q: np.ndarray) -> np.ndarray:
        """Matrix (n, all, N) from the moments of all links.

        The torque of link i is (z_i x g) . moment (eq. 7 with its sign turned: the torque that holds).
        """
        chain, gravity = self.robot.chain, self.robot.gravity
        rotations, _ = joint_frames(chain, q)
        (own,) = chain.of_links(q)
        axes = rotations[:, :, 2]
        levers = cross(axes, gravity[:, None])
        levers[chain.slides] = 0.0
        matrix = np.zeros((chain.n_links, sum(map(len, self._link_columns)), len(q)))
        for j, columns in enumerate(self._link_columns):
            before = chain.path(j)
            if chain.slides[j]:
                matrix[before, columns[0]] = dot(levers[before], axes[j]) * own[:, j]
                matrix[j, columns[0]] = -(gravity @ axes[j])
            else:
                for k, column in enumerate(columns):
                    matrix[before, column] = dot(levers[before], rotations[j, :, k])
        return chain.of_joints(matrix)
