"""Base parameters of one link with their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.drawing import svg
from dynid_ros.report.formats import as_fine_as
from dynid_ros.report.links.base_table import BaseRow
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.row_plots import WIDTH, interval_bars, row_axes, rows_height

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
                else "not decided",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=10,
                color=LIGHT["wrong"] if row.wrong else LIGHT["muted"],
            )
        axes.set_xlim(-REACH, REACH)
        axes.set_xticks([0])

    return svg(f"Base parameters of {link}", WIDTH, rows_height(len(rows)) - 14, draw)


def _scale(fields: NDArray) -> NDArray:
    """(rows,) largest number in each."""
    value, half, urdf, exported, truth = np.nan_to_num(fields).T
    largest = np.max(np.abs([value - half, value + half, urdf, exported, truth]), axis=0)
    return np.where(largest > 0, largest, 1.0)
