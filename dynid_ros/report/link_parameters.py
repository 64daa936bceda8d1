"""Base parameters with their intervals, what the URDF says of them, and whether it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model.base_parameters import COMBINED, IDENTIFIABLE
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, Body
from dynid_ros.model.parameter_words import LINK_PARAMETERS, describe_parameters
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg
from dynid_ros.report.formats import as_fine_as, brief, counted, fixed, listed, percent, plus_minus, significant
from dynid_ros.report.page import Bullets, Cell, Facts, Figures, Folded, Legend, Plot, Section, Table, Text
from dynid_ros.report.plots import ROW_WIDTH, interval_bars, row_axes, rows_height


@dataclass(frozen=True)
class BaseRow:
    """One base parameter.

    Attributes:
        link: its number, from 0.
        name: parameter that leads the expression.
        expression: the combination.
        unit: of all numbers here.
        value, half: estimate by the data alone and half width of its 95 % interval; NaN if undetermined.
        urdf: NaN if the combination has a rotor or friction in it, of which the URDF says nothing.
        exported: of the identified model, which is physically consistent and regularised towards the URDF.
        truth: NaN if not known.
    """

    link: int
    name: str
    expression: str
    unit: str
    value: float
    half: float
    urdf: float
    exported: float
    truth: float

    @property
    def label(self) -> str:
        """Name, with dots if there is more in the combination."""
        return self.name if self.name == self.expression else f"{self.name} + …"

    @property
    def decided(self) -> bool:
        """Whether the data determine it."""
        return bool(np.isfinite(self.value))

    @property
    def known(self) -> bool:
        """Whether both the interval and the truth are known."""
        return self.decided and bool(np.isfinite(self.truth))

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return self._holds(self.truth)

    @property
    def compared(self) -> bool:
        """Whether the URDF can be compared with the data."""
        return self.decided and bool(np.isfinite(self.urdf))

    @property
    def wrong(self) -> bool:
        """Whether the URDF is wrong: the interval holds the value of the identified model, and not the URDF's."""
        return self.compared and not self._holds(self.urdf) and self._holds(self.exported)

    @property
    def doubtful(self) -> bool:
        """Whether the interval holds neither: then it is the interval that is too narrow or in the wrong place."""
        return self.compared and not self._holds(self.urdf) and not self._holds(self.exported)

    def cells(self, *, truth: bool) -> list[str]:
        """Of the table."""
        numbers = [self.exported, self.urdf, *[self.truth] * truth]
        return [
            self.name,
            f"{plus_minus(self.value, self.half)} {self.unit}" if self.decided else "not determined",
            *(as_fine_as(number, self.half) for number in numbers),
            "URDF wrong" if self.wrong else "in doubt" if self.doubtful else "",
            self.expression,
        ]

    def _holds(self, value: float) -> bool:
        return bool(abs(self.value - value) <= self.half)


def base_rows(result: LinkResult, truth: NDArray | None = None) -> list[BaseRow]:
    """Base parameters of the links, base to tip; those of friction alone are left out.

    Args:
        result: what was identified.
        truth: (10 n,) true parameters of the links.
    """
    base, estimate, size = result.base, result.base_parameters, result.parameters.size
    low, high = estimate.confidence_intervals().T
    units = describe_parameters(result.robot, estimate.names)["unit"]
    exported = base.project(np.concatenate([result.parameters, result.model.coefficients]))
    mixed = np.abs(base.combinations[:, size:]).max(axis=1, initial=0.0) > 0
    true = np.full(base.rank, np.nan)
    if truth is not None:
        true = np.where(mixed, np.nan, base.combinations[:, :size] @ truth)
    return [
        BaseRow(
            link=int(column) // PARAMETERS_PER_LINK,
            name=estimate.names[row],
            expression=estimate.expressions[row],
            unit=units[row],
            value=float(estimate.values[row]),
            half=float(high[row] - low[row]) / 2,
            urdf=float(estimate.nominal[row]),
            exported=float(exported[row]),
            truth=float(true[row]),
        )
        for row, column in enumerate(base.columns)
        if column < size
    ]


def weak_table(result: LinkResult) -> Table:
    """Return the parameters, friction included, with a relative standard error above the limit, the weakest first."""
    estimate = result.base_parameters
    errors = estimate.standard_errors
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = estimate.covariance / np.outer(errors, errors)
    correlation[~np.isfinite(correlation)] = 0.0
    np.fill_diagonal(correlation, 0.0)
    relative = estimate.relative_standard_errors
    weak = sorted(np.flatnonzero(np.nan_to_num(relative) > MAX_RELATIVE_ERROR), key=lambda row: -relative[row])
    other = np.abs(correlation).argmax(axis=1)
    return Table(
        ("Parameter", ("Standard error", "of the value"), "Goes along with", "Correlation"),
        [
            (names[row], percent(relative[row]), names[other[row]], fixed(correlation[row, other[row]], 2))
            for names in (estimate.names,)
            for row in weak
        ],
    )


