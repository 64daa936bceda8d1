"""Measured torque beside what the identified model says: over the angle of a rotating joint, or plainly against it."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.identification.static_samples import Rotation, Samples, rotations
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.report.drawing import LIGHT, WIDTH, Panel, label_axes, plot_area, svg, thinned
from dynid_ros.report.formats import joint_units
from dynid_ros.report.plots import ROW_WIDTH, interval_bars, row_axes, rows_height

# Identified gravity parameters with their 95 % intervals, against the truth where it is known.


Names = list[tuple[str, str]]
"""Joint and parameter of each row."""


def value_plot(names: Names, value: NDArray, half: NDArray, truth: NDArray, unit: str) -> str:
    """A row per parameter: its value, its interval, and the truth, where it is known, as a ring."""

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        rows = np.arange(len(names))
        axes.plot(truth, rows, linestyle="none", marker="o", markersize=9, mfc="none", mec=LIGHT["truth"], mew=1.4)
        interval_bars(axes, value, half)
        axes.set_xlabel(f"identified value ({unit})")

    return svg(f"Identified gravity parameters in {unit}", ROW_WIDTH, rows_height(len(names)), draw)


def interval_plot(names: Names, error: NDArray, half: NDArray, what: str, zero: str) -> str:
    """The intervals magnified, in per cent of the joint's largest torque, which makes those of small joints visible.

    Args:
        names: of the rows.
        error: identified less true, or zero where there is no truth.
        half: half widths.
        what: label of the axis.
        zero: colour of the line at zero, by its name in the palette.

    """

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        axes.axvline(0, color=LIGHT[zero], linewidth=1.2)
        interval_bars(axes, 100 * error, 100 * half)
        axes.set_xlabel(what)

    return svg(f"Gravity parameters, {what}", ROW_WIDTH, rows_height(len(names)), draw)


HEIGHT = 200
APPROACHES = ((1, "^", "measured"), (-1, "v", "none"), (0, "o", "measured"))
"""Direction, marker and fill."""


def rotation_plots(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> Iterator[Panel]:
    """Each single-joint rotation with the model's curve in the mean pose of the other joints, base to tip.

    Args:
        model: what was identified.
        samples: what was measured.
        predicted: (M, n) the model's torque in the samples.

    """
    found = rotations(samples)
    for joint in range(model.robot.n_joints):
        own = [rotation for rotation in found if rotation.joint == joint]
        for number, rotation in enumerate(own, start=1):
            yield _rotation_plot(model, samples, predicted, rotation, f"rotation {number} of {len(own)}")


def agreement_plots(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> Iterator[Panel]:
    """Measured against predicted torque of each joint that gravity loads and that no single-joint rotation shows."""
    shown = {rotation.joint for rotation in rotations(samples)}
    for joint, name in enumerate(model.robot.joint_names):
        if joint not in shown and name not in model.torque_free and np.isfinite(predicted[:, joint]).any():
            yield _agreement_plot(model, samples.torque[:, joint], predicted[:, joint], joint)


def _rotation_plot(
    model: IdentifiedGravity, samples: Samples, predicted: NDArray, rotation: Rotation, note: str
) -> Panel:
    joint, rows = rotation.joint, rotation.rows
    name, unit = model.robot.joint_names[joint], joint_units(model.robot)[joint]
    position, torque = samples.position[rows], samples.torque[rows, joint]
    low, high = position[:, joint].min(), position[:, joint].max()
    margin = 0.03 * (high - low)
    grid = np.tile(position.mean(axis=0), (121, 1))
    grid[:, joint] = np.linspace(low - margin, high + margin, len(grid))
    shown, curve = grid[:, joint] * unit.scale, model.sensor_torque(grid)[:, joint]
    friction = np.nan_to_num(abs(model.coulomb[joint]))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(shown, curve - friction, curve + friction, color=LIGHT["band"], linewidth=0)
        axes.plot(shown, curve, color=LIGHT["identified"], linewidth=1.6)
        for direction, marker, fill in APPROACHES:
            chosen = samples.direction[rows, joint] == direction
            _points(axes, position[chosen, joint] * unit.scale, torque[chosen], marker, fill)
        label_axes(axes, f"{unit.noun} ({unit.position})", f"torque ({unit.effort})")

    label = f"Torque of {name} against its {unit.noun}, {note}"
    rms = float(np.sqrt(np.mean((torque - predicted[rows, joint]) ** 2)))
    return Panel(name, note, svg(label, WIDTH, HEIGHT, draw), rms, unit.effort)


def _agreement_plot(model: IdentifiedGravity, measured: NDArray, predicted: NDArray, joint: int) -> Panel:
    name, unit = model.robot.joint_names[joint], joint_units(model.robot)[joint]
    known = np.flatnonzero(np.isfinite(predicted))
    shown = known[thinned(len(known))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        ends = np.array([predicted[known].min(), predicted[known].max()])
        axes.plot(ends, ends, color=LIGHT["identified"], linewidth=1.6)
        _points(axes, predicted[shown], measured[shown], "o", "none")
        label_axes(axes, f"predicted ({unit.effort})", f"measured ({unit.effort})")

    label = f"Measured against predicted torque of {name}"
    rms = float(np.sqrt(np.mean((measured[known] - predicted[known]) ** 2)))
    note = f"{len(shown)} of {len(known)} samples" if len(shown) < len(known) else f"{len(known)} samples"
    return Panel(name, note, svg(label, WIDTH, HEIGHT, draw), rms, unit.effort)


def _points(axes: Axes, x: NDArray, y: NDArray, marker: str, fill: str) -> None:
    axes.plot(
        x,
        y,
        linestyle="none",
        marker=marker,
        markersize=4.5,
        markeredgecolor=LIGHT["measured"],
        markeredgewidth=0.9,
        markerfacecolor=LIGHT.get(fill, "none"),
    )
