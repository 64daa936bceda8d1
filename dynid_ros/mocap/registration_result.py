"""What a registration found, and how well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.marker_set import MarkerSet


@dataclass(frozen=True, eq=False)
class Registration:
    """What ties a camera to an arm.

    What a deflection has in common with all poses (an arm that hangs forward sags forward) moves the camera or the
    markers: no camera can tell it from them. What changes from pose to pose is fitted if the joints may give way. If
    motors stand for links, as if the joints were stiff, it is part of the residual and of the standard errors.

    Attributes:
        markers: with their places, NaN for markers that do not fit their link.
        camera: (4, 4) pose of the base in the camera frame, m.
        offsets: (n,) rad or m to add to motor positions; zero where not decidable or not asked for.
        camera_errors: (6,) standard errors: rotation about the base's axes, rad, and shift along them, m.
        place_errors: (P, 3) m.
        offset_errors: (n,) rad or m, NaN where the offset was not found.
        deflection: (n,) usual size of what the joints give way, rad or m; None if they were taken as stiff.
        noise: standard deviation of a coordinate, m: of the markers, and of stiff joints' deflections.
        residual_rms: (P,) m, length of a marker's residual, outliers left out.
        used: (P,) share of a marker's positions that are no outliers.
        undecided: what no marker tells, in words. Link angles do not depend on it.
        remarks: markers that do not fit.

    """

    markers: MarkerSet
    camera: NDArray
    offsets: NDArray
    camera_errors: NDArray
    place_errors: NDArray
    offset_errors: NDArray
    deflection: NDArray | None
    noise: float
    residual_rms: NDArray
    used: NDArray
    undecided: tuple[str, ...]
    remarks: tuple[str, ...]

    def summary(self) -> str:
        """Text: standard errors in mm and degrees, residual per marker, what is undecided."""
        turn, shift = np.rad2deg(self.camera_errors[:3]), 1000 * self.camera_errors[3:]
        lines = [
            f"residual {1000 * self.noise:.2f} mm per coordinate",
            f"camera: standard errors {_numbers(turn, 3)} deg about, {_numbers(shift, 2)} mm along x, y, z of the base",
        ]
        for p, name in enumerate(self.markers.names):
            lines.append(
                f"  {name}: at {_numbers(1000 * self.markers.places[p], 1)} mm, standard errors "
                f"{_numbers(1000 * self.place_errors[p], 2)}, residual {1000 * self.residual_rms[p]:.2f} RMS, "
                f"{self.used[p]:.0%} used"
            )
        return "\n".join([*lines, *(f"  {line}" for line in (*self.undecided, *self.remarks))])


def _numbers(values: NDArray, digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)
