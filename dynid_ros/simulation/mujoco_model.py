"""MuJoCo model of an arm from its URDF: bodies, joints, friction, load, motors; no shapes, so nothing collides."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError, ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, central_moments
from dynid_ros.model.urdf import pose, read_origin, roll_pitch_yaw

LINK = "load of the simulated arm"
ROUNDING_TOLERANCE = 1e-9
"""Second moments below zero by less than this fraction of their sum are those of a point, a rod or a plate."""


def add_load_link(root: ET.Element, tip: str) -> None:
    """Add the load's body to a URDF, fixed to link `tip` and in its frame."""
    ET.SubElement(root, "link", name=LINK)
    joint = ET.SubElement(root, "joint", name=f"joint of the {LINK}", type="fixed")
    ET.SubElement(joint, "parent", link=tip)
    ET.SubElement(joint, "child", link=LINK)


def checked_load(parameters: ArrayLike) -> np.ndarray:
    """Parameters (10,) of a load, as floats; a point mass is a load too.

    Raises:
        ModelError: not ten finite numbers.
        DynidError: no body can have them.
    """
    load = finite_vector(parameters, PARAMETERS_PER_LINK, "load (m, m c, inertia about the tip link's frame)")
    if not load[0] > 0.0:
        raise DynidError(f"the load's mass is {load[0]:g} kg; expected more than 0")
    central = central_moments(load)
    if not np.isfinite(central).all():
        raise DynidError(
            f"the load's mass is {load[0]:g} kg, too little for its moments; give mass and moments of one body"
        )
    moments = np.linalg.eigvalsh(central)
    if moments[0] < -ROUNDING_TOLERANCE * (np.abs(moments).sum() + np.abs(load[4:]).max()):
        raise DynidError(
            f"no body of {load[0]:g} kg has the load's inertia: a second moment about its centre of mass is "
            f"{moments[0]:.3g} kg m^2; the inertia is to be about the frame, not the centre of mass"
        )
    return load


def put_load(model: mujoco.MjModel, load: np.ndarray | None) -> None:
    """Give the body the parameters (10,) of a load, or take all from it; constants that depend on it are left to do."""
    body = model.body(LINK).id
    # MuJoCo takes an inertial frame that was the body's own when the model was compiled for that for ever.
    model.body_sameframe[body] = 0
    if load is None:
        model.body_mass[body] = 0.0
        model.body_ipos[body] = model.body_inertia[body] = 0.0
        return
    # Second moments of mass have the principal axes of the inertia.
    moments, axes = np.linalg.eigh(central_moments(load))
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    model.body_mass[body] = load[0]
    model.body_ipos[body] = load[1:4] / load[0]
    model.body_inertia[body] = np.sum(moments) - moments
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())


MOTOR_OF = "motor of "
INERTIA = "1e-9"
"""kg m^2 and kg, which MuJoCo wants of every body; that of the motor is put in as armature, which knows no gravity."""


def add_motor_links(root: ET.Element, joint_names: Sequence[str]) -> None:
    """Add a motor per joint to a URDF, after its links.

    A motor is one coordinate. The motor of a prismatic joint rotates too, one radian per metre.
    """
    children = {child.get("link") for child in root.iter("child")}
    world = next(link.get("name", "") for link in root.findall("link") if link.get("name") not in children)
    for name in joint_names:
        motor = MOTOR_OF + name
        inertial = ET.SubElement(ET.SubElement(root, "link", name=motor), "inertial")
        ET.SubElement(inertial, "mass", value=INERTIA)
        ET.SubElement(inertial, "inertia", ixx=INERTIA, iyy=INERTIA, izz=INERTIA, ixy="0", ixz="0", iyz="0")
        joint = ET.SubElement(root, "joint", name=motor, type="continuous")
        ET.SubElement(joint, "parent", link=world)
        ET.SubElement(joint, "child", link=motor)
        ET.SubElement(joint, "axis", xyz="0 0 1")


# MuJoCo's dry friction is a soft constraint: a joint that it holds still creeps. These are the shortest time constant
# and the highest impedance that MuJoCo takes; the solver must be exact too, or its residual moves the joints.
STICTION_TIME_CONSTANT_STEPS = 2.0
STICTION_IMPEDANCE = 0.9999
SOLVER_TOLERANCE = 1e-15
CREEP = 0.1
"""Creep of a joint held by stiction, relative to MuJoCo at its stiffest; a lower value is harder for the solver."""


