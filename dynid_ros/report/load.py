"""Report of a load: the section `load` of `identified.yaml`, and the fitted torque or wrench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width, region_radius
from dynid_ros.identification.equations import Equations
from dynid_ros.identification.load.driver_settings import driver_settings
from dynid_ros.identification.load.load_fit import LoadColumns
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.identification.wrench_frame import SENSOR_AXES, WRENCH_UNITS
from dynid_ros.identified.identified_file import dof_of, file_of, mapping
from dynid_ros.model.inertia import LOAD_NAMES, STATIC, central_moments
from dynid_ros.report.drawing import LIGHT, Plot, plot_area, prediction_panels, rows_to_plot, spread_indices, svg
from dynid_ros.report.formats import (
    UNKNOWN_TEXT,
    as_fine_as,
    brief,
    joint_units,
    listed,
    percent,
    plus_minus,
    share,
    significant,
    with_unit,
)
from dynid_ros.report.page import Code, Condition, Figures, Folded, Legend, Section, Table, Text, Tile
from dynid_ros.report.result_page import ResultPart, number_of, numbers_of, result_page

VIEW_SIZE = 320
VIEWS = {"along x": (1, 2), "along y": (0, 2), "along z": (0, 1)}
"""Horizontal and vertical axis by direction of view."""
N_DRAWS = 40
"""Number of ellipsoids that are drawn at random from the covariance of the estimate."""
VIEW_MARGIN_FRACTION = 0.2
ARROW_FRACTION = 0.24
"""Length of the arrows over half the width of the picture, such that they fit into its margin."""
ANGLES = np.linspace(0, 2 * np.pi, 121)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)])
"""(2, N) points of the unit circle."""
MIN_EXPLAINED = 0.5
"""Smallest R² of a channel that the summary does not name."""
MM_PER_M = 1e3


def load_views(result: LoadResult) -> dict[str, str]:
    """Draw the load as SVG from each direction of view, except those in which the centre of mass is undetermined.

    Each view has the 95 % region of the centre of mass, and ellipsoids of uniform density with the identified inertia.
    """
    known = np.isfinite(result.center)
    if not result.is_loaded or known.sum() < 2:
        return {}
    centre = np.where(known, result.center, 0.0)
    spread = _centre_covariance(result, known)
    shape = _ellipsoid(result.parameters)
    others = _draw_ellipsoids(result) if shape is not None else []
    # The ellipse is the confidence region of two coordinates, with the smaller one of their degrees of freedom.
    region = region_radius(2, float(result.estimate.dof[1:STATIC][known].min()))
    reach = np.sqrt(np.diag(spread)).max() * region
    if shape is not None:
        reach = max(reach, *(np.sqrt(np.diag(one)).max() for one in (shape, *others)))
    lowest = np.minimum(centre - reach, 0.0)
    highest = np.maximum(centre + reach, 0.0)
    middle = (lowest + highest) / 2
    half = float((0.5 + VIEW_MARGIN_FRACTION) * (highest - lowest).max())
    views = {}
    for name, pair in VIEWS.items():
        plane = np.array(pair)
        if not known[plane].all():
            continue

        def draw(figure: Figure, plane: NDArray = plane) -> None:
            axes = plot_area(figure, left=52, bottom=42)
            axes.set_aspect("equal", adjustable="box")
            for k, towards in enumerate(plane):
                ends = 1e3 * (middle[towards] + half * np.array([-1, 1]))
                (axes.set_xlim, axes.set_ylim)[k](*ends)
            _draw_frame(axes, ARROW_FRACTION * 1e3 * half, plane)
            square = np.ix_(plane, plane)
            for other in others:
                axes.plot(*_outline(centre[plane], other[square]), color=LIGHT["identified"], linewidth=0.5, alpha=0.3)
            if shape is not None:
                axes.plot(*_outline(centre[plane], shape[square]), color=LIGHT["identified"], linewidth=1.8)
            axes.fill(*_outline(centre[plane], region**2 * spread[square]), color=LIGHT["uncompensated"], alpha=0.35)
            axes.plot(*(1e3 * centre[plane]), color=LIGHT["uncompensated"], marker="o", markersize=4.5)
            axes.set_xlabel(f"{'xyz'[plane[0]]} (mm)")
            axes.set_ylabel(f"{'xyz'[plane[1]]} (mm)")

        views[name] = svg(f"Load seen {name} of {result.frame}", VIEW_SIZE, VIEW_SIZE, draw)
    return views


def _draw_frame(axes: Axes, length: float, plane: NDArray) -> None:
    """Draw the origin and the two axes (2,) of the frame in the plane of the view."""
    arrow = {"arrowstyle": "->", "color": LIGHT["measured"], "linewidth": 1.4}
    for (x, y), label in zip(((length, 0.0), (0.0, length)), plane, strict=True):
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
        axes.annotate("xyz"[label], (1.12 * x, 1.12 * y), ha="center", va="center", color=LIGHT["muted"])
    axes.plot(0, 0, color=LIGHT["measured"], marker="o", markersize=4)


def _centre_covariance(result: LoadResult, known: NDArray) -> NDArray:
    """Return the first-order covariance (3, 3) of the centre of mass, m²; zero for coordinates that are not `known`."""
    mass = result.mass
    slopes = np.column_stack([-result.center / mass, np.eye(3) / mass])[known]
    used = np.flatnonzero([True, *known])
    covariance = np.zeros((3, 3))
    covariance[np.ix_(known, known)] = slopes[:, used] @ result.body.covariance[np.ix_(used, used)] @ slopes[:, used].T
    return covariance


def _ellipsoid(parameters: NDArray) -> NDArray | None:
    """Return A (3, 3) of the ellipsoid xᵀ A⁻¹ x = 1 of uniform density with these parameters; None if unknown."""
    if not np.isfinite(parameters).all():
        return None
    # A body of uniform density with half axis a has the second moment m a² / 5.
    values, axes = np.linalg.eigh(5 * central_moments(parameters) / parameters[0])
    return (axes * np.maximum(values, 0.0)) @ axes.T


def _draw_ellipsoids(result: LoadResult) -> list[NDArray]:
    """Return ellipsoids of parameters that are drawn from the distribution of the estimate, see `_ellipsoid`."""
    draws = np.random.default_rng(0).multivariate_normal(
        np.zeros(10), result.body.covariance, size=N_DRAWS, method="svd", check_valid="ignore"
    )
    possible = [result.parameters + draw for draw in draws if result.parameters[0] + draw[0] > 0]
    return [shape for parameters in possible if (shape := _ellipsoid(parameters)) is not None]


def _outline(centre: NDArray, matrix: NDArray) -> NDArray:
    """Return the outline (2, N), mm, of the ellipse xᵀ A⁻¹ x = 1 about `centre`, m; `matrix` (2, 2) is A, m²."""
    values, axes = np.linalg.eigh(matrix)
    return 1e3 * (centre[:, None] + (axes * np.sqrt(np.maximum(values, 0.0))) @ CIRCLE)


@dataclass(frozen=True, eq=False)
class LoadEvidence:
    """Fitted torque or wrench of the load, without the contributions of arm, tare, bias, offsets and friction.

    Attributes:
        recording: (M,) number of the recording of each sample.
        time: (M,) s.
        measured: (M, c) measured torque of each joint, or wrench, after subtraction of these contributions.
        load: (M, c) prediction by the identified load.
    """

    recording: NDArray
    time: NDArray
    measured: NDArray
    load: NDArray

    @classmethod
    def from_equations(
        cls, equations: Equations, columns: LoadColumns, result: LoadResult, tare: LoadResult | None = None
    ) -> LoadEvidence:
        """Divide the fitted torque into that of the load and that of all other fitted parameters."""
        n = result.n_load
        size = 1 + max(int(indices.max()) for indices in columns.of_joint)
        load = np.zeros(size)
        load[:n] = np.where(np.isfinite(result.parameters[:n]), result.parameters[:n], result.solution[:n])
        rest = np.zeros(size)
        rest[columns.own[n:]] = result.solution[n:]
        if tare is not None:
            rest[:n] = np.nan_to_num(tare.body.parameters[:n])
        parts = []
        for block in equations.blocks(columns):
            rows = list(zip(block.rows, columns.of_joint, strict=True))
            load_torque, rest_torque = (np.stack([a @ values[c] for a, c in rows], axis=1) for values in (load, rest))
            measured = block.torque - rest_torque
            parts.append((np.full(len(block.time), block.recording), block.time, measured, load_torque))
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @property
    def residual_rms(self) -> NDArray:
        """(c,) RMS residual, N m or N."""
        return np.sqrt(np.mean((self.measured - self.load) ** 2, axis=0))

    @property
    def measured_rms(self) -> NDArray:
        """(c,) RMS of the measured signals, N m or N."""
        return np.sqrt(np.mean(self.measured**2, axis=0))

    @property
    def explained(self) -> NDArray:
        """(c,) uncentred R²; 0 for a channel without signal."""
        size = self.measured_rms
        return np.where(size > 0, 1 - (self.residual_rms / np.where(size > 0, size, 1.0)) ** 2, 0.0)


def load_part(document: Mapping[str, Any], views: Mapping[str, str] | None = None) -> ResultPart:
    """Return the part of a page on a load; `views` are SVG pictures by direction of view."""
    load = mapping(document, "load", file_of(document))
    condition = Condition(
        number_of(load if "condition_number" in load else document, "condition_number"),
        remedy="Turn the load against gravity about several axes, and move the wrist faster.",
    )
    low, high = numbers_of(document, load.get("interval") or {}, "mass", 2)
    mass = number_of(load, "mass")
    half = (high - low) / 2
    shown = as_fine_as(mass, half)
    tile = Tile("Mass", f"{shown} kg", f"± {significant(half, 2)} kg, 95 % interval by the data alone")
    if not np.isfinite(mass):
        sentence = (
            "These data do not determine the mass of the load: no joint that gravity loads turned against gravity."
        )
        return ResultPart("Load", [sentence], [tile, condition.tile], [condition.section()])
    interval = f"{as_fine_as(low, half)} to {as_fine_as(high, half)} kg"
    frame = load.get("frame", "the tip")
    if load.get("loaded") is False:
        reason = "lies below zero" if high < 0 else "contains zero"
        sentence = f"No load is measured at {frame}: the 95 % interval of its mass, {interval}, {reason}."
        return ResultPart("Load", [sentence], [tile, condition.tile], [condition.section()])
    centre = MM_PER_M * numbers_of(document, load, "center", 3)
    centre_half = MM_PER_M * np.ptp(_centre_intervals(document, load), axis=1) / 2
    coordinates = ", ".join(map(as_fine_as, centre, centre_half))
    sentences = [
        f"The arm carries {shown} kg (95 %: {interval}) at {frame}, with the centre of mass at ({coordinates}) mm in "
        "the frame of that link.",
        *_inertia_sentences(load),
    ]
    tiles = [
        tile,
        Tile(
            "Centre of mass",
            f"{brief(float(np.linalg.norm(centre)))} mm",
            f"from the origin of {frame}; each coordinate to ± {significant(centre_half.max(), 2)} mm",
        ),
        condition.tile,
    ]
    figures = [Plot(picture, name) for name, picture in (views or {}).items()]
    legend = {"dot uncompensated": "centre of mass with its 95 % region", "arrow": f"axes of {frame}"}
    if load.get("principal"):
        legend["ellipse"] = "ellipsoid of uniform density with this mass and inertia"
        legend["thin ellipse"] = "others that the data allow"
    section = Section(
        "Load parameters",
        [
            f"In the frame of {frame}; inertia is about the centre of mass, in the axes of that frame. The values are "
            "those of the physically consistent body that fits the data best, as in the file and in the settings for "
            "drivers. The intervals are by the data alone.",
            _load_table(document, load),
            *([Legend(legend), Figures(figures)] if figures else []),
        ],
    )
    return ResultPart("Load", sentences, tiles, [section, condition.section()])


def _centre_intervals(document: Mapping[str, Any], load: Mapping[str, Any]) -> NDArray:
    """Return the 95 % intervals (3, 2) of the centre of mass, m; NaN: unknown."""
    rows = (load.get("interval") or {}).get("center") or [None] * 3
    return np.array([numbers_of(document, {"center": row}, "center", 2) for row in rows])


def _inertia_sentences(load: Mapping[str, Any]) -> list[str]:
    """Return a sentence if the inertia is unknown or inaccurate."""
    principal = load.get("principal")
    if not principal:
        estimate = (load.get("estimate") or {}).get("parameters") or ()
        known = len(estimate) > STATIC and estimate[STATIC] is not None
        return [f"Its inertia is not {'determined' if known else 'known: the data do not determine it'}."]
    moments, errors = (
        np.array([value if value is not None else np.nan for value in principal[key]]) for key in ("moments", "std")
    )
    if not (errors > moments).all():
        return []
    return [
        "The motion does not determine its inertia about the centre of mass: the errors exceed the moments, and the "
        "values are close to those of a ball of this mass. Turn the wrist faster, or use a force/torque sensor."
    ]


def _load_table(document: Mapping[str, Any], load: Mapping[str, Any]) -> Table:
    """Return the table of mass, centre of mass, inertia and principal moments with their 95 % intervals."""
    interval = load.get("interval") or {}
    rows = [_interval_row("Mass", "kg", number_of(load, "mass"), numbers_of(document, interval, "mass", 2))]
    centre = numbers_of(document, load, "center", 3)
    for axis, value, ends in zip("xyz", centre, _centre_intervals(document, load), strict=True):
        rows.append(_interval_row(f"Centre {axis}", "mm", MM_PER_M * value, MM_PER_M * ends))
    errors = numbers_of(document, load.get("std") or {}, "inertia", 6)
    halves = half_width(errors, dof_of(document, load, "inertia"))
    inertia = numbers_of(document, load, "inertia", 6)
    for name, value, half in zip(LOAD_NAMES[STATIC:], inertia, halves, strict=True):
        if np.isfinite(value):
            rows.append((name, f"{as_fine_as(value, half)} kg m²", f"± {significant(half, 2)} kg m²", ""))
    rows += _principal_rows(document, load)
    return Table(("", "Value", "95 % interval", ""), rows, words=[3])


def _interval_row(name: str, unit: str, value: float, ends: NDArray) -> tuple[str, str, str, str]:
    half = np.ptp(ends) / 2
    low, high = (as_fine_as(end, half) for end in ends)
    known = np.isfinite(ends).all()
    return name, f"{as_fine_as(value, half)} {unit}", f"{low} to {high} {unit}" if known else UNKNOWN_TEXT, ""


def _principal_rows(document: Mapping[str, Any], load: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the principal moments, with their axes if these are determined."""
    principal = load.get("principal")
    if not principal:
        return []
    halves = half_width(numbers_of(document, principal, "std", 3), dof_of(document, load, "inertia"))
    rows = []
    for k, (moment, half) in enumerate(zip(numbers_of(document, principal, "moments", 3), halves, strict=True)):
        axis = ", ".join(f"{c:.2f}" for c in numbers_of(document, {"axis": principal["axes"][k]}, "axis", 3))
        note = f"about ({axis})".replace("-", "−")
        if any(k + 1 in pair for pair in principal.get("alike") or ()):
            note = "axis undetermined: another moment is too close"
        moment_text = f"{as_fine_as(moment, half)} kg m²"
        rows.append((f"Principal moment {k + 1}", moment_text, f"± {significant(half, 2)} kg m²", note))
    return rows


