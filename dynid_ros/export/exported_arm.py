"""Identified arm for exports, and the motion on which the error of an export is evaluated."""

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

MOTION_DURATION_S = 60.0
N_MOTION_SAMPLES = 6000
MAX_PERIOD_S = 8.0
LIMIT_FRACTION = 0.8
"""Fraction of the range of positions and of the velocity limit that the sinusoids use."""
MAX_AMPLITUDE = 1.5
MAX_SPEED = 1.0
"""Largest amplitude (rad or m) and speed (per s) of the sinusoids, also for joints without limits."""
POSE_STEP = 100
"""Samples of a motion per pose at which the error of gravity is evaluated."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion on which the error of an export is evaluated.

    Attributes:
        q, qd, qdd: (N, n) positions, velocities and accelerations of consecutive samples.
        name: description of the motion for remarks.
    """

    q: NDArray
    qd: NDArray
    qdd: NDArray
    name: str

    @classmethod
    def sinusoids(cls, robot: RobotModel) -> Motion:
        """Return sinusoids of all joints with incommensurable periods, within limits of position and velocity."""
        limits = robot.limits
        n = robot.n_joints
        is_limited = np.isfinite(limits.lower) & np.isfinite(limits.upper) & (limits.upper > limits.lower)
        lower = np.where(is_limited, limits.lower, -MAX_AMPLITUDE)
        upper = np.where(is_limited, limits.upper, MAX_AMPLITUDE)
        middle = (lower + upper) / 2
        reach = LIMIT_FRACTION * (upper - lower) / 2
        frequency = 2 * np.pi / (MAX_PERIOD_S * np.sqrt(1 + np.arange(n)) / np.sqrt(n))
        speed = np.minimum(np.where(limits.velocity > 0, LIMIT_FRACTION * limits.velocity, MAX_SPEED), MAX_SPEED)
        amplitude = np.minimum(np.minimum(reach, MAX_AMPLITUDE), speed / frequency)
        phase = frequency * np.linspace(0.0, MOTION_DURATION_S, N_MOTION_SAMPLES)[:, None] + np.arange(n)
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
        files: path of each written file, by the kind of its content.
        holds: descriptions of the content of the files.
        remarks: descriptions of omitted content and its effect on the torque.
        numbers: values in the remarks, as plain data.
    """

    target: str
    files: Mapping[str, Path]
    holds: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """Return the description in lines of text."""
        wrote = f"wrote {', '.join(map(str, self.files.values()))}"
        return "\n".join([*(f"holds {line}" for line in self.holds), *self.remarks, wrote])

    def document(self) -> dict:
        """Return plain data."""
        return {"target": self.target, "holds": list(self.holds), "remarks": list(self.remarks), **self.numbers}


@dataclass(frozen=True)
class ExportedLoad:
    """Load in the tip link's frame.

    Attributes:
        mass: mass, kg.
        center: (3,) centre of mass, m.
        inertia: (6,) Ixx Ixy Ixz Iyy Iyz Izz about the centre of mass, kg m²; zero if unknown.
    """

    mass: float
    center: tuple[float, ...]
    inertia: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ExportedArm:
    """Identified model of an arm, as far as exports use it.

    Attributes:
        robot: arm of the URDF, with nominal inertias.
        gravity: regressor of the gravity torque.
        moments: (k,) identified parameters of `gravity`, without the load.
        parameters: (10 n,) inertial parameters of the links; None: only gravity was identified.
        friction: friction terms of the joints.
        coefficients: (f,) coefficients of friction in the order of `friction.names(robot)`.
        load: identified payload; None: no payload.
        springs: springs between motors and links; None: rigid joints.
        source: name of the file.
        servos: position servos with known gain and delay, by joint.
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
        """Return the arm in the file `path`, with the servos in the file `servos` (None: in the same file).

        Raises:
            IdentifiedFileError: a file is malformed, belongs to another robot, contains neither links nor gravity, has
                an unobservable joint or a load at another link than the tip, or `servos` has no known servos.
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
        """Friction terms of each joint with their coefficients, without the terms that couple two joints."""
        values = iter(self.coefficients.tolist())
        return [{part: next(values) for part in joint.parts} for joint in self.friction.per_joint(self.robot.n_joints)]

    def sag(self, what: str, motion: Motion) -> list[str]:
        """Describe the error of gravity on a motion without the springs of flexible joints; empty for rigid joints.

        Args:
            what: name of the format, for the sentence.
            motion: motion of the motors.
        """
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
        """Terms by joint that act at rest, such as springs and harmonics; with a spring, the offset is one of them."""
        by_joint = {}
        for i, terms in enumerate(self.joint_terms):
            springs = [part for part in terms if part.family == "spring"]
            static = [part for part in terms if acts_at_standstill(part.name) or (springs and part.family == "offset")]
            if static:
                by_joint[i] = {part: terms[part] for part in static}
        return by_joint


def _friction_of_gravity(
    document: dict, robot: RobotModel, drives: Mapping[str, ServoDrive]
) -> tuple[FrictionModel, NDArray]:
    """Return Coulomb friction, viscous friction and offset of each joint from a file without links; zero if unknown.

    If the file has torques for the two directions of motion instead, their mean is the offset, and half of their
    difference the Coulomb friction. Without friction in the file, the friction of the servos is used.
    """
    values = friction_values(document, robot.joint_names, ("coulomb", "viscous", "offset", *DIRECTIONS))
    coulomb, viscous, offset, positive, negative = values
    has_directions = np.isfinite(positive) & np.isfinite(negative)
    coulomb = np.where(has_directions, (positive - negative) / 2, coulomb)
    offset = np.where(has_directions, (positive + negative) / 2, offset)
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
    is_known = isinstance(inertia, list) and len(inertia) == 6 and all(map(is_number, inertia))
    return ExportedLoad(mass, center, tuple(map(float, inertia)) if is_known and inertia else (0.0,) * 6)
