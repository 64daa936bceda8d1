"""Springs as measured and as identified, and what a flexible arm's motors and links do over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction
from dynid_ros.identification.flexible.flexible_result import FlexibleResult
from dynid_ros.identification.flexible.measured_spring import MeasuredSpring
from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, Panel, label_axes
from dynid_ros.report.prediction_plot import prediction_plot
from dynid_ros.report.units import JointUnits, joint_units

HEIGHT = 220
LONGEST = 360
"""Samples in a plot over time: more of them would be narrower than what they show."""
POINTS = 800


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
        yield Panel(spring.joint, "", _spring(spring, across, line, unit), rms if decided else np.nan, unit.effort), r2


def _spring(spring: MeasuredSpring, across: NDArray, line: NDArray, unit: JointUnits) -> str:
    # Evenly spread over the deflection: most of the time is spent at its ends.
    some = np.argsort(spring.deflection)[np.unique(np.linspace(0, len(spring.torque) - 1, POINTS).astype(int))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        points = unit.scale * spring.deflection[some], spring.torque[some]
        axes.plot(*points, linestyle="none", marker="o", markersize=1.6, color=LIGHT["measured"], alpha=0.5)
        axes.plot(unit.scale * across, line, color=LIGHT["identified"], linewidth=1.8)
        axes.set_xlabel(f"deflection ({unit.position})")
        label_axes(axes, f"deflection ({unit.position})", f"torque ({unit.effort})")

    return svg(f"Spring of {spring.joint}: torque over deflection", WIDTH, HEIGHT, draw)


def shown_rows(prediction: FlexiblePrediction) -> slice:
    """Rows that are shown: the middle of the longest stretch."""
    steps = np.diff(prediction.time)
    cuts = np.flatnonzero((steps < 0) | (steps > 1.5 * np.median(steps))) + 1
    edges = np.concatenate([[0], cuts, [len(prediction.time)]])
    k = int(np.argmax(np.diff(edges)))
    spare = max(edges[k + 1] - edges[k] - LONGEST, 0) // 2
    return slice(int(edges[k] + spare), int(min(edges[k] + spare + LONGEST, edges[k + 1])))


def torque_panels(result: FlexibleResult, prediction: FlexiblePrediction) -> Iterator[Panel]:
    """The motors' torque, a panel per joint; its RMS is that of the whole recording."""
    for i, (name, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        measured, predicted = prediction.measured_torque[:, i], prediction.torque[:, i]
        label = f"Torque of {name} over time, measured and predicted"
        yield _panel(
            name,
            label,
            f"torque ({unit.effort})",
            prediction=prediction,
            measured=measured,
            predicted=predicted,
            unit=unit.effort,
        )


def deflection_panels(result: FlexibleResult, prediction: FlexiblePrediction) -> Iterator[Panel]:
    """Motor less link, a panel per joint whose link was measured."""
    for i, (name, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        motor = prediction.link[:, i] + prediction.deflection[:, i]
        measured, predicted = (
            unit.scale * (motor - link[:, i]) for link in (prediction.measured_link, prediction.link)
        )
        label = f"Deflection of {name} over time, measured and predicted"
        if np.isfinite(measured).any():
            quantity = f"deflection ({unit.position})"
            yield _panel(
                name, label, quantity, prediction=prediction, measured=measured, predicted=predicted, unit=unit.position
            )


def _panel(
    name: str,
    label: str,
    quantity: str,
    *,
    prediction: FlexiblePrediction,
    measured: NDArray,
    predicted: NDArray,
    unit: str,
) -> Panel:
    rows = shown_rows(prediction)
    rms = float(np.sqrt(np.nanmean((measured - predicted) ** 2)))
    picture = prediction_plot(label, quantity, prediction.time[rows], measured[rows], predicted[rows])
    return Panel(name, "", picture, rms, unit)
