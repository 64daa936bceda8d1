"""Sections `validation` and `repeatability`: agreement with held-out torque, and torque of repeated motions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri

from dynid_ros.display import percent, text_table
from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import CONFIDENCE_LEVEL
from dynid_ros.identified.identified_file import Section, as_number, file_of

REPEATABILITY_KEY = "repeatability"
MIN_FLOOR_DOF = 4.0
"""Smallest number of degrees of freedom of a reported floor: its 95 % interval then ends at 2.9 times the value."""
MAX_DRIFT_SHARE = 0.5
"""Fraction of the squared difference above which a sentence names a change of offset and friction, as by warming."""
MIN_REST_PERCENT = 1e-4
"""Smallest difference to 100 % that is printed, %."""


@dataclass(frozen=True, eq=False)
class Repeatability:
    """Difference of torque between runs of the same motion, by joint, after the low-pass of the equations.

    The floor is the smallest residual that any model of the motion can reach.

    Attributes:
        recordings: names of the recordings that contain the runs.
        seconds: duration of the motion that is repeated, s.
        joint_names: names of the n joints.
        units: (n,) unit of the torques, "N m" or "N".
        floor: (n,) RMS of one run about the mean of all runs, which is the RMS difference of two runs over √2; NaN if
            there are too few independent samples.
        dof: (n,) degrees of freedom of the squared floor.
        explainable: (n,) fraction of the variance of the torque that a perfect model explains, 0 to 1.
        residual: (n,) RMS residual of the model on the same samples; NaN if there is no model.
        drift: (n,) fraction of the squared difference that is due to changes of offset, dry and viscous friction.
    """

    recordings: tuple[str, ...]
    seconds: float
    joint_names: tuple[str, ...]
    units: tuple[str, ...]
    floor: NDArray
    dof: NDArray
    explainable: NDArray
    residual: NDArray
    drift: NDArray

    @property
    def ratio(self) -> NDArray:
        """Ratio (n,) of the model's residual to the floor, by joint."""
        return self.residual / self.floor

    @property
    def total_ratio(self) -> float:
        """Sum of the residuals over the sum of the floors, of all joints that have both and the most common unit."""
        return float(self._sum(self.residual) / self._sum(self.floor)) if self._counted.any() else float("nan")

    @property
    def total_interval(self) -> tuple[float, float]:
        """95 % interval of `total_ratio`.

        Errors of the floors of different joints are taken as independent, and the residual as being as uncertain as the
        floor. So the square of the ratio has an F distribution.
        """
        chosen = self._counted
        squared_error = np.sum((self.floor[chosen] ** 2) / (2 * self.dof[chosen]))
        dof = self._sum(self.floor) ** 2 / (2 * squared_error)
        factor = float(np.sqrt(fdtri(dof, dof, (1 + CONFIDENCE_LEVEL) / 2)))
        return self.total_ratio / factor, self.total_ratio * factor

    @property
    def _counted(self) -> NDArray:
        """Mask (n,) of the joints that have residual and floor, and the most common unit."""
        unit = max(sorted(set(self.units)), key=self.units.count)
        return np.isfinite(self.ratio) & (np.array(self.units) == unit)

    def _sum(self, values: NDArray) -> float:
        return float(values[self._counted].sum())

    def sentences(self) -> list[str]:
        """Return the result in one or two sentences; empty if no floor is known."""
        if not np.isfinite(self.floor).any():
            return []
        names = ", ".join(Path(name).stem for name in dict.fromkeys(self.recordings))
        lines = [f"{names}: {self.seconds:.0f} s of motion are repeated"]
        if not np.isfinite(self.total_ratio):
            least = _percent_or_dash(np.nanmin(self.explainable))
            lines[0] += f"; a perfect model explains at least {least} of the variance of the torque of each joint"
        else:
            low, high = self.total_interval
            lines[0] += f"; the residual is {self.total_ratio:.2f} times the floor of one run ({low:.2f} to {high:.2f})"
        with np.errstate(invalid="ignore"):
            drifting = [
                name for name, share in zip(self.joint_names, self.drift, strict=True) if share > MAX_DRIFT_SHARE
            ]
        if drifting:
            lines.append(
                f"most of the difference between the runs of {', '.join(drifting)} is a change of offset or friction, "
                "as by warming: let the arm warm up before recording"
            )
        return lines

    def cells(self) -> dict[tuple[str, str], list[str]]:
        """Return the columns of a table by joint; their keys are heading and unit."""
        bounds = floor_interval(self.floor, self.dof)
        unit = "/".join(dict.fromkeys(self.units))
        shown: dict[tuple[str, str], list[str]] = {
            ("Floor", f"RMS, {unit}"): [_number(value) for value in self.floor],
            ("95 %", unit): [f"{_number(low)} to {_number(high)}" if np.isfinite(low) else "–" for low, high in bounds],
            ("Explainable", "of the variance"): [_percent_or_dash(value) for value in self.explainable],
            ("Drift", "of the difference²"): [_percent_or_dash(value) for value in self.drift],
        }
        if np.isfinite(self.residual).any():
            shown["Residual", f"RMS, {unit}"] = [_number(value) for value in self.residual]
            shown["Residual", "over the floor"] = [_number(value) for value in self.ratio]
        return shown

    def table(self) -> list[str]:
        """Return the lines of a table for a terminal; the headings come first."""
        columns = self.cells()
        heads = [f"{name.lower()} [{unit.removeprefix('RMS, ').removeprefix('of the ')}]" for name, unit in columns]
        return text_table(("joint", *heads), list(zip(self.joint_names, *columns.values(), strict=True)))

    def document(self) -> dict:
        """Return the section of `identified.yaml`."""
        bounds = floor_interval(self.floor, self.dof)
        entries = {}
        for i, joint in enumerate(self.joint_names):
            entries[joint] = {
                "unit": self.units[i],
                "floor": as_number(self.floor[i]),
                "floor_interval": [as_number(value) for value in bounds[i]],
                "degrees_of_freedom": as_number(self.dof[i]),
                "explainable": as_number(self.explainable[i]),
                "drift": as_number(self.drift[i]),
                "residual": as_number(self.residual[i]),
                "ratio": as_number(self.ratio[i]),
            }
        total: dict = {"ratio": as_number(self.total_ratio)}
        if np.isfinite(self.total_ratio):
            total["ratio_interval"] = [as_number(value) for value in self.total_interval]
        return {"recordings": list(self.recordings), "seconds": float(self.seconds), **total, "joints": entries}