def write_load_report(
    path: str | Path, result: LoadResult, evidence: LoadEvidence, drivers: Mapping[str, str] | None = None
) -> Path:
    """Write the report of a load identification.

    Args:
        path: path of the HTML file, whose folders are created.
        result: result of the identification.
        evidence: fitted torque or wrench.
        drivers: texts of settings for drivers by file name.

    Raises:
        IdentificationError: the evidence has other channels than the result.
    """
    if evidence.measured.shape[1] != len(result.channels):
        raise IdentificationError(
            f"report: {evidence.measured.shape[1]} channels measured; expected {', '.join(result.channels)}"
        )
    document = result.document()
    part = load_part(document, load_views(result))
    tiles = list(part.tiles)
    sentences = list(part.sentences)
    if result.is_loaded:
        tiles.insert(-1, _explained_tile(result.channels, evidence))
        sentences.append(_explained_sentence(result.channels, evidence))
    *details, condition = part.sections
    sections = [*details, _signal_section(result, evidence), condition, _driver_section(drivers or {})]
    return result_page(document, ResultPart(part.title, sentences, tiles, sections)).write(path)


def write_result_report(path: str | Path, result: LoadResult, *_: object) -> Path:
    """Write the report of a result with its fitted signals; see `write_load_report`."""
    drivers = {}
    with suppress(IdentificationError):  # without a load, there are no settings for drivers
        drivers = driver_settings(result)
    return write_load_report(path, result, result.fitted, drivers)


