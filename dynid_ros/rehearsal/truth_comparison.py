"""Comparison of estimates with true values, where a simulation knows the truth: gravity, base parameters, load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import dof_of
from dynid_ros.identified.links import KnownArm
from dynid_ros.model.base_parameters import describe_parameters
from dynid_ros.report.formats import UNKNOWN_TEXT, as_fine_as, brief, counted, joint_units, significant
from dynid_ros.report.link_parameters import read_base_parameters
from dynid_ros.report.load import MM_PER_M
from dynid_ros.report.page import Table
from dynid_ros.simulation import ArmTruth, SimulatedArm

INERTIA_LABELS = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
MAX_OPEN_COMPARISONS = 12
"""Largest number of rows of a table that starts unfolded."""


@dataclass(frozen=True)
class Check:
    """A measured value and its bound.

    Attributes:
        value: measured; NaN fails.
        unit: unit of both.
        at_least: whether the bound is the smallest allowed value rather than the largest.
    """

    label: str
    value: float
    allowed: float
    unit: str = ""
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """Whether the value keeps to its bound."""
        return bool(self.value >= self.allowed if self.at_least else self.value <= self.allowed)

    @property
    def measured(self) -> str:
        """Value with its unit as text."""
        return f"{brief(self.value)} {self.unit}".strip()

    @property
    def bound(self) -> str:
        """Bound as text."""
        return f"{'at least' if self.at_least else 'at most'} {brief(self.allowed)} {self.unit}".strip()

    def __str__(self) -> str:
        return f"{self.label}: {self.measured} ({self.bound}{'' if self.passed else ', FAILED'})"


@dataclass(frozen=True)
class Comparison:
    """An estimate and the true value.

    Attributes:
        unit: unit of all values.
        value: estimate; NaN: undetermined.
        half: half width of the 95 % interval.
    """

    name: str
    unit: str
    true: float
    value: float
    half: float

    @property
    def error(self) -> float:
        """Estimate minus true value."""
        return self.value - self.true

    @property
    def relative_error(self) -> float:
        """Magnitude of the error over the true value; infinite where undetermined."""
        return abs(self.error / self.true) if self.is_determined else float("inf")

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the parameter."""
        return bool(np.isfinite(self.value))

    @property
    def is_covered(self) -> bool:
        """Whether the interval contains the true value."""
        return bool(abs(self.error) <= self.half)

    @property
    def cells(self) -> tuple[str, ...]:
        """True value, estimate, half width, error and coverage as text."""
        if not self.is_determined:
            return significant(self.true), UNKNOWN_TEXT, UNKNOWN_TEXT, UNKNOWN_TEXT, "undetermined"
        finer = self.half / 10
        true = self.true if abs(self.true) > finer / 100 else 0.0  # no zero with a sign
        return (
            as_fine_as(true, finer),
            as_fine_as(self.value, finer),
            significant(self.half, 2),
            significant(self.error, 2),
            "contains the truth" if self.is_covered else "misses the truth",
        )


def count_covered(comparisons: Sequence[Comparison]) -> tuple[int, int]:
    """Return how many 95 % intervals contain the true value, and how many intervals there are."""
    covered = [comparison.is_covered for comparison in comparisons if comparison.is_determined]
    return sum(covered), len(covered)