def read_repeatability(document: Mapping, joint_names: Sequence[str]) -> Repeatability | None:
    """Return the repeatability in a document; None if it has none."""
    if document.get(REPEATABILITY_KEY) is None:
        return None
    section = Section.optional(document, REPEATABILITY_KEY)
    entries = section.child("joints")
    joints = [entries.child(joint) for joint in joint_names]
    columns = {
        key: np.array([joint.number_or_nan(key) for joint in joints])
        for key in ("floor", "degrees_of_freedom", "explainable", "drift", "residual")
    }
    names = section.get("recordings")
    if not isinstance(names, list):
        raise section.error(f"recordings is {names!r}, expected a list of names in {file_of(document)}")
    return Repeatability(
        recordings=tuple(map(str, names)),
        seconds=section.number_or_nan("seconds"),
        joint_names=tuple(joint_names),
        units=tuple(str(joint.get("unit", "N m")) for joint in joints),
        floor=columns["floor"],
        dof=columns["degrees_of_freedom"],
        explainable=columns["explainable"],
        residual=columns["residual"],
        drift=columns["drift"],
    )


def floor_interval(floor: NDArray, dof: NDArray) -> NDArray:
    """Return the 95 % intervals (n, 2) of the floors, from the χ² distribution of their squares."""
    tail = (1 - CONFIDENCE_LEVEL) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([floor * np.sqrt(dof / chdtri(dof, tail)), floor * np.sqrt(dof / chdtri(dof, 1 - tail))], -1)


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "–"


def _percent_or_dash(value: float) -> str:
    """Return a fraction in percent; near 100 %, two digits of the difference to 100 % are shown."""
    if not np.isfinite(value):
        return "–"
    rest = max(100 * (1 - value), MIN_REST_PERCENT)
    return percent(value) if rest > 1 else f"{100 * value:.{1 - math.floor(math.log10(rest))}f} %"


