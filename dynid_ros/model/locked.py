"""An arm some of whose joints are held: one with fewer joints, whose links carry those that are held."""

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.robot import RobotModel
from dynid_ros.model.samples import finite_vector


def locked(robot: RobotModel, joints: Collection[str], pose: ArrayLike) -> RobotModel:
    """The arm with only some joints left to move, in the order of the chain.

    Held links are part of the link before them, their parameters too; those before the first joint are part of the
    base, whose frame, name and gravity stay. The model has no URDF: none describes it.

    Args:
        robot: the arm.
        joints: names of those that move.
        pose: (n,) positions of all joints of `robot`, rad or m; of those that move they do not matter.

    Raises:
        ModelError: no joint, one that the arm does not have, or a pose that is not finite or of another length.

    """
    names = robot.joint_names
    unknown = [joint for joint in joints if joint not in names]
    if unknown or not joints:
        raise ModelError(
            f"{robot.name}: joints to move are {', '.join(unknown) or 'none'}; expected some of {', '.join(names)}"
        )
    pose = finite_vector(pose, len(names), "pose (rad or m, of all joints)")
    moving = [i for i, name in enumerate(names) if name in joints]
    chain, links = robot.chain, robot.parameters.reshape(-1, PARAMETERS_PER_LINK)
    steps = _link_in_link_before(robot, pose)
    placements, parameters = [], []
    reached = np.eye(4)
    for i in range(len(names)):
        if i in moving:
            placements.append(reached @ chain.placements[i])
            parameters.append(links[i].copy())
            reached = np.eye(4)
        else:
            reached = reached @ steps[i]
            if parameters:
                parameters[-1] += transformed(links[i], reached)
    limits = chain.limits
    held = Chain(
        name=chain.name,
        base=chain.base,
        tip=chain.tip,
        joint_names=tuple(names[i] for i in moving),
        link_names=tuple(chain.link_names[i] for i in moving),
        prismatic=chain.prismatic[moving],
        placements=np.stack(placements),
        link_offsets=chain.link_offsets[moving],
        tip_offset=reached @ chain.tip_offset,
        limits=JointLimits(*(getattr(limits, name)[moving] for name in vars(limits))),
    )
    return RobotModel(held, np.concatenate(parameters), robot.gravity)


def _link_in_link_before(robot: RobotModel, pose: np.ndarray) -> np.ndarray:
    """(n, 4, 4) poses of the links in those before them."""
    poses = robot.forward_kinematics(pose[None])[0]
    return np.linalg.inv(np.concatenate([np.eye(4)[None], poses[:-1]])) @ poses
