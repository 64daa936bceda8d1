"""Torque, or wrench, of a load over time: measured, and by the identified load, with the error below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.report.drawing import thinned
from dynid_ros.report.load.evidence import LoadEvidence
from dynid_ros.report.panel import Panel
from dynid_ros.report.prediction_plot import middle, prediction_plot


def shown_rows(evidence: LoadEvidence, static: bool) -> NDArray:
    """Rows that are shown: some of all rests, or the middle of the longest stretch of motion."""
    if static:
        return thinned(len(evidence.time))
    rows = middle(evidence.longest)
    return np.arange(rows.start, rows.stop)


def load_panels(
    channels: Sequence[str], units: Sequence[str], evidence: LoadEvidence, *, static: bool
) -> Iterator[Panel]:
    """A panel per channel; its RMS is that of all equations."""
    rows = shown_rows(evidence, static)
    error = evidence.measured - evidence.load
    for c, (name, unit) in enumerate(zip(channels, units, strict=True)):
        picture = prediction_plot(
            f"{name}: of the load, measured and identified",
            f"{'torque' if 'm' in unit else 'force'} ({unit})",
            rows + 1 if static else evidence.time[rows],
            evidence.measured[rows, c],
            evidence.load[rows, c],
            rests=static,
        )
        yield Panel(name, "", picture, float(np.sqrt(np.mean(error[:, c] ** 2))), unit)
