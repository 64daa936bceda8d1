"""From `identified.yaml` and a URDF to the gravity torque of one sample."""

import math
from collections.abc import Sequence
from pathlib import Path

from dynid_ros.control.carried_load import CarriedLoad
from dynid_ros.control.joint_springs import JointSprings
from dynid_ros.control.loaded_gravity import LoadedGravity
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel


def load_gravity_torque(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    gravity: Sequence[float] = (0.0, 0.0, -9.80665),
    *,
    use_load: bool = True,
    largest_load: float = math.inf,
    use_springs: bool = True,
) -> tuple[RobotModel, LoadedGravity]:
    """Robot and its identified gravity torque, N m (N) from rad (m), both (n,) in the model's joint order.

    The torque is that of the arm and of the load in section `load`, where the file has one. Where it has a section
    `flexible_joints`, positions are those of the motors, from which the links sag.

    Args:
        model_file: `identified.yaml`.
        urdf: path or text.
        base: first link of the chain; None: that of the file.
        tip: last link of the chain; None: that of the file.
        gravity: in the base link's frame, m/s^2.
        use_load: False: the arm alone, whatever the file says of a load.
        largest_load: largest mass of a load that is believed, kg.
        use_springs: False: rigid joints, whatever the file says of springs.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or a joint was not observable in it although its
            torque is not zero; or its load or its springs are none that can be counted with.
        ModelError: the URDF does not describe such a chain.

    """
    identified = load_identified(model_file)
    ends = {"base": base, "tip": tip}
    for end in [end for end, link in ends.items() if link is None]:
        ends[end] = identified["robot"].get(end)
        if not isinstance(ends[end], str):
            raise IdentifiedFileError(f"{model_file}: robot.{end} is {ends[end]!r}, expected the name of a link")
    robot = RobotModel.from_urdf(urdf, tip=ends["tip"], base=ends["base"], gravity=tuple(gravity))
    check_same_robot(identified, robot)
    model = GravityModel(robot)
    springs = JointSprings.of_document(identified, robot.joint_names) if use_springs else None
    arm = LoadedGravity(model, gravity_moments(identified, model), largest_load=largest_load, springs=springs)
    if not use_load or identified.get("load") is None:
        return robot, arm
    try:
        return robot, arm.carrying(CarriedLoad.of_section(identified["load"]))
    except ControlError as error:
        raise IdentifiedFileError(
            f"{model_file}: the load in it cannot be used: {error}. Identify it again, or do without: use_load false"
        ) from error
