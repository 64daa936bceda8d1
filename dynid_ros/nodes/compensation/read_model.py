"""Gravity model of the control loop with settings that belong to the same file."""

from dataclasses import dataclass

from dynid_ros.control import HeldArm, JointSettings, LoadedGravity, ModelChange


@dataclass(frozen=True)
class ReadModel:
    """Model read from a file, with the settings that belong to it.

    Attributes:
        arm: gravity torque, friction and brake of the arm.
        joints: limits and gains of the joints.
        change: comparison with the URDF and with other models.
        gravity: gravity torque of the arm with its load, on a tilting base if there is an IMU.
    """

    arm: HeldArm
    joints: JointSettings
    change: ModelChange
    gravity: LoadedGravity
