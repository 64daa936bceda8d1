"""Sentences on what an identification of flexible joints does not decide, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.result import FlexibleResult

POOR = 0.2
"""Of a torque's standard deviation: what a fit that leaves more does not deserve trust for."""
SPLIT = ("viscous", "motor_viscous", "motor_inertia")


def remarks(result: FlexibleResult) -> tuple[str, ...]:
    """What is not decided by joint, and where to look instead."""
    found = []
    intervals = result.confidence_intervals()
    stiffness = result.term("stiffness")
    at = result.layout.index("stiffness")
    for i, joint in enumerate(result.joint_names):
        if not stiffness.decided[i]:
            low = intervals[at[i], 0]
            least = f"at least {low:.3g} N m/rad, " if np.isfinite(low) and low > 0 else ""
            found.append(
                f"{joint}: its stiffness is not decided ({least}the spring hardly winds up beside the noise); take the "
                "joint as rigid, or move it with more torque near its resonance"
            )
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
                    "that of this arm, or the search ended in a wrong place; errors are larger than told"
                )
        if run.clock_offset_error > 5e-4:
            found.append(f"{run.source}: the clock's offset is known to {1e3 * run.clock_offset_error:.2g} ms only")
    return tuple(found)


def _terms(result: FlexibleResult) -> tuple[str, ...]:
    return ("viscous", *result.layout.motor_terms)