# Base parameters of one link with their 95 % intervals.


NUMBERS = 112
"""Width of the numbers at the right."""
REACH = 1.12


def base_plot(link: str, rows: Sequence[BaseRow]) -> str:
    """A row per parameter on a scale of its own, from minus to plus the largest number in it; values at the right."""
    fields = np.array([[row.value, row.half, row.urdf, row.exported, row.truth] for row in rows])
    value, half, urdf, exported, truth = (fields / _scale(fields)[:, None]).T
    places = np.arange(len(rows))

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, [(row.label,) for row in rows], right=NUMBERS)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        for (name, marker, size, width), number in (
            (("truth", "o", 10, 1.4), truth),
            (("identified", "|", 11, 1.4), exported),
        ):
            axes.plot(number, places, marker, markersize=size, mfc="none", mec=LIGHT[name], mew=width)
        interval_bars(axes, value, half)
        doubtful = np.array([row.doubtful for row in rows])
        axes.plot(
            value[doubtful],
            places[doubtful],
            "o",
            markersize=4.5,
            mfc=LIGHT["paper"],
            mec=LIGHT["identified"],
            mew=1.1,
            zorder=3,
        )
        wrong = np.array([row.wrong for row in rows])
        for color, chosen in (("urdf", ~wrong), ("wrong", wrong)):
            axes.plot(
                urdf[chosen],
                places[chosen],
                "D",
                markersize=6.5,
                mfc=LIGHT[color],
                mec=LIGHT["paper"],
                mew=0.8,
                zorder=3,
            )
        for place, row in enumerate(rows):
            axes.text(
                1.03,
                place,
                plus_minus(row.value, row.half) if row.decided else "not determined",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=10,
                color=LIGHT["wrong"] if row.wrong else LIGHT["muted"],
            )
        axes.set_xlim(-REACH, REACH)
        axes.set_xticks([0])

    return svg(f"Base parameters of {link}", ROW_WIDTH, rows_height(len(rows)) - 14, draw)


def base_section(rows: Sequence[BaseRow], links: Sequence[str], *, possible: bool) -> Section:
    """Return plots by link and a table; `possible` is whether all links of the model are physically consistent."""
    known = [row for row in rows if row.known]
    legend = {"interval": "by the data alone"}
    legend |= {"doubtful": "the same, in doubt"} if any(row.doubtful for row in rows) else {}
    legend |= {
        "tick": "identified model, as exported",
        "diamond urdf": "URDF",
        "diamond wrong": "the URDF is wrong here",
    }
    if known:
        legend["ring truth"] = f"true; {sum(row.covered for row in known)} of {len(known)} intervals hold it"
    doubt = (
        "The identified model is physically consistent: where the interval holds neither, the estimate itself is in "
        "doubt, too narrow or shifted by friction that the model lacks."
        if possible
        else "The identified model has links that are not physically consistent, so that it is not known which "
        "intervals are in doubt; with the estimator “consistent” it would be."
    )
    own = {link: [row for row in rows if row.link == k] for k, link in enumerate(links)}
    return Section(
        "Base parameters",
        [
            "Torques determine only these combinations of the links' masses, mass moments and inertias. Estimates are "
            "by the data alone, with 95 % intervals. Each row has its own scale; the line is zero. Mass moments (mcx "
            "…) are in kg m, inertias (Ixx …) in kg m², both about the link's frame. “+ …” stands for parameters of "
            "links further out that torques do not separate.",
            Legend(legend),
            Figures([Plot(base_plot(link, shown), link) for link, shown in own.items() if shown]),
            "The URDF is called wrong where the interval holds the value of the identified model and not the URDF's. "
            f"{doubt} Of intervals that are right, one in twenty misses by chance.",
            Table(
                ("Parameter", "Data alone", "Identified model", "URDF", *["True"] * bool(known), "", "Combination"),
                [row.cells(truth=bool(known)) for row in rows],
                words=[5 + bool(known)],
                folded=f"All {counted(len(rows), 'base parameter')} in numbers",
            ),
        ],
    )


def _scale(fields: NDArray) -> NDArray:
    """(rows,) largest number in each."""
    value, half, urdf, exported, truth = np.nan_to_num(fields).T
    largest = np.max(np.abs([value - half, value + half, urdf, exported, truth]), axis=0)
    return np.where(largest > 0, largest, 1.0)


# The links as they are exported, and how much of each is by the data.


DECIDED, IN_COMBINATION, OPEN = "identified", "in combination", "undetermined by this motion"
AS_URDF, ADJUSTED = "as in the URDF", "not identifiable, moved with the rest"
UNMOVED = 1e-3
"""Relative change of a parameter that counts as none."""


