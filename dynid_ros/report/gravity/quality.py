"""How good the predictions are, on the strictest data at hand."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.validation import Validation
from dynid_ros.report.demonstration.demonstration import Demonstration
from dynid_ros.report.formats import counted
from dynid_ros.report.gravity.identified_gravity import IdentifiedGravity


@dataclass(frozen=True)
class Quality:
    """Prediction error of the joint that is predicted worst.

    Attributes:
        error: RMS as a fraction of `reference`; NaN if nothing could be predicted.
        reference: which torque of the joint it is a fraction of.
        evidence: on what data.
        unseen: whether these were not used to identify.

    """

    error: float
    reference: str
    evidence: str
    unseen: bool

    @classmethod
    def of(
        cls,
        model: IdentifiedGravity,
        fit: Validation,
        validations: list[Validation],
        demonstration: Demonstration | None,
    ) -> "Quality":
        """From true torques where there are some, else from other recordings, else from the fit itself."""
        if demonstration is not None:
            error = _largest(demonstration.relative_rms)
            evidence = counted(len(demonstration.poses), "fresh pose")
            return cls(error, "largest gravity torque", evidence, unseen=True)
        loaded = [name not in model.torque_free for name in model.robot.joint_names]
        if validations:
            error = _largest(np.concatenate([validation.relative_rms[loaded] for validation in validations]))
            evidence = f"{counted(len(validations), 'recording')} not used to fit"
            return cls(error, "measured torque", evidence, unseen=True)
        return cls(
            _largest(fit.relative_rms[loaded]), "measured torque", "the data that it was fitted to", unseen=False
        )


def _largest(values: NDArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else float("nan")
