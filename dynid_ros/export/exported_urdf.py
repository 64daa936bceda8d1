"""Export to a URDF with the identified links, and with the joint friction that a URDF can represent.

If only gravity was identified, the links of the URDF are changed such that they have the identified gravity torque.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.files import write_atomically
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import (
    PARAMETERS_PER_LINK,
    STATIC,
    from_center_of_mass,
    inertia_matrix,
    possible_prior,
    skew,
)
from dynid_ros.model.urdf_export import replace_dynamics, urdf_with_inertias

FORMAT_NAME = "a URDF"
MAX_RELATIVE_RESIDUAL = 1e-9
"""Largest relative error of gravity moments and masses that counts as rounding."""
MAX_SERVO_POSES = 200
"""Largest number of positions over which the inertia of the links is averaged."""


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
    """Write the URDF with new `<inertial>` of all links of the arm and `<dynamics>` of its joints only."""
    friction = HeldFriction.of(arm, (), motion)
    text, remarks = exported_urdf(arm, friction)
    remarks += friction.remarks(FORMAT_NAME, arm.robot.joint_names) + arm.beside(FORMAT_NAME, motion)
    holds = ("inertials of the links, damping and friction of the joints",)
    files = {"urdf": write_atomically(output, text)}
    return Export("urdf", files, holds, tuple(remarks), {"friction": friction.document(arm.robot.joint_names)})


def link_parameters(arm: ExportedArm) -> tuple[NDArray, list[str]]:
    """Return parameters (10 n,) of physically consistent links with the gravity of `arm`, and remarks on the choice.

    Identified links do not change. If only gravity was identified, links keep the mass and the central inertia of the
    URDF, and the centres of mass move as little as possible: the sum of m |dc|² is minimal. If the identified mass
    beyond a prismatic joint differs from that of the URDF, the relative changes of the masses are minimal, too.

    Raises:
        ModelError: no such links exist.
    """
    if arm.parameters is not None:
        return arm.parameters, []
    robot = arm.robot
    nominal, changes = possible_prior(robot.parameters, robot.link_names)
    remarks = [f"link {change}" for change in changes]
    links = nominal.reshape(-1, PARAMETERS_PER_LINK)
    projection = arm.gravity.projection.reshape(len(arm.moments), -1, PARAMETERS_PER_LINK)
    rows = _identified_moments(arm.gravity)
    slides = ~projection[:, :, 1:STATIC].any(axis=(1, 2))
    centers = links[:, 1:STATIC] / links[:, :1]
    masses = links[:, 0].copy()
    if (rows & slides).any():
        by_mass = projection[rows & slides][:, :, 0]
        change = np.linalg.lstsq(by_mass * masses, arm.moments[rows & slides] - by_mass @ masses, rcond=None)[0]
        if np.abs(change).max() > MAX_RELATIVE_RESIDUAL:
            masses = masses * (1.0 + change)
            remarks.append("masses beyond prismatic joints are those that were identified")
    if not (masses > 0.0).all():
        raise ModelError(
            f"{robot.name}: the identified masses beyond its prismatic joints leave none for link(s) "
            f"{', '.join(name for name, mass in zip(robot.link_names, masses, strict=True) if mass <= 0.0)}; "
            "correct the masses of the URDF, or identify links"
        )
    turning = rows & ~slides
    # The gravity moments are linear in the mass moments m c. With the unknowns sqrt(m) dc, the least-squares solution
    # minimizes the sum of m |dc|².
    by_moment = projection[turning][:, :, 1:STATIC]
    moments = masses[:, None] * centers
    missing = arm.moments[turning] - projection[turning][:, :, 0] @ masses - np.einsum("rij,ij", by_moment, moments)
    scale = np.sqrt(masses)[:, None]
    step = np.linalg.lstsq((by_moment * scale).reshape(len(missing), -1), missing, rcond=None)[0]
    moved = centers + step.reshape(-1, 3) / scale
    bodies = [
        from_center_of_mass(mass, center, (inertia_matrix(link) + link[0] * skew(old) @ skew(old)) * mass / link[0])
        for mass, center, old, link in zip(masses, moved, centers, links, strict=True)
    ]
    parameters = np.concatenate(bodies)
    if not np.allclose(
        arm.gravity.project(parameters)[rows], arm.moments[rows], atol=MAX_RELATIVE_RESIDUAL * np.abs(arm.moments).max()
    ):
        raise ModelError(
            f"{robot.name}: no links of the URDF's masses have the identified gravity; correct them, or identify links"
        )
    farthest = int(np.linalg.norm(moved - centers, axis=1).argmax())
    distance = np.linalg.norm(moved - centers, axis=1)[farthest]
    remarks.append(
        "inertias are the URDF's about centres of mass that have the identified gravity; the centre that moved most is "
        f"{robot.link_names[farthest]}'s, by {1e3 * distance:.3g} mm"
    )
    return parameters, remarks


def with_servo_rotors(arm: ExportedArm, position: NDArray) -> ExportedArm:
    """Return the arm with rotor inertias of its servos, if no links were identified and all servos are known.

    The identification of servos gives the mean inertia of each joint, and not always that of its rotor. An unknown
    rotor inertia is this mean minus the mean inertia of the links of `link_parameters` at positions (N, n), which
    should be similar to those of the identification.
    """
    names = arm.robot.joint_names
    if arm.parameters is not None or set(arm.servos) != set(names):
        return arm
    servos = [arm.servos[name] for name in names]
    parameters, _ = link_parameters(arm)
    weightless = RobotModel(arm.robot.chain, gravity=np.zeros(3))
    q = position[np.isfinite(position).all(axis=1)]
    q = q[:: -(-len(q) // MAX_SERVO_POSES) or 1]
    units = np.eye(len(names))
    links = [weightless.inverse_dynamics(q, 0.0 * q, np.tile(unit, (len(q), 1)), parameters) @ unit for unit in units]
    missing = np.array([servo.inertia for servo in servos]) - np.mean(links, axis=1)
    armature = np.array([servo.armature for servo in servos])
    rotors = np.nan_to_num(np.where(np.isfinite(armature), armature, np.maximum(missing, 0.0)))
    joints = [replace(joint, rotor_inertia=True) for joint in arm.friction.per_joint(len(names))]
    coefficients = np.column_stack([arm.coefficients.reshape(len(names), -1), rotors])
    return replace(arm, friction=FrictionModel(joints), coefficients=coefficients.ravel())


def _identified_moments(gravity: GravityModel) -> NDArray:
    """Return a mask (k,) of the moments that affect the gravity torque, so that they were identified."""
    rows = np.ones(len(gravity.names), dtype=bool)
    for i in np.flatnonzero(gravity.unobservable_axes()):
        rows[gravity.columns(int(i))] = False
    return rows
