"""Identified gravity parameters with their 95 % intervals, against the truth where it is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.report.drawing import LIGHT, svg
from dynid_ros.report.formats import as_fine_as, joint_units, plus_minus, significant, with_unit
from dynid_ros.report.page import Beside, Cell, Facts, Legend, Plot, Section, Table, Text
from dynid_ros.report.plots import ROW_WIDTH, interval_bars, row_axes, rows_height


@dataclass(frozen=True)
class Moments:
    """All gravity parameters that were identified, base to tip.

    Attributes:
        names: joint and "n_x", "n_y" or "mass" of each.
        joint: (k,) number of its joint.
        units: of each.
        value, half: (k,) with the half width of the 95 % interval.
        truth: (k,) NaN where it is not known.
        weight: (k,) largest torque that one unit makes, over the joint's largest measured torque.
    """

    names: list[tuple[str, str]]
    joint: NDArray
    units: list[str]
    value: NDArray
    half: NDArray
    truth: NDArray
    weight: NDArray

    @classmethod
    def of(cls, model: IdentifiedGravity, samples: Samples, truth: NDArray | None = None) -> Moments:
        """Return those of a model; `truth` (k,) goes with its moments."""
        gravity, robot = model.gravity, model.robot
        known = [
            (c, i)
            for i, joint in enumerate(robot.joint_names)
            if joint not in model.reasons and joint not in model.torque_free
            for c in range(len(model.moments))[gravity.columns(i)]
        ]
        column, joint = np.array(known, dtype=int).reshape(-1, 2).T
        largest = np.abs(samples.torque).max(axis=0)
        with np.errstate(divide="ignore"):
            weight = np.where(largest > 0, np.linalg.norm(robot.gravity) / largest, np.nan)
        return cls(
            [(robot.joint_names[i], gravity.names[c].split()[0]) for c, i in known],
            joint,
            [joint_units(robot)[i].moment for i in joint],
            model.moments[column],
            np.asarray(half_width(model.std, model.dof))[column],
            np.full(len(column), np.nan) if truth is None else np.asarray(truth)[column],
            weight[joint],
        )

    @property
    def covered(self) -> NDArray:
        """(k,) whether the interval holds the truth."""
        return np.abs(self.value - self.truth) <= self.half

    def plots(self) -> list[Plot]:
        """Values, a plot per unit, and their intervals magnified."""
        found = [self._values(unit) for unit in dict.fromkeys(self.units)]
        return [Plot(picture) for picture in (*found, *([self._intervals()] if self.names else []))]

    def cells(self, joint: int) -> list[Cell]:
        """Two cells of a joint, empty where it has one parameter or none."""
        found = []
        for k in np.flatnonzero(self.joint == joint):
            text = plus_minus(self.value[k], self.half[k])
            text = f"mass {text} {self.units[k]}" if self.names[k][1] == "mass" else text
            true = f"true {as_fine_as(self.truth[k], self.half[k])}" if np.isfinite(self.truth[k]) else ""
            found.append(Cell(text, truth=true))
        return [*found, *[Cell("")] * (2 - len(found))]

    def _values(self, unit: str) -> str:
        """A row per parameter: its value, its interval, and the truth, where it is known, as a ring."""
        own = np.flatnonzero([other == unit for other in self.units])
        names = [self.names[k] for k in own]

        def draw(figure: Figure) -> None:
            axes = row_axes(figure, names)
            axes.axvline(0, color=LIGHT["line"], linewidth=1)
            axes.plot(self.truth[own], np.arange(len(own)), "o", markersize=9, mfc="none", mec=LIGHT["truth"], mew=1.4)
            interval_bars(axes, self.value[own], self.half[own])
            axes.set_xlabel(f"identified value ({unit})")

        return svg(f"Identified gravity parameters in {unit}", ROW_WIDTH, rows_height(len(names)), draw)

    def _intervals(self) -> str:
        """The intervals in per cent of the joint's largest torque, which makes those of small joints visible."""
        known = np.isfinite(self.truth).all()
        error = self.weight * (self.value - self.truth) if known else np.zeros(len(self.names))
        what = f"{'identified − true' if known else '95 % interval'} (% of largest torque)"

        def draw(figure: Figure) -> None:
            axes = row_axes(figure, self.names)
            axes.axvline(0, color=LIGHT["truth" if known else "line"], linewidth=1.2)
            interval_bars(axes, 100 * error, 100 * self.weight * self.half)
            axes.set_xlabel(what)

        return svg(f"Gravity parameters, {what}", ROW_WIDTH, rows_height(len(self.names)), draw)


def moment_section(model: IdentifiedGravity, moments: Moments) -> Section:
    """Return plots and table, and why some are not identified."""
    viscous = bool(np.isfinite(model.viscous).any())
    rows = []
    for i, (joint, unit) in enumerate(zip(model.robot.joint_names, joint_units(model.robot), strict=True)):
        absent = "gravity never loads it" if joint in model.torque_free else "not identified" * (joint in model.reasons)
        friction = [(value, unit.effort) for value in model.moving[i]] + [(model.viscous[i], unit.viscous)] * viscous
        own = [with_unit(*one) if unit.effort == "N" else significant(one[0]) for one in friction]
        rows.append([joint, *([absent, ""] if absent else moments.cells(i)), *own])
    columns = [("n x", "kg m"), ("n y", "kg m"), ("Moving up", "N m"), ("Moving down", "N m")]
    known = np.isfinite(moments.truth)
    legend = {"interval": "identified, with 95 % interval"}
    if known.any():
        legend["ring truth"] = f"true; {np.count_nonzero(moments.covered)} of {len(known)} intervals hold it"
    return Section(
        "Identified gravity parameters",
        [
            "The gravity torque of the arm rests on two numbers for each revolute joint, n x and n y: the mass that "
            "the joint carries times the distance of its centre from the joint's axis, along x and y of the joint's "
            "frame. A prismatic joint has one, the mass that it carries. Intervals are those of Student's t: of many "
            "repetitions of the experiment, 95 % would find an interval that holds the true value. The last plot "
            "magnifies them: a parameter counts by the torque that it makes, in per cent of the largest torque "
            "measured at its joint.",
            *([Legend(legend), Beside(moments.plots())] if moments.names else []),
            Table(["Joint", *columns, *[("Viscous friction", "N m s/rad")] * viscous], rows),
            "Moving up and down: what the sensor reads besides gravity while the joint moves slowly in its positive, "
            "and in its negative, direction. It is dry friction, and what the sensor reads without load: friction that "
            "differs by direction and an offset look the same.",
            *_not_identified(model),
        ],
    )


def _not_identified(model: IdentifiedGravity) -> list:
    if not model.reasons:
        return []
    return [
        Text("Not identified", "heading"),
        "The gravity parameters of these joints cannot be identified from the data. No number is given for them, and "
        "no torque where it rests on them.",
        Facts(dict(model.reasons)),
    ]
