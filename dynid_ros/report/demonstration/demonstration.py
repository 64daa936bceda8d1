"""What only a simulation can show: the identified model against the truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError

STILL = np.deg2rad(0.5)
"""A joint that moves less than this when let go is held by friction, rad (or m)."""


@dataclass(frozen=True)
class Demonstration:
    """True gravity of a simulated arm, and the arm let go without and with gravity compensation; n joints.

    Attributes:
        joint_names: n names.
        moments: (k,) true moments in the order of `GravityModel.names`, kg m; NaN where there is no truth.
        poses: (P, n) poses that the identification has not seen, rad or m.
        gravity_torque: (P, n) true torque in these, N m or N.
        identified_torque: (P, n) what the identified model says; NaN where it promises nothing.
        time: (T,) of the drop test, s.
        position_without: (T, n) of the arm in effort mode with zero torque, rad or m.
        position_with: (T, n) with gravity compensation, from the same pose.
        verdict: sentences that lead the report.

    Raises:
        IdentificationError: an array has another shape.

    """

    joint_names: tuple[str, ...]
    moments: NDArray
    poses: NDArray
    gravity_torque: NDArray
    identified_torque: NDArray
    time: NDArray
    position_without: NDArray
    position_with: NDArray
    verdict: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, samples, poses = len(self.joint_names), len(self.time), len(self.poses)
        for name, shape in {
            "poses": (poses, n),
            "gravity_torque": (poses, n),
            "identified_torque": (poses, n),
            "position_without": (samples, n),
            "position_with": (samples, n),
        }.items():
            found = getattr(self, name).shape
            if found != shape or 0 in shape:
                raise IdentificationError(f"demonstration: {name} has shape {found}, expected {shape}, not empty")

    @property
    def largest_torque(self) -> NDArray:
        """(n,) largest true gravity torque; zero where it is only rounding."""
        largest = np.abs(self.gravity_torque).max(axis=0)
        return np.where(largest > 1e-9 * largest.max(initial=0.0), largest, 0.0)

    @property
    def torque_error(self) -> NDArray:
        """(P, n) identified less true."""
        return self.identified_torque - self.gravity_torque

    @property
    def torque_rms(self) -> NDArray:
        """(n,) of `torque_error`."""
        return np.sqrt(np.mean(self.torque_error**2, axis=0))

    @property
    def relative_rms(self) -> NDArray:
        """(n,) `torque_rms` over `largest_torque`; NaN where gravity makes no torque."""
        return relative(self.torque_rms, self.largest_torque)

    @property
    def relative_worst(self) -> NDArray:
        """(n,) largest error over `largest_torque`; NaN where gravity makes no torque."""
        return relative(np.abs(self.torque_error).max(axis=0), self.largest_torque)

    @property
    def duration(self) -> float:
        """Of the drop test, s."""
        return float(self.time[-1] - self.time[0])

    @property
    def drift_without(self) -> NDArray:
        """(n,) farthest that each joint came from where it was let go, rad or m."""
        return _drift(self.position_without)

    @property
    def drift_with(self) -> NDArray:
        """(n,) the same with compensation."""
        return _drift(self.position_with)

    @property
    def drift_ratios(self) -> NDArray:
        """(n,) drift with compensation over drift without; NaN where the joint keeps still without."""
        return np.where(self.drift_without > STILL, relative(self.drift_with, self.drift_without), np.nan)

    @property
    def drift_ratio(self) -> float:
        """Largest drift of all joints with compensation over that without; NaN if the arm keeps still without."""
        moves = self.drift_without.max() > STILL
        return float(self.drift_with.max() / self.drift_without.max()) if moves else float("nan")


def relative(part: NDArray | float, whole: NDArray | float) -> NDArray:
    """`part` over `whole`, NaN where `whole` is zero."""
    part, whole = np.asarray(part, float), np.asarray(whole, float)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)


def _drift(position: NDArray) -> NDArray:
    return np.abs(position - position[0]).max(axis=0)
