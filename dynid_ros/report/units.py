"""Units in which a joint's numbers are shown."""

from dataclasses import dataclass

import numpy as np

from dynid_ros.model import RobotModel


@dataclass(frozen=True)
class JointUnits:
    """Of one joint.

    Attributes:
        position: "°" or "mm".
        scale: from rad or m to that.
        effort: "N m" or "N".
        noun: what its position is called.
        moment: unit of its gravity parameters.
        velocity, viscous, inertia: units of its velocity, and of its viscous friction and rotor inertia.

    """

    position: str
    scale: float
    effort: str
    noun: str
    moment: str
    velocity: str
    viscous: str
    inertia: str


REVOLUTE = JointUnits("°", float(np.rad2deg(1.0)), "N m", "angle", "kg m", "rad/s", "N m s/rad", "kg m²")
PRISMATIC = JointUnits("mm", 1000.0, "N", "position", "kg", "m/s", "N s/m", "kg")


def joint_units(robot: RobotModel) -> list[JointUnits]:
    """Units of each joint."""
    return [PRISMATIC if kind == "prismatic" else REVOLUTE for kind in robot.joint_types]
