"""Choices of nodes and parameters that launch files and the guided page offer alike.

Parameters of nodes that ROS names in text: "true" is the text of a boolean in a launch file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Option:
    """Node that may be started, with parameters that belong to the choice.

    Attributes:
        node: name of the node.
        defaults: parameters of all nodes of the choice that a parameter file overrides.
        fixed: parameters that override a parameter file.
    """

    node: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)


_ALL_JOINTS = {"motion": "fourier"}
_LOAD = {"motion": "fourier", "target": "load"}
IDENTIFICATIONS = {
    "gravity": Option("gravity_identification"),
    "links": Option("link_identification", _ALL_JOINTS),
    "flexible_joints": Option("flexible_joint_identification", _ALL_JOINTS),
    "torque_sensors": Option("torque_sensor_calibration"),
    "load": Option("load_identification", _LOAD),
    "live_load": Option("load_identification", _LOAD | {"live": "true"}),
}
"""Node of each identification, with the motion that it needs; the default is a motion of one joint after the other."""

_FORWARDED = {"output": "effort", "controller": "forward_effort_controller"}
# The position controller holds the arm, so a torque that a killed process left does not matter. Effort in joint_states
# is the sum of both controllers.
_WITH_POSITION_CONTROLLER = {"position_controller": "", "assume_no_effort": "true"}
COMPENSATION_ROUTES = {
    "effort": Option("gravity_compensation", fixed=_FORWARDED),
    "feedforward": Option("gravity_compensation", fixed=_FORWARDED | _WITH_POSITION_CONTROLLER),
    "trajectory": Option(
        "gravity_compensation", fixed={"output": "trajectory", "controller": "joint_trajectory_controller"}
    ),
    "position": Option(
        "gravity_compensation", fixed={"output": "position", "controller": "forward_position_controller"}
    ),
}
"""Routes of the torque to the arm: a torque controller alone, a torque controller with a position controller,
trajectories, or offsets of set-points (docs/controllers.md)."""
