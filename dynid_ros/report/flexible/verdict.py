"""What was found of flexible joints and how good it is, for those who read nothing else."""

from __future__ import annotations

import numpy as np

from dynid_ros.identification.flexible.flexible_result import FlexibleResult
from dynid_ros.report.conditioning import Condition
from dynid_ros.report.formats import listed, percent, significant
from dynid_ros.report.page import Tile
from dynid_ros.report.units import joint_units


def sentences(result: FlexibleResult) -> list[str]:
    """Springs, what is not decided, and how well torque is predicted."""
    names, known = result.joint_names, np.isfinite(result.stiffness)
    found = []
    if known.any():
        softest = int(np.nanargmin(np.where(known, result.resonances, np.inf)))
        unit = "N m/rad" if joint_units(result.layout.robot)[softest].effort == "N m" else "N/m"
        which = f"joint {names[0]}" if len(names) == 1 else f"{known.sum()} of {len(names)} joints"
        subject = "It" if len(names) == 1 else f"The slowest, {names[softest]},"
        found.append(
            f"The stiffness of {which} was identified. {subject} has {significant(result.stiffness[softest])} {unit}, "
            f"and swings at {significant(result.resonances[softest])} Hz while its motor is held."
        )
    stiff = [name for name, told in zip(names, known, strict=True) if not told]
    if stiff:
        found.append(
            f"The stiffness of {listed(stiff)} is not decided: the deflection hardly rises above the noise, and a "
            "rigid joint would explain it too. Of such a joint only sums of link and motor are known."
        )
    split = [
        name
        for i, name in enumerate(names)
        if known[i] and not all(result.term(t).decided[i] for t in ("viscous", *result.layout.motor_terms[:2]))
    ]
    if split:
        found.append(
            f"Of {listed(split)} the motion does not tell motor from link in all of friction and inertia; it was too "
            "slow for that, or too far from the resonance."
        )
    error, where = _torque_error(result)
    if np.isfinite(error):
        found.append(
            f"On {where}, the torque predicted from the motors' motion alone is off by at most {percent(error)} "
            "of a joint's torque (RMS)"
            + ("." if result.validations else "; another recording would show how it predicts.")
        )
    return found


def tiles(result: FlexibleResult, conditioning: Condition) -> list[Tile]:
    """The same in numbers."""
    names, known = result.joint_names, np.isfinite(result.stiffness)
    found = [Tile("Springs identified", f"{known.sum()} of {len(names)}", "joints whose stiffness the data decide")]
    if known.any():
        slowest = int(np.nanargmin(np.where(known, result.resonances, np.inf)))
        found.append(Tile("Lowest resonance", f"{significant(result.resonances[slowest])} Hz", names[slowest]))
    error, where = _torque_error(result)
    if np.isfinite(error):
        found.append(Tile("Torque error, worst joint", percent(error), f"of the measured torque, on {where}"))
    found.append(Tile("Condition number", significant(result.condition_number), conditioning.word))
    return found


def _torque_error(result: FlexibleResult) -> tuple[float, str]:
    """Largest error over torque, both RMS, and the data that it is of."""
    if result.validations:
        return float(np.nanmax([v.relative_rms for v in result.validations])), "recordings that it was not fitted to"
    torque = np.concatenate([run.prediction.measured_torque for run in result.runs])
    return float(np.nanmax(result.residual_rms / np.sqrt(np.nanmean(torque**2, axis=0)))), "the fitted recordings"