ROUNDING_SPREAD = 1e-9
"""Standard deviation of a torque, relative to its RMS, below which the torque is constant up to rounding."""


@dataclass(frozen=True)
class Validation:
    """Agreement of predicted and measured torque by joint.

    Attributes:
        recording: name of the recording.
        joint_names: names of the n joints.
        rms: (n,) RMS of measured minus predicted torque, in `unit`.
        relative_rms: (n,) `rms` over the RMS of the measured torque.
        r2: (n,) coefficient of determination R² about the mean of the measured torque.
        unit: unit of `rms`; "N m or N" if some joints are prismatic.
    """

    recording: str
    joint_names: tuple[str, ...]
    rms: NDArray
    relative_rms: NDArray
    r2: NDArray
    unit: str = "N m"

    @property
    def unpredicted(self) -> tuple[str, ...]:
        """Names of the joints without a prediction."""
        return tuple(joint for joint, rms in zip(self.joint_names, self.rms, strict=True) if np.isnan(rms))

    def title(self) -> str:
        """Return the heading of the table."""
        return f"Validation on {self.recording}"

    def table(self) -> str:
        """Return one line per joint for a terminal, with a dash for each unknown number."""
        width = max(len("joint"), *(len(joint) for joint in self.joint_names)) + 2
        column = max(10, len(self.unit) + 8)
        lines = [f"{'joint':<{width}}{f'RMS [{self.unit}]':>{column}}{'relative':>10}{'R²':>9}"]
        for joint, rms, relative, r2 in zip(self.joint_names, self.rms, self.relative_rms, self.r2, strict=True):
            cells = [f"{rms:.4g}", f"{relative:.2%}", f"{r2:.4f}"]
            shown = ["–" if "nan" in cell else cell for cell in cells]
            lines.append(f"{joint:<{width}}{shown[0]:>{column}}{shown[1]:>10}{shown[2]:>9}")
        return "\n".join(lines)

    def document(self) -> dict:
        """Return the entry for the list `validation` in `identified.yaml`."""
        entry: dict = {"recording": self.recording, **({} if self.unit == "N m" else {"unit": self.unit})}
        for label in ("rms", "relative_rms", "r2"):
            values = getattr(self, label)
            entry[label] = {joint: as_number(v) for joint, v in zip(self.joint_names, values, strict=True)}
        return entry


def read_validations(document: Mapping, joint_names: Sequence[str]) -> list[Validation]:
    """Return the entries of `validation`; NaN for a joint without a number."""
    file = file_of(document)
    entries = document.get("validation") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file}: 'validation' must be a list of mappings; run the identification again")
    validations = []
    for entry in entries:
        section = Section(entry, f"{file}: validation")
        rms, relative, r2 = (
            np.array([section.child(label).number_or_nan(joint) for joint in joint_names])
            for label in ("rms", "relative_rms", "r2")
        )
        recording = str(entry.get("recording", ""))
        validations.append(Validation(recording, tuple(joint_names), rms, relative, r2, str(entry.get("unit", "N m"))))
    return validations


def unit_of_joints(prismatic: NDArray, revolute_unit: str, prismatic_unit: str) -> str:
    """Return the unit of a quantity of joints, or both units if only some joints in the mask (n,) are prismatic."""
    units = [revolute_unit] if not np.all(prismatic) else []
    return " or ".join([*units, *([prismatic_unit] if np.any(prismatic) else [])])


def validate_torque(
    name: str, joint_names: Sequence[str], measured: NDArray, predicted: NDArray, unit: str = "N m"
) -> Validation:
    """Compare measured with predicted torque, (N, n) each.

    Results of a joint without a prediction are NaN, and so is R² of a torque that is constant up to rounding.
    """
    error = measured - predicted
    rms = np.sqrt(np.mean(error**2, axis=0))
    size = np.sqrt(np.mean(measured**2, axis=0))
    spread = measured.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = rms / size
        r2 = np.where(spread > ROUNDING_SPREAD * size, 1 - (rms / spread) ** 2, np.nan)
    return Validation(name, tuple(joint_names), rms, relative, r2, unit)
