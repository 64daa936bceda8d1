"""Write the `identified.yaml` of the demo arm as an exact identification would."""

from pathlib import Path

import link_experiment
import numpy as np

from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf

FRICTION = {"joint_1": (4.0, 2.0), "joint_2": (6.1, 3.0), "joint_3": (2.3, 1.5)}
"""Coulomb and viscous friction."""


def demo_robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


def write(
    path: Path,
    robot: RobotModel | None = None,
    *,
    friction: dict[str, tuple[float, float]] | None = None,
    links: bool = False,
    factor: float = 1.0,
) -> Path:
    """Write the file.

    Args:
        path: path of the file.
        robot: the arm, with any gravity.
        friction: (Coulomb, viscous) by joint; 0 for other joints.
        links: whether links are identified, from a motion without friction.
        factor: factor of the gravity moments.
    """
    robot = robot or demo_robot()
    model = GravityModel(robot)
    moments = factor * model.project(robot.parameters)
    free = model.unobservable_axes()
    document = new_document(robot, [], {})
    if links:
        identification = LinkIdentification(robot, friction=link_experiment.FRICTION, cutoff=8.0)
        document = identification.fit(motion(robot)).document()
    document["gravity"] = {}
    for i, joint in enumerate(robot.joint_names):
        columns = range(len(moments))[model.columns(i)]
        values = {model.names[k].split()[0]: None if free[i] else float(moments[k]) for k in columns}
        std = None if free[i] else dict.fromkeys(values, 1e-3)
        document["gravity"][joint] = values | {"std": std, "observable": not free[i], "reason": "parallel"}
    if friction is not None:
        given = {joint: friction.get(joint, (0.0, 0.0)) for joint in robot.joint_names}
        document["friction"] = {joint: {"coulomb": c, "viscous": v, "std": {}} for joint, (c, v) in given.items()}
    return save_identified(path, document)


def motion(robot: RobotModel) -> Recording:
    """Return a motion of all joints at once, without friction."""
    time = np.arange(0.0, 20.0, 0.01)
    rng = np.random.default_rng(0)
    rates = rng.uniform(1.0, 4.0, (3, robot.n_joints))
    phases = rng.uniform(0.0, 6.0, (3, robot.n_joints))
    angle = time[:, None, None] * rates + phases
    q = 0.3 * np.sin(angle).sum(1)
    qd = 0.3 * (rates * np.cos(angle)).sum(1)
    torque = robot.inverse_dynamics(q, qd, -0.3 * (rates**2 * np.sin(angle)).sum(1))
    return Recording(robot.joint_names, time, q, qd, torque + rng.normal(0.0, 1.0, torque.shape))
