"""URDF of the arm with identified links, and with joint friction as far as a URDF holds it."""

from __future__ import annotations

from pathlib import Path

from dynid_ros.export.export import Export
from dynid_ros.export.exported_arm import ExportedArm, Motion
from dynid_ros.export.gravity_links import link_parameters
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.files import write_atomically
from dynid_ros.model.urdf_export import replace_dynamics, urdf_with_inertias

FORMAT_NAME = "a URDF"


def exported_urdf(arm: ExportedArm, friction: HeldFriction) -> tuple[str, list[str]]:
    """Return the text of the URDF, and remarks on content that the file cannot hold.

    Raises:
        ModelError: no URDF can have the links, see `urdf_with_inertias` and `link_parameters`.
    """
    parameters, remarks = link_parameters(arm)
    names = arm.robot.joint_names
    damping, coulomb = (
        dict(zip(names, values.tolist(), strict=True)) for values in (friction.viscous, friction.coulomb)
    )
    return replace_dynamics(urdf_with_inertias(arm.robot, parameters), damping, coulomb), remarks


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write the URDF: `<inertial>` of all links of the arm and `<dynamics>` of its joints, nothing else changes."""
    friction = HeldFriction.of(arm, (), motion)
    text, remarks = exported_urdf(arm, friction)
    remarks += friction.remarks(FORMAT_NAME, arm.robot.joint_names) + arm.beside(FORMAT_NAME, motion)
    holds = ("inertials of the links, damping and friction of the joints",)
    files = {"urdf": write_atomically(output, text)}
    return Export("urdf", files, holds, tuple(remarks), {"friction": friction.document(arm.robot.joint_names)})
