"""Springs as measured and as identified, and what a flexible arm's motors and links do over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction
from dynid_ros.identification.flexible.flexible_result import FlexibleResult, MeasuredSpring
from dynid_ros.report.flexible.spring_plot import spring_plot
from dynid_ros.report.panel import Panel
from dynid_ros.report.prediction_plot import middle, prediction_plot
from dynid_ros.report.units import joint_units


def spring_panels(result: FlexibleResult, springs: Sequence[MeasuredSpring]) -> Iterator[tuple[Panel, float]]:
    """For each joint deflection and torque with the identified law, and the squared correlation of both."""
    model = result.model
    for i, (spring, unit) in enumerate(zip(springs, joint_units(result.layout.robot), strict=True)):
        law, values = model.laws[i], model.springs[i]
        at = law.torque(spring.deflection, values)
        rms = float(np.sqrt(np.mean((spring.torque - at) ** 2))) if len(at) else np.nan
        r2 = float(np.corrcoef(at, spring.torque)[0, 1] ** 2) if len(at) > 2 and np.ptp(at) > 0 else np.nan
        across = np.linspace(spring.deflection.min(), spring.deflection.max(), 200) if len(at) else np.zeros(0)
        decided = bool(np.isfinite(result.stiffness[i]))
        line = law.torque(across, values) if decided else np.full_like(across, np.nan)
        plot = spring_plot(spring.joint, spring.deflection, spring.torque, across, line, unit=unit)
        yield Panel(spring.joint, "", plot, rms if decided else np.nan, unit.effort), r2


def shown_rows(prediction: FlexiblePrediction) -> slice:
    """Rows that are shown: the middle of the longest stretch."""
    steps = np.diff(prediction.time)
    cuts = np.flatnonzero((steps < 0) | (steps > 1.5 * np.median(steps))) + 1
    edges = np.concatenate([[0], cuts, [len(prediction.time)]])
    k = int(np.argmax(np.diff(edges)))
    return middle(slice(int(edges[k]), int(edges[k + 1])))


def torque_panels(result: FlexibleResult, prediction: FlexiblePrediction) -> Iterator[Panel]:
    """The motors' torque, a panel per joint; its RMS is that of the whole recording."""
    for i, (name, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        both = prediction.measured_torque[:, i], prediction.torque[:, i]
        yield _panel(prediction, name, "torque", *both, unit=unit.effort)


def deflection_panels(result: FlexibleResult, prediction: FlexiblePrediction) -> Iterator[Panel]:
    """Motor less link, a panel per joint whose link was measured."""
    for i, (name, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        motor = prediction.link[:, i] + prediction.deflection[:, i]
        measured, predicted = (
            unit.scale * (motor - link[:, i]) for link in (prediction.measured_link, prediction.link)
        )
        if np.isfinite(measured).any():
            yield _panel(prediction, name, "deflection", measured, predicted, unit=unit.position)


def _panel(
    prediction: FlexiblePrediction, joint: str, quantity: str, measured: NDArray, predicted: NDArray, *, unit: str
) -> Panel:
    rows = shown_rows(prediction)
    rms = float(np.sqrt(np.nanmean((measured - predicted) ** 2)))
    label = f"{quantity.capitalize()} of {joint} over time, measured and predicted"
    series = prediction.time[rows], measured[rows], predicted[rows]
    return Panel(joint, "", prediction_plot(label, f"{quantity} ({unit})", *series), rms, unit)
