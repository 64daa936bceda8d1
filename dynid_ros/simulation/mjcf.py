"""Conversion of a URDF to MJCF, the format of MuJoCo, with joint properties, servos and friction that URDF lacks."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.identified.servos import ServoDrive
from dynid_ros.model import RobotModel
from dynid_ros.simulation.mujoco_model import strip

TIMESTEP_S = 1e-3
"""Timestep of a model with servos, s, and their shortest delay."""
DELAY_VERSION = (3, 5)
POLYNOMIAL_VERSION = (3, 7)
BRISTLE_VERSION = (3, 12)
"""First versions of MuJoCo with delays of actuators, polynomial damping, and passive actuators with LuGre friction."""
BRISTLES_OF = "friction of "
"""Prefix of the name of such an actuator; the name of the joint follows."""


def installed_version() -> tuple[int, int]:
    """Return the version of the installed MuJoCo."""
    major, minor = mujoco.__version__.split(".")[:2]
    return int(major), int(minor)


def mjcf_text(
    urdf: str,
    robot: RobotModel,
    joints: Mapping[str, np.ndarray] | None = None,
    *,
    servos: Mapping[str, ServoDrive] | None = None,
    bristles: np.ndarray | None = None,
) -> str:
    """Return the text of the MJCF: bodies, joints with limits, a servo or motor per joint; no shapes, no collisions.

    Args:
        urdf: text of a URDF with inertias.
        robot: arm in this URDF, with gravity and limits.
        joints: values (n,) of joint attributes by their name in MJCF, SI units; (n, 3) for polynomials; None: damping
            and friction of the URDF.
        servos: position servos by joint name; other joints have a motor, whose control is a torque.
        bristles: (n, 5) LuGre friction: stiffness and damping of the bristles, Coulomb and static friction, Stribeck
            velocity; a row of zeros or None: no LuGre friction.

    Raises:
        ModelError: MuJoCo refuses the URDF: impossible inertias, or moving links without mass.
    """
    root = ET.fromstring(urdf)
    strip(root)
    try:
        spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
        model = spec.compile()
    except ValueError as error:
        raise ModelError(f"URDF of '{robot.name}': MuJoCo refuses it: {' '.join(str(error).split())}") from error
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    spec.option.gravity = data.body(robot.base).xmat.reshape(3, 3) @ robot.gravity
    if servos:
        spec.option.timestep = TIMESTEP_S
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    limits = robot.limits
    for i, name in enumerate(robot.joint_names):
        joint = spec.joint(name)
        limited = bool(np.isfinite([limits.lower[i], limits.upper[i]]).all())
        joint.limited = limited
        joint.range = [limits.lower[i], limits.upper[i]] if limited else [0.0, 0.0]
        for field, values in (joints or {}).items():
            _set(joint, field, values[i])
        if servos:  # stiff settings, with which dry friction hardly creeps at rest
            joint.solref_friction = [2.0 * TIMESTEP_S, 1.0]
            joint.solimp_friction = [0.999, 0.999, 0.001, 0.5, 2.0]
    exact = spec.compile()
    actuators = _actuators(robot, servos or {}, np.zeros((robot.n_joints, 5)) if bristles is None else bristles)
    return _exact(spec.to_xml(), exact, robot, actuators)


def _actuators(robot: RobotModel, servos: Mapping[str, ServoDrive], bristles: np.ndarray) -> ET.Element:
    """Return the servo or motor of each joint with its limit of force, then the passive actuators of friction."""
    section = ET.Element("actuator")
    for name, limit in zip(robot.joint_names, np.asarray(robot.limits.effort, dtype=float), strict=True):
        servo = servos.get(name)
        drive = ET.SubElement(section, "motor" if servo is None else "position", name=name, joint=name)
        if np.isfinite(limit) and limit > 0.0:
            kind = "ctrl" if servo is None else "force"
            drive.set(f"{kind}limited", "true")
            _write(drive, **{f"{kind}range": [-limit, limit]})
        if servo is not None:
            _write(drive, kp=servo.stiffness, kv=servo.damping)
            if servo.delay > 0.0 and installed_version() >= DELAY_VERSION:
                # Interpolation between samples of the control allows a delay that is no multiple of the timestep.
                drive.set("interp", "linear")
                drive.set("nsample", str(int(np.ceil(servo.delay / TIMESTEP_S)) + 2))
                _write(drive, delay=servo.delay)
    for name, bristle in zip(robot.joint_names, bristles, strict=True):
        if bristle.any():
            friction = ET.SubElement(section, "dcmotor", name=f"{BRISTLES_OF}{name}", joint=name, input="none")
            _write(friction, motorconst=[0.0, 0.0], resistance=1.0, lugre=bristle)
    return section


def _exact(text: str, model: mujoco.MjModel, robot: RobotModel, actuators: ET.Element) -> str:
    """Return the text with actuators and with all digits of the numbers, which MuJoCo rounds to six digits."""
    root = ET.fromstring(text)
    for element in root.iter("body"):
        body = model.body(element.get("name", ""))
        _write(element, pos=body.pos, quat=body.quat)
        for inertial in element.findall("inertial"):
            _write(inertial, pos=body.ipos, quat=body.iquat, mass=body.mass, diaginertia=body.inertia)
        for child in element.findall("joint"):
            joint = model.joint(child.get("name", ""))
            _write(child, axis=joint.axis, pos=joint.pos)
            if joint.name in robot.joint_names:
                _write(child, damping=_damping(model, joint.dofadr[0]), armature=joint.armature)
                _write(child, stiffness=np.ravel(joint.stiffness)[:1], springref=joint.qpos_spring)
                _write(child, frictionloss=joint.frictionloss)
                if model.jnt_limited[joint.id]:
                    _write(child, range=joint.range)
    for element in root.iter("option"):
        _write(element, gravity=model.opt.gravity)
    root.append(actuators)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _damping(model: mujoco.MjModel, dof: int) -> list[float]:
    """Return the coefficients of damping; those of higher powers, which need MuJoCo 3.7, only if they are not zero."""
    higher = getattr(model, "dof_dampingpoly", np.zeros((model.nv, 0)))[dof]
    return [model.dof_damping[dof], *(higher if higher.any() else ())]


def _write(element: ET.Element, **values: object) -> None:
    """Set attributes of an element to numbers with all digits."""
    for name, numbers in values.items():
        element.set(name, " ".join(repr(float(number)) for number in np.ravel(np.asarray(numbers))))


def _set(joint: object, field: str, value: np.ndarray) -> None:
    """Set a field; since MuJoCo 3.7 some are polynomials, the linear coefficient first."""
    values = np.atleast_1d(value)
    if np.ndim(getattr(joint, field)):
        getattr(joint, field)[: len(values)] = values
    else:
        setattr(joint, field, float(values[0]))
