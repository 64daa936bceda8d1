"""The identified numbers, joint by joint."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.report.demonstration.demonstration import relative
from dynid_ros.report.gravity.moment_plots import interval_plot, value_plot
from dynid_ros.report.units import JointUnits, joint_units


@dataclass(frozen=True)
class Moment:
    """One gravity parameter with the half width of its 95 % interval.

    Attributes:
        label: "n_x", "n_y" or "mass".
        value, half: kg m, or kg.
        truth: likewise, NaN where it is not known.
        weight: largest torque that one unit of it makes, over the joint's largest measured torque.

    """

    label: str
    value: float
    half: float
    truth: float
    weight: float

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return abs(self.value - self.truth) <= self.half


@dataclass(frozen=True)
class JointRow:
    """What was identified of a joint; `absent` says why it has no moments.

    Torques besides gravity are of motion in the positive and in the negative direction.
    """

    joint: str
    unit: JointUnits
    moments: list[Moment]
    positive: float
    negative: float
    viscous: float
    absent: str


def joint_rows(model: IdentifiedGravity, samples: Samples, truth: NDArray | None) -> list[JointRow]:
    """One row per joint, base to tip; `truth` (k,) goes with the model's moments."""
    half = model.half_widths
    truth = np.full(len(half), np.nan) if truth is None else truth
    largest = np.abs(samples.torque).max(axis=0)
    weight = relative(np.full(len(largest), np.linalg.norm(model.robot.gravity)), largest)
    rows = []
    for i, joint in enumerate(model.robot.joint_names):
        absent = "gravity never loads it" if joint in model.torque_free else "not identified" * (joint in model.reasons)
        columns = () if absent else range(len(half))[model.gravity.columns(i)]
        moments = [
            Moment(model.gravity.names[c].split()[0], model.moments[c], half[c], truth[c], weight[i]) for c in columns
        ]
        positive, negative = model.moving[i]
        unit = joint_units(model.robot)[i]
        rows.append(JointRow(joint, unit, moments, positive, negative, model.viscous[i], absent))
    return rows


def moment_figures(rows: list[JointRow]) -> list[str]:
    """Values of all moments, a figure per unit, and their intervals magnified."""
    figures = []
    for unit in dict.fromkeys(row.unit.moment for row in rows):
        names, moments = _listed([row for row in rows if row.unit.moment == unit])
        if moments:
            value, half, truth = (_column(moments, field) for field in ("value", "half", "truth"))
            figures.append(value_plot(names, value, half, truth, unit))
    names, moments = _listed(rows)
    if moments:
        value, half, truth, weight = (_column(moments, field) for field in ("value", "half", "truth", "weight"))
        known = np.isfinite(truth).all()
        error = weight * (value - truth) if known else np.zeros(len(moments))
        what, zero = ("identified − true", "truth") if known else ("95 % interval", "line")
        figures.append(interval_plot(names, error, weight * half, f"{what} (% of largest torque)", zero))
    return figures


def _listed(rows: list[JointRow]) -> tuple[list[tuple[str, str]], list[Moment]]:
    pairs = [(row.joint, moment) for row in rows for moment in row.moments]
    return [(joint, moment.label) for joint, moment in pairs], [moment for _, moment in pairs]


def _column(moments: list[Moment], field: str) -> NDArray:
    return np.array([getattr(moment, field) for moment in moments])
