"""Settings of a load for drivers and controllers, with the names, units, order and frame that each of them expects.

All numbers are in the frame of the robot's tip, so the choice of the tip chooses the frame.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.files import comment_text, yaml_text
from dynid_ros.identification.load_result import LoadResult

DECIMALS = 9
"""Decimals of kg, m and kg m²."""
UPRIGHT = 1e-3
"""Sine of the largest angle between gravity and −z that counts as zero."""

SENSOR = """\
# Frame: that of the sensor, about whose origin it measures moments.
# '{tip}' is taken to be it; if it is not, identify with --tip <link of the sensor>.
# The sensor must read what the load does to it (at rest a force along gravity) and carry nothing else. No bias is taken
# off: zero the sensor without the load.
"""
UR = """\
# Frame: the tool flange, link tool0 of ur_description.
# '{tip}' is taken to have its pose; if it has not, identify with --tip tool0.
# This replaces the payload that is active: a tool that was part of the arm's model has to be added to these numbers.
# The robot zeroes its own force sensor with it.
"""
FRANKA = """\
# Frame: the flange, link *_link8 of franka_description (the hand is turned by 45 degrees against it).
# '{tip}' is taken to have its pose; if it has not, identify with --tip <prefix>_link8.
# This is a load beside the end effector, which is set in Desk.
"""
NO_FRANKA_CALL = """\
# No call is given: it takes an inertia, and this load's is not known: {reason}.
"""


def driver_settings(result: LoadResult) -> dict[str, str]:
    """Return the text of each driver's settings, by file name.

    Unknown numbers are left out, and a comment states the consequence.

    Raises:
        IdentificationError: the mass or its centre is unknown, or a sensor was faulty.
    """
    if not np.isfinite(result.mass):
        unknown = "centre of mass" if np.isfinite(result.body.mass) else "mass"
        raise IdentificationError(f"no settings for drivers: these data do not show the {unknown} of the load")
    if not result.is_loaded:
        raise IdentificationError("no settings for drivers: no load is shown; leave them as they are without one")
    if result.faults:
        raise IdentificationError(f"no settings for drivers: {'; '.join(result.faults)}")
    texts = {name: _head(result) + make(result) for name, make in DRIVER_FILES.items()}
    return {name: _in_cpp(text) if name.endswith(".cpp") else text for name, text in texts.items()}


def _filter(result: LoadResult) -> str:
    # control_toolbox 6.3.0: gravity_compensation_filter_parameters.yaml, and gravity_compensation.cpp, which takes m g
    # and the moment CoG × m g off the reading; `params`: filters 2.1.1, filter_chain.hpp
    robot = result.robot
    return f"""\
# For control_toolbox (6.3.0), filter GravityCompensationWrench in a chain, here that of the broadcaster.
{SENSOR.format(tip=comment_text(robot.tip))}force_torque_sensor_broadcaster:
  ros__parameters:
    sensor_filter_chain:
      filter1:
        name: load
        type: control_filters/GravityCompensationWrench
        params:
          world_frame: {yaml_text(robot.base)}
          sensor_frame: {yaml_text(robot.tip)}
          tool:
            mass: {_number(result.mass)}
            CoG: {_list(result.center)}
            gravity_field: {_list(robot.gravity)}
"""


def _admittance(result: LoadResult) -> str:
    # ros2_controllers 6.9.0: admittance_controller_parameters.yaml, and admittance_rule_impl.hpp, where the weight is
    # along −z of fixed_world_frame and CoG.pos is turned by the frame's axes but counted from the sensor's origin
    robot = result.robot
    size = float(np.linalg.norm(robot.gravity))
    if np.hypot(*robot.gravity[:2]) <= UPRIGHT * size and robot.gravity[2] < 0:
        world = f"    fixed_world_frame:\n      frame:\n        id: {yaml_text(robot.base)}\n"
    else:
        world = (
            "    # fixed_world_frame.frame.id is left out: gravity must point along its -z, and does not along that\n"
            f"    # of '{comment_text(robot.base)}'; give a frame in which it does.\n"
        )
    return f"""\
# For ros2_controllers (6.9.0), admittance_controller.
{SENSOR.format(tip=comment_text(robot.tip))}admittance_controller:
  ros__parameters:
{world}    gravity_compensation:
      frame:
        id: {yaml_text(robot.tip)}
      CoG:
        pos: {_list(result.center)}
        force: {_number(result.mass * size)}  # N
"""


def _ur_script(result: LoadResult) -> str:
    # Universal Robots, Script Manual, SW 10.6: set_target_payload(m, cog, inertia=[0, 0, 0, 0, 0, 0],
    # transition_time=0); inertia [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] about the centre of gravity, axes of the tool flange
    inertia = _inertia(result)
    arguments = f"{_number(result.mass)}, {_list(result.center)}"
    if inertia is not None:
        arguments += f", {_list(inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))}"
    return f"""\
# For URScript (Script Manual of software 10.6): mass, centre, inertia Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre.
{UR.format(tip=comment_text(result.frame))}{_doubt(result, "the robot")}set_target_payload({arguments})
"""


def _ur_service(result: LoadResult) -> str:
    # ur_msgs 1.3.4 and 2.0.0, srv/SetPayload.srv, which has no inertia
    x, y, z = map(_number, result.center)
    return f"""\
