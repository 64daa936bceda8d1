"""What a motion tells, in words and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dynid_ros.information.helpful_motions import HelpfulMotion
    from dynid_ros.information.motion_quality import MotionQuality

CONFUSED = 5.0
"""Inflation from which on a parameter is weak for being confused with others."""
LISTED = 10
"""Parameters listed in a summary."""


@dataclass(frozen=True)
class WeakParameter:
    """A parameter that the motion shows badly.

    Attributes:
        expression: of the base parameter.
        name: the parameter that leads it.
        standard_error: for the noise of the torques, in `unit`.
        unit: of both.
        effect: by how much such an error moves the torques of motions all over the limits, RMS, in their noise.
        excess: the standard error over that of as many samples spread at random over all limits.
        inflation: the standard error over that with all other parameters known.
        confused_with: what leads the parameter whose error goes most with this one's.
        correlation: of both errors.

    """

    expression: str
    name: str
    standard_error: float
    unit: str
    effect: float
    excess: float
    inflation: float
    confused_with: str
    correlation: float

    def __str__(self) -> str:
        told = f"{self.expression}: ± {self.standard_error:.2g} {self.unit}, {self.effect:.2g} times the noise in "
        told += f"torques all over the limits, {self.excess:.0f} times what such motions leave"
        if self.inflation < CONFUSED:
            return f"{told}; hardly excited"
        other = f"{self.confused_with} passes for it (correlation {self.correlation:+.2f})"
        return f"{told}; {other}, it would be {self.inflation:.0f} times less with all else known"


def summary_lines(quality: MotionQuality) -> Iterator[str]:
    """Verdict, numbers, what is missing and what is weak, what would help."""
    columns, motion = quality.columns, quality.motion
    yield "enough: no parameter is so uncertain that torques show it" if quality.enough else "not enough"
    rate = "" if motion.rate is None else f" ({motion.samples / motion.rate:.1f} s)"
    yield (
        f"rank {quality.rank} of {quality.full_rank}, condition number {quality.condition_number:.3g} "
        f"(unscaled {quality.unscaled:.3g}), {motion.samples} samples{rate}"
    )
    noise = ", ".join(f"{value:.3g}" for value in quality.noise)
    assumed = "not known, taken as 1" if quality.assumed_noise else noise
    yield f"noise of the torques [N m, N]: {assumed}"
    if columns.hidden:
        yield f"no motion of this arm shows {', '.join(columns.hidden)}; that is no fault of this one"
    if not quality.missing:
        errors = ", ".join(f"{value:.2g}" for value in quality.prediction)
        yield f"errors of the parameters move the torques of motions all over the limits by [N m, N]: {errors}"
    unmoved = set(quality.unmoved)
    yield from _list("without any effect in this motion", quality.unmoved)
    yield from _list("not told apart", [e for e in quality.missing if e not in unmoved])
    yield from _list("of those only sums are shown, of what leads them", quality.together)
    yield from _list("weak", [str(parameter) for parameter in quality.weak])
    still = "still " if quality.enough else ""
    yield from _list(f"what would {still}help, other joints in the middle of what they did", quality.advice)


def quality_dict(quality: MotionQuality) -> dict[str, object]:
    """Plain data for YAML; infinite numbers are None."""
    names = quality.motion.limits.joint_names
    rows = zip(
        quality.columns.expressions, quality.columns.units, quality.standard_errors, quality.effects, strict=True
    )
    return {
        "model": quality.columns.model,
        "enough": quality.enough,
        "samples": quality.motion.samples,
        "rate": quality.motion.rate,
        "rank": quality.rank,
        "full_rank": quality.full_rank,
        "joint_ranks": [int(rank) for rank in quality.joint_ranks],
        "condition_number": _number(quality.condition_number),
        "unscaled_condition_number": _number(quality.unscaled),
        "singular_values": [float(value) for value in quality.singular_values],
        "noise": None if quality.assumed_noise else [float(value) for value in quality.noise],
        "prediction": [_number(value) for value in quality.prediction],
        "hidden": list(quality.columns.hidden),
        "missing": list(quality.missing),
        "together": list(quality.together),
        "parameters": [
            {"expression": expression, "unit": unit, "std": _number(error), "effect": _number(effect)}
            for expression, unit, error, effect in rows
        ],
        "weak": [asdict(parameter) for parameter in quality.weak],
        "advice": [_advice(helpful, names) for helpful in quality.helpful],
    }


def _advice(helpful: HelpfulMotion, names: Sequence[str]) -> dict[str, object]:
    motion = helpful.motion
    return {
        "text": helpful.text,
        "joints": {
            names[joint]: {"amplitude": amplitude, "speed": speed}
            for joint, amplitude, speed in zip(motion.joints, motion.amplitudes, motion.speeds, strict=True)
        },
        "pose": dict(zip(names, map(float, motion.pose), strict=True)),
        "period": motion.period,
        "duration": helpful.duration,
        "std_before": {name: _number(value) for name, value in helpful.before.items()},
        "std_after": {name: _number(value) for name, value in helpful.after.items()},
    }


def combination(shares: NDArray, names: Sequence[str]) -> str:
    """A sum of parameters to read, such as "Iyy5 - 2.1 Izz4"."""
    text = ""
    for i in sorted(map(int, np.flatnonzero(shares)), key=lambda i: shares[i] != 1.0):
        sign = "-" if shares[i] < 0 else "+"
        size = f"{abs(shares[i]):.4g}"
        term = names[i] if size == "1" else f"{size} {names[i]}"
        text = f"{text} {sign} {term}" if text else term
    return text


def _list(head: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"{head} ({len(items)}):"
        yield from (f"  {item}" for item in items[:LISTED])
        if len(items) > LISTED:
            yield f"  and {len(items) - LISTED} more"


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
