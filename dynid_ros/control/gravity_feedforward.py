"""From `identified.yaml` and a URDF to the gravity torque of one sample."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid_ros.control.gravity_compensator import GravityTorque
from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification.identified_file import check_same_robot, gravity_moments, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel


def load_gravity_torque(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    gravity: Sequence[float] = (0.0, 0.0, -9.80665),
) -> tuple[RobotModel, GravityTorque]:
    """Robot and its identified gravity torque, N m (N) from rad (m), both (n,) in the model's joint order.

    Args:
        model_file: `identified.yaml`.
        urdf: path or text.
        base: first link of the chain; None: that of the file.
        tip: last link of the chain; None: that of the file.
        gravity: in the base link's frame, m/s^2.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or a joint was not observable in it although its
            torque is not zero.
        ModelError: the URDF does not describe such a chain.

    """
    identified = load_identified(model_file)
    ends = {"base": base, "tip": tip}
    for end in [end for end, link in ends.items() if link is None]:
        ends[end] = identified["robot"].get(end)
        if not isinstance(ends[end], str):
            raise IdentifiedFileError(f"{model_file}: robot.{end} is {ends[end]!r}, expected the name of a link")
    robot = RobotModel.from_urdf(urdf, tip=ends["tip"], base=ends["base"], gravity=tuple(gravity))
    try:
        check_same_robot(identified, robot)
        model = GravityModel(robot)
        compiled = model.compile(gravity_moments(identified, model))
    except IdentifiedFileError as error:
        raise IdentifiedFileError(f"{model_file}: {error}") from error
    return robot, lambda position: compiled(np.array(position)).tolist()
