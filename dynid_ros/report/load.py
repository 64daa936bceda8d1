"""The report of a load identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.equations import Equations
from dynid_ros.identification.load.driver_settings import driver_settings
from dynid_ros.identification.load.load_fit import LoadColumns
from dynid_ros.identification.load_result import LoadResult, alike
from dynid_ros.identification.wrench_frame import AXES, UNITS
from dynid_ros.model.inertia import LOAD_NAMES, STATIC
from dynid_ros.report.drawing import thinned
from dynid_ros.report.formats import (
    MISSING,
    as_fine_as,
    brief,
    fixed,
    joint_units,
    listed,
    percent,
    share,
    significant,
    with_unit,
)
from dynid_ros.report.load_views import load_views
from dynid_ros.report.page import (
    Bullets,
    Code,
    Condition,
    Figures,
    Folded,
    Legend,
    Plot,
    Section,
    Table,
    Text,
    Tile,
    condition,
    result_page,
)
from dynid_ros.report.plots import prediction_panels, shown_rows

# What was measured of a load, compared with what the identified load exerts.


@dataclass(frozen=True, eq=False)
class LoadEvidence:
    """All equations of a fit, without what is not the load: the arm, a tare, bias, offsets and friction.

    Attributes:
        recording: (M,) which one, counted from 0.
        time: (M,) s.
        measured: (M, c) torque of each joint, or wrench.
        load: (M, c) by the identified load.
    """

    recording: NDArray
    time: NDArray
    measured: NDArray
    load: NDArray

    @classmethod
    def of(
        cls, equations: Equations, columns: LoadColumns, result: LoadResult, tare: LoadResult | None = None
    ) -> LoadEvidence:
        """Of the equations that were fitted."""
        n = result.n_load
        size = 1 + max(int(own.max()) for own in columns.of_joint)
        load, others = np.zeros(size), np.zeros(size)
        load[:n] = np.where(np.isfinite(result.parameters[:n]), result.parameters[:n], result.solution[:n])
        others[columns.own[n:]] = result.solution[n:]
        if tare is not None:
            others[:n] = np.nan_to_num(tare.body.parameters[:n])
        parts = []
        for block in equations.blocks(columns):
            own = zip(block.rows, columns.of_joint, strict=True)
            torques = [[rows @ values[columns_] for values in (load, others)] for rows, columns_ in own]
            of_load, of_others = np.moveaxis(np.array(torques), (1, 2), (0, 1))
            number = np.full(len(block.time), block.recording)
            parts.append((number, block.time, block.torque - of_others, of_load))
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @property
    def residual_rms(self) -> NDArray:
        """(c,) N m or N."""
        return np.sqrt(np.mean((self.measured - self.load) ** 2, axis=0))

    @property
    def measured_rms(self) -> NDArray:
        """(c,) N m or N."""
        return np.sqrt(np.mean(self.measured**2, axis=0))

    @property
    def explained(self) -> NDArray:
        """(c,) share of the mean square of what is measured; 0 where nothing is."""
        size = self.measured_rms
        return np.where(size > 0, 1 - (self.residual_rms / np.where(size > 0, size, 1.0)) ** 2, 0.0)


# Mass, centre and inertia of a load in rows, with their 95 % intervals.


MILLI = 1e3


@dataclass(frozen=True)
class LoadRow:
    """One number of the load.

    Attributes:
        name: what it is.
        unit: of all numbers.
        value: of the physically consistent body.
        alone: by the data alone; NaN where they do not determine it.
        half: half of the 95 % interval about it.
        note: what else to know.
    """

    name: str
    unit: str
    value: float
    alone: float
    half: float
    note: str = ""

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Of the table."""
        alone = as_fine_as(self.alone, self.half) if np.isfinite(self.alone) else ""
        half = f"± {significant(self.half, 2)} {self.unit}"
        return self.name, f"{as_fine_as(self.value, self.half)} {self.unit}", f"{alone} {half}".strip(), self.note


def load_rows(result: LoadResult) -> list[LoadRow]:
    """Mass, centre, inertia about it in the axes of the tip link, principal moments; only the mass without a load."""
    body, alone = result.possible, result.body
    dof = result.estimate.dof
    rows = [LoadRow("Mass", "kg", result.mass, alone.mass, float(half_width(alone.mass_error, dof[0])))]
    if not result.is_loaded:
        return rows
    halves = MILLI * half_width(alone.center_errors, dof[1:STATIC])
    centres = zip("xyz", MILLI * result.center, MILLI * alone.center, halves, strict=True)
    rows += [LoadRow(f"Centre {axis}", "mm", value, own, half) for axis, value, own, half in centres]
    if not knows_inertia(result):
        return rows
    upper, halves = np.triu_indices(3), half_width(alone.inertia_errors, result.inertia_freedom)
    inertias = zip(LOAD_NAMES[STATIC:], body.inertia[upper], alone.inertia[upper], halves, strict=True)
    rows += [LoadRow(name, "kg m²", value, own, half, "about the centre") for name, value, own, half in inertias]
    moments = zip(body.moments, half_width(body.moment_errors, result.inertia_freedom), body.axes.T, strict=True)
    rows += [
        LoadRow(f"Principal moment {i}", "kg m²", moment, np.nan, half, _axis(result, i - 1, axis))
        for i, (moment, half, axis) in enumerate(moments, 1)
    ]
    return rows


