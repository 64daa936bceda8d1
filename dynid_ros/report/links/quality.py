"""How well the identified links predict torque, on the strictest data at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dynid_ros.identified.validation import Validation
from dynid_ros.report.formats import counted
from dynid_ros.report.links.comparison import TorqueComparison, agreement

REPEATED = 0.1
"""Distance between motions, in parts of their spread, below which one repeats the other. A trajectory run again lies
some 0.003 from the first, another one of the same style 0.5."""
MOTION_SAMPLES = 3000


@dataclass(frozen=True, eq=False)
class LinkQuality:
    """Agreement of the identified model and of the URDF, whose friction was fitted to the same data.

    Attributes:
        shown: the recordings that it is judged on: those not used to fit if there are any.
        unseen: whether these were not used to fit.
        repeated: whether they only repeat the motion that was fitted.
        model, urdf: on `shown`.
        fit: of the identified model on the data that it was fitted to.
        torque_rms: (n,) on `shown`.

    """

    shown: tuple[TorqueComparison, ...]
    unseen: bool
    repeated: bool
    model: Validation
    urdf: Validation
    fit: Validation
    torque_rms: NDArray

    @classmethod
    def of(
        cls, joints: Sequence[str], fitted: Sequence[TorqueComparison], unseen: Sequence[TorqueComparison]
    ) -> LinkQuality:
        """From the fitted recordings and those that were not fitted."""
        shown = tuple(unseen or fitted)
        measured = np.concatenate([one.measured for one in shown])
        return cls(
            shown=shown,
            unseen=bool(unseen),
            repeated=bool(unseen) and _distance(fitted, unseen) < REPEATED,
            model=agreement(joints, shown, lambda one: one.identified),
            urdf=agreement(joints, shown, lambda one: one.urdf),
            fit=agreement(joints, fitted, lambda one: one.identified),
            torque_rms=np.sqrt(np.mean(measured**2, axis=0)),
        )

    @property
    def evidence(self) -> str:
        """On what data."""
        count = counted(len(self.shown), "recording")
        return f"{count} not used to fit" if self.unseen else "the data that it was fitted to"

    @property
    def worst(self) -> int | None:
        """Joint of which least is explained; None if none has torque."""
        return int(np.nanargmin(self.model.r2)) if np.isfinite(self.model.r2).any() else None


def explained(validation: Validation) -> float:
    """Share of the torque's variance that is explained, mean of the joints; a joint counts as 0 at least."""
    known = validation.r2[~np.isnan(validation.r2)]
    return float(np.maximum(known, 0.0).mean()) if known.size else float("nan")


def _distance(fitted: Sequence[TorqueComparison], unseen: Sequence[TorqueComparison]) -> float:
    """Median distance of an unseen position and velocity from the nearest fitted one, in parts of their spread."""
    known, new = (
        np.vstack([np.hstack([one.motion.position, one.motion.velocity]) for one in comparisons])
        for comparisons in (fitted, unseen)
    )
    spread = known.std(axis=0)
    moving = spread > 0
    some = new[np.unique(np.linspace(0, len(new) - 1, min(len(new), MOTION_SAMPLES)).astype(int))]
    distance, _ = cKDTree(known[:, moving] / spread[moving]).query(some[:, moving] / spread[moving])
    return float(np.median(distance) / np.sqrt(max(int(moving.sum()), 1)))
