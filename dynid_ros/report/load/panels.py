"""Torque, or wrench, of a load over time: measured, and by the identified load, with the error below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg, thinned
from dynid_ros.report.load.evidence import LoadEvidence
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, Panel, label_axes

HEIGHT, ERRORS = 250, 62
LONGEST = 360
"""Samples in a plot: more of them would be narrower than what they show."""


def shown_rows(evidence: LoadEvidence, static: bool) -> NDArray:
    """Rows that are shown: some of all rests, or the middle of the longest stretch of motion."""
    if static:
        return thinned(len(evidence.time))
    rows = evidence.longest
    spare = max(rows.stop - rows.start - LONGEST, 0) // 2
    return np.arange(rows.start + spare, min(rows.start + spare + LONGEST, rows.stop))


def load_panels(
    channels: Sequence[str], units: Sequence[str], evidence: LoadEvidence, *, static: bool
) -> Iterator[Panel]:
    """A panel per channel; its RMS is that of all equations."""
    rows = shown_rows(evidence, static)
    error = evidence.measured - evidence.load
    for c, (name, unit) in enumerate(zip(channels, units, strict=True)):
        rms = float(np.sqrt(np.mean(error[:, c] ** 2)))
        across = rows + 1 if static else evidence.time[rows]
        shown = np.stack([across, evidence.measured[rows, c], evidence.load[rows, c]])
        yield Panel(name, "", _picture(shown, name, unit, static), rms, unit)


def _picture(shown: NDArray, name: str, unit: str, static: bool) -> str:
    across, measured, load = shown
    line = {"linestyle": "none", "marker": "o", "markersize": 4.0} if static else {"linestyle": "-"}

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + ERRORS)
        above.plot(across, measured, color=LIGHT["measured"], linewidth=2.0, **line)
        above.plot(across, load, color=LIGHT["identified"], linewidth=1.1, **line | {"markersize": 2.5})
        label_axes(above, "", f"{'torque' if 'm' in unit else 'force'} ({unit})")
        above.tick_params(axis="x", length=0, labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - ERRORS)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        below.plot(across, measured - load, color=LIGHT["identified"], linewidth=1.0, **line | {"markersize": 2.5})
        label_axes(below, "rest" if static else "time (s)", "error")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            if static:
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            else:
                axes.margins(x=0)

    return svg(f"{name}: of the load, measured and identified", WIDTH, HEIGHT, draw)
