"""How the weight of the URDF was chosen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, label_axes


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
