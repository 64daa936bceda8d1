"""Read markers on the hand of a real TIAGo at rest, and compare them with a registration."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from real_recordings import DATA

from dynid_ros.mocap.registration import Registration
from dynid_ros.model import RobotModel

TIAGO_CSV = DATA / "tiago_mocap" / "develop" / "qualisys_hand.csv"
TIAGO_URDF = DATA / "tiago_mocap" / "tiago_48_hey5.urdf"


def read_poses(csv: Path, robot: RobotModel) -> tuple[NDArray, NDArray]:
    """Return joint positions (K, n) and marker positions (K, P, 3) without repeated markers."""
    table = np.genfromtxt(csv, delimiter=",", names=True)
    names = table.dtype.names
    motor = np.stack([table[name] for name in robot.joint_names], axis=1)
    numbers = sorted(int(name[1:]) for name in names if name[0] == "x" and name[1:].isdigit())
    points = np.stack([np.stack([table[f"{axis}{i}"] for axis in "xyz"], axis=1) for i in numbers], axis=1)
    new = [p for p in range(len(numbers)) if not any(np.array_equal(points[:, p], points[:, o]) for o in range(p))]
    return motor, points[:, new]


def distances(robot: RobotModel, registration: Registration, motor: NDArray, positions: NDArray) -> NDArray:
    """Return distances (K, P) in m of last-link markers from their positions by the motors."""
    poses = registration.camera @ robot.forward_kinematics(motor + registration.offsets)[:, -1]
    expected = registration.markers.places @ np.swapaxes(poses[:, :3, :3], 1, 2) + poses[:, None, :3, 3]
    return np.linalg.norm(positions - expected, axis=2)
