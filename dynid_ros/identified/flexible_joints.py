"""Section `flexible_joints` of `identified.yaml`, and what else the file tells of an arm with flexible joints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.identified.identified_file import as_number, new_document
from dynid_ros.identified.links import base_parameters_section
from dynid_ros.model.spring import SPRINGS

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.flexible_result import FlexibleResult

OF_LINKS = ("coulomb", "viscous")


def document(result: FlexibleResult) -> dict:
    """All sections: head, flexible joints, base parameters of the links, validations."""
    layout, found = result.layout, new_document(result.layout.robot, result.sources, dict(result.settings))
    found["flexible_joints"] = {joint: _joint(result, i) for i, joint in enumerate(result.joint_names)}
    found["flexible_sums"] = [
        {"expression": s.expression, "value": as_number(s.value), "std": as_number(s.standard_error)}
        for s in result.sums
    ]
    found["flexible_recordings"] = [
        {
            "recording": run.source,
            "clock_offset": float(run.clock_offset),
            "clock_offset_std": as_number(run.clock_offset_error),
            "clock_drift": float(run.clock_drift),
            "zero": {joint: float(z) for joint, z in zip(result.joint_names, run.zero, strict=True)},
        }
        for run in result.runs
    ]
    errors, nominal = result.standard_errors, layout.base.project(layout.robot.parameters)
    values = np.where(np.isfinite(errors[: len(nominal)]), result.parameters[: len(nominal)], np.nan)
    found["base_parameters"] = base_parameters_section(layout.base.expressions, values, errors[: len(nominal)], nominal)
    found["condition_number"] = as_number(result.condition_number)
    if result.validations:
        found["validation"] = [validation.document() for validation in result.validations]
    return found


def _joint(result: FlexibleResult, i: int) -> dict:
    layout, joint = result.layout, result.joint_names[i]
    law = layout.springs[i]
    intervals = result.confidence_intervals()
    entry: dict = {"spring": next(name for name, kind in SPRINGS.items() if isinstance(law, kind))}
    std, decided = {}, {}
    for name in (*law.names, *layout.motor_terms, *OF_LINKS):
        at = layout.names.index(f"{name} {joint}")
        label = name if name not in OF_LINKS else f"link_{name}"
        entry[label] = float(result.parameters[at])
        std[label] = as_number(result.standard_errors[at])
        decided[label] = bool(result.decided[at])
    at = layout.names.index(f"stiffness {joint}")
    entry["stiffness_interval"] = [as_number(end) for end in intervals[at]]
    entry["resonance"] = as_number(result.resonances[i])
    entry["std"], entry["decided"] = std, decided
    return entry
