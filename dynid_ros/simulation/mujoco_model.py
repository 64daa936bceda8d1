"""MuJoCo model of an arm from its URDF: bodies, joints, friction, load and motors; no shapes, so no collisions."""

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
"""Name of the link of the load."""
ROUNDING_TOLERANCE = 1e-9
"""Largest negative second moment over the sum of moments that counts as rounding; it is zero for a point or a plate."""
MOTOR_OF = "motor of "
"""Prefix of the name of the link and the joint of a motor; the name of the driven joint follows."""
MOTOR_BODY_INERTIA = "1e-9"
"""Negligible mass (kg) and inertia (kg m²) of a motor's body, which must not be zero; its inertia is the armature."""
# MuJoCo's dry friction is a soft constraint, which lets a joint creep at rest. These are the shortest time constant and
# the highest impedance that MuJoCo accepts. The solver must be exact too, or its residual moves the joints.
STICTION_TIME_CONSTANT_STEPS = 2.0
STICTION_IMPEDANCE = 0.9999
SOLVER_TOLERANCE = 1e-15
CREEP_FACTOR = 0.1
"""Factor that reduces the creep further; a smaller value makes the problem of the solver ill-conditioned."""


def add_load_link(root: ET.Element, tip: str) -> None:
    """Add the load's body to a URDF, fixed to link `tip` and in its frame."""
    ET.SubElement(root, "link", name=LINK)
    joint = ET.SubElement(root, "joint", name=f"joint of the {LINK}", type="fixed")
    ET.SubElement(joint, "parent", link=tip)
    ET.SubElement(joint, "child", link=LINK)


def checked_load(parameters: ArrayLike) -> np.ndarray:
    """Return the inertial parameters (10,) of a load as floats, if a body or a point mass can have them.

    Raises:
        ModelError: the parameters are not ten finite numbers.
        DynidError: no body can have these parameters.
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
    """Set the parameters (10,) of the body of the load, None: zero; call `derive_constants` afterwards."""
    body = model.body(LINK).id
    # If the inertial frame was the frame of the body at compilation, MuJoCo ignores changes of it unless this is 0.
    model.body_sameframe[body] = 0
    if load is None:
        model.body_mass[body] = 0.0
        model.body_ipos[body] = model.body_inertia[body] = 0.0
        return
    # Second moments ∫ r rᵀ dm and inertia have the same principal axes.
    moments, axes = np.linalg.eigh(central_moments(load))
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    model.body_mass[body] = load[0]
    model.body_ipos[body] = load[1:4] / load[0]
    model.body_inertia[body] = np.sum(moments) - moments
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())


def add_motor_links(root: ET.Element, joint_names: Sequence[str]) -> None:
    """Add a link and a continuous joint for the motor of each joint to a URDF, after its own links.

    The motor of a prismatic joint rotates too, by one radian per metre.
    """
    children = {child.get("link") for child in root.iter("child")}
    world = next(link.get("name", "") for link in root.findall("link") if link.get("name") not in children)
    for name in joint_names:
        motor = MOTOR_OF + name
        inertial = ET.SubElement(ET.SubElement(root, "link", name=motor), "inertial")
        ET.SubElement(inertial, "mass", value=MOTOR_BODY_INERTIA)
        ET.SubElement(
            inertial,
            "inertia",
            ixx=MOTOR_BODY_INERTIA,
            iyy=MOTOR_BODY_INERTIA,
            izz=MOTOR_BODY_INERTIA,
            ixy="0",
            ixz="0",
            iyz="0",
        )
        joint = ET.SubElement(root, "joint", name=motor, type="continuous")
        ET.SubElement(joint, "parent", link=world)
        ET.SubElement(joint, "child", link=motor)
        ET.SubElement(joint, "axis", xyz="0 0 1")


def compile_arm(robot: RobotModel, timestep: float, *, motors: bool = False) -> mujoco.MjModel:
    """Return the MuJoCo model of `robot`, with one degree of freedom per joint in the chain's order and a zero load.

    Friction comes from the URDF's `<dynamics>`, gravity from `robot`. With `motors`, n degrees of freedom follow for
    the motors of flexible joints, not yet coupled to the links.

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
    other_joints = [name for name in joints if name.removeprefix(MOTOR_OF) not in robot.joint_names]
    if other_joints:
        raise ModelError(
            f"URDF of '{robot.name}': joint(s) {', '.join(other_joints)} move beside the chain from '{robot.base}' to "
            f"'{robot.tip}'; make them fixed, or choose base and tip so that the chain contains them"
        )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    model.opt.gravity = data.body(robot.base).xmat.reshape(3, 3) @ robot.gravity
    # Old versions of MuJoCo apply the limits of continuous joints, which the URDF standard ignores.
    limits = np.stack([robot.limits.lower, robot.limits.upper], axis=1)
    model.jnt_limited[: robot.n_joints] = np.isfinite(limits).all(axis=1)
    model.jnt_range[: robot.n_joints] = np.where(np.isfinite(limits), limits, 0.0)
    model.opt.timestep = timestep
    model.opt.tolerance = SOLVER_TOLERANCE
    model.dof_solref[:] = (STICTION_TIME_CONSTANT_STEPS * timestep, 1.0)
    model.dof_solimp[:, :2] = STICTION_IMPEDANCE
    return model


def derive_constants(model: mujoco.MjModel) -> None:
    """Update constants of the model that depend on masses and rotor inertia, after a change of these."""
    mujoco.mj_setConst(model, mujoco.MjData(model))
    model.dof_invweight0 *= CREEP_FACTOR


def mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the joint-space inertia matrix (n, n) at the pose of `data`, including rotor inertia."""
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
    """Remove shapes and settings of MuJoCo from a URDF, and make MuJoCo use its inertias unchanged.

    Impossible inertias of links that do not move are removed too. They have no effect on the motion, but MuJoCo would
    refuse the robot because of them.
    """
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for shape in link.findall(tag):
                link.remove(shape)
    for settings in root.findall("mujoco"):
        root.remove(settings)
    for origin in root.iter("origin"):
        # MuJoCo does not read the quaternions of URDF 1.1.
        if origin.get("quat_xyzw") is not None:
            rotation = pose(read_origin(origin, "<origin>"), "<origin>")[:3, :3]
            origin.set("rpy", " ".join(repr(angle) for angle in roll_pitch_yaw(rotation)))
            del origin.attrib["quat_xyzw"]
    for link in _fixed_links(root):
        for inertial in link.findall("inertial"):
            if not _is_possible(inertial):
                link.remove(inertial)
    # MuJoCo 3.3 misplaces the centre of mass of links that it fuses, so fusion is disabled.
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", fusestatic="false", balanceinertia="false")


def _fixed_links(root: ET.Element) -> list[ET.Element]:
    """Return the links of a URDF that no joint moves."""
    parent_joints = {next(joint.iter("child")).get("link"): joint for joint in root.findall("joint")}

    def is_fixed(link: str | None) -> bool:
        joint = parent_joints.get(link)
        return joint is None or (joint.get("type") == "fixed" and is_fixed(next(joint.iter("parent")).get("link")))

    return [link for link in root.findall("link") if is_fixed(link.get("name"))]


def _is_possible(inertial: ET.Element) -> bool:
    """Return whether MuJoCo accepts an inertia: positive, no principal moment above the sum of the others."""
    inertia = inertial.find("inertia")
    if inertia is None:
        return True
    xx, yy, zz, xy, xz, yz = (float(inertia.get(name, "0")) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool(moments[0] > 0.0 and moments[0] + moments[1] >= moments[2])
