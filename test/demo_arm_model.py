"""The demo arm's `identified.yaml` as a perfect identification would write it."""

from pathlib import Path

from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.simulation import demo_arm_urdf

FRICTION = {"joint_1": (4.0, 2.0), "joint_2": (6.1, 3.0), "joint_3": (2.3, 1.5)}
"""Coulomb and viscous."""


def demo_robot() -> RobotModel:
    """The arm."""
    return RobotModel.from_urdf(demo_arm_urdf())


def write(path: Path, *, friction: dict[str, tuple[float, float]] | None = None) -> Path:
    """Write the file; `friction` (Coulomb, viscous) by joint, of joints that it does not name 0."""
    robot = demo_robot()
    model = GravityModel(robot)
    moments = model.project(robot.parameters)
    free = model.unobservable_axes()
    document = new_document(robot, [], {})
    document["gravity"] = {}
    for i, joint in enumerate(robot.joint_names):
        columns = range(len(moments))[model.columns(i)]
        values = {model.names[k].split()[0]: None if free[i] else float(moments[k]) for k in columns}
        document["gravity"][joint] = values | {"std": None, "observable": not free[i], "reason": "parallel"}
    if friction is not None:
        given = {joint: friction.get(joint, (0.0, 0.0)) for joint in robot.joint_names}
        document["friction"] = {joint: {"coulomb": c, "viscous": v, "std": {}} for joint, (c, v) in given.items()}
    return save_identified(path, document)
