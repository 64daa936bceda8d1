"""Errors before and after, joint by joint."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.drawing import LIGHT, svg
from dynid_ros.report.plots import ROW_WIDTH, row_axes, rows_height


def before_after_plot(names: Sequence[str], before: NDArray, after: NDArray, label: str) -> str:
    """SVG of two sizes (rows,) per joint, orange before, blue after; `label` names them and their unit."""

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, [(name,) for name in names])
        rows = np.arange(len(names))
        axes.barh(rows - 0.2, before, height=0.36, color=LIGHT["uncompensated"])
        axes.barh(rows + 0.2, after, height=0.36, color=LIGHT["identified"])
        axes.set_xlim(0, 1.05 * max(np.max(before), np.max(after)))
        axes.set_xlabel(label)

    return svg(label, ROW_WIDTH, rows_height(len(names)), draw)
