"""Section `servos` of `identified.yaml`: position-commanded servos, over the gain of each joint or in N m."""

from __future__ import annotations

from collections.abc import Mapping

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import (
    DOF,
    as_number,
    check_same_robot,
    file_of,
    mapping,
    read_number,
    section_of,
)
from dynid_ros.model import RobotModel

Estimates = Mapping[str, tuple[float, float]]
"""Value and standard error by label; NaN where not determined."""
IN_TORQUE = "in_torque"


def servo_entry(over_gain: Estimates, in_torque: Estimates, dof: float, undetermined: Mapping[str, str]) -> dict:
    """Entry of a joint.

    Args:
        over_gain: delay (s), and all else divided by the gain of the position loop: times, s and s², and angles, rad,
            or positions, m, of a prismatic joint.
        in_torque: the gain, N m/rad, and the same in N m, kg m² and N m s/rad, or in N/m, N, kg and N s/m; empty: the
            gain is not known.
        dof: degrees of freedom of the errors.
        undetermined: why something is not known, by label.
    """
    entry = {**_values(over_gain), DOF: dof, "undetermined": dict(undetermined)}
    return entry | ({IN_TORQUE: _values(in_torque)} if in_torque else {})


def read_servos(document: dict, robot: RobotModel) -> dict[str, dict[str, float]]:
    """Numbers in N m by label, of each joint whose gain is known.

    Raises:
        IdentifiedFileError: of another robot, without the section, or malformed.
    """
    check_same_robot(document, robot)
    section, file = section_of(document, "servos", "servo"), file_of(document)
    found = {}
    for joint in robot.joint_names:
        if not isinstance(section.get(joint, {}), dict):
            raise IdentifiedFileError(f"{file}: servo of joint '{joint}' is {section[joint]!r}, expected a mapping")
        entry = mapping(section.get(joint, {}), IN_TORQUE, f"{file}: servo of joint '{joint}'")
        if entry:
            labels = [label for label in entry if label != "std"]
            found[joint] = {label: read_number(document, entry, label, f"servo of {joint}") for label in labels}
    return found


def _values(estimates: Estimates) -> dict:
    return {
        **{label: as_number(value) for label, (value, _) in estimates.items()},
        "std": {label: as_number(error) for label, (_, error) in estimates.items()},
    }