def compile_arm(robot: RobotModel, timestep: float, *, motors: bool = False) -> mujoco.MjModel:
    """Return the MuJoCo model of `robot`: a degree of freedom per joint in the chain's order, a massless load.

    Friction comes from the URDF's `<dynamics>`, gravity from `robot`. With `motors`, n degrees of freedom follow for
    the motors of flexible joints, not coupled yet.

    Raises:
        ModelError: the robot has no URDF, MuJoCo refuses it (impossible inertias, links without mass), joints outside
            the chain move too, or a joint's effort or velocity limit is not positive.
    """
    if robot.urdf is None:
        raise ModelError(f"robot '{robot.name}' comes from a DH table; the simulated arm needs a URDF with inertias")
    _check_limits(robot)
    try:
        model = mujoco.MjModel.from_xml_string(_adapted(robot, motors))
    except ValueError as error:
        raise ModelError(f"URDF of '{robot.name}': MuJoCo refuses it: {' '.join(str(error).split())}") from error
    joints = tuple(model.joint(i).name for i in range(model.njnt))
    beside = [name for name in joints if name.removeprefix(MOTOR_OF) not in robot.joint_names]
    if beside:
        raise ModelError(
            f"URDF of '{robot.name}': joint(s) {', '.join(beside)} move beside the chain from '{robot.base}' to "
            f"'{robot.tip}'; make them fixed, or choose base and tip so that the chain holds them"
        )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    model.opt.gravity = data.body(robot.base).xmat.reshape(3, 3) @ robot.gravity
    # Old MuJoCo gives continuous joints limits, which the URDF standard ignores.
    limits = np.stack([robot.limits.lower, robot.limits.upper], axis=1)
    model.jnt_limited[: robot.n_joints] = np.isfinite(limits).all(axis=1)
    model.jnt_range[: robot.n_joints] = np.where(np.isfinite(limits), limits, 0.0)
    model.opt.timestep = timestep
    model.opt.tolerance = SOLVER_TOLERANCE
    model.dof_solref[:] = (STICTION_TIME_CONSTANT_STEPS * timestep, 1.0)
    model.dof_solimp[:, :2] = STICTION_IMPEDANCE
    return model


def derive_constants(model: mujoco.MjModel) -> None:
    """Compute what depends on masses and rotors, after these have changed."""
    mujoco.mj_setConst(model, mujoco.MjData(model))
    model.dof_invweight0 *= CREEP


def mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the joint-space inertia (n, n) at the pose of `data`, rotors included."""
    matrix = np.empty((model.nv, model.nv))
    for row, unit in zip(matrix, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    return matrix


def _check_limits(robot: RobotModel) -> None:
    for limit, unit in (("effort", "N m"), ("velocity", "rad/s")):
        for name, value in zip(robot.joint_names, getattr(robot.limits, limit), strict=True):
            if not value > 0.0:
                raise ModelError(
                    f"URDF of '{robot.name}': joint '{name}' has {limit} limit {value:g} {unit}, with which it cannot "
                    f"move; correct it or leave it out"
                )


def _adapted(robot: RobotModel, motors: bool) -> str:
    """Return the URDF without shapes and settings, with the load, and with motors if requested."""
    root = ET.fromstring(robot.urdf or "")
    strip(root)
    add_load_link(root, robot.tip)
    if motors:
        add_motor_links(root, robot.joint_names)
    return ET.tostring(root, encoding="unicode")


def strip(root: ET.Element) -> None:
    """Remove shapes and settings from a URDF, and let MuJoCo read its inertias unchanged.

    Fixed links with impossible inertias go too: they do not act on anything, and MuJoCo would refuse the robot for an
    antenna of its base.
    """
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for shape in link.findall(tag):
                link.remove(shape)
    for settings in root.findall("mujoco"):
        root.remove(settings)
    for origin in root.iter("origin"):
        # MuJoCo does not know the quaternions of URDF 1.1.
        if origin.get("quat_xyzw") is not None:
            rotation = pose(read_origin(origin, "<origin>"), "<origin>")[:3, :3]
            origin.set("rpy", " ".join(repr(angle) for angle in roll_pitch_yaw(rotation)))
            del origin.attrib["quat_xyzw"]
    for link in _standing(root):
        for inertial in link.findall("inertial"):
            if not _is_possible(inertial):
                link.remove(inertial)
    # MuJoCo 3.3 misplaces the centre of mass of links that it fuses; left apart they are simulated correctly.
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", fusestatic="false", balanceinertia="false")


def _standing(root: ET.Element) -> list[ET.Element]:
    """Return the links that no joint moves, of a URDF that is a tree."""
    above = {next(joint.iter("child")).get("link"): joint for joint in root.findall("joint")}

    def stands(link: str | None) -> bool:
        joint = above.get(link)
        return joint is None or (joint.get("type") == "fixed" and stands(next(joint.iter("parent")).get("link")))

    return [link for link in root.findall("link") if stands(link.get("name"))]


def _is_possible(inertial: ET.Element) -> bool:
    """Return whether MuJoCo accepts an inertia: positive, no principal moment above the sum of the others."""
    inertia = inertial.find("inertia")
    if inertia is None:
        return True
    xx, yy, zz, xy, xz, yz = (float(inertia.get(name, "0")) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool(moments[0] > 0.0 and moments[0] + moments[1] >= moments[2])
