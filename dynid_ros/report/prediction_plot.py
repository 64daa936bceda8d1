"""A measured signal over time, what a model makes of it, and the error below."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, label_axes

HEIGHT, ERRORS = 250, 62
LONGEST = 360
"""Samples in a plot over time: more of them would be narrower than what they show."""


def middle(rows: slice) -> slice:
    """The middle of a stretch of rows, no longer than can be shown."""
    spare = max(rows.stop - rows.start - LONGEST, 0) // 2
    return slice(rows.start + spare, min(rows.start + spare + LONGEST, rows.stop))


def prediction_plot(
    label: str,
    quantity: str,
    across: NDArray,
    measured: NDArray,
    predicted: NDArray,
    *,
    urdf: NDArray | None = None,
    rests: bool = False,
) -> str:
    """SVG of two signals.

    Args:
        label: of the picture.
        quantity: with its unit, as in "torque (N m)".
        across: (N,) s, or numbers of rests.
        measured: (N,).
        predicted: (N,) by what was identified.
        urdf: (N,) by the URDF, to compare with.
        rests: the signals are those of rests, each by itself: points, not lines.

    """
    large: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.0} if rests else {}
    small = large | {"markersize": 2.5}

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + ERRORS)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - ERRORS)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        if urdf is not None:
            above.plot(across, urdf, color=LIGHT["urdf"], linewidth=1.6, **small)
            below.plot(across, measured - urdf, color=LIGHT["urdf"], linewidth=1.4, **small)
        above.plot(across, measured, color=LIGHT["measured"], linewidth=2.0, **large)
        above.plot(across, predicted, color=LIGHT["identified"], linewidth=1.1, **small)
        below.plot(across, measured - predicted, color=LIGHT["identified"], linewidth=1.0, **small)
        label_axes(above, "", quantity)
        above.tick_params(axis="x", length=0, labelbottom=False)
        label_axes(below, "rest" if rests else "time (s)", "error")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            if rests:
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            else:
                axes.margins(x=0)

    return svg(label, WIDTH, HEIGHT, draw)
