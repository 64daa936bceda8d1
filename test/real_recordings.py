"""Read recordings of real robots from the folder DYNID_DATA, whose READMEs describe units and pitfalls."""

import json
import os
from pathlib import Path

import numpy as np
import yaml

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention

DATA = Path(os.environ.get("DYNID_DATA", "DYNID_DATA is not set"))
MISSING = f"no folder of real recordings: {DATA}"

URDFS = {
    "ur10e": ("ur10e.urdf", "base_link", "wrist_3_link"),
    "kuka_lwr4": ("kuka_lwr4.urdf", "lwr_base_link", "lwr_7_link"),
    "franka_panda": ("panda_dh.urdf", None, None),
    "staubli_tx40": ("tx40_mdh_modified.urdf", None, None),
}
KR300 = Path(__file__).parents[1] / "benchmarks" / "kuka_kr300.yaml"
UR10E_GAINS = (11.976, 11.976, 9.839, 10.763, 10.763, 10.763)
"""Motor gains in N m / A; the data's README assumes the last one."""
CONVENTIONS = {"ur10e": EffortConvention("motor_current", UR10E_GAINS)}

TX40_RATIOS = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
TX40_POSITION_RATIOS = TX40_RATIOS.copy()
TX40_TORQUE_RATIOS = TX40_RATIOS.copy()
TX40_POSITION_RATIOS[5, 4] = TX40_TORQUE_RATIOS[4, 5] = 32.0
TX40_ZERO = np.array([0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0])


def real_robot(name: str) -> RobotModel:
    """Return the model of the URDF that comes with the recordings."""
    if name == "kuka_kr300":
        return _kr300()
    urdf, base, tip = URDFS[name]
    return RobotModel.from_urdf(DATA / name / urdf, tip=tip, base=base)


def real_recording(name: str, file: str) -> Recording:
    """Return one recording with joint torques in N m."""
    robot = real_robot(name)
    path = DATA / name / "develop" / f"{file}.npz"
    if name == "staubli_tx40":
        return _tx40(robot, path)
    if name == "kuka_kr300":
        return _at_the_joints(robot, path)
    return Recording.read(path, joint_names=robot.joint_names, effort_convention=CONVENTIONS.get(name))


def _tx40(robot: RobotModel, path: Path) -> Recording:
    """Return a recording converted from motors to joints; the last two joints share a motor."""
    data = np.load(path)
    position = data["q_motor"] @ np.linalg.inv(TX40_POSITION_RATIOS).T + TX40_ZERO
    torque = data["torque_motor"] @ TX40_TORQUE_RATIOS.T
    return Recording(
        robot.joint_names, data["t"] - data["t"][0], position, np.full_like(position, np.nan), torque, source=path.name
    )


def _kr300() -> RobotModel:
    """Return the model of the published table, as the recordings include none."""
    table = yaml.safe_load(KR300.read_text())
    links = []
    for link in table["links"]:
        xx, yy, zz, xy, yz, xz = link["inertia"]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        links.append(from_center_of_mass(link["mass"], np.array(link["com"]), inertia))
    return RobotModel.from_dh(table["joints"], (0.0, 0.0, 9.80665), np.concatenate(links), table["name"])


def _at_the_joints(robot: RobotModel, path: Path) -> Recording:
    """Return joint angles from motor angles in degrees, and motor torques times the gear ratios."""
    data = np.load(path)
    ratios = json.loads((path.parents[1] / "published_para.json").read_text())["u"]
    position = np.radians(data["q_motor_deg"])
    torque = data["torque_abs_nm"] * np.array(ratios)
    return Recording(robot.joint_names, data["t"], position, np.full_like(position, np.nan), torque, source=path.name)
