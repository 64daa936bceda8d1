"""The arm in MJCF, for MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from numpy.typing import NDArray

from dynid_ros.export.export import Export
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.export.exported_urdf import exported_urdf
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.export.motion import Motion
from dynid_ros.files import write_atomically
from dynid_ros.model.urdf_export import with_possible_hand
from dynid_ros.simulation.mjcf import mjcf_text

FORMAT_NAME = "MJCF"
HELD = ("rotor_inertia", "spring")


def joint_fields(friction: HeldFriction) -> dict[str, NDArray]:
    """Return values (n,) of the joints by their names in MJCF."""
    return {
        "armature": friction.rotor_inertia,
        "frictionloss": friction.coulomb,
        "damping": friction.viscous,
        "stiffness": friction.spring,
        "springref": friction.rest,
    }


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write the MJCF.

    Raises:
        ModelError: MuJoCo refuses the arm.
    """
    robot, mended = with_possible_hand(arm.robot)
    arm = replace(arm, robot=robot)
    friction = HeldFriction.of(arm, HELD, motion)
    urdf, remarks = exported_urdf(arm, friction)
    remarks += [f"{sentence} (MuJoCo takes no other)" for sentence in mended]
    files = {"mjcf": write_atomically(output, mjcf_text(urdf, arm.robot, joint_fields(friction)))}
    remarks += friction.remarks(FORMAT_NAME, arm.robot.joint_names) + arm.beside(FORMAT_NAME, motion)
    remarks.append("no shapes: nothing is seen and nothing collides; join it with those of your model")
    holds = (
        "inertials of the links, armature, friction loss, damping, springs and limits of the joints, a motor each",
    )
    return Export("mjcf", files, holds, tuple(remarks), {"friction": friction.document(arm.robot.joint_names)})
