"""Sections of reports on links and base parameters: estimates with intervals, and the values of the URDF."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR
from dynid_ros.identified.identified_file import file_of
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import LINK_PARAMETERS
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, Body
from dynid_ros.report.drawing import (
    LIGHT,
    PANEL_WIDTH,
    ROW_PLOT_WIDTH,
    Plot,
    draw_intervals,
    label_axes,
    plot_area,
    row_axes,
    rows_height,
    svg,
)
from dynid_ros.report.formats import as_fine_as, brief, counted, fixed, listed, percent, plus_minus, significant
from dynid_ros.report.page import Cell, Figures, Folded, Legend, Section, Table
from dynid_ros.report.result_page import entries_of, half_width_of, number_of, numbers_of

PARAMETER_UNITS = {"m": "kg", "mc": "kg m", "I": "kg m²"}
LINK_PARAMETER = re.compile(rf"({'|'.join(LINK_PARAMETERS)})(\d+)")
TERM = re.compile(r" [+-] ")
NUMBERS_WIDTH = 112
"""Width of the column of numbers to the right of the plot, page units."""
AXIS_LIMIT = 1.12
"""Limit of the horizontal axis; each row is scaled such that its largest absolute value is 1."""


@dataclass(frozen=True)
class BaseParameter:
    """A base parameter: a linear combination of parameters that torque determines.

    Attributes:
        expression: linear combination, such as "Izz1 + Ixx2 + 0.04 m3".
        value: estimate by the data alone; NaN: undetermined.
        error: standard error of the estimate.
        half: half width of the 95 % interval.
        urdf: value of the URDF; NaN if the combination contains rotor inertia or friction.
        model: value of the identified model, which is physically consistent and regularized towards the URDF; NaN:
            unknown.
    """

    expression: str
    value: float
    error: float
    half: float
    urdf: float
    model: float

    @property
    def name(self) -> str:
        """First parameter of the expression."""
        return TERM.split(self.expression)[0]

    @property
    def label(self) -> str:
        """Name, followed by dots if the combination has further parameters."""
        return self.name if self.name == self.expression else f"{self.name} + …"

    @property
    def link(self) -> int | None:
        """Number of the link, from 0; None for friction."""
        match = LINK_PARAMETER.fullmatch(self.name)
        return int(match[2]) - 1 if match else None

    @property
    def unit(self) -> str:
        """Unit of the values; empty for friction."""
        return PARAMETER_UNITS[re.split("[xyz0-9]", self.name)[0]] if self.link is not None else ""

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the parameter."""
        return bool(np.isfinite(self.value))

    @property
    def relative_error(self) -> float:
        """Standard error over the absolute value; infinite for zero, NaN if undetermined."""
        return self.error / abs(self.value) if self.value else float("inf")

    @property
    def is_compared(self) -> bool:
        """Whether estimate, identified model and URDF are all known."""
        return self.is_determined and bool(np.isfinite([self.urdf, self.model]).all())

    @property
    def is_urdf_wrong(self) -> bool:
        """Whether the interval contains the value of the identified model, but not that of the URDF."""
        return self.is_compared and not self._contains(self.urdf) and self._contains(self.model)

    @property
    def is_doubtful(self) -> bool:
        """Whether the interval contains neither value, so that it is probably too narrow or biased."""
        return self.is_compared and not self._contains(self.urdf) and not self._contains(self.model)

    def _contains(self, value: float) -> bool:
        return bool(abs(self.value - value) <= self.half)


def read_base_parameters(document: Mapping[str, Any], model_values: NDArray | None = None) -> list[BaseParameter]:
    """Return the base parameters of a link identification, including friction.

    Args:
        document: content of `identified.yaml`.
        model_values: (k,) values of the identified model; None, or of another size: unknown.
    """
    entries = document.get("base_parameters")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file_of(document)}: base_parameters must be a list of mappings; identify again")
    model = np.full(len(entries), np.nan)
    if model_values is not None and len(model_values) == len(entries):
        model = model_values
    return [
        BaseParameter(
            expression=str(entry.get("expression", "")),
            value=number_of(entry, "value"),
            error=number_of(entry, "std"),
            half=half_width_of(document, {**entry, "std": {"value": entry.get("std")}}, "value"),
            urdf=number_of(entry, "urdf"),
            model=float(value),
        )
        for entry, value in zip(entries, model, strict=True)
    ]


def is_weak(parameter: BaseParameter) -> bool:
    """Return whether the standard error of a determined parameter is above `MAX_RELATIVE_ERROR`."""
    return parameter.is_determined and parameter.relative_error > MAX_RELATIVE_ERROR


