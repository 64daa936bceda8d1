"""Display of results and data: a line, HTML in a notebook, a pandas table, a plot, all from one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from dynid_ros.errors import DynidError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_DECIMALS = 7
MAX_NOTEBOOK_ROWS = 12
"""Maximum number of table rows in a notebook."""
ROW = 0.25
PANEL = 2.2
WIDTH = 8.0
LABEL_HEIGHT_IN = 0.9
"""Heights of a parameter and of a panel of a plot, its width, and the height that its labels need, inches."""


class Displayed:
    """Mixin that displays the text of `_line` and the columns of `_table`; a dataclass needs `repr=False`."""

    def _line(self) -> str:
        """Return a description in a few words."""
        raise NotImplementedError

    def _table(self) -> Mapping[str, Any]:
        """Columns of one length by their titles; the first names the rows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._line()}>"

    def _repr_html_(self) -> str:
        table = self._table()
        count = min((len(column) for column in table.values()), default=0)
        rows = zip(*(column[:MAX_NOTEBOOK_ROWS] for column in table.values()), strict=True)
        text = "".join(_row("td", [_text(value) for value in row]) for row in rows)
        more = f"<p>… {count - MAX_NOTEBOOK_ROWS} more rows</p>" if count > MAX_NOTEBOOK_ROWS else ""
        return f"<p>{escape(repr(self))}</p><table>{_row('th', list(table))}{text}</table>{more}"

    def to_frame(self) -> Any:
        """Return the table as a `pandas.DataFrame`; the first column is the index.

        Raises:
            DynidError: pandas is not installed.
        """
        try:
            import pandas  # noqa: PLC0415 - nothing else needs it
        except ImportError as error:
            raise DynidError("to_frame() needs pandas, which is not installed: pip install pandas") from error
        table = self._table()
        return pandas.DataFrame({title: list(column) for title, column in table.items()}).set_index(next(iter(table)))


class Plotted(Displayed):
    """Mixin for results whose table is a time series, or values with intervals."""

    def _series(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the columns over time by quantity and joint; empty where the table has values with intervals."""
        return {}

    def plot(self) -> Figure:
        """Return a matplotlib figure: panels of quantities over time, or of values of one unit with their intervals."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - it takes a second to load, and few plot

        table = self._table()
        axis = next(iter(table))
        quantities = self._series()
        if quantities:
            figure = Figure(figsize=(WIDTH, PANEL * len(quantities) + LABEL_HEIGHT_IN), layout="constrained")
            for place, (quantity, columns) in enumerate(quantities.items(), 1):
                axes = figure.add_subplot(len(quantities), 1, place)
                for joint, column in columns.items():
                    axes.plot(table[axis], column, linewidth=1, label=joint)
                axes.set_ylabel(quantity)
            axes.set_xlabel(f"{axis} [s]")
            axes.legend(fontsize="x-small", ncols=4)
            return figure
        rows = {
            unit: [i for i, own in enumerate(table["unit"]) if own == unit] for unit in dict.fromkeys(table["unit"])
        }
        heights = [ROW * len(of) + LABEL_HEIGHT_IN for of in rows.values()]
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        panels = figure.subplots(len(rows), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (unit, of) in zip(panels, rows.items(), strict=True):
            for place, i in enumerate(of):
                axes.plot([table["low"][i], table["high"][i]], [place, place], color="C0")
                axes.plot([table["value"][i]], [place], "o", color="C0")
            axes.set_yticks(range(len(of)), [f"{table[axis][i]}  {table['of'][i]}".strip() for i in of])
            axes.invert_yaxis()
            axes.set_xlabel(unit)
        return figure


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Return the lines of a table for a terminal, heads first; columns are right-aligned but for those of `left`."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]

    def aligned(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return [aligned(line) for line in lines]


def percent(fraction: float) -> str:
    """Return a fraction in percent with two significant digits, as in 7.7 %."""
    return f"{100 * fraction:.2g} %" if fraction < 1 else f"{100 * fraction:.0f} %"


def as_fine_as(value: float, half_width: float) -> str:
    """Return a value rounded like half of its interval with two significant digits; a dash if it is not finite."""
    if not math.isfinite(value):
        return "–"
    if not (math.isfinite(half_width) and half_width > 0):
        return f"{value:.5g}"
    decimals = min(1 - math.floor(math.log10(half_width)), MAX_DECIMALS)
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def _row(cell: str, texts: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{cell}>{escape(text)}</{cell}>" for text in texts) + "</tr>"


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
