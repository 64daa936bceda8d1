"""Section `servos` of `identified.yaml`: parameters of position servos, divided by the gain of each joint or in N m."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dynid_ros.identified.identified_file import DOF, as_number, is_number

Estimates = Mapping[str, tuple[float, float]]
"""Value and standard error by label; NaN where undetermined."""
IN_TORQUE_KEY = "in_torque"
"""Key of the parameters in N m, which are known if the gain is known."""
DAMPING_KEY = "damping"


def servo_entry(over_gain: Estimates, in_torque: Estimates, dof: float, undetermined: Mapping[str, str]) -> dict:
    """Return the entry of a joint.

    Args:
        over_gain: delay (s), and all other parameters divided by the gain of the position loop: times in s and s², and
            angles in rad, or positions in m for a prismatic joint.
        in_torque: the gain, N m/rad, and the same parameters in N m, kg m² and N m s/rad (N/m, N, kg and N s/m for a
            prismatic joint); empty if the gain is unknown.
        dof: degrees of freedom of the errors.
        undetermined: reason for each undetermined parameter, by label.
    """
    entry = {**_values(over_gain), DOF: dof, "undetermined": dict(undetermined)}
    return entry | ({IN_TORQUE_KEY: _values(in_torque)} if in_torque else {})


def _values(estimates: Estimates) -> dict:
    return {
        **{label: as_number(value) for label, (value, _) in estimates.items()},
        "std": {label: as_number(error) for label, (_, error) in estimates.items()},
    }


class ServoDrive(NamedTuple):
    """Position servo of a joint whose gain is known; units in brackets are those of a prismatic joint.

    The torque is stiffness · (command - position) - damping · velocity, and the command acts after the delay.

    Attributes:
        stiffness: gain of the position loop, N m/rad (N/m).
        damping: gain of the velocity, N m s/rad (N s/m).
        delay: delay of the command, s.
        inertia: inertia of rotor and links, mean of the recorded poses, kg m² (kg).
        armature: inertia of the rotor alone, kg m² (kg).
        viscous: viscous friction, N m s/rad (N s/m).
        coulomb: Coulomb friction, N m (N).
    """

    stiffness: float
    damping: float
    delay: float
    inertia: float
    armature: float
    viscous: float
    coulomb: float


def servo_drives(document: Mapping[str, Any]) -> dict[str, ServoDrive]:
    """Return the servos whose gain is known in N m/rad (N/m), by joint; undetermined values are NaN.

    A derivative gain, which acts on the error, counts as damping.
    """
    section = document.get("servos")
    entries = section if isinstance(section, Mapping) else {}
    drives = {}
    for name, entry in entries.items():
        in_torque = entry.get(IN_TORQUE_KEY) if isinstance(entry, Mapping) else None
        if not isinstance(in_torque, Mapping) or not (is_number(in_torque.get("gain")) and in_torque["gain"] > 0.0):
            continue
        values = {label: float(value) for label, value in in_torque.items() if is_number(value)}
        damping = values.get(DAMPING_KEY, values.get("derivative", 0.0))
        others = [values.get(label, math.nan) for label in ServoDrive._fields[2:]]
        drives[str(name)] = ServoDrive(values["gain"], damping, *others)
    return drives


def servo_stiffness(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the gains of the position loops that are known in N m/rad (N/m), by joint."""
    return {name: drive.stiffness for name, drive in servo_drives(document).items()}
