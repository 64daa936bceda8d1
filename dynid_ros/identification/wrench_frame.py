"""Frame, sign convention and topic of the wrenches of a force/torque sensor."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.channels import WRENCH_AXES
from dynid_ros.errors import IdentificationError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.series import WrenchSeries

Frame = Literal["sensor", "base"]
"""Axes of the wrenches: those of the sensor, or those of the base. In "base", wrenches including their bias are rotated
to the axes of the base, but moments are still about the sensor's origin."""
Convention = Literal["load_on_sensor", "sensor_on_load"]
"""Body that exerts the wrench: a load at rest reads its weight downward ("load_on_sensor") or upward."""
MAX_UNEXPLAINED_BY_FRAME: Final = 0.1
"""Unexplained fraction of the readings' variation above which the other frame is tried."""
MAX_REMAINDER_BY_OTHER: Final = 0.4
"""Ratio of the unexplained fraction with the other frame to that with the stated frame, below which the stated frame is
wrong."""
SENSOR_AXES: Final = WRENCH_AXES
TURN: Final = ("turn x", "turn y", "turn z")
"""Names of the unknown small turn of a sensor's axes."""
WRENCH_UNITS: Final = ("N", "N", "N", "N m", "N m", "N m")


def require_choices(frame: str | None, convention: str) -> None:
    """Refuse unknown names of a frame (None: not given) or a convention.

    Raises:
        IdentificationError: a name is unknown; the message lists the choices.
    """
    for name, value, choices in (("frame", frame, get_args(Frame)), ("convention", convention, get_args(Convention))):
        if value not in choices and not (name == "frame" and value is None):
            raise IdentificationError(f"{name} is {value!r}; expected one of {', '.join(choices)}")


def chosen_series(recording: Recording, topic: str | None = None) -> tuple[str, WrenchSeries]:
    """Return the name of a wrench topic and its wrenches; the only topic if none is named.

    Raises:
        IdentificationError: the recording has no wrenches, no topic of that name, or several topics to choose from.
    """
    topics = list(recording.wrenches)
    if not topics:
        raise IdentificationError(
            f"{recording.source} has no wrench topic; record the geometry_msgs/WrenchStamped of the sensor beside the "
            "joint states"
        )
    if topic is None and len(topics) > 1:
        raise IdentificationError(f"{recording.source} has several wrench topics: {', '.join(topics)}; choose one")
    name = topics[0] if topic is None else topic
    if name not in recording.wrenches:
        raise IdentificationError(f"{recording.source} has no wrench topic {name}; it has {', '.join(topics)}")
    return name, recording.wrenches[name]


def frame_of(series: WrenchSeries, robot: RobotModel, frame: Frame | None, where: str) -> Frame:
    """Return the given frame, or if it is None, the frame named by the wrenches' `frame_id`.

    Raises:
        IdentificationError: the frame is neither the tip's nor the base's.
    """
    if frame is not None:
        return frame
    name = series.frame_id.lstrip("/")
    if name == robot.tip:
        return "sensor"
    if name == robot.base:
        return "base"
    if not name:
        raise IdentificationError(
            f"{where}: its wrenches have no frame_id; say whether they are in the frame of the sensor ('{robot.tip}') "
            f"or of the base ('{robot.base}')"
        )
    raise IdentificationError(
        f"{where}: its wrenches are in frame '{name}', which is neither the tip '{robot.tip}' nor the base "
        f"'{robot.base}' of the robot; build the robot with tip='{name}', the sensor's link in the URDF"
    )


def sensor_wrench(wrench: NDArray, rotations: NDArray, frame: Frame) -> NDArray:
    """Return wrenches (N, 6) in the axes of the sensor, which are the columns of `rotations` (N, 3, 3) in the base."""
    if frame == "sensor":
        return wrench
    return turned(wrench, np.swapaxes(rotations, 1, 2))


def turned(wrench: NDArray, rotations: NDArray) -> NDArray:
    """Return wrenches (N, 6) whose forces and torques are multiplied by their matrices of `rotations` (N, 3, 3)."""
    return np.einsum("nij,nkj->nki", rotations, wrench.reshape(-1, 2, 3)).reshape(-1, 6)


def tip_rotations(robot: RobotModel, q: NDArray) -> NDArray:
    """Return the axes (N, 3, 3) of the tip link in the base frame, as columns, at positions (N, n)."""
    return robot.forward_kinematics(q)[:, robot.chain.tip_link, :3, :3] @ robot.tip_offset[:3, :3]
