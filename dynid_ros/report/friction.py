"""Friction of each joint in the report on links: its terms with their errors, and its curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.identified.friction import dry_torques
from dynid_ros.model.friction_terms import COUPLING_TERMS, TERM_KINDS, JointFriction, acts_at_standstill
from dynid_ros.report.drawing import LIGHT, plot_area, svg, thinned
from dynid_ros.report.formats import MISSING, JointUnits, joint_units, plus_minus, significant
from dynid_ros.report.link_quality import TorqueComparison
from dynid_ros.report.page import Cell, Figures, Plot, Section, Table

FAMILIES = {"dry": "Dry friction and offset", **{family: kind.label for family, kind in TERM_KINDS.items()}}
SIDES = {"positive": "+", "negative": "−"}
WIDTH, HEIGHT = 210, 160


@dataclass(frozen=True)
class FrictionCoefficient:
    """One coefficient.

    Attributes:
        family: key of `FAMILIES`.
        side: "+" or "−" of a term for one direction of motion, waves per turn of a harmonic; else empty.
        value: of the identified model.
        estimate, half: by the data alone, with the half width of its 95 % interval; NaN if undetermined.
        unit: of all three.
        combined: whether torques show it only together with link parameters.
    """

    family: str
    side: str
    value: float
    estimate: float
    half: float
    unit: str
    combined: bool

    @property
    def shown(self) -> str:
        """Value of the identified model."""
        return f"{self.side} {significant(self.value)} {self.unit}".strip()

    @property
    def estimated(self) -> str:
        """The same by the data alone."""
        if np.isfinite(self.estimate):
            return plus_minus(self.estimate, self.half)
        return "with the links" if self.combined else "not determined"


@dataclass(frozen=True)
class JointFrictionRow:
    """Friction of one joint, or of two coupled ones; `note` has the velocities in its terms, `picture` its curve."""

    joint: str
    terms: tuple[FrictionCoefficient, ...]
    note: str
    picture: str

    def cell(self, family: str) -> Cell:
        """Terms of a family, the estimates below."""
        own = [term for term in self.terms if term.family == family]
        lines = [line for term in own for line in (term.shown, term.estimated)]
        return Cell(lines[0], lines[1:]) if own else Cell(MISSING)


def friction_section(result: LinkResult, fitted: Sequence[TorqueComparison]) -> Section | None:
    """Return the section; None of an arm without friction."""
    rows = _friction_rows(result, fitted)
    families = {
        key: label for key, label in FAMILIES.items() if any(term.family == key for row in rows for term in row.terms)
    }
    if not families:
        return None
    bounded = ", in which Coulomb, viscous and rotor terms cannot be negative," * (
        result.settings["estimator"] == "consistent"
    )
    dry = (
        " Dry friction and offset are given together, for motion in each direction: friction that differs by direction "
        "and an offset of the sensor look the same." * ("dry" in families)
    )
    return Section(
        "Friction",
        [
            "The line is the identified friction torque over the joint's velocity; points are measured torque less "
            "that of the rigid links in the fitted data.",
            Figures([Plot(row.picture, row.joint) for row in rows if row.picture], small=True),
            f"Coefficients of the identified model{bounded} and below them the estimate by the data alone with its 95 "
            f"% interval. Where the two differ, this motion does not separate these terms from others.{dry}",
            Table(
                ["Joint", *families.values(), "Shape"],
                [[row.joint, *map(row.cell, families), row.note] for row in rows],
                words=[len(families) + 1],
            ),
        ],
    )


def _friction_rows(result: LinkResult, fitted: Sequence[TorqueComparison]) -> list[JointFrictionRow]:
    """A row per joint, base to tip, and one per pair of coupled joints."""
    robot, model = result.robot, result.model
    first, rows = 0, []
    velocity = np.concatenate([one.motion.velocity for one in fitted])
    error = np.concatenate([one.error for one in fitted])
    torques = [model.friction.load_torque(robot, *one.motion) for one in fitted]
    loads = np.mean(
        np.abs(np.concatenate([x if x is not None else 0 * one.error for x, one in zip(torques, fitted, strict=True)])),
        axis=0,
    )
    for i, (joint, unit, friction) in enumerate(zip(robot.joint_names, joint_units(robot), model.joints, strict=True)):
        last = first + len(friction.terms)
        terms = _by_direction(result, joint, unit, _terms(result, friction.terms, first, unit))
        picture = _picture(
            joint, unit, _curve(friction, model.coefficients[first:last], loads[i]), velocity[:, i], error[:, i]
        )
        rows.append(JointFrictionRow(joint, terms, _note(friction, unit), picture if terms else ""))
        first = last
    for pair in model.friction.coupled:
        names, unit = [robot.joint_names[i] for i in pair], joint_units(robot)[pair[0]]
        terms = _terms(result, COUPLING_TERMS, first, unit)
        rows.append(JointFrictionRow(" and ".join(names), terms, "one motor drives both", ""))
        first += len(COUPLING_TERMS)
    return rows


def _terms(result: LinkResult, names: Sequence[str], first: int, unit: JointUnits) -> tuple[FrictionCoefficient, ...]:
    base, estimate = result.base, result.base_parameters
    low, high = estimate.confidence_intervals().T
    found = []
    for place, name in enumerate(names, start=first):
        column = result.parameters.size + place
        row = np.flatnonzero(base.columns == column)
        value, half = (estimate.values[row[0]], (high - low)[row[0]] / 2) if row.size else (np.nan, np.nan)
        divided = name.endswith(tuple(SIDES)) or name.startswith(("cos_", "sin_"))
        family, _, side = name.rpartition("_") if divided else (name, "", "")
        units = {
            "viscous": unit.viscous,
            "inertia": unit.inertia,
            "load": "",
            "spring": unit.viscous.replace(" s/", "/"),
        }
        found.append(
            FrictionCoefficient(
                family,
                SIDES.get(side, side),
                float(result.model.coefficients[place]),
                float(value),
                float(half),
                units.get(family.rpartition("_")[2], unit.effort),
                combined=base.categories[column] == "combined",
            )
        )
    return tuple(found)


def _by_direction(
    result: LinkResult, joint: str, unit: JointUnits, terms: tuple[FrictionCoefficient, ...]
) -> tuple[FrictionCoefficient, ...]:
    """The terms, with Coulomb friction and offset together in each direction: apart they are not identifiable."""
    estimate = result.base_parameters
    values = dict(zip(estimate.names, estimate.values, strict=True))
    ending = f" {joint}"
    own = {name.removesuffix(ending): v for name, v in result.friction_coefficients.items() if name.endswith(ending)}
    data = {term: float(values.get(term + ending, np.nan)) for term in own}
    both = dry_torques(own, joint, estimate)
    if not both:
        return terms
    found = [
        FrictionCoefficient(
            "dry",
            SIDES[name.rpartition("_")[2]],
            value,
            estimated,
            float(half_width(error, count)),
            unit.effort,
            combined=False,
        )
        for (name, (value, error, count)), (estimated, _, _) in zip(
            both.items(), dry_torques(data, joint, estimate).values(), strict=True
        )
    ]
    return (*found, *(term for term in terms if term.family not in ("coulomb", "offset")))


def _note(friction: JointFriction, unit: JointUnits) -> str:
    widths = {
        "Stribeck velocity": (friction.stribeck_velocity, unit.velocity),
        "saturates at": (friction.saturation_velocity, unit.velocity),
        "reverses within": (friction.smoothing, unit.velocity),
        "slides after": (friction.sliding_length * unit.scale, unit.position),
        "no direction below": (friction.dead_zone, unit.velocity),
    }
    return ", ".join(f"{what} {significant(width, 2)} {per}" for what, (width, per) in widths.items() if width)


def _curve(friction: JointFriction, coefficients: NDArray, load: float) -> Callable[[NDArray], NDArray]:
    """Friction torque of steady velocities (N,) under a load (N m), in the middle of what the joint's angle adds."""

    def torque(velocity: NDArray) -> NDArray:
        still, steady = (
            np.zeros_like(velocity),
            replace(friction.direction_model, sliding_length=0.0).evaluate(velocity),
        )
        found = np.zeros_like(velocity)
        for coefficient, part in zip(coefficients, friction.parts, strict=True):
            if not acts_at_standstill(part.name):
                found += coefficient * part.column(still, velocity, still, steady, np.full_like(velocity, load))
        return found

    return torque


def _picture(
    joint: str, unit: JointUnits, torque: Callable[[NDArray], NDArray], velocity: NDArray, error: NDArray
) -> str:
    """The curve, and the torque that the rigid links leave: the curve plus the error, at the velocities recorded."""
    some = thinned(len(velocity))[::2]
    top = np.abs(velocity).max(initial=1e-6)
    half = top * np.linspace(0, 1, 100) ** 2 + 1e-6 * top

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=42, bottom=38, top=6)
        axes.axhline(0, color=LIGHT["line"], linewidth=1)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        axes.plot(
            velocity[some],
            torque(velocity[some]) + error[some],
            "o",
            markersize=2.2,
            markeredgewidth=0,
            color=LIGHT["measured"],
            alpha=0.45,
        )
        speeds = np.concatenate([-half[::-1], half])
        axes.plot(speeds, torque(speeds), color=LIGHT["identified"], linewidth=1.8)
        axes.set_xlabel(f"velocity ({unit.velocity})")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4))

    return svg(f"Friction of {joint} over its velocity", WIDTH, HEIGHT, draw)
