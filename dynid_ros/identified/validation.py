"""Section `validation` of `identified.yaml`: agreement of predicted torque with held-out torque."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.section import Section, as_number, file_of

ROUNDING_SPREAD = 1e-9
"""Standard deviation of a torque, relative to its RMS, below which the torque is constant up to rounding."""


@dataclass(frozen=True)
class Validation:
    """Agreement of predicted and measured torque by joint.

    Attributes:
        recording: name of the data.
        joint_names: n.
        rms: (n,) RMS of measured minus predicted torque, N m.
        relative_rms: (n,) `rms` over the RMS of the measured torque.
        r2: (n,) R² about the mean of the measured torque.
        unit: of `rms`; "N m or N" where some joints are prismatic.
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
        """Return the line above `table`."""
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
    """Return the unit of a quantity of joints, or both units where some of them (n,) are prismatic."""
    units = [revolute_unit] if not np.all(prismatic) else []
    return " or ".join([*units, *([prismatic_unit] if np.any(prismatic) else [])])


def validate_torque(
    name: str, joint_names: Sequence[str], measured: NDArray, predicted: NDArray, unit: str = "N m"
) -> Validation:
    """Compare measured (N, n) with predicted (N, n) torque.

    The numbers of a joint without a prediction are NaN, and so is R² of a torque that is constant up to rounding.
    """
    error = measured - predicted
    rms = np.sqrt(np.mean(error**2, axis=0))
    size = np.sqrt(np.mean(measured**2, axis=0))
    spread = measured.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = rms / size
        r2 = np.where(spread > ROUNDING_SPREAD * size, 1 - (rms / spread) ** 2, np.nan)
    return Validation(name, tuple(joint_names), rms, relative, r2, unit)
