"""How good the predictions are, on the strictest data at hand, and whether that is good enough."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.validation import Validation
from dynid_ros.report.demonstration.demonstration import Demonstration
from dynid_ros.report.formats import counted
from dynid_ros.report.units import joint_units

HARDLY = 0.01
"""Largest gravity torque of a joint that gravity hardly loads, over that of the arm: what it reads is friction."""
GOOD = 0.05
"""Largest error, over the arm's largest gravity torque, with which friction still holds a compensated arm."""


@dataclass(frozen=True)
class Quality:
    """Prediction error of the joint that is predicted worst.

    Attributes:
        error: RMS as a fraction of `reference`; NaN if nothing could be predicted.
        reference: which torque it is a fraction of.
        evidence: on what data.
        unseen: whether these were not used to identify.
        apart: RMS error, N m or N, by joint that gravity hardly loads; `error` leaves these out.

    """

    error: float
    reference: str
    evidence: str
    unseen: bool
    apart: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: IdentifiedGravity,
        samples: Samples,
        fit: Validation,
        validations: list[Validation],
        demonstration: Demonstration | None,
    ) -> "Quality":
        """From true torques where there are some, else from other recordings, else from the fit itself."""
        if demonstration is not None:
            error = _largest(demonstration.relative_rms)
            evidence = counted(len(demonstration.poses), "fresh pose")
            return cls(error, "a joint's largest gravity torque", evidence, unseen=True)
        rms = np.stack([validation.rms for validation in validations or [fit]])
        own, arm = _largest_torques(model, samples)
        with np.errstate(divide="ignore", invalid="ignore"):
            loaded = own / arm > HARDLY
            error = _largest((rms / arm)[:, loaded])
        names = np.array(model.robot.joint_names)[~loaded]
        apart = {str(name): _largest(column) for name, column in zip(names, rms[:, ~loaded].T, strict=True)}
        evidence = (
            f"{counted(len(validations), 'recording')} not used to fit"
            if validations
            else "the data that it was fitted to"
        )
        return cls(error, "the arm's largest gravity torque", evidence, bool(validations), apart)


def _largest_torques(model: IdentifiedGravity, samples: Samples) -> tuple[NDArray, NDArray]:
    """(n,) gravity torque of each joint, and of all joints that have its unit: the largest in these poses."""
    torque = model.gravity.regressor(samples.position) @ np.nan_to_num(model.moments)
    own = np.abs(torque).max(axis=0)
    efforts = np.array([unit.effort for unit in joint_units(model.robot)])
    return own, np.array([own[efforts == effort].max() for effort in efforts])


def _largest(values: NDArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else float("nan")
