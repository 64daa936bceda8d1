"""Model of an arm, serial or with branches, and of an arm with some joints held."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.display import Displayed
from dynid_ros.errors import ModelError
from dynid_ros.model import chain as kinematics, dynamics
from dynid_ros.model.arrays import finite_vector, joint_samples
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.dh import dh_chain, dh_file
from dynid_ros.model.flange import flange
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.regressor import torque_regressor
from dynid_ros.model.urdf_text import urdf_text

if TYPE_CHECKING:
    from dynid_ros.model.base_parameters import BaseParameters
    from dynid_ros.model.friction import FrictionModel

MIN_GRAVITY = 1e-3
MAX_GRAVITY = 1e3
"""Bounds of gravity in m/s²; a value beyond them is a mistake, and its squares may overflow."""
STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
Method = TypeVar("Method", bound=Callable[..., np.ndarray])


def _accept_one_sample(method: Method) -> Method:
    """Return a method of N samples that also takes one sample (n,) of each argument and returns its result alone."""
    names = tuple(signature(method).parameters)

    @wraps(method)
    def evaluate(*arguments: Any, **named: Any) -> np.ndarray:
        if np.ndim(arguments[1] if len(arguments) > 1 else named.get("q", ())) != 1:
            return method(*arguments, **named)
        values = dict(zip(names, arguments, strict=False)) | named
        return method(**{name: [value] if name in ("q", "qd", "qdd") else value for name, value in values.items()})[0]

    return cast("Method", evaluate)


class RobotModel(Displayed):
    """Kinematics and dynamics of an arm with n revolute or prismatic joints that move m links, for N samples at once.

    An arm has as many moving links as joints, plus one for each joint that mimics another. The torque that moves such a
    link is part of the torque of the joint that it follows.

    Positions, velocities and accelerations are (N, n) in rad or m, per s, per s^2. Torques are (N, n) in N m, in N for
    prismatic joints, without friction or rotors. Parameters are (10 m,), per link
    `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]` about the link frame: for a URDF the frame of the joint's child
    link, for a DH table the distal frame i. A NaN in a sample gives NaN for that sample alone. One sample may be given
    as (n,); the result then has no dimension N. Arrays of another shape raise `ModelError`.

    Args:
        chain: joints and the transforms between them.
        parameters: (10 m,) inertial parameters; None: zero.
        gravity: (3,) in the base frame, m/s^2.
        urdf: text of the URDF that the model comes from, or its tree of links; None: there is none.
        posture: positions, rad or m, of joints outside the chain that move carried links; missing joints are at zero.

    Attributes:
        chain: joints and the transforms between them.
        parameters: (10 m,) inertial parameters.
        gravity: (3,) in the base frame, m/s².
        urdf: text of the URDF, or None.
        posture: positions, rad or m, of joints outside the chain and of held joints.
        base: link that the chain starts from.
        tip: link that the chain ends at, or several with commas between.
        held: positions of held joints, rad or m, by name.
        n_joints: number of joints, n.
        joint_names: names of the independent joints, from base to tip, branch by branch.
        n_links: number of links that the joints move, m.
        link_names: names of these links.
        tip_offset: pose (4, 4) of the first tip link in the frame of the last moving link before it.
        kinematics_sha256: hash of joint names, types, axes and placements, which identification does not change.

    Raises:
        ModelError: parameters or gravity have another shape or are not finite.
    """

    def __init__(
        self,
        chain: Chain,
        parameters: ArrayLike | None = None,
        gravity: ArrayLike = STANDARD_GRAVITY,
        urdf: str | LinkTree | None = None,
        posture: Mapping[str, float] | None = None,
    ):
        self.chain = chain
        self.name = chain.name
        self.base = chain.base
        self.tip = chain.tip
        self.held = chain.held
        self.n_joints = chain.n_joints
        self.joint_names = chain.joint_names
        self.n_links = chain.n_links
        self.link_names = chain.link_names
        self.tip_offset = chain.tip_offset
        self.limits = chain.limits
        self.kinematics_sha256 = chain.sha256
        self.parameters = self._parameters(np.zeros(PARAMETERS_PER_LINK * chain.n_links), parameters)
        self.gravity = finite_vector(gravity, 3, "gravity (m/s^2, in the base frame)")
        magnitude = np.abs(self.gravity).max()
        if not (magnitude == 0.0 or MIN_GRAVITY <= magnitude <= MAX_GRAVITY):
            raise ModelError(f"gravity is {magnitude:g} m/s^2; expected about 9.8, or zero where there is none")
        self._tree = urdf if isinstance(urdf, LinkTree) else None
        self.urdf = urdf.text if isinstance(urdf, LinkTree) else urdf
        self.posture = {**(posture or {}), **chain.held}

    @classmethod
    def from_urdf(
        cls,
        path_or_xml: str | Path,
        tip: str | Sequence[str] | None = None,
        base: str | None = None,
        gravity: ArrayLike = STANDARD_GRAVITY,
        posture: Mapping[str, float] | None = None,
        *,
        held: Mapping[str, float] | None = None,
    ) -> RobotModel:
        """Return the model of the chain from link `base` to link `tip` of a URDF, or of the tree to several tips.

        A link includes all links below it that are fixed to it or that move by joints outside the chain: the fingers of
        a gripper, a second arm, links beyond the tip. The arm carries them at the positions of these joints.

        Args:
            path_or_xml: path of a URDF file, or its text.
            tip: last link, or several in a sequence or with commas between, or "all" for every leaf. A load or a force
                sensor is at the first one. None or empty: the only leaf, else the flange, see `dynid_ros.model.flange`.
            base: first link; None or empty: the root.
            gravity: (3,) in the base frame, m/s².
            posture: positions of joints outside the chain, rad or m; missing joints are at zero or follow the joint
                that they mimic.
            held: positions, rad or m, of joints that do not move; their links are part of the link before.

        Raises:
            ModelError: the URDF cannot be read, is not a tree of links, has no such chain of revolute, continuous,
                prismatic and fixed joints, has a joint that mimics a joint that does not move by itself, or lacks a
                held joint.
        """
        tree = LinkTree(*urdf_text(path_or_xml))
        return cls.from_tree(tree, tip, base, gravity, posture=posture, held=held)

    @classmethod
    def from_tree(
        cls,
        tree: LinkTree,
        tip: str | Sequence[str] | None = None,
        base: str | None = None,
        gravity: ArrayLike = STANDARD_GRAVITY,
        *,
        posture: Mapping[str, float] | None = None,
        held: Mapping[str, float] | None = None,
    ) -> RobotModel:
        """Return the model of `from_urdf`, given the tree of links of the URDF.

        Raises:
            ModelError: see `from_urdf`.
        """
        if not tip and len(tree.leaves(base or tree.roots[0])) > 1:
            tip = flange(tree, base or None)[0]
        chain = tree.chain(tip or None, base or None, held)
        return cls(chain, tree.parameters(chain, posture or {}), gravity, tree, posture)

    @property
    def tree(self) -> LinkTree:
        """Links and joints of the URDF.

        Raises:
            ModelError: the model comes from a DH table.
        """
        if self._tree is None:
            if self.urdf is None:
                raise ModelError(f"{self.name}: the model comes from a DH table; give a URDF")
            self._tree = LinkTree(self.urdf, self.name)
        return self._tree

    def with_posture(self, posture: Mapping[str, float]) -> RobotModel:
        """Return the model with joints outside the chain at other positions, rad or m.

        Raises:
            ModelError: the URDF cannot be read.
        """
        if self.urdf is None:
            return self
        now, before = (self.tree.parameters(self.chain, positions) for positions in (posture, self.posture))
        return RobotModel(self.chain, self.parameters + (now - before), self.gravity, self.tree, posture)

    def with_parameters(self, parameters: ArrayLike) -> RobotModel:
        """Return the model with other parameters (10 m,)."""
        return RobotModel(self.chain, parameters, self.gravity, self._tree or self.urdf, self.posture)

    def with_gravity(self, gravity: ArrayLike) -> RobotModel:
        """Return the model with another gravity (3,) in the base frame, m/s²."""
        return RobotModel(self.chain, self.parameters, gravity, self._tree or self.urdf, self.posture)

    @classmethod
    def from_dh(
        cls,
        rows: Sequence[Mapping[str, float | str]] | str | Path,
        gravity: ArrayLike = STANDARD_GRAVITY,
        parameters: ArrayLike | None = None,
        name: str | None = None,
    ) -> RobotModel:
        """Return the model of a standard Denavit-Hartenberg table, with joints joint_1 ... and links link_1 ...

        Args:
            rows: one mapping per joint with keys a (m), alpha (rad), d (m), theta (rad) and type ("revolute" or
                "prismatic"); the position of the joint is added to theta or to d. Or the path of a YAML file with a
                list of such rows, or with a mapping of `name` and `joints`, that list.
            gravity: (3,) in the base frame, m/s².
            parameters: (10 n,) about the distal frames; None: zero.
            name: name of the robot; None: the name of the file, or "dh_arm".

        Raises:
            ModelError: the file cannot be read, rows or keys are missing, or keys, a type or a number are not valid.
        """
        default_name = "dh_arm"
        if isinstance(rows, (str, Path)):
            rows, default_name = dh_file(rows)
        return cls(dh_chain(rows, name or default_name), parameters, gravity)

    @property
    def joint_types(self) -> list[str]:
        """Type of each joint, "revolute" or "prismatic"; a continuous joint is revolute without position limits."""
        return ["prismatic" if prismatic else "revolute" for prismatic in self.chain.prismatic]

    @property
    def tip_columns(self) -> slice:
        """Slice of the parameters of the last moving link before the first tip."""
        return slice(PARAMETERS_PER_LINK * self.chain.tip_link, PARAMETERS_PER_LINK * (self.chain.tip_link + 1))

    @property
    def urdf_sha256(self) -> str | None:
        """Hash of the text of the URDF; None for a DH table."""
        return None if self.urdf is None else hashlib.sha256(self.urdf.encode()).hexdigest()

    @cached_property
    def structure(self) -> RobotModel:
        """Model for ranks: angles in the file that are rounded multiples of π/4 become these multiples.

        An arm that is built at right angles has the same base parameters if its maker wrote 1.571. Torques are computed
        with the numbers of the file.
        """
        if self.urdf is None:
            exact = self.chain.structure
            return self if exact is None else RobotModel(exact, self.parameters, self.gravity)
        tree = LinkTree(self.urdf, self.name, meant_angles=True)
        chain = tree.chain(self.tip, self.base, self.held)
        return RobotModel(chain, self.parameters, self.gravity)

    @_accept_one_sample
    def forward_kinematics(self, q: ArrayLike) -> np.ndarray:
        """Return the poses (N, m, 4, 4) of the link frames in the base frame."""
        return kinematics.link_poses(self.chain, *self._samples(q=q))

    @_accept_one_sample
    def joint_axes(self, q: ArrayLike) -> np.ndarray:
        """Return the unit axes (N, n, 3) of the joints in the base frame."""
        return kinematics.joint_axes(self.chain, *self._samples(q=q))

    @_accept_one_sample
    def torque_regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Return the matrix (N, n, 10 m) from the parameters to the torques."""
        return torque_regressor(self.chain, self.gravity, self._samples(q=q, qd=qd, qdd=qdd))

    @_accept_one_sample
    def gravity_regressor(self, q: ArrayLike) -> np.ndarray:
        """Return the matrix (N, n, 10 m) from the parameters to the torques at rest."""
        (q,) = self._samples(q=q)
        return torque_regressor(self.chain, self.gravity, (q, np.zeros_like(q), np.zeros_like(q)))

    @_accept_one_sample
    def wrench_regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Return the matrix (N, 6, 10) from a body's parameters about the tip to the force and moment that move it."""
        return dynamics.wrench_regressor(self.chain, self.gravity, self._samples(q=q, qd=qd, qdd=qdd))

    @_accept_one_sample
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, parameters: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the torques (N, n) of a motion, with the nominal parameters or with others."""
        links = self._parameters(self.parameters, parameters)
        return dynamics.inverse_dynamics(self.chain, self.gravity, links, self._samples(q=q, qd=qd, qdd=qdd))

    @_accept_one_sample
    def gravity_torque(self, q: ArrayLike, parameters: ArrayLike | None = None) -> np.ndarray:
        """Return the torques (N, n) at rest, with the nominal parameters or with others."""
        links = self._parameters(self.parameters, parameters)
        return dynamics.gravity_torque(self.chain, self.gravity, links, *self._samples(q=q))

    def base_parameters(self, friction: FrictionModel | None = None) -> BaseParameters:
        """Return the base parameters of links and friction, found on a random motion within limits."""
        from dynid_ros.model.base_parameters import BaseParameters  # noqa: PLC0415 - no control loop asks

        return BaseParameters.of_robot(self, friction)

    def _line(self) -> str:
        size = f"{self.n_joints} joints, {self.n_links} links, {self.parameters[::PARAMETERS_PER_LINK].sum():.4g} kg"
        return f"{self.name}, {self.base} to {self.tip}, {size}"

    def _table(self) -> dict[str, Sequence[Any]]:
        first = [list(self.chain.drivers).index(joint) for joint in range(self.n_joints)]
        links = [self.link_names[i] for i in first]
        return {"joint": self.joint_names, "type": self.joint_types, "link": links, **vars(self.limits)}

    def _samples(self, **arrays: ArrayLike) -> list[np.ndarray]:
        return joint_samples(self.joint_names, **arrays)

    def _parameters(self, nominal: np.ndarray, given: ArrayLike | None) -> np.ndarray:
        return nominal if given is None else finite_vector(given, nominal.size, "parameters (ten per link)")


def locked(robot: RobotModel, joints: Collection[str], pose: ArrayLike) -> RobotModel:
    """Return the arm with only some joints, and the joints that mimic them, left to move.

    Held links and their parameters are part of the link before them; links before the first joint are part of the base,
    whose frame, name and gravity stay. The model has no URDF.

    Args:
        robot: the arm.
        joints: names of the joints that move.
        pose: (n,) positions of all joints of `robot`, rad or m; those of moving joints have no effect.

    Raises:
        ModelError: no joint is left to move, the arm lacks a joint, or the pose is not finite or has another length.
    """
    names = robot.joint_names
    unknown = [joint for joint in joints if joint not in names]
    if unknown or not joints:
        raise ModelError(
            f"{robot.name}: joints to move are {', '.join(unknown) or 'none'}; expected some of {', '.join(names)}"
        )
    pose = finite_vector(pose, len(names), "pose (rad or m, of all joints)")
    moving = [i for i, name in enumerate(names) if name in joints]
    chain = robot.chain
    links = robot.parameters.reshape(-1, PARAMETERS_PER_LINK)
    # Poses (m, 4, 4) of the links in the frames of their parents.
    poses = robot.forward_kinematics(pose[None])[0]
    steps = np.linalg.inv(np.concatenate([poses, np.eye(4)[None]])[chain.parents]) @ poses
    kept = np.flatnonzero(np.isin(chain.drivers, moving)).tolist()
    placements = []
    parents = []
    parameters = links[kept]
    # For each link, and for the base, which comes last: the kept link that carries it, and its pose there.
    reached = [(-1, np.eye(4))] * (chain.n_links + 1)
    for i, parent in enumerate(chain.parents):
        carrier, place = reached[parent]
        if i in kept:
            parents.append(carrier)
            placements.append(place @ chain.placements[i])
            reached[i] = kept.index(i), np.eye(4)
        else:
            reached[i] = carrier, place @ steps[i]
            if carrier >= 0:
                parameters[carrier] += transformed(links[i], reached[i][1])
    limits = chain.limits
    held = replace(
        chain,
        joint_names=tuple(names[i] for i in moving),
        link_names=tuple(chain.link_names[i] for i in kept),
        prismatic=chain.prismatic[moving],
        placements=np.stack(placements),
        link_offsets=chain.link_offsets[kept],
        tip_links=tuple(reached[link][0] for link in chain.tip_links),
        tip_offsets=np.array(
            [reached[k][1] @ offset for k, offset in zip(chain.tip_links, chain.tip_offsets, strict=True)]
        ),
        limits=JointLimits(*(getattr(limits, name)[moving] for name in vars(limits))),
        parents=np.array(parents),
        mover_names=tuple(chain.mover_names[i] for i in kept),
        drivers=np.searchsorted(moving, chain.drivers[kept]),
        ratios=chain.ratios[kept],
        offsets=chain.offsets[kept],
        slides=chain.slides[kept],
        structure=None,
    )
    return RobotModel(held, parameters.ravel(), robot.gravity)