# For ur_robot_driver before 7.0, whose request need not have an inertia, and in most versions cannot:
# ros2 service call /io_and_status_controller/set_payload ur_msgs/srv/SetPayload "$(cat ur_set_payload.yaml)"
{UR.format(tip=comment_text(result.frame))}mass: {_number(result.mass)}
center_of_gravity: {{x: {x}, y: {y}, z: {z}}}
"""


def _ur_inertia_service(result: LoadResult) -> str:
    # ur_robot_driver 7.0.0, doc/migration/makoa.rst and ur_controllers/src/gpio_controller.cpp: geometry_msgs/Inertia
    x, y, z = map(_number, result.center)
    inertia = _inertia(result)
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    tensor = ""
    if inertia is not None:
        values = zip(names, inertia[np.triu_indices(3)], strict=True)
        tensor = "".join(f"  {name}: {_number(value)}\n" for name, value in values)
    return f"""\
# For ur_robot_driver from 7.0 on:
# ros2 service call /io_and_status_controller/set_payload ur_msgs/srv/SetPayload "$(cat ur_set_payload_7.yaml)"
{UR.format(tip=comment_text(result.frame))}{_doubt(result, "ROS")}payload:
  m: {_number(result.mass)}
  com: {{x: {x}, y: {y}, z: {z}}}
{tensor}"""


def _franka_service(result: LoadResult) -> str:
    # franka_ros2 0.1.13, franka_msgs/srv/SetLoad.srv and franka_hardware, node service_server: column-major
    inertia = _inertia(result)
    call = NO_FRANKA_CALL.format(reason=result.unknown_inertia_reason)
    if inertia is not None:
        call = f"""\
{_doubt(result)}mass: {_number(result.mass)}
center_of_mass: {_list(result.center)}
load_inertia: {_list(inertia.ravel(order="F"))}
"""
    return f"""\
# For franka_ros2 (0.1.13), in the namespace of the robot:
# ros2 service call /service_server/set_load franka_msgs/srv/SetLoad "$(cat franka_set_load.yaml)"
{FRANKA.format(tip=comment_text(result.frame))}{call}"""


def _libfranka(result: LoadResult) -> str:
    # libfranka 0.15.0, robot.h: setLoad(load_mass, F_x_Cload, load_inertia), column-major; robot_state.h: I_load is
    # about the centre of mass; load_calculations.cpp: in the axes of the flange
    inertia = _inertia(result)
    call = NO_FRANKA_CALL.format(reason=result.unknown_inertia_reason)
    if inertia is not None:
        call = f"""\
{_doubt(result)}robot.setLoad({_number(result.mass)},
              {_braces(result.center)},
              {_braces(inertia.ravel(order="F"))});
"""
    return f"# For libfranka (0.15.0).\n{FRANKA.format(tip=comment_text(result.frame))}{call}"


def _transform(result: LoadResult) -> str:
    # tf2_ros 0.39.1, static_transform_broadcaster_program.cpp
    x, y, z = map(_number, result.center)
    shown = comment_text(result.frame)
    frame = shlex.quote(result.frame)
    return f"""\
# For tf2_ros: the centre of mass as a frame, with the axes of the tip, to see in RViz or to push at.
# Frame: '{shown}' is taken to be a link of the robot_state_publisher; if it is not, identify with --tip <link>.
ros2 run tf2_ros static_transform_publisher --x {x} --y {y} --z {z} --frame-id {frame} --child-frame-id load
"""


DRIVER_FILES: dict[str, Callable[[LoadResult], str]] = {
    "gravity_compensation_filter.yaml": _filter,
    "admittance_controller.yaml": _admittance,
    "ur.script": _ur_script,
    "ur_set_payload.yaml": _ur_service,
    "ur_set_payload_7.yaml": _ur_inertia_service,
    "franka_set_load.yaml": _franka_service,
    "franka.cpp": _libfranka,
    "static_transform.sh": _transform,
}


def _head(result: LoadResult) -> str:
    low, high = result.confidence_intervals()[0]
    mass = f"{result.mass:.4g} kg (95 %: {low:.4g} to {high:.4g})"
    where = comment_text(f"at link '{result.frame}' of {result.robot.name}")
    return f"# Load of {mass} {where}\n# from {comment_text(', '.join(result.sources))}\n"


def _inertia(result: LoadResult) -> NDArray | None:
    """Return the inertia (3, 3) about the centre of mass, or None if it is unknown."""
    inertia = result.possible.inertia
    return inertia if np.isfinite(inertia).all() else None


def _doubt(result: LoadResult, taker: str = "") -> str:
    """Return a sentence on the uncertainty of the inertia; `taker` fills in zeros if there is no inertia."""
    inertia = _inertia(result)
    if inertia is None:
        reason = result.unknown_inertia_reason
        return f"# The inertia is left out, as it is not known ({reason}): {taker} takes it for zero.\n"
    error = result.possible.inertia_errors.max()
    size = np.abs(inertia).max()
    guess = ", more than its size: it is a guess" if error > size else ""
    return f"# The standard error of the inertia is up to {error:.2g} kg m^2{guess}.\n"


def _number(value: float) -> str:
    """Format a number with a decimal point, without which ROS reads an integer, and without an exponent."""
    whole, _, decimals = f"{round(float(value), DECIMALS) + 0.0:.{DECIMALS}f}".partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"


def _list(values: Iterable[float]) -> str:
    return f"[{', '.join(map(_number, values))}]"


def _braces(values: Iterable[float]) -> str:
    return f"{{{{{', '.join(map(_number, values))}}}}}"


def _in_cpp(text: str) -> str:
    return re.sub("^#", "//", text, flags=re.M)
