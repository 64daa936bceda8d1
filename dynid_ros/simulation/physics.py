"""From a URDF to a MuJoCo model of the arm alone: bodies, joints, friction; no shapes, so nothing collides."""

from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.load_body import add_load_link
from dynid_ros.simulation.motor_bodies import MOTOR_OF, add_motor_links

# MuJoCo's dry friction is a soft constraint: a joint that it holds still creeps. These are the shortest time constant
# and the highest impedance that MuJoCo takes; the solver must be exact too, or its residual moves the joints.
STICTION_TIME_CONSTANT_STEPS = 2.0
STICTION_IMPEDANCE = 0.9999
SOLVER_TOLERANCE = 1e-15
CREEP = 0.1
"""How fast a joint held by stiction creeps, relative to MuJoCo at its stiffest; less is harder on the solver."""


def compile_arm(robot: RobotModel, timestep: float, *, motors: bool = False) -> mujoco.MjModel:
    """MuJoCo model of `robot`; one degree of freedom per joint, in the order of the chain, and a load without mass.

    Friction is that of the URDF's `<dynamics>`, gravity that of `robot`. With `motors` n degrees of freedom follow for
    the motors of flexible joints, coupled to nothing yet.

    Raises:
        ModelError: the robot has no URDF, MuJoCo refuses it (impossible inertias, links without mass), joints beside
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
    # Older MuJoCo gives continuous joints the limits that URDF says to ignore.
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
    """Joint-space inertia (n, n) at the pose of `data`, rotors included."""
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
    """The URDF without shapes and settings, with the load, and with motors where asked for."""
    root = ET.fromstring(robot.urdf or "")
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for shape in link.findall(tag):
                link.remove(shape)
    for settings in root.findall("mujoco"):
        root.remove(settings)
    add_load_link(root, robot.tip)
    if motors:
        add_motor_links(root, robot.joint_names)
    # MuJoCo 3.3 misplaces the centre of mass of links that it fuses; left apart they are simulated correctly.
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", fusestatic="false", balanceinertia="false")
    return ET.tostring(root, encoding="unicode")