def _explained_tile(channels: Sequence[str], evidence: LoadEvidence) -> Tile:
    explained = evidence.explained
    lowest = channels[int(np.argmin(explained))]
    return Tile("R² of the load", share(explained.mean()), f"uncentred; lowest {lowest}, {share(explained.min())}")


def _explained_sentence(channels: Sequence[str], evidence: LoadEvidence) -> str:
    poor = [name for name, value in zip(channels, evidence.explained, strict=True) if value < MIN_EXPLAINED]
    text = (
        f"R² of the load is {share(evidence.explained.mean())} (uncentred, mean of the channels), after subtraction of "
        "the arm, offsets, bias and friction"
    )
    return f"{text}; less than half at {listed(poor)}." if poor else f"{text}."


def _signal_section(result: LoadResult, evidence: LoadEvidence) -> Section:
    """Return the section on measured and predicted torque or wrench of the load, with the nuisance parameters."""
    robot = result.robot
    are_dwells = result.n_load == STATIC
    is_torque = tuple(result.channels) == tuple(robot.joint_names)
    wrench_units = dict(zip(SENSOR_AXES, WRENCH_UNITS, strict=True))
    units = [unit.effort for unit in joint_units(robot)] if is_torque else [wrench_units[c] for c in result.channels]
    n_samples = len(evidence.time)
    rows: slice | NDArray = rows_to_plot(evidence.time, evidence.recording)
    excerpt = f"The plots show the middle of {result.sources[int(evidence.recording[rows][0])]} after a low-pass."
    if are_dwells:
        rows = spread_indices(n_samples)
        excerpt = "Each point is a dwell."
    what = "torque minus that of the arm, offsets and friction" if is_torque else "wrench minus the bias of the sensor"
    size = evidence.measured_rms
    residual = evidence.residual_rms
    relative = np.divide(residual, size, out=np.full(len(size), np.nan), where=size > 0)
    nuisance = list(result.nuisance.values())
    return Section(
        f"{'Torque' if is_torque else 'Wrench'} of the load",
        [
            f"Measured {what}, and the prediction by the load. {excerpt} The lower plots show the residuals, the "
            "captions their RMS over all data.",
            Legend({"measured": "measured", "identified": "identified load"}),
            Figures(
                prediction_panels(
                    result.channels,
                    units,
                    1 + np.arange(n_samples) if are_dwells else evidence.time,
                    evidence.measured,
                    evidence.load,
                    rows=rows,
                    quantity="torque" if is_torque else "wrench",
                    are_dwells=are_dwells,
                )
            ),
            Table.by_column(
                "Joint" if is_torque else "Axis",
                result.channels,
                {
                    ("Measured", "RMS"): list(map(with_unit, size, units)),
                    ("Residual", "RMS"): list(map(with_unit, residual, units)),
                    ("Relative residual", "over the measured RMS"): list(map(percent, relative)),
                },
            ),
            Table.by_column(
                "",
                list(result.nuisance),
                {"Value ± standard error": [plus_minus(value, error) for value, error in nuisance]},
                folded="Estimated together with the load",
            ),
        ],
    )


def _driver_section(drivers: Mapping[str, str]) -> Section:
    where = "The folder drivers next to this page contains the same texts. Each states the frame of its numbers."
    texts = [Folded(name, [Code(text)]) for name, text in drivers.items()]
    none = Text("None: there is no load that a driver could be given.")
    return Section("Settings for drivers", [where, *texts] if texts else [none])