@dataclass(frozen=True)
class LinkRow:
    """A link as identified and as in the URDF; `sources` says of mass, centre and inertia where they come from."""

    name: str
    identified: Body
    urdf: Body
    sources: tuple[str, str, str]

    @property
    def cells(self) -> list[str | Cell]:
        """Of the table."""
        own, urdf = ([significant(body.mass), *body_cells(body)] for body in (self.identified, self.urdf))
        own[0] += "" if self.identified.possible else " – impossible"
        return [
            self.name,
            *(
                Cell(text, (f"URDF {other}", source))
                for text, other, source in zip(own, urdf, self.sources, strict=True)
            ),
        ]


LINK_COLUMNS = ("Link", ("Mass", "kg"), ("Centre of mass", "x, y, z in mm"), ("Principal inertia", "kg m²"))


def body_cells(body: Body) -> tuple[str, str]:
    """Return the centre of mass and the principal inertia as text, units as in `LINK_COLUMNS`."""
    centre = ", ".join(map(brief, 1000 * body.centre))
    return centre, ", ".join(significant(value, 2) for value in body.inertia)


def link_rows(result: LinkResult) -> list[LinkRow]:
    """A row per link, base to tip."""
    origins = _origins(result)
    rows = []
    for k, name in enumerate(result.robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        own = origins[block]
        sources = (own[0], _grouped("xyz", own[1:4]), _grouped([label[1:] for label in LINK_PARAMETERS[4:]], own[4:]))
        rows.append(LinkRow(name, Body.of(result.parameters[block]), Body.of(result.robot.parameters[block]), sources))
    return rows


def _origins(result: LinkResult) -> list[str]:
    """Return where each of the 10 n parameters comes from."""
    words = {IDENTIFIABLE: DECIDED, COMBINED: IN_COMBINATION}
    kept = np.isclose(result.parameters, result.robot.parameters, rtol=UNMOVED, atol=1e-9)
    found = [
        words.get(category, AS_URDF if same else ADJUSTED)
        for category, same in zip(result.base.categories, kept, strict=False)
    ]
    for row, column in enumerate(result.base.columns):
        if column < len(found) and not np.isfinite(result.base_parameters.values[row]):
            found[column] = OPEN
    return found


def _grouped(labels: Sequence[str], origins: Sequence[str]) -> str:
    """As in "x, y identified; z in combination", or one word for all."""
    if len(set(origins)) == 1:
        return origins[0]
    parts = []
    for origin in (DECIDED, IN_COMBINATION, OPEN, AS_URDF, ADJUSTED):
        own = [label for label, other in zip(labels, origins, strict=True) if other == origin]
        if own:
            parts.append(f"{listed(own)} {origin}")
    return "; ".join(parts)


def link_section(result: LinkResult) -> Section:
    """Return the table of links: as identified, and as in the URDF."""
    rows = link_rows(result)
    possible = all(row.identified.possible for row in rows)
    what = (
        "What identified.urdf holds" if possible else "What was identified; no URDF can hold links that are impossible"
    )
    return Section(
        "Links as exported" if possible else "Links",
        [
            f"{what}, and the URDF's value below it. Centre of mass in the link's frame; principal inertia about the "
            "centre of mass. “Identified” is what torques determine by itself; what they determine only in "
            "combination is divided among the links by what is physically consistent and near to the URDF, so that "
            "the torques are right and the single number need not be.",
            Table(LINK_COLUMNS, [row.cells for row in rows]),
        ],
    )


def hidden_section(result: LinkResult) -> Section:
    """Return the parameters of each link without an effect on any torque, and the remarks."""
    hidden = {}
    for k, link in enumerate(result.robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        own = [
            name
            for name, category in zip(result.base.names[block], result.base.categories[block], strict=True)
            if category not in (IDENTIFIABLE, COMBINED)
        ]
        if own:
            hidden[link] = "all ten parameters" if len(own) == PARAMETERS_PER_LINK else listed(own)
    none = Text("Every parameter has an effect on some torque, by itself or in combination.")
    intro = (
        "No torque depends on these, whatever the motion. What is exported for them is the URDF's, or goes along with "
        "what was identified of the same link; the table above says which."
    )
    return Section(
        "What is not identified",
        [*([intro, Facts(hidden)] if hidden else [none]), Folded("Choices and remarks", [Bullets(result.remarks)])],
    )


# How the weight of the URDF was chosen.


def weight_plot(scores: Mapping[float, float], chosen: float) -> str:
    """Prediction error on samples left out, over noise, by weight; the chosen one is filled."""
    weights = np.array(sorted(scores))
    error = np.exp([scores[weight] / 2 for weight in weights])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.plot(
            weights, error, color=LIGHT["identified"], linewidth=1.4, marker="o", markersize=5, mfc=LIGHT["paper"]
        )
        own = weights == chosen
        axes.plot(weights[own], error[own], "o", markersize=9, color=LIGHT["identified"])
        label_axes(axes, "weight of the URDF", "error ÷ noise")
        axes.set_xscale("log")
        axes.set_xticks(weights[::2] if len(weights) > 5 else weights)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")

    return svg("Prediction error by weight of the URDF", WIDTH, 180, draw)
