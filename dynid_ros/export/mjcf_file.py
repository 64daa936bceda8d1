"""Export of the arm to MJCF, the format of MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.export.exported_urdf import exported_urdf
from dynid_ros.export.held_friction import BRISTLE, POLYNOMIAL, HeldFriction
from dynid_ros.files import write_atomically
from dynid_ros.model.urdf_export import with_possible_hand
from dynid_ros.simulation.mjcf import (
    BRISTLE_VERSION,
    DELAY_VERSION,
    POLYNOMIAL_VERSION,
    TIMESTEP_S,
    installed_version,
    mjcf_text,
)

FORMAT_NAME = "MJCF"


def held_friction(arm: ExportedArm, motion: Motion) -> HeldFriction:
    """Return the friction in the terms that the installed version of MuJoCo supports."""
    installed = installed_version()
    held = ["rotor_inertia", "spring"]
    held += [POLYNOMIAL] if installed >= POLYNOMIAL_VERSION else []
    held += [BRISTLE] if installed >= BRISTLE_VERSION else []
    return HeldFriction.of(arm, held, motion)


def arm_text(arm: ExportedArm, urdf: str, friction: HeldFriction) -> str:
    """Return the MJCF of an arm whose URDF has the exported links.

    Raises:
        ModelError: MuJoCo refuses the arm.
    """
    has_bristles = friction.bristle.any(axis=1)
    names = arm.robot.joint_names
    # MuJoCo evaluates damping at the end of a step, which acts like an additional inertia of half a step times damping.
    driven = np.array(
        [friction.viscous[j] + arm.servos[name].damping if name in arm.servos else 0.0 for j, name in enumerate(names)]
    )
    fields = {
        "armature": np.maximum(friction.rotor_inertia - 0.5 * TIMESTEP_S * driven, 0.0),
        "frictionloss": np.where(has_bristles, 0.0, friction.coulomb),
        "damping": np.column_stack([friction.viscous, friction.drag]),
        "stiffness": friction.spring,
        "springref": friction.rest,
    }
    return mjcf_text(urdf, arm.robot, fields, servos=arm.servos, bristles=friction.bristle)


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write the MJCF.

    Raises:
        ModelError: MuJoCo refuses the arm.
    """
    robot, corrections = with_possible_hand(arm.robot)
    arm = replace(arm, robot=robot)
    friction = held_friction(arm, motion)
    urdf, remarks = exported_urdf(arm, friction)
    remarks += [f"{correction} (MuJoCo refuses it otherwise)" for correction in corrections]
    files = {"mjcf": write_atomically(output, arm_text(arm, urdf, friction))}
    remarks += friction.remarks(FORMAT_NAME, arm.robot.joint_names) + arm.beside(FORMAT_NAME, motion)
    remarks += _version_remarks(arm, friction)
    remarks.append("no shapes: nothing is seen and nothing collides; join it with those of your model")
    drives = [name for name in robot.joint_names if name in arm.servos]
    motors = f"servos of {', '.join(drives)}, motors of the others" if drives else "a motor each"
    motors = "servos" if len(drives) == robot.n_joints else motors
    holds = (f"inertials of the links, armature, friction, damping, springs and limits of the joints, {motors}",)
    return Export("mjcf", files, holds, tuple(remarks), {"friction": friction.document(arm.robot.joint_names)})


def _version_remarks(arm: ExportedArm, friction: HeldFriction) -> list[str]:
    """Describe which version of MuJoCo the file needs, and which content the installed version does not support."""
    longest = max((servo.delay for servo in arm.servos.values()), default=0.0)
    delay = f"delays of commands of up to {1e3 * longest:.3g} ms"
    used = [(POLYNOMIAL_VERSION, "polynomial damping")] if friction.drag.any() else []
    used += [(BRISTLE_VERSION, "LuGre friction")] if friction.bristle.any() else []
    remarks = []
    if longest and installed_version() < DELAY_VERSION:
        remarks.append(f"the installed MuJoCo cannot hold {delay}; update to {DELAY_VERSION[0]}.{DELAY_VERSION[1]}")
    elif longest:
        used.append((DELAY_VERSION, delay))
    if used:
        needs = "; ".join(f"{what}: MuJoCo {version[0]}.{version[1]}" for version, what in used)
        remarks.append(f"older versions of MuJoCo refuse the file ({needs})")
    if arm.servos:
        remarks.append(f"armature is for timesteps of {1e3 * TIMESTEP_S:g} ms, which MuJoCo's damping adds to")
    return remarks