def knows_inertia(result: LoadResult) -> bool:
    """Whether motion showed it."""
    return bool(np.isfinite(result.parameters).all()) and result.is_loaded


def inertia_is_a_guess(result: LoadResult) -> bool:
    """Whether the data leave every principal moment open by more than its size."""
    return knows_inertia(result) and bool((result.possible.moment_errors > result.possible.moments).all())


def _axis(result: LoadResult, number: int, axis: NDArray) -> str:
    if any(number in pair for pair in result.possible.alike):
        return "its axis is undetermined: another moment is too close to it"
    return f"about ({', '.join(f'{c:.2f}' for c in axis)})".replace("-", "−")


# What was found of a load and how sure it is, for those who read nothing else.


POOR = 0.5
"""R² below which a channel is named."""


def _sentences(result: LoadResult, evidence: LoadEvidence) -> list[str]:
    """Mass and centre, inertia, and R² of the load."""
    mass, *rest = load_rows(result)
    if np.isnan(mass.value):
        return [
            "These data do not show the mass of the load: the joints that gravity loads did not move, or did not turn "
            "against gravity. Nothing follows for a controller."
        ]
    interval = result.confidence_intervals()[0]
    low, high = (as_fine_as(value, mass.half) for value in interval)
    if not result.is_loaded:
        where = "lies below zero." if interval[1] < 0.0 else f"holds zero. Up to {high} kg may be there."
        return [f"No load is shown at {result.frame}: the 95 % interval of its mass, {low} to {high} kg, {where}"]
    centre = ", ".join(as_fine_as(row.value, row.half) for row in rest[:3])
    found = [
        f"The arm carries {as_fine_as(mass.value, mass.half)} kg (95 %: {low} to {high}) at {result.frame}, with the "
        f"centre of mass at ({centre}) mm in that link's frame."
    ]
    if not knows_inertia(result):
        found.append(
            "Its inertia is not known: the arm stood still."
            if result.n_load == STATIC
            else "Its inertia is not determined."
        )
    elif inertia_is_a_guess(result):
        found.append(
            "The motion does not determine its inertia about the centre of mass: errors are larger than the moments, "
            "and what is given is near to a ball of this mass. Turn the wrist faster, or weigh with a wrist sensor."
        )
    return [*found, _explained(result.channels, evidence)]


def _tiles(result: LoadResult, evidence: LoadEvidence, conditioning: Condition) -> list[Tile]:
    """The same in numbers."""
    mass, *rest = load_rows(result)
    half = f"± {significant(mass.half, 2)} kg, 95 % interval by the data alone"
    found = [Tile("Mass", f"{as_fine_as(mass.value, mass.half)} kg", half)]
    if result.is_loaded:
        spread = max(row.half for row in rest[:3])
        distance = 1e3 * np.linalg.norm(result.center)
        note = f"of the centre of mass from the origin of {result.frame}; each coordinate ± {significant(spread, 2)} mm"
        found.append(Tile("Distance", f"{fixed(distance, 0)} mm", f"{note} at most"))
        explained = evidence.explained
        lowest = result.channels[int(np.argmin(explained))]
        note = f"uncentred, of what is measured; lowest {lowest}, {share(explained.min())}"
        found.append(Tile("R² of the load", share(float(np.mean(explained))), note))
    return [*found, conditioning.tile]


def _explained(channels: Sequence[str], evidence: LoadEvidence) -> str:
    shares = evidence.explained
    poor = [name for name, value in zip(channels, shares, strict=True) if value < POOR]
    text = (
        f"R² of the load is {share(float(np.mean(shares)))}, of what is measured besides the arm itself, offsets, "
        "bias and friction (uncentred, mean of the channels)"
    )
    return f"{text}; less than half at {listed(poor)}." if poor else f"{text}."


