"""Model the Mitsubishi PA10-6CE of Lightcap and Banks 2007: single joints of table I, and a similar six-joint arm.

In table I, I is about J and v about b, which suggests an arbitrary even split. The true values here are uneven:
J = 0.35 I and b = 0.3 v.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel

G = 9.80665
LIGHTER = 0.8
"""Factor of masses and inertias in the URDF for the code under test."""


@dataclass(frozen=True)
class FlexibleJoint:
    """Parameters of a link behind a spring as in eq. 2, in SI units on the link's side of the gear."""

    inertia: float
    coulomb: float
    viscous: float
    gravity_x: float
    gravity_y: float
    motor_viscous: float
    motor_inertia: float
    stiffness: float


PRINTED = {
    1: FlexibleJoint(1.13, 9.08, 9.88, 1.52, 2.08, 10.05, 1.06, 5.98e3),
    2: FlexibleJoint(6.15, 9.28, 18.38, 111.64, -7.80, 23.28, 12.57, 1.19e4),
    3: FlexibleJoint(2.27, 5.81, 5.79, 8.33, 8.56, 6.35, 2.48, 4.60e3),
    4: FlexibleJoint(0.03, 1.48, 1.45, 0.0, 0.18, 1.46, 0.03, 7.09e2),
    5: FlexibleJoint(0.16, 1.84, 1.75, 0.26, 0.63, 1.78, 0.16, 7.72e2),
    6: FlexibleJoint(0.08, 0.87, 0.92, 0.10, 0.0, 0.96, 0.07, 4.78e2),
}
"""Table I, with zero for "< 0.01"."""


def table_one(joint: int) -> FlexibleJoint:
    """Return joint 1 to 6 of table I with an uneven motor."""
    row = PRINTED[joint]
    return FlexibleJoint(
        row.inertia,
        row.coulomb,
        row.viscous,
        row.gravity_x,
        row.gravity_y,
        0.3 * row.viscous,
        0.35 * row.inertia,
        row.stiffness,
    )


def single_joint_urdf(joint: int, scale: float = 1.0, row: FlexibleJoint | None = None) -> str:
    """Return one link, upright at q = 0 and falling towards positive q; `scale` is a factor of mass and inertia."""
    row = row or table_one(joint)
    moment_x = row.gravity_x / G
    moment_y = row.gravity_y / G
    mass = 2.0 * (moment_x**2 + moment_y**2) / row.inertia + 1.0  # for a positive inertia about the center
    about_centre = row.inertia - (moment_x**2 + moment_y**2) / mass
    inertial = _inertial(mass, (moment_y / mass, 0.0, moment_x / mass), (about_centre, about_centre, 0.5), scale)
    return (
        f'<robot name="pa10_joint_{joint}"><link name="base"/><joint name="joint_{joint}" type="revolute">'
        '<parent link="base"/><child link="link"/><axis xyz="0 -1 0"/>'
        '<limit lower="-1.5" upper="1.5" velocity="2" effort="400"/></joint>'
        f'<link name="link">{inertial}</link></robot>'
    )


# Parent to child: offset and roll of the joint's frame about x; mass, center and moments of inertia about it. The last
# link carries the 44.5 N of the paper.
LINKS = (
    ((0.0, 0.0, 0.315), 0.0, 9.0, (0.0, -0.02, 0.01), (0.06, 0.06, 0.05)),
    ((0.0, 0.0, 0.0), -1.5707963267948966, 6.0, (0.01, -0.2, 0.03), (0.12, 0.03, 0.12)),
    ((0.0, -0.45, 0.0), 0.0, 4.0, (-0.01, -0.12, 0.02), (0.04, 0.015, 0.04)),
    ((0.0, -0.5, 0.0), 1.5707963267948966, 2.0, (0.003, 0.005, -0.12), (0.012, 0.012, 0.008)),
    ((0.0, 0.0, 0.0), -1.5707963267948966, 1.0, (0.002, -0.03, 0.004), (0.004, 0.003, 0.004)),
    ((0.0, -0.08, 0.0), 1.5707963267948966, 4.9, (0.008, -0.006, 0.05), (0.03, 0.035, 0.045)),
)


def arm_urdf(scale: float = 1.0, alone: int | None = None, pose: Sequence[float] = (0.0,) * 6) -> str:
    """Return six revolute joints: waist, shoulder, elbow, forearm, wrist, tool.

    Args:
        scale: factor of masses and inertias.
        alone: number of the only joint that is not fixed.
        pose: positions of the fixed joints in rad.
    """
    parts = ['<robot name="pa10"><link name="link_0"/>']
    for number, (offset, roll, mass, centre, moments) in enumerate(LINKS, start=1):
        fixed = alone not in (None, number)
        turned = Rotation.from_euler("XZ", [roll, pose[number - 1] if fixed else 0.0])
        rpy = " ".join(repr(float(angle)) for angle in turned.as_euler("xyz"))
        parts.append(
            f'<joint name="joint_{number}" type="{"fixed" if fixed else "revolute"}">'
            f'<parent link="link_{number - 1}"/><child link="link_{number}"/>'
            f'<origin xyz="{offset[0]!r} {offset[1]!r} {offset[2]!r}" rpy="{rpy}"/>'
            '<axis xyz="0 0 1"/><limit lower="-2.6" upper="2.6" velocity="2" effort="400"/></joint>'
            f'<link name="link_{number}">{_inertial(mass, centre, moments, scale)}</link>'
        )
    return "".join(parts) + "</robot>"


def single_joint_robot(joint: int) -> RobotModel:
    """Return the model for the code under test, a fifth too light."""
    return RobotModel.from_urdf(single_joint_urdf(joint, LIGHTER))


def arm_robot() -> RobotModel:
    """Return the model for the code under test, a fifth too light."""
    return RobotModel.from_urdf(arm_urdf(LIGHTER))


def pinocchio_model(urdf: str):
    """Return the arm in Pinocchio, with gravity of 9.81 m/s²."""
    model = pytest.importorskip("pinocchio").buildModelFromXML(urdf)
    model.gravity.linear = np.array([0.0, 0.0, -G])
    return model


def _inertial(mass: float, centre: tuple, moments: tuple, scale: float) -> str:
    xx, yy, zz = (scale * moment for moment in moments)
    x, y, z = centre
    return (
        f'<inertial><origin xyz="{x!r} {y!r} {z!r}"/><mass value="{scale * mass!r}"/>'
        f'<inertia ixx="{xx!r}" iyy="{yy!r}" izz="{zz!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
