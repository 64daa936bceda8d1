"""Section `flexible_joints` of `identified.yaml`, and what else the file tells of an arm with flexible joints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.identified.identified_file import new_document
from dynid_ros.model.spring import SPRINGS

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.flexible_result import FlexibleResult

OF_LINKS = ("coulomb", "viscous")


def document(result: FlexibleResult) -> dict:
    """All sections: head, flexible joints, base parameters of the links, validations."""
    layout, found = result.layout, new_document(result.layout.robot, result.sources, dict(result.settings))
    found["flexible_joints"] = {joint: _joint(result, i) for i, joint in enumerate(result.joint_names)}
    found["flexible_sums"] = [
        {"expression": s.expression, "value": _number(s.value), "std": _number(s.standard_error)} for s in result.sums
    ]
    found["flexible_recordings"] = [
        {
            "recording": run.source,
            "clock_offset": float(run.clock_offset),
            "clock_offset_std": _number(run.clock_offset_error),
            "clock_drift": float(run.clock_drift),
            "zero": {joint: float(z) for joint, z in zip(result.joint_names, run.zero, strict=True)},
        }
        for run in result.runs
    ]
    errors, nominal = result.standard_errors, layout.base.project(layout.robot.parameters)
    found["base_parameters"] = [
        {
            "expression": expression,
            "value": _number(result.parameters[k]) if np.isfinite(errors[k]) else None,
            "std": _number(errors[k]),
            "urdf": _number(nominal[k]),
        }
        for k, expression in enumerate(layout.base.expressions)
    ]
    found["condition_number"] = _number(result.condition_number)
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
        std[label] = _number(result.standard_errors[at])
        decided[label] = bool(result.decided[at])
    at = layout.names.index(f"stiffness {joint}")
    entry["stiffness_interval"] = [_number(end) for end in intervals[at]]
    entry["resonance"] = _number(result.resonances[i])
    entry["std"], entry["decided"] = std, decided
    return entry


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
