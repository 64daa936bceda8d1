"""How well predicted torque matches torque that was not used to fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import as_number, file_of, mapping, read_number


@dataclass(frozen=True)
class Validation:
    """Agreement per joint.

    Attributes:
        recording: name of the data.
        rms: (n,) of measured less predicted, N m.
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
        """Joints whose torque was not predicted."""
        return tuple(joint for joint, rms in zip(self.joint_names, self.rms, strict=True) if np.isnan(rms))

    def table(self) -> str:
        """Return one line per joint for a terminal, with a dash for each number that there is not."""
        width = max(len("joint"), *(len(joint) for joint in self.joint_names)) + 2
        column = max(10, len(self.unit) + 8)
        lines = [f"{'joint':<{width}}{f'RMS [{self.unit}]':>{column}}{'relative':>10}{'R²':>9}"]
        for joint, rms, relative, r2 in zip(self.joint_names, self.rms, self.relative_rms, self.r2, strict=True):
            cells = [f"{rms:.4g}", f"{relative:.2%}", f"{r2:.4f}"]
            shown = ["–" if "nan" in cell else cell for cell in cells]
            lines.append(f"{joint:<{width}}{shown[0]:>{column}}{shown[1]:>10}{shown[2]:>9}")
        return "\n".join(lines)

    def document(self) -> dict:
        """Entry of the list `validation` in `identified.yaml`."""
        entry: dict = {"recording": self.recording, **({} if self.unit == "N m" else {"unit": self.unit})}
        for label in ("rms", "relative_rms", "r2"):
            values = getattr(self, label)
            entry[label] = {joint: as_number(v) for joint, v in zip(self.joint_names, values, strict=True)}
        return entry


def validated(document: dict, validations: Sequence[Validation]) -> dict:
    """Content of an `identified.yaml` with its list `validation`."""
    return {**document, "validation": [validation.document() for validation in validations]}


def read_validations(document: dict, joint_names: Sequence[str]) -> list[Validation]:
    """The entries of `validation`; NaN for a joint without a number.

    Raises:
        IdentifiedFileError: an entry is malformed.
    """
    file, entries = file_of(document), document.get("validation") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file}: 'validation' must be a list of mappings; run the identification again")
    found = []
    for entry in entries:
        name = str(entry.get("recording", ""))
        columns = [
            np.array(
                [
                    read_number(document, mapping(entry, label, f"{file}: validation"), joint, f"{label} on {name}")
                    for joint in joint_names
                ]
            )
            for label in ("rms", "relative_rms", "r2")
        ]
        rms, relative, r2 = columns
        found.append(Validation(name, tuple(joint_names), rms, relative, r2, str(entry.get("unit", "N m"))))
    return found


def unit_of_joints(prismatic: NDArray, revolute_unit: str, prismatic_unit: str) -> str:
    """Return the unit of a quantity of joints, or both units where some of them (n,) are prismatic."""
    units = [revolute_unit] if not np.all(prismatic) else []
    return " or ".join([*units, *([prismatic_unit] if np.any(prismatic) else [])])


ROUNDING = 1e-9


def validate_torque(
    name: str, joint_names: Sequence[str], measured: NDArray, predicted: NDArray, unit: str = "N m"
) -> Validation:
    """Compare (N, n) measured with (N, n) predicted torque; a joint without a prediction gets NaN.

    So does R² of a torque that does not vary but for rounding.
    """
    error = measured - predicted
    rms, size, spread = np.sqrt(np.mean(error**2, axis=0)), np.sqrt(np.mean(measured**2, axis=0)), measured.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = rms / size
        r2 = np.where(spread > ROUNDING * size, 1 - (rms / spread) ** 2, np.nan)
    return Validation(name, tuple(joint_names), rms, relative, r2, unit)
