"""Base parameters with their intervals, what the URDF says of them, and whether it is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model.base_parameters import COMBINED, IDENTIFIABLE, LINK_PARAMETERS
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, Body
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg
from dynid_ros.report.formats import as_fine_as, listed
from dynid_ros.report.plots import ROW_WIDTH, interval_bars, row_axes, rows_height


@dataclass(frozen=True)
class BaseRow:
    """One base parameter.

    Attributes:
        link: its number, from 0.
        name: parameter that leads the expression.
        expression: the combination.
        unit: of all numbers here.
        value, half: estimate by the data alone and half width of its 95 % interval; NaN if not determined.
        urdf: NaN if the combination has a rotor or friction in it, of which the URDF says nothing.
        exported: of the identified model, which is physically possible and regularised towards the URDF.
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
            unit=_unit(estimate.names[row]),
            value=float(estimate.values[row]),
            half=float(high[row] - low[row]) / 2,
            urdf=float(estimate.nominal[row]),
            exported=float(exported[row]),
            truth=float(true[row]),
        )
        for row, column in enumerate(base.columns)
        if column < size
    ]


@dataclass(frozen=True)
class WeakRow:
    """A parameter that the data hardly decide, and which other one its error goes along with most."""

    name: str
    relative_error: float
    partner: str
    correlation: float


def weak_rows(result: LinkResult, limit: float) -> Iterator[WeakRow]:
    """Parameters, friction included, whose standard error is above `limit` of their value, the weakest first."""
    estimate = result.base_parameters
    errors = estimate.standard_errors
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = estimate.covariance / np.outer(errors, errors)
    correlation[~np.isfinite(correlation)] = 0.0
    np.fill_diagonal(correlation, 0.0)
    relative = estimate.relative_standard_errors
    for row in sorted(np.flatnonzero(np.nan_to_num(relative) > limit), key=lambda row: -relative[row]):
        other = int(np.abs(correlation[row]).argmax())
        yield WeakRow(estimate.names[row], float(relative[row]), estimate.names[other], float(correlation[row, other]))


def _unit(name: str) -> str:
    return "kg m²" if name.startswith("I") else "kg m" if name.startswith("mc") else "kg"


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
            axes.plot(
                number, places, linestyle="none", marker=marker, markersize=size, mfc="none", mec=LIGHT[name], mew=width
            )
        interval_bars(axes, value, half)
        doubtful = np.array([row.doubtful for row in rows])
        axes.plot(
            value[doubtful],
            places[doubtful],
            linestyle="none",
            marker="o",
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
                linestyle="none",
                marker="D",
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
                f"{as_fine_as(row.value, row.half)} ± {as_fine_as(row.half, row.half)}"
                if row.decided
                else "not determined",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=10,
                color=LIGHT["wrong"] if row.wrong else LIGHT["muted"],
            )
        axes.set_xlim(-REACH, REACH)
        axes.set_xticks([0])

    return svg(f"Base parameters of {link}", ROW_WIDTH, rows_height(len(rows)) - 14, draw)


def _scale(fields: NDArray) -> NDArray:
    """(rows,) largest number in each."""
    value, half, urdf, exported, truth = np.nan_to_num(fields).T
    largest = np.max(np.abs([value - half, value + half, urdf, exported, truth]), axis=0)
    return np.where(largest > 0, largest, 1.0)


# The links as they are exported, and how much of each is by the data.


DECIDED, IN_COMBINATION, OPEN = "decided", "in combination", "left open by this motion"
AS_URDF, ADJUSTED = "as in the URDF", "not shown, moved with the rest"
UNMOVED = 1e-3
"""Relative change of a parameter that counts as none."""


@dataclass(frozen=True)
class LinkRow:
    """A link as identified and as in the URDF; `sources` says of mass, centre and inertia what they rest on."""

    name: str
    identified: Body
    urdf: Body
    sources: tuple[str, str, str]


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
    """What each of the 10 n parameters rests on."""
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
    """As in "x, y decided; z in combination", or one word for all."""
    if len(set(origins)) == 1:
        return origins[0]
    parts = []
    for origin in (DECIDED, IN_COMBINATION, OPEN, AS_URDF, ADJUSTED):
        own = [label for label, other in zip(labels, origins, strict=True) if other == origin]
        if own:
            parts.append(f"{listed(own)} {origin}")
    return "; ".join(parts)


@dataclass(frozen=True)
class HiddenRow:
    """Parameters of one link without an effect on any torque."""

    link: str
    names: str


def hidden_rows(result: LinkResult) -> list[HiddenRow]:
    """Links with such parameters, base to tip."""
    rows = []
    for k, link in enumerate(result.robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        own = [
            name
            for name, category in zip(result.base.names[block], result.base.categories[block], strict=True)
            if category not in (IDENTIFIABLE, COMBINED)
        ]
        if own:
            rows.append(HiddenRow(link, "all ten parameters" if len(own) == PARAMETERS_PER_LINK else listed(own)))
    return rows


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
        axes.plot(weights[own], error[own], linestyle="none", marker="o", markersize=9, color=LIGHT["identified"])
        label_axes(axes, "weight of the URDF", "error ÷ noise")
        axes.set_xscale("log")
        axes.set_xticks(weights[::2] if len(weights) > 5 else weights)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")

    return svg("Prediction error by weight of the URDF", WIDTH, 180, draw)