def weak_table(parameters: Sequence[BaseParameter], covariance: NDArray | None) -> list[Folded]:
    """Return the folded table of the weakly determined parameters, weakest first; empty if there are none.

    Args:
        parameters: k base parameters.
        covariance: (k, k) covariance, for the largest correlations; None, or of another size: unknown.
    """
    weak = sorted(filter(is_weak, parameters), key=lambda parameter: -parameter.relative_error)
    if not weak:
        return []
    columns: dict[str | tuple[str, str], list[str]] = {
        ("Standard error", "over the value"): [percent(parameter.relative_error) for parameter in weak]
    }
    if covariance is not None and len(covariance) == len(parameters):
        errors = np.sqrt(np.diag(covariance))
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = np.nan_to_num(covariance / np.outer(errors, errors), posinf=0.0, neginf=0.0)
        np.fill_diagonal(correlation, 0.0)
        rows = [parameters.index(parameter) for parameter in weak]
        partners = np.abs(correlation[rows]).argmax(axis=1)
        columns["Most correlated with"] = [parameters[partner].name for partner in partners]
        columns["Correlation"] = [fixed(correlation[row, other], 2) for row, other in zip(rows, partners, strict=True)]
    intro = (
        "A parameter that is nearly zero is weak by this measure even if its interval is narrow. Motion that "
        "separates a parameter from its most correlated parameter would reduce the error."
    )
    table = Table.by_column("Parameter", [parameter.name for parameter in weak], columns)
    title = f"{counted(len(weak), 'parameter')} with a standard error above {percent(MAX_RELATIVE_ERROR)} of the value"
    return [Folded(title, [intro, table])]


def base_section(parameters: Sequence[BaseParameter], links: Sequence[str], *, is_consistent: bool) -> Section:
    """Return the section with the plots by link and the table of the base parameters.

    Args:
        parameters: base parameters, including friction.
        links: names of the links.
        is_consistent: whether all links of the identified model are physically consistent.
    """
    link_parameters = [parameter for parameter in parameters if parameter.link is not None]
    by_link = {name: [one for one in link_parameters if one.link == k] for k, name in enumerate(links)}
    legend = {"interval": "estimate with 95 % interval", "diamond urdf": "URDF"}
    comparison = ""
    if any(parameter.is_compared for parameter in link_parameters):
        legend |= {"tick": "identified model", "diamond wrong": "URDF, wrong"}
        legend |= {"doubtful": "estimate in doubt"} if any(one.is_doubtful for one in link_parameters) else {}
        comparison = (
            " The URDF is wrong if the interval contains the value of the identified model, but not that of the URDF."
        )
        comparison += (
            " If it contains neither, the interval is in doubt: too narrow, or biased by unmodelled friction."
            if is_consistent
            else " Links of the identified model are not physically consistent, so doubtful intervals are not detected."
        )
    return Section(
        "Base parameters",
        [
            "Torque determines only these combinations of masses, mass moments and inertias of the links. Estimates "
            "are by the data alone, with 95 % intervals: one in twenty intervals does not contain the true value. Each "
            "row has its own scale; the vertical line is zero. Mass moments (mcx …) are in kg m, inertias (Ixx …) in "
            f"kg m², both about the origin of the link frame.{comparison}",
            Legend(legend),
            Figures([Plot(draw_base_parameters(link, rows), link) for link, rows in by_link.items() if rows]),
            Table.by_column(
                "Parameter",
                [parameter.name for parameter in parameters],
                {
                    "Estimate": [
                        f"{plus_minus(one.value, one.half)} {one.unit}".strip()
                        if one.is_determined
                        else "not determined"
                        for one in parameters
                    ],
                    "Identified model": [as_fine_as(one.model, one.half) for one in parameters],
                    "URDF": [as_fine_as(one.urdf, one.half) for one in parameters],
                    "": [
                        "URDF wrong" if one.is_urdf_wrong else "in doubt" if one.is_doubtful else ""
                        for one in parameters
                    ],
                    "Linear combination": [one.expression for one in parameters],
                },
                words=[5],
                folded=f"All {counted(len(parameters), 'base parameter')}, friction included",
            ),
        ],
    )


def draw_base_parameters(link: str, parameters: Sequence[BaseParameter]) -> str:
    """Draw the base parameters of a link as SVG, each row with its own scale and its numbers to the right."""
    fields = np.array([[one.value, one.half, one.urdf, one.model] for one in parameters])
    value, half, urdf, model = (fields / _row_scale(fields)[:, None]).T
    rows = np.arange(len(parameters))
    is_wrong = np.array([one.is_urdf_wrong for one in parameters])
    is_doubtful = np.array([one.is_doubtful for one in parameters])

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, [one.label for one in parameters], right=NUMBERS_WIDTH)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        axes.plot(model, rows, "|", markersize=11, color=LIGHT["identified"], mew=1.4)
        draw_intervals(axes, value, half)
        hollow: dict[str, Any] = {
            "markersize": 4.5,
            "mfc": LIGHT["paper"],
            "mec": LIGHT["identified"],
            "mew": 1.1,
            "zorder": 3,
        }
        axes.plot(value[is_doubtful], rows[is_doubtful], "o", **hollow)
        for color, mask in (("urdf", ~is_wrong), ("wrong", is_wrong)):
            diamond: dict[str, Any] = {
                "markersize": 6.5,
                "mfc": LIGHT[color],
                "mec": LIGHT["paper"],
                "mew": 0.8,
                "zorder": 3,
            }
            axes.plot(urdf[mask], rows[mask], "D", **diamond)
        for row, one in enumerate(parameters):
            text = plus_minus(one.value, one.half) if one.is_determined else "not determined"
            color = LIGHT["wrong" if one.is_urdf_wrong else "muted"]
            axes.text(1.03, row, text, transform=axes.get_yaxis_transform(), va="center", fontsize=10, color=color)
        axes.set_xlim(-AXIS_LIMIT, AXIS_LIMIT)
        axes.set_xticks([0])

    return svg(f"Base parameters of {link}", ROW_PLOT_WIDTH, rows_height(len(parameters)) - 14, draw)


