"""What markers tell of one joint."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.hinge import Hinge
from dynid_ros.mocap.hinge_fit import HingeFit
from dynid_ros.mocap.joint_angle import JointAngle


@dataclass(frozen=True, eq=False)
class SingleJointResult:
    """What markers tell of one joint; see `SingleJoint`.

    Attributes:
        time: (N,) s.
        fit: axis, centre and markers, with errors.
        motion: angle of each frame, with errors, residuals and what was mended.
        axis_angle_errors: (N,) standard errors of the angles, less that at the reference, by axis, centre and markers
            alone, rad; they change slowly with the angle, and add (squared) to `standard_errors`.
        remarks: what to know about the result, one sentence each.

    """

    time: NDArray
    fit: HingeFit
    motion: JointAngle
    axis_angle_errors: NDArray
    remarks: tuple[str, ...]

    @property
    def hinge(self) -> Hinge:
        """For `joint_angle` of further records with the same markers, cameras and zero."""
        return self.fit.hinge

    @property
    def axis(self) -> NDArray:
        """(3,) unit vector, about which positive angles turn right-handed."""
        return self.fit.hinge.axis

    @property
    def center(self) -> NDArray:
        """(3,) point on the axis, m."""
        return self.fit.hinge.center

    @property
    def radii(self) -> NDArray:
        """(P,) m; NaN of a marker that could not be used."""
        return self.fit.hinge.radii

    @property
    def angle(self) -> NDArray:
        """(N,) rad; NaN where no marker is seen."""
        return self.motion.angle

    @property
    def standard_errors(self) -> NDArray:
        """(N,) of each angle by its own markers' noise, rad."""
        return self.motion.standard_errors

    @property
    def residual_rms(self) -> float:
        """Root mean square distance of the markers from where the angles put them, m."""
        return float(np.sqrt(np.nanmean(self.motion.residuals**2)))

    @property
    def marker_rms(self) -> NDArray:
        """(P,) of each marker, m; NaN of one never used."""
        count = np.sum(np.isfinite(self.motion.residuals), axis=0)
        total = np.nansum(self.motion.residuals**2, axis=0)
        return np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))

    @property
    def n_swapped(self) -> int:
        """Frames in which markers were exchanged and put back."""
        return int(self.motion.swapped.sum())

    @property
    def n_outliers(self) -> int:
        """Positions that were dropped."""
        return int(self.motion.outliers.sum())

    @property
    def n_without_angle(self) -> int:
        """Frames in which no marker is seen."""
        return int(np.isnan(self.angle).sum())

    def summary(self) -> str:
        """Several lines for a person."""
        axis, center = (", ".join(f"{x:.4f}" for x in vector) for vector in (self.axis, self.center))
        moved = np.degrees([np.nanmin(self.angle), np.nanmax(self.angle)])
        single = np.nanmedian(self.standard_errors)
        lines = [
            f"axis    ({axis}), standard error {np.degrees(self.fit.axis_error):.2g}°",
            f"centre  ({center}) m, standard error {1000 * self.fit.center_error:.2g} mm normal to the axis",
            f"radii   {', '.join(f'{1000 * r:.1f}' for r in self.radii)} mm",
            f"angle   {moved[0]:.2f}° to {moved[1]:.2f}°, standard error {np.degrees(single):.2g}° of a frame, "
            f"{np.degrees(self.motion.zero_error):.2g}° of the zero, "
            f"{np.degrees(np.nanmax(self.axis_angle_errors)):.2g}° at most by axis and centre",
            f"residual {1000 * self.residual_rms:.2g} mm RMS; {self.n_swapped} frames with exchanged markers mended, "
            f"{self.n_outliers} positions dropped, {self.n_without_angle} of {len(self.angle)} frames without an angle",
        ]
        return "\n".join([*lines, *self.remarks])
