"""URDF of the demo arm, which has the proportions of a PA10, and URDFs with erroneous masses and inertias."""

import xml.etree.ElementTree as ET
from collections.abc import Collection

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_log_cholesky, is_possible, log_cholesky
from dynid_ros.model.urdf_export import urdf_with_inertias


def demo_arm_urdf(moving: Collection[str] = ()) -> str:
    """Return the text of the URDF of the demo arm.

    Args:
        moving: names of the joints that move, while the others are fixed at zero; empty: all joints move.

    Raises:
        DynidError: the package is installed without its `config` folder.
    """
    text = share_path("config/demo_arm.urdf").read_text(encoding="utf-8")
    if not moving:
        return text
    root = ET.fromstring(text)
    for joint in root.iter("joint"):
        if joint.get("name") not in moving:
            joint.set("type", "fixed")
    return ET.tostring(root, encoding="unicode")


def misjudged_urdf(robot: RobotModel, error: float, rng: np.random.Generator) -> str:
    """Return the URDF of `robot` with erroneous but physically consistent inertial parameters of the links.

    The mass of each link and its extent along three axes have an error factor between exp(-error) and exp(error). The
    errors of the centre of mass and of the principal axes are up to `error` times the extent.

    Raises:
        ModelError: the robot does not come from a URDF, or a link has no possible inertia.
    """
    links = robot.parameters.reshape(-1, PARAMETERS_PER_LINK)
    impossible = [name for name, good in zip(robot.link_names, is_possible(links), strict=True) if not good]
    if impossible:
        raise ModelError(
            f"{robot.name}: no real body has the inertia of link(s) {', '.join(impossible)}; correct the URDF"
        )
    links = log_cholesky(links)
    errors = rng.uniform(-error, error, links.shape)
    extent = np.exp(links[:, 1:4]).mean(axis=1, keepdims=True)
    links[:, 0] += errors[:, 0] / 2  # half the logarithm of the mass
    links[:, 1:4] += errors[:, 1:4]
    links[:, 4:] += errors[:, 4:] * extent
    return urdf_with_inertias(robot, from_log_cholesky(links).ravel())