def _row_scale(fields: NDArray) -> NDArray:
    """Return the largest absolute value (rows,) of value ± half, URDF and model; 1 if all are zero."""
    value, half, urdf, model = np.nan_to_num(fields).T
    largest = np.max(np.abs([value - half, value + half, urdf, model]), axis=0)
    return np.where(largest > 0, largest, 1.0)


def read_links(document: Mapping[str, Any]) -> dict[str, NDArray]:
    """Return the parameters (10,) of each link of the document."""
    links = {}
    for name, entry in entries_of(document, "links", list(document["links"])).items():
        parts = [numbers_of(document, entry, label, size) for label, size in (("mass_moment", 3), ("inertia", 6))]
        links[str(name)] = np.concatenate([[number_of(entry, "mass")], *parts])
    return links


def link_section(document: Mapping[str, Any], links: Mapping[str, NDArray], robot: RobotModel | None) -> Section:
    """Return the section with the table of the links, and the values of the URDF if a robot is given."""
    bodies = {name: Body.of(parameters) for name, parameters in links.items()}
    impossible = [name for name, body in bodies.items() if not body.possible]
    texts = [_body_texts(body) for body in bodies.values()]
    urdf_texts: list[Sequence[str]] = [()] * len(texts)
    if robot is not None:
        nominal = dict(zip(robot.link_names, robot.parameters.reshape(-1, PARAMETERS_PER_LINK), strict=True))
        urdf_texts = [[f"URDF {text}" for text in _body_texts(Body.of(nominal[name]))] for name in links]
    cells = [
        [Cell(text, urdf[k : k + 1]) for k, text in enumerate(own)] for own, urdf in zip(texts, urdf_texts, strict=True)
    ]
    mass, centre, inertia = zip(*cells, strict=True)
    what = "The parameters of identified.urdf. "
    if impossible:
        what = f"No real body has the parameters of {listed(impossible)}. "
    return Section(
        "Links",
        [
            f"{what}Centre of mass in the link frame, principal inertia about the centre of mass. Torque determines "
            "some parameters individually, and the others only in linear combinations. Their division among the links "
            "is physically consistent and close to the URDF. It does not affect the torque, so single values may "
            "differ from the true ones.",
            Table.by_column(
                "Link",
                list(links),
                {
                    ("Mass", "kg"): mass,
                    ("Centre of mass", "x, y, z in mm"): centre,
                    ("Principal inertia", "kg m²"): inertia,
                    "Determined individually": [_determined_alone(document["links"][name]) for name in links],
                },
                words=[4],
            ),
        ],
    )


def _body_texts(body: Body) -> tuple[str, str, str]:
    """Return mass, centre of mass and principal inertia as text."""
    centre = ", ".join(map(brief, 1000 * body.centre))
    return significant(body.mass), centre, ", ".join(significant(value, 2) for value in body.inertia)


def _determined_alone(entry: Mapping[str, Any]) -> str:
    """Return the names of the link parameters with their own standard error."""
    errors = entry.get("std") or {}
    parts = [[errors.get("mass")], errors.get("mass_moment") or [None] * 3, errors.get("inertia") or [None] * 6]
    flat = [error for part in parts for error in part]
    return ", ".join(name for name, error in zip(LINK_PARAMETERS, flat, strict=True) if error is not None)


def draw_prior_weights(scores: Mapping[float, float], chosen: float) -> str:
    """Draw the cross-validated error over the noise by weight of the URDF as SVG; the marker at `chosen` is filled."""
    weights = np.array(sorted(scores))
    error = np.exp([scores[weight] / 2 for weight in weights])
    is_chosen = weights == chosen

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        line: dict[str, Any] = {
            "color": LIGHT["identified"],
            "linewidth": 1.4,
            "marker": "o",
            "markersize": 5,
            "mfc": LIGHT["paper"],
        }
        axes.plot(weights, error, **line)
        axes.plot(weights[is_chosen], error[is_chosen], "o", markersize=9, color=LIGHT["identified"])
        label_axes(axes, "weight of the URDF", "error ÷ noise")
        axes.set_xscale("log")
        axes.set_xticks(weights[::2] if len(weights) > 5 else weights)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")

    return svg("Cross-validated error by weight of the URDF", PANEL_WIDTH, 180, draw)
