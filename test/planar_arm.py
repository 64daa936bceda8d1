"""Provide a three-joint arm with a closed-form gravity torque, its URDF and its `identified.yaml`.

Joint 1 rotates about the vertical, joints 2 and 3 about a horizontal axis, positive downwards; masses are on the links'
x axes. All joint axes are z of their link frames.
"""

import math
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from dynid_ros.model import RobotModel

G = 9.80665
LENGTH = 0.4
MASS = (5.0, 3.0, 2.0)
CENTRE = (0.1, 0.2, 0.15)
JOINTS = ("joint_1", "joint_2", "joint_3")
MOMENTS = {"joint_2": MASS[1] * CENTRE[1] + MASS[2] * LENGTH, "joint_3": MASS[2] * CENTRE[2]}


def urdf(effort: float = 50.0, length: float = LENGTH, joints: tuple[str, ...] = JOINTS) -> str:
    """Return the URDF."""
    origins = ('<origin xyz="0 0 0.3"/>', f'<origin rpy="{-math.pi / 2} 0 0"/>', f'<origin xyz="{length} 0 0"/>')
    limits = f'<limit lower="-2.5" upper="2.5" velocity="3.0" effort="{effort}"/>'
    parts = ['<link name="base_link"/>']
    for i, (name, origin) in enumerate(zip(joints, origins, strict=True)):
        parent = "base_link" if i == 0 else f"link_{i}"
        parts.append(
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="link_{i + 1}"/>'
            f'{origin}<axis xyz="0 0 1"/>{limits}</joint>'
            f'<link name="link_{i + 1}"><inertial><origin xyz="{CENTRE[i]} 0 0"/><mass value="{MASS[i]}"/>'
            '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
    return f'<robot name="planar">{"".join(parts)}</robot>'


def gravity_torque(q: list[float], factor: float = 1.0) -> list[float]:
    """Return the torque that holds the arm, the gradient of -g (n_2 sin q_2 + n_3 sin(q_2 + q_3)), times `factor`."""
    outer = -G * MOMENTS["joint_3"] * math.cos(q[1] + q[2])
    return [0.0, factor * (-G * MOMENTS["joint_2"] * math.cos(q[1]) + outer), factor * outer]


def holding_torque(q: NDArray) -> NDArray:
    """Return `gravity_torque` (N, n) at positions (N, n)."""
    return np.array([gravity_torque(row) for row in q.tolist()])


def document(factor: float = 1.0) -> dict:
    """Return the content of `identified.yaml`, with moments times `factor`."""
    robot = RobotModel.from_urdf(urdf())
    gravity: dict = {"joint_1": {"n_x": None, "n_y": None, "std": None, "observable": False, "reason": "parallel"}}
    for name, moment in MOMENTS.items():
        gravity[name] = {"n_x": factor * moment, "n_y": 0.0, "std": {"n_x": 0.001, "n_y": 0.001}, "observable": True}
    return {
        "format": "dynid/1",
        "robot": {
            "name": "planar",
            "joints": list(JOINTS),
            "base": "base_link",
            "tip": "link_3",
            "gravity": [0.0, 0.0, -G],
            "urdf_sha256": robot.urdf_sha256,
            "kinematics_sha256": robot.kinematics_sha256,
        },
        "gravity": gravity,
    }


def write(path: Path, content: dict) -> Path:
    """Write `identified.yaml`."""
    path.write_text(yaml.safe_dump(content))
    return path
