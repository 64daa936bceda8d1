"""Provide public arms with links that differ from their URDFs, like identified ones."""

import numpy as np
from pinocchio_arm import example_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import possible_prior

ARMS = {
    "panda_description/urdf/panda.urdf": "panda_hand",
    "ur_description/urdf/ur5_robot.urdf": "tool0",
    "kinova_description/robots/kinova.urdf": "j2s6s200_link_6",
    "talos_data/robots/talos_left_arm.urdf": "arm_left_7_link",
    "xarm_description/urdf/xarm7.urdf": None,
    "ur_description/urdf/ur10_robot.urdf": "tool0",
    "ur_description/urdf/ur3_robot.urdf": "tool0",
}


def load_identified_arm(path):
    """Return the arm, and link parameters that differ from its URDF."""
    text = example_urdf(path).read_text()
    robot = RobotModel.from_urdf(text, tip=ARMS[path])
    nominal, _ = possible_prior(robot.parameters, robot.link_names)
    links = nominal.reshape(-1, 10) * np.random.default_rng(0).uniform(0.8, 1.3, (robot.n_links, 1))
    return robot, links.ravel()