def write_load_report(
    path: str | Path, result: LoadResult, evidence: LoadEvidence, drivers: Mapping[str, str] | None = None
) -> Path:
    """Write the report of what was found of a load, and on which data.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        result: of the identification.
        evidence: the equations that were fitted.
        drivers: texts of settings, by file name.

    Raises:
        IdentificationError: the evidence has other channels than the result.
    """
    if evidence.measured.shape[1] != len(result.channels):
        raise IdentificationError(
            f"report: {evidence.measured.shape[1]} channels measured; expected {', '.join(result.channels)}"
        )
    robot, static = result.robot, result.n_load == STATIC
    conditioning = condition(
        result.condition_number,
        "more varied poses" if static else "faster and more varied motion",
        "Turn the load against gravity about several axes." + ("" if static else " Move the wrist faster."),
    )
    return result_page(
        "Load",
        "Load identification",
        robot,
        sentences=_sentences(result, evidence),
        tiles=_tiles(result, evidence, conditioning),
        sections=[
            _load_section(result),
            _signal_section(result, evidence, static=static),
            conditioning.section(*([Text("Remarks", "heading"), Bullets(result.remarks)] if result.remarks else [])),
            _driver_section(drivers or {}),
        ],
        sources=result.sources,
        settings=result.settings,
    ).write(path)


def write_result_report(path: str | Path, result: LoadResult, *_: object) -> Path:
    """Write the report of a result with the equations that were fitted; see `write_load_report`."""
    try:
        drivers = driver_settings(result)
    except IdentificationError:
        drivers = {}
    return write_load_report(path, result, result.fitted, drivers)


def _load_section(result: LoadResult) -> Section:
    inertia = knows_inertia(result)
    correlated = [f"{text[0].upper()}{text[1:]}." for text in map(str.strip, alike(result))] if inertia else []
    legend = {"dot uncompensated": "centre of mass; shaded, where it is in 95 of 100 cases"}
    if inertia:
        legend["ellipse"] = "ellipsoid of uniform density with this mass and inertia"
        legend["thin ellipse"] = "others that the data allow"
    views = [Plot(picture, name) for name, picture in load_views(result).items()]
    return Section(
        "The load",
        [
            f"In the frame of {result.frame}{', inertia about the centre of mass along its axes' if inertia else ''}. "
            "“Data alone” is the estimate without any prior, with its 95 % interval; the other column is the "
            "physically consistent body nearest to it, which is what is written and handed to controllers.",
            Table(("", "Consistent body", "Data alone", ""), [row.cells for row in load_rows(result)], words=[3]),
            *map(Text, correlated),
            *([Legend(legend | {"arrow": f"axes of {result.frame}"}), Figures(views)] if views else []),
        ],
    )


def _signal_section(result: LoadResult, evidence: LoadEvidence, *, static: bool) -> Section:
    robot = result.robot
    torques = tuple(result.channels) == tuple(robot.joint_names)
    by_axis = dict(zip(AXES, UNITS, strict=True))
    units = [unit.effort for unit in joint_units(robot)] if torques else [by_axis[name] for name in result.channels]
    # some of all dwells, or the middle of the longest stretch of motion
    rows = (
        thinned(len(evidence.time))
        if static
        else np.arange(len(evidence.time))[shown_rows(evidence.time, evidence.recording)]
    )
    shown = evidence.time[rows]
    what = (
        "Measured torque less that of the arm alone, and less what changed of offsets and friction"
        if torques
        else "Measured wrench less the bias of the sensor"
    )
    seconds, source = brief(float(shown[-1] - shown[0])), result.sources[int(evidence.recording[rows[0]])]
    how = (
        "Each point is a dwell."
        if static
        else f"{seconds} s from the middle of {source}, all through the same low-pass. Below is the error, magnified."
    )
    size, error = evidence.measured_rms, evidence.residual_rms
    signals = [
        (
            name,
            with_unit(size[c], unit),
            with_unit(error[c], unit),
            percent(error[c] / size[c]) if size[c] > 0 else MISSING,
        )
        for c, (name, unit) in enumerate(zip(result.channels, units, strict=True))
    ]
    others = [(name, significant(value), significant(error, 2)) for name, (value, error) in result.nuisance.items()]
    return Section(
        f"{'Torque' if torques else 'Wrench'} of the load",
        [
            f"{what}, compared with that of the load above. {how} Errors in the captions are RMS over all data.",
            Legend({"measured": "measured", "identified": "identified load"}),
            Figures(
                prediction_panels(
                    result.channels,
                    units,
                    1 + np.arange(len(evidence.time)) if static else evidence.time,
                    evidence.measured,
                    evidence.load,
                    rows=rows,
                    quantity="torque" if torques else "wrench",
                    rests=static,
                )
            ),
            Table(
                ("Joint" if torques else "Axis", ("Measured", "RMS"), ("Residual", "RMS"), "Residual ÷ measured"),
                signals,
            ),
            Table(("", "Value", "Standard error"), others, folded="Estimated with the load"),
        ],
    )


def _driver_section(drivers: Mapping[str, str]) -> Section:
    where = "The same texts are in the folder drivers next to this page. Each says in which frame it takes the numbers."
    texts = [Folded(name, [Code(text)]) for name, text in drivers.items()]
    none = Text("None: no load is known that a driver could be given.")
    return Section("Settings for drivers", [where, *texts] if texts else [none])
