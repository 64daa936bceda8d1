"""Link angles from motion capture, with what is known of their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LinkAngles:
    """Positions of the links of an arm of n joints at M frames, on the camera's clock.

    Attributes:
        time: (M,) s.
        position: (M, n) rad or m, of the kinematics; NaN where the markers seen do not tell.
        standard_errors: (M, n) from the markers' noise alone: errors of the registration are common to all frames.
        residual_rms: (P,) m, of each marker, its outliers left out; NaN for one that was never used.
        noise: standard deviation of a marker's coordinate, m; NaN without redundancy.
        remarks: what is missing and why, what was left out or mended.
        marker_names: (P,).
        offsets: (n,) to add to motor positions so that they have the same zero as `position`; zero if not asked for.

    """

    time: NDArray
    position: NDArray
    standard_errors: NDArray
    residual_rms: NDArray
    noise: float
    remarks: tuple[str, ...]
    marker_names: tuple[str, ...]
    offsets: NDArray

    def summary(self, joint_names: tuple[str, ...]) -> str:
        """Text: frames and standard errors per joint, residual per marker, remarks."""
        lines = [f"{len(self.time)} frames, noise of a marker's coordinate {1000 * self.noise:.2f} mm"]
        for j, name in enumerate(joint_names):
            known = np.isfinite(self.position[:, j])
            error = f"{np.median(self.standard_errors[known, j]):.1e}" if known.any() else "none"
            lines.append(f"  {name}: known in {known.mean():.1%} of the frames, standard error {error} (rad or m)")
        lines += [
            f"  {name}: residual {1000 * rms:.2f} mm RMS"
            for name, rms in zip(self.marker_names, self.residual_rms, strict=True)
        ]
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])
