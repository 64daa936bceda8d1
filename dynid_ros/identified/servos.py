"""Section `servos` of `identified.yaml`: position-commanded servos, relative to the gain of each joint or in N m."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid_ros.identified.section import DOF, as_number, is_number

Estimates = Mapping[str, tuple[float, float]]
"""Value and standard error by label; NaN where undetermined."""
IN_TORQUE_KEY = "in_torque"


def servo_entry(over_gain: Estimates, in_torque: Estimates, dof: float, undetermined: Mapping[str, str]) -> dict:
    """Return the entry of a joint.

    Args:
        over_gain: delay (s), and all other parameters divided by the gain of the position loop: times in s and s², and
            angles in rad, or positions in m for a prismatic joint.
        in_torque: the gain, N m/rad, and the same parameters in N m, kg m² and N m s/rad (N/m, N, kg and N s/m for a
            prismatic joint); empty if the gain is unknown.
        dof: degrees of freedom of the errors.
        undetermined: by label, why a parameter is unknown.
    """
    entry = {**_values(over_gain), DOF: dof, "undetermined": dict(undetermined)}
    return entry | ({IN_TORQUE_KEY: _values(in_torque)} if in_torque else {})


def _values(estimates: Estimates) -> dict:
    return {
        **{label: as_number(value) for label, (value, _) in estimates.items()},
        "std": {label: as_number(error) for label, (_, error) in estimates.items()},
    }


def servo_stiffness(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the gains of the position loops that are known in N m/rad (N/m), by joint."""
    section = document.get("servos")
    entries = section if isinstance(section, Mapping) else {}
    gains = {}
    for name, entry in entries.items():
        known = entry.get(IN_TORQUE_KEY) if isinstance(entry, Mapping) else None
        gain = known.get("gain") if isinstance(known, Mapping) else None
        if is_number(gain) and gain > 0.0:
            gains[str(name)] = float(gain)
    return gains
