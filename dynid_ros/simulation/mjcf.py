"""MJCF, MuJoCo's own format, of a URDF, with joint properties that a URDF cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.mujoco_model import strip


def mjcf_text(urdf: str, robot: RobotModel, joints: Mapping[str, np.ndarray] | None = None) -> str:
    """Text of the MJCF: bodies, joints with limits, a motor per joint of the arm; no shapes, so nothing collides.

    Args:
        urdf: text, with inertias.
        robot: the arm in it, its gravity and limits.
        joints: (n,) values of its joints by their names in MJCF, SI units; None: damping and friction of the URDF.

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
    limits = robot.limits
    for i, name in enumerate(robot.joint_names):
        joint = spec.joint(name)
        limited = bool(np.isfinite([limits.lower[i], limits.upper[i]]).all())
        joint.limited = limited
        joint.range = [limits.lower[i], limits.upper[i]] if limited else [0.0, 0.0]
        for field, values in (joints or {}).items():
            _set(joint, field, float(values[i]))
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        if np.isfinite(limits.effort[i]) and limits.effort[i] > 0.0:
            motor.ctrllimited = True
            motor.ctrlrange = [-limits.effort[i], limits.effort[i]]
    exact = spec.compile()
    return _exact(spec.to_xml(), exact, robot)


def _exact(text: str, model: mujoco.MjModel, robot: RobotModel) -> str:
    """Return the text with all digits of its numbers; MuJoCo writes six."""
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
                _write(child, damping=np.ravel(joint.damping)[:1], armature=joint.armature)
                _write(child, stiffness=np.ravel(joint.stiffness)[:1], springref=joint.qpos_spring)
                _write(child, frictionloss=joint.frictionloss)
                if model.jnt_limited[joint.id]:
                    _write(child, range=joint.range)
    for element in root.iter("option"):
        _write(element, gravity=model.opt.gravity)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _write(element: ET.Element, **values: object) -> None:
    for name, numbers in values.items():
        element.set(name, " ".join(repr(float(number)) for number in np.ravel(np.asarray(numbers))))


def _set(joint: object, field: str, value: float) -> None:
    """Set a field; MuJoCo 4 has polynomials where 3 had coefficients, the linear one first."""
    if np.ndim(getattr(joint, field)):
        getattr(joint, field)[0] = value
    else:
        setattr(joint, field, value)
