"""A gravity model with all that the control loop takes from the same file."""

from dataclasses import dataclass

from dynid_ros.control import HeldArm, JointSettings, LoadedGravity, ModelChange


@dataclass(frozen=True)
class ReadModel:
    """A model that was read, and all that belongs to it.

    Attributes:
        arm: gravity, friction and inertias.
        joints: settings of its joints.
        change: by which it is compared with others.
        gravity: torque of the arm with its load, on a base that tilts where there is an IMU.
    """

    arm: HeldArm
    joints: JointSettings
    change: ModelChange
    gravity: LoadedGravity
