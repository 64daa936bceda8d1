"""The arm of an `identified.yaml` as exports take it, and the motion on which the loss of an export is judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.control.gravity_feedforward import JointSprings
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import check_same_robot, is_number, load_identified
from dynid_ros.identified.joint_friction import DIRECTIONS, friction_values
from dynid_ros.identified.links import link_model
from dynid_ros.identified.load import carried_load
from dynid_ros.identified.servos import ServoDrive, servo_drives
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.friction_terms import FrictionTerm, acts_at_standstill
from dynid_ros.model.gravity import GravityModel

DURATION = 60.0
SAMPLES = 6000
LONGEST_PERIOD = 8.0
SHARE = 0.8
REACH = 1.5
SPEED = 1.0
"""Range (rad or m) and speed (per s) of a joint without limits, and upper bounds for all joints."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions, velocities and accelerations (N, n) of consecutive samples, with a description."""

    q: NDArray
    qd: NDArray
    qdd: NDArray
    name: str

    @classmethod
    def sinusoids(cls, robot: RobotModel) -> Motion:
        """Return sinusoids of all joints with incommensurable periods, within limits of position and velocity."""
        limits = robot.limits
        n = robot.n_joints
        known = np.isfinite(limits.lower) & np.isfinite(limits.upper) & (limits.upper > limits.lower)
        lower = np.where(known, limits.lower, -REACH)
        upper = np.where(known, limits.upper, REACH)
        middle = (lower + upper) / 2
        reach = SHARE * (upper - lower) / 2
        frequency = 2 * np.pi / (LONGEST_PERIOD * np.sqrt(1 + np.arange(n)) / np.sqrt(n))
        speed = np.minimum(np.where(limits.velocity > 0, SHARE * limits.velocity, SPEED), SPEED)
        amplitude = np.minimum(np.minimum(reach, REACH), speed / frequency)
        phase = frequency * np.linspace(0.0, DURATION, SAMPLES)[:, None] + np.arange(n)
        return cls(
            middle + amplitude * np.sin(phase),
            amplitude * frequency * np.cos(phase),
            -amplitude * frequency**2 * np.sin(phase),
            f"sinusoids of up to {speed.max():.2g} rad/s within the limits",
        )


@dataclass(frozen=True)
class Export:
    """Result of an export.

    Attributes:
        target: key of `export.TARGETS`.
        files: paths by kind.
        holds: content of the files, one line each.
        remarks: omitted content, one line each, with the effect on the torque.
        numbers: the remarks' numbers, for programs.
    """

    target: str
    files: Mapping[str, Path]
    holds: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """Lines of text."""
        wrote = f"wrote {', '.join(map(str, self.files.values()))}"
        return "\n".join([*(f"holds {line}" for line in self.holds), *self.remarks, wrote])

    def document(self) -> dict:
        """Plain data."""
        return {"target": self.target, "holds": list(self.holds), "remarks": list(self.remarks), **self.numbers}


POSE_STEP = 100
"""Samples of a motion per judged pose."""


