"""Export of the joints for Isaac Lab: a Python module with keyword arguments of `ActuatorBaseCfg` and subclasses."""

from __future__ import annotations

import math
from pathlib import Path

from dynid_ros import __version__
from dynid_ros.errors import ModelError
from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.files import comment_text, write_atomically

FORMAT_NAME = "an actuator of Isaac Lab"
_MODULE = '''"""Actuators of {name} for Isaac Lab, identified: {source}. Written by dynid_ros {version}.

    from isaaclab.actuators import ImplicitActuatorCfg
    from {module} import ACTUATOR

    actuators = {{"arm": ImplicitActuatorCfg(stiffness=..., damping=..., **ACTUATOR)}}

Names of fields are those of Isaac Lab 2.3; 3.0 still accepts them (its new names of the limits are joint_effort_limit
and joint_velocity_limit). Friction is a torque (Isaac Sim 5.0 and later): `friction` is the breakaway torque at
standstill, `dynamic_friction` the torque in motion. Units: N m, N m s/rad, kg m^2, rad/s; for prismatic joints N,
N s/m, kg, m/s.
"""

ACTUATOR = {{
{fields}}}
'''


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write the module.

    Raises:
        ModelError: the file's name does not end in .py.
    """
    if output.suffix != ".py":
        raise ModelError(f"{output}: actuators of Isaac Lab are written as Python; give a file that ends in .py")
    robot = arm.robot
    friction = HeldFriction.of(arm, ("rotor_inertia",), motion)
    fields = {
        "armature": friction.rotor_inertia,
        "friction": friction.breakaway,
        "dynamic_friction": friction.coulomb,
        "viscous_friction": friction.viscous,
        "effort_limit_sim": robot.limits.effort,
        "velocity_limit_sim": robot.limits.velocity,
    }
    lines = [f'    "joint_names_expr": {list(robot.joint_names)!r},\n']
    for field, values in fields.items():
        known = {
            joint: value
            for joint, value in zip(robot.joint_names, values.tolist(), strict=True)
            if math.isfinite(value)
        }
        lines.append(f'    "{field}": {known!r},\n' if known else f'    "{field}": None,\n')
    text = _MODULE.format(
        name=comment_text(robot.name),
        source=comment_text(arm.source),
        version=__version__,
        module=comment_text(output.stem),
        fields="".join(lines),
    )
    remarks = [*friction.remarks(FORMAT_NAME, robot.joint_names), *arm.beside(FORMAT_NAME, motion)]
    if not friction.rotor_inertia.any():
        remarks.append("armature is 0: no rotor inertia was identified (--friction …,rotor_inertia)")
    remarks.append("links are not in it: give Isaac the URDF of `dynid export --to urdf`")
    holds = ("rotor inertia, static, dynamic and viscous friction, limits of effort and velocity",)
    numbers = {"friction": friction.document(robot.joint_names)}
    return Export("isaac", {"actuator": write_atomically(output, text)}, holds, tuple(remarks), numbers)
