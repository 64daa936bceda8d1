"""A plot of one joint among those of the others."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

WIDTH = 320


@dataclass(frozen=True)
class Panel:
    """One panel of the report.

    Attributes:
        joint: its name.
        note: what tells it from other panels of the joint.
        picture: SVG.
        rms: of measured less predicted torque; NaN without a prediction.
        unit: of `rms`.

    """

    joint: str
    note: str
    picture: str
    rms: float
    unit: str


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Labels and few ticks, the same place in all panels."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 3, 4.5, 6, 9, 10] if "°" in x else None))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_label_coords(-44 / (WIDTH - 60), 0.5)