def coverage_check(comparisons: Sequence[Comparison], least_percent: float) -> Check:
    """Return the check of the share of 95 % intervals that contain the true value."""
    covered, count = count_covered(comparisons)
    percent = 100 * covered / count if count else float("nan")
    return Check("95 % intervals that contain the true value", percent, least_percent, "%", at_least=True)


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of estimates and true values; a long one starts folded."""
    covered, count = count_covered(comparisons)
    return Table(
        ("", "True", "Estimate", ("95 % interval", "half width"), "Error", "Interval"),
        [(f"{one.name}{', ' if one.unit else ''}{one.unit}", *one.cells) for one in comparisons],
        words=[5],
        folded=f"{counted(len(comparisons), 'estimate')} beside the truth; {covered} of {count} intervals contain it",
        unfolded=len(comparisons) <= MAX_OPEN_COMPARISONS,
    )


def compare_gravity(model: IdentifiedGravity, truth: ArmTruth) -> list[Comparison]:
    """Compare the gravity parameters of all joints that gravity loads with the truth."""
    robot = model.robot
    gravity = model.gravity
    mask = np.zeros(len(model.moments), dtype=bool)
    true = np.zeros(len(model.moments))
    units = [""] * len(model.moments)
    # The truth is in the link frames, the parameters are about the joint axes.
    in_joints = np.einsum("iab,ib->ia", robot.chain.link_offsets[:, :3, :3], truth.gravity_moments())
    for i, (joint, unit) in enumerate(zip(robot.joint_names, joint_units(robot), strict=True)):
        columns = range(len(mask))[gravity.columns(i)]
        mask[columns] = joint not in model.torque_free
        true[columns] = truth.carried_masses[i] if robot.chain.prismatic[i] else in_joints[i, :2]
        for column in columns:
            units[column] = unit.moment
    halves = half_width(model.std, model.dof)
    return [
        Comparison(gravity.names[k].replace(" ", " of ", 1), units[k], true[k], model.moments[k], halves[k])
        for k in np.flatnonzero(mask)
    ]


def compare_base_parameters(document: dict, arm: KnownArm, true_arm: SimulatedArm) -> list[Comparison]:
    """Compare the base parameters of an `identified.yaml` that have a true value with it."""
    parameters = read_base_parameters(document)
    units = describe_parameters(arm.model.robot, [one.name for one in parameters])["unit"]
    true = true_base_parameters(arm, true_arm)
    return [
        Comparison(one.label, unit, float(value), one.value, one.half)
        for one, unit, value in zip(parameters, units, true, strict=True)
        if np.isfinite(value)
    ]


def true_base_parameters(arm: KnownArm, true_arm: SimulatedArm) -> NDArray:
    """Return the true values (k,) of the base parameters of an identified arm.

    Friction terms that the simulated drives lack are zero. Where the simulated friction has further terms, other
    coefficients may describe it as well, so base parameters with friction have no true value, NaN.
    """
    drives = {
        "coulomb": true_arm.drives.coulomb,
        "viscous": true_arm.drives.viscous,
        "rotor_inertia": true_arm.drives.rotor_inertia,
        "offset": true_arm.sensors.torque_offset,
    }
    is_shaped = true_arm.friction is not None
    known = {
        f"{term}{side} {joint}": float(np.asarray(values)[i])
        for term, values in drives.items()
        for side in ("", "_positive", "_negative")
        for i, joint in enumerate(true_arm.robot.joint_names)
        if term == "rotor_inertia" or not is_shaped
    }
    model = arm.model
    otherwise = np.nan if is_shaped else 0.0
    coefficients = np.array([known.get(name, otherwise) for name in model.friction.names(model.robot)])
    base = arm.columns.whole_base(arm.columns.first)
    values = np.concatenate([true_arm.truth.parameters, coefficients])
    is_unknown = np.any(base.combinations[:, np.isnan(values)] != 0.0, axis=1)
    return np.where(is_unknown, np.nan, base.project(np.nan_to_num(values)))


def compare_load(true: Mapping[str, Any], estimate: Mapping[str, Any]) -> list[Comparison]:
    """Compare mass, centre of mass and inertia of a section `load` with a truth table."""
    mass_half = float(np.ptp(estimate["interval"]["mass"]) / 2)
    comparisons = [Comparison("Mass", "kg", true["mass"], estimate["mass"], mass_half)]
    halves = np.ptp(estimate["interval"]["center"], axis=1) / 2
    for axis, *values in zip("xyz", true["center"], estimate["center"], halves, strict=True):
        comparisons.append(Comparison(f"Centre {axis}", "mm", *(MM_PER_M * float(value) for value in values)))
    errors = as_array(estimate["std"]["inertia"] or [None] * len(INERTIA_LABELS))
    halves = half_width(errors, dof_of({}, estimate, "inertia"))
    for name, *values in zip(INERTIA_LABELS, true["inertia"], as_array(estimate["inertia"]), halves, strict=True):
        comparisons.append(Comparison(name, "kg m²", *map(float, values)))
    return comparisons


def as_array(values: Sequence[float | None]) -> NDArray:
    """Return numbers of a file as an array; null is NaN."""
    return np.array([np.nan if value is None else value for value in values])