@dataclass(frozen=True)
class ExportedLoad:
    """Mass (kg), centre of mass (m) and inertia Ixx Ixy Ixz Iyy Iyz Izz (kg m²) about it, in the tip link's frame."""

    mass: float
    center: tuple[float, ...]
    inertia: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ExportedArm:
    """Identified model of an arm, as far as exports use it.

    Attributes:
        robot: kinematics and gravity; its own inertias are those of the URDF.
        moments: (k,) of `gravity`, without a load.
        parameters: (10 n,) of the links; None if only gravity was identified.
        coefficients: (f,) of friction, in the order of `friction.names(robot)`.
        load: identified payload; None without one.
        springs: between motors and links; None for rigid joints.
        source: name of the file.
        servos: position servos by joint, those whose gain and delay are known.
    """

    robot: RobotModel
    gravity: GravityModel
    moments: NDArray
    parameters: NDArray | None
    friction: FrictionModel
    coefficients: NDArray
    load: ExportedLoad | None
    springs: JointSprings | None
    source: str
    servos: Mapping[str, ServoDrive] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path, robot: RobotModel, servos: str | Path | None = None) -> ExportedArm:
        """Return the arm in a file, with the servos of another file if there is one.

        Raises:
            IdentifiedFileError: a file is malformed, belongs to another robot, holds neither links nor gravity, has an
                unobservable joint, or its load is at another link than the tip; or there are no known servos in
                `servos`.
        """
        document = load_identified(path)
        check_same_robot(document, robot)
        other = document if servos is None else load_identified(servos)
        check_same_robot(other, robot)
        drives = {name: drive for name, drive in servo_drives(other).items() if math.isfinite(drive.delay)}
        if servos is not None and not drives:
            raise IdentifiedFileError(
                f"{servos}: no servo in it has a known gain and delay; identify servos with --stiffness or a reference "
                "mass, while they move"
            )
        if not {"links", "gravity"} & set(document):
            raise IdentifiedFileError(
                f"{path}: neither links nor gravity in it, so there is no arm to export; run `dynid identify links`"
            )
        gravity = GravityModel(robot)
        parameters = None
        if "links" in document:
            links = link_model(document, robot)
            parameters = links.parameters
            friction = links.friction
            coefficients = links.coefficients
            moments = gravity.project(parameters)
        else:
            moments = gravity_moments(document, gravity)
            friction, coefficients = _friction_of_gravity(document, robot, drives)
        return cls(
            robot,
            gravity,
            moments,
            parameters,
            friction,
            coefficients,
            _load(document.get("load"), robot, path),
            JointSprings.from_document(document, robot.joint_names),
            Path(path).name,
            drives,
        )

    @property
    def joint_terms(self) -> list[dict[FrictionTerm, float]]:
        """Friction terms of each joint with their coefficients, those of coupled pairs left out."""
        values = iter(self.coefficients.tolist())
        return [{part: next(values) for part in joint.parts} for joint in self.friction.per_joint(self.robot.n_joints)]

    def sag(self, what: str, motion: Motion) -> list[str]:
        """Say what springs of flexible joints, which no export holds, change of gravity on a motion; nothing: none."""
        if self.springs is None:
            return []
        gravity = self.gravity.bind(self.moments)
        poses = motion.q[::POSE_STEP].tolist()
        sags = np.array([np.subtract(self.springs.settled(pose, gravity), gravity(pose)) for pose in poses])
        rms = zip(self.robot.joint_names, np.sqrt(np.mean(sags**2, axis=0)), strict=True)
        return [
            f"{what} has rigid joints, without the springs that were identified. RMS error of gravity at positions of "
            f"motors, N m, on {motion.name}: {', '.join(f'{joint} {value:.3g}' for joint, value in rms)}"
        ]

    def beside(self, what: str, motion: Motion) -> list[str]:
        """Return sentences on omitted content other than friction (load, springs, held joints) of format `what`."""
        remarks = self.sag(what, motion)
        if self.load is not None:
            remarks.append(f"{what} has the arm without the {self.load.mass:g} kg that {self.source} knows as its load")
        if self.robot.chain.held:
            held = ", ".join(f"{joint} at {at:g}" for joint, at in self.robot.chain.held.items())
            remarks.append(f"{what} has joints that may move, which the identification held: {held}")
        return remarks

    @property
    def own_angle_terms(self) -> dict[int, dict[FrictionTerm, float]]:
        """Springs and harmonics by joint, which act at rest too; with a spring, the offset contains its rest angle."""
        found = {}
        for i, terms in enumerate(self.joint_terms):
            springs = [part for part in terms if part.family == "spring"]
            own = [part for part in terms if acts_at_standstill(part.name) or (springs and part.family == "offset")]
            if own:
                found[i] = {part: terms[part] for part in own}
        return found


def _friction_of_gravity(
    document: dict, robot: RobotModel, drives: Mapping[str, ServoDrive]
) -> tuple[FrictionModel, NDArray]:
    """Return Coulomb friction, viscous friction and offset of each joint; unknown numbers are zero.

    If the data do not separate offset and Coulomb friction, both follow from the torques of the two directions. A file
    of servos has the friction of servos.
    """
    values = friction_values(document, robot.joint_names, ("coulomb", "viscous", "offset", *DIRECTIONS))
    coulomb, viscous, offset, positive, negative = values
    known = np.isfinite(positive) & np.isfinite(negative)
    coulomb = np.where(known, (positive - negative) / 2, coulomb)
    offset = np.where(known, (positive + negative) / 2, offset)
    if "friction" not in document and len(drives) == robot.n_joints:
        servos = [drives[name] for name in robot.joint_names]
        coulomb, viscous = np.array([(servo.coulomb, servo.viscous) for servo in servos]).T
    terms = JointFriction(coulomb=True, viscous=True, offset=True)
    coefficients = np.nan_to_num(np.stack([coulomb, viscous, offset], axis=1))
    return FrictionModel([terms] * robot.n_joints), coefficients.ravel()


def _load(section: object, robot: RobotModel, path: str | Path) -> ExportedLoad | None:
    if not isinstance(section, dict) or not section.get("mass"):
        return None
    try:
        mass, center, frame = carried_load(section)
    except ControlError as error:
        raise IdentifiedFileError(f"{path}: the load in it cannot be used: {error}; identify it again") from error
    tip = robot.chain.tips[0]
    if frame != tip:
        raise IdentifiedFileError(f"{path}: its load is at link '{frame}', the arm ends at '{tip}'; give --tip")
    inertia = section.get("inertia")
    known = isinstance(inertia, list) and len(inertia) == 6 and all(map(is_number, inertia))
    return ExportedLoad(mass, center, tuple(map(float, inertia)) if known and inertia else (0.0,) * 6)
