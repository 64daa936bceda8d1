"""Sentences on what an identification of flexible joints does not decide, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.measured_spring import measured
from dynid_ros.identification.flexible.spring_fit import fit_spring
from dynid_ros.model.spring import SPRINGS

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.result import FlexibleResult

POOR = 0.2
"""Of a torque's standard deviation: what a fit that leaves more does not deserve trust for."""
FOLLOWS = 0.5
"""R² of a spring's torque, of whatever law, by its measured deflection, from which the spring does wind up."""
SPLIT = ("viscous", "motor_viscous", "motor_inertia")


def remarks(result: FlexibleResult) -> tuple[str, ...]:
    """What is not decided by joint, and where to look instead."""
    found = []
    intervals = result.confidence_intervals()
    stiffness = result.term("stiffness")
    at = result.layout.index("stiffness")
    for i, joint in enumerate(result.joint_names):
        if not stiffness.decided[i]:
            found.append(f"{joint}: its stiffness is not decided ({_why_not(result, i, float(intervals[at[i], 0]))}")
        undecided = [name for name in SPLIT if name in _terms(result) and not result.term(name).decided[i]]
        if undecided:
            frequency = result.resonances[i]
            way_out = f"; move near {frequency:.2g} Hz" if np.isfinite(frequency) else ""
            found.append(
                f"{joint}: {', '.join(undecided)} not decided by themselves: so slow a motion shows only the sums of "
                f"link and motor{way_out}"
            )
    for run in result.runs:
        varied = np.std(run.prediction.measured_torque, axis=0)
        for joint, left, size in zip(result.joint_names, run.torque_rms, varied, strict=True):
            if left > POOR * size:
                found.append(
                    f"{run.source}: {left / size:.0%} of the torque of {joint} is left unexplained: the model is not "
                    "that of this arm, its spring follows another law (--spring auto tries them), or the search ended "
                    "in a wrong place; errors are larger than told"
                )
        if run.clock_offset_error > 5e-4:
            found.append(f"{run.source}: the clock's offset is known to {1e3 * run.clock_offset_error:.2g} ms only")
    return tuple(found)


def _why_not(result: FlexibleResult, i: int, low: float) -> str:
    """Rest of the sentence: a spring of another law, or one that hardly gives way."""
    deflection, torque, runs = measured(result, i)
    law = next(name for name, kind in SPRINGS.items() if isinstance(result.layout.springs[i], kind))
    try:
        fit = fit_spring(deflection, torque, tuple(SPRINGS), runs=runs)
    except IdentificationError:
        fit = None
    if fit is not None and fit.r_squared > FOLLOWS:
        other = "" if fit.law == law else f", as a {fit.law} spring would: set spring='{fit.law}' (--spring {fit.law})"
        return (
            f"its deflection follows the torque, R² {fit.r_squared:.2f}{other}); it is not rigid: see the report's "
            "spring as measured, or take --spring auto"
        )
    least = f"at least {low:.3g} N m/rad, " if np.isfinite(low) and low > 0 else ""
    return (
        f"{least}the spring hardly winds up beside the noise); take the joint as rigid, or move it with more torque "
        "near its resonance"
    )


def _terms(result: FlexibleResult) -> tuple[str, ...]:
    return ("viscous", *result.layout.motor_terms)
