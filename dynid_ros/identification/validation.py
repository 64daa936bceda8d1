"""How well predicted torque matches torque that was not used to fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Validation:
    """Agreement per joint.

    Attributes:
        recording: name of the data.
        rms: (n,) of measured less predicted, N m.
        relative_rms: (n,) `rms` over the RMS of the measured torque.
        r2: (n,) share of the measured torque's variance that is explained.

    """

    recording: str
    joint_names: tuple[str, ...]
    rms: NDArray
    relative_rms: NDArray
    r2: NDArray

    def document(self) -> dict:
        """Entry of the list `validation` in `identified.yaml`."""
        entry: dict = {"recording": self.recording}
        for label in ("rms", "relative_rms", "r2"):
            values = getattr(self, label)
            entry[label] = {
                joint: float(v) if np.isfinite(v) else None for joint, v in zip(self.joint_names, values, strict=True)
            }
        return entry


def validate_torque(name: str, joint_names: Sequence[str], measured: NDArray, predicted: NDArray) -> Validation:
    """Compare (N, n) measured with (N, n) predicted torque; a joint without a prediction gets NaN."""
    error = measured - predicted
    rms = np.sqrt(np.mean(error**2, axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = rms / np.sqrt(np.mean(measured**2, axis=0))
        r2 = 1 - np.sum(error**2, axis=0) / np.sum((measured - measured.mean(axis=0)) ** 2, axis=0)
    return Validation(name, tuple(joint_names), rms, relative, r2)
