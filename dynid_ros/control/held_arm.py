"""Arm model for gravity compensation, read from `identified.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid_ros.control.gravity_feedforward import LoadedGravity, loaded_gravity, robot_of_file
from dynid_ros.control.joint_brake import JointBrake
from dynid_ros.control.joint_feedback import IdentifiedFriction
from dynid_ros.identified.section import is_number
from dynid_ros.identified.servos import servo_stiffness
from dynid_ros.model import RobotModel


@dataclass(frozen=True)
class HeldArm:
    """An identified arm that a control loop can hold.

    Attributes:
        gravity: gravity torque of the arm and of the load in the file, and the torque of motions if the file has links.
        friction: friction that may be compensated for.
        brake: damping computed from the identified inertias, or from the URDF's if the file has no links.
        servo_stiffness: identified stiffness of position servos by joint, N m/rad (N/m).
    """

    gravity: LoadedGravity
    friction: IdentifiedFriction
    brake: JointBrake
    servo_stiffness: Mapping[str, float] = field(default_factory=dict)

    @property
    def robot(self) -> RobotModel:
        """The arm."""
        return self.gravity.model.robot


def load_held_arm(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    *,
    gravity: Sequence[float],
    held: Mapping[str, float] | None = None,
    **options: Any,
) -> HeldArm:
    """Read gravity torque, friction and brake of an arm; see `load_gravity_torque` for arguments and errors."""
    identified, robot = robot_of_file(model_file, urdf, base, tip, gravity=gravity, held=held)
    parameters = None
    loaded = loaded_gravity(identified, robot, **options)
    if "links" in identified:
        from dynid_ros.control.motion_torque import MotionTorque  # noqa: PLC0415 - not for a model of gravity alone
        from dynid_ros.identified.links import link_model  # noqa: PLC0415

        links = link_model(identified, robot)
        parameters = links.parameters
        loaded = loaded.moving(MotionTorque(links))
    return HeldArm(
        loaded,
        IdentifiedFriction.from_document(identified, robot.joint_names),
        JointBrake.from_robot(
            robot, robot.limits.effort.tolist(), parameters=parameters, rotor_inertia=rotor_inertias(identified, robot)
        ),
        servo_stiffness(identified),
    )


def rotor_inertias(identified: Mapping[str, Any], robot: RobotModel) -> list[float]:
    """Return the rotor inertias (n,) in the section `friction`, kg m^2 (kg); zero for joints without one."""
    section = identified.get("friction")
    entries = [section.get(name) if isinstance(section, Mapping) else None for name in robot.joint_names]
    values = [entry.get("rotor_inertia") if isinstance(entry, Mapping) else None for entry in entries]
    return [float(value) if value is not None and is_number(value) and value > 0.0 else 0.0 for value in values]
