"""Plots of gravity parameters, and of measured torque against the gravity model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.identification.static_samples import Rotation, Samples, rotations
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.report.drawing import LIGHT, PANEL_WIDTH, label_axes, plot_area, spread_indices, svg
from dynid_ros.report.formats import joint_units
from dynid_ros.report.page import Plot
from dynid_ros.report.plots import ROW_PLOT_WIDTH, draw_intervals, panel, row_axes, rows_height

TORQUE_PLOT_HEIGHT = 200
APPROACH_MARKERS = ((1, "^", "measured"), (-1, "v", "none"), (0, "o", "measured"))
"""Direction of approach, marker and fill."""


def draw_moments(rows: Sequence[tuple[str, str]], units: Sequence[str], value: NDArray, half: NDArray) -> list[str]:
    """Draw parameters with their 95 % intervals, as one SVG for each unit.

    Args:
        rows: joint and label of each parameter.
        units: unit of each parameter.
        value: (k,) estimates.
        half: (k,) half widths of the intervals.
    """
    return [_draw_moments(rows, np.array(units) == unit, unit, value, half) for unit in dict.fromkeys(units)]


def _draw_moments(rows: Sequence[tuple[str, str]], chosen: NDArray, unit: str, value: NDArray, half: NDArray) -> str:
    joints, labels = zip(*(row for row, is_chosen in zip(rows, chosen, strict=True) if is_chosen), strict=True)

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, joints, labels)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        draw_intervals(axes, value[chosen], half[chosen])
        axes.set_xlabel(f"95 % interval ({unit})" if "%" in unit else f"estimate ({unit})")

    return svg(f"Gravity parameters in {unit}", ROW_PLOT_WIDTH, rows_height(len(joints)), draw)


def rotation_plots(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> list[Plot]:
    """Return measured torque (M, n) over the angle of each joint that turns alone, with the curve of the model."""
    plots = []
    for joint in range(model.robot.n_joints):
        turns = [rotation for rotation in rotations(samples) if rotation.joint == joint]
        for number, rotation in enumerate(turns, start=1):
            plots.append(_draw_rotation(model, samples, predicted, rotation, f"rotation {number} of {len(turns)}"))
    return plots


def _draw_rotation(
    model: IdentifiedGravity, samples: Samples, predicted: NDArray, rotation: Rotation, note: str
) -> Plot:
    joint = rotation.joint
    rows = rotation.rows
    name = model.robot.joint_names[joint]
    unit = joint_units(model.robot)[joint]
    position = samples.position[rows]
    torque = samples.torque[rows, joint]
    low = position[:, joint].min()
    high = position[:, joint].max()
    margin = 0.03 * (high - low)
    # The curve is drawn in the mean pose of the other joints.
    grid = np.tile(position.mean(axis=0), (121, 1))
    grid[:, joint] = np.linspace(low - margin, high + margin, len(grid))
    angle = grid[:, joint] * unit.scale
    curve = model.sensor_torque(grid)[:, joint]
    coulomb = np.nan_to_num(abs(model.coulomb[joint]))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(angle, curve - coulomb, curve + coulomb, color=LIGHT["band"], linewidth=0)
        axes.plot(angle, curve, color=LIGHT["identified"], linewidth=1.6)
        for direction, marker, fill in APPROACH_MARKERS:
            chosen = samples.direction[rows, joint] == direction
            _draw_points(axes, position[chosen, joint] * unit.scale, torque[chosen], marker, fill)
        label_axes(axes, f"{unit.noun} ({unit.position})", f"torque ({unit.effort})")

    label = f"Torque of {name} against its {unit.noun}, {note}"
    rms = float(np.sqrt(np.mean((torque - predicted[rows, joint]) ** 2)))
    return panel(name, svg(label, PANEL_WIDTH, TORQUE_PLOT_HEIGHT, draw), rms, unit.effort, note)


def draw_scatter(model: IdentifiedGravity, measured: NDArray, predicted: NDArray, joint: int) -> Plot:
    """Return measured over predicted torque (M,) of a joint; NaN: not predicted."""
    name = model.robot.joint_names[joint]
    unit = joint_units(model.robot)[joint]
    known = np.flatnonzero(np.isfinite(predicted))
    shown = known[spread_indices(len(known))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        ends = np.array([predicted[known].min(), predicted[known].max()])
        axes.plot(ends, ends, color=LIGHT["identified"], linewidth=1.6)
        _draw_points(axes, predicted[shown], measured[shown], "o", "none")
        label_axes(axes, f"predicted ({unit.effort})", f"measured ({unit.effort})")

    label = f"Measured against predicted torque of {name}"
    rms = float(np.sqrt(np.mean((measured[known] - predicted[known]) ** 2)))
    note = f"{len(shown)} of {len(known)} samples" if len(shown) < len(known) else f"{len(known)} samples"
    return panel(name, svg(label, PANEL_WIDTH, TORQUE_PLOT_HEIGHT, draw), rms, unit.effort, note)


def _draw_points(axes: Axes, x: NDArray, y: NDArray, marker: str, fill: str) -> None:
    edge: dict[str, Any] = {"markersize": 4.5, "markeredgecolor": LIGHT["measured"], "markeredgewidth": 0.9}
    axes.plot(x, y, marker, markerfacecolor=LIGHT.get(fill, "none"), **edge)
