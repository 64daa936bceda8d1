"""A body that turns about a fixed axis: the axis, and where the body's markers are at angle zero."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.axis import axis_frame


@dataclass(frozen=True, eq=False)
class Hinge:
    """Markers on circles about one axis, with fixed angles between them.

    Attributes:
        frame: (3, 3) columns in the camera's frame: two normal to the axis, and the axis.
        center: (3,) point on the axis, m, in the camera's frame.
        template: (P, 3) markers at angle zero from the centre, m, along the columns of `frame`; NaN for an unknown one.

    """

    frame: NDArray
    center: NDArray
    template: NDArray

    @property
    def axis(self) -> NDArray:
        """(3,) unit vector about which positive angles turn right-handed."""
        return self.frame[:, 2]

    @cached_property
    def radii(self) -> NDArray:
        """(P,) distances of the markers from the axis, m."""
        return np.hypot(self.template[:, 0], self.template[:, 1])

    def local(self, markers: NDArray) -> NDArray:
        """Positions (..., 3) from the centre along the columns of `frame`."""
        return (markers - self.center) @ self.frame

    def turned(self, angle: NDArray) -> NDArray:
        """(N, P, 3) local positions of the markers at angles (N,) rad."""
        cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
        x, y, height = self.template.T
        along, across = cosine * x - sine * y, sine * x + cosine * y
        return np.stack([along, across, np.broadcast_to(height, along.shape)], axis=2)

    def angles(self, local: NDArray) -> NDArray:
        """Angles (N,) of least squares for local positions (N, P, 3), in (-π, π]; NaN where no marker is seen.

        The sum of squared distances of Lightcap and Banks 2007, eq. 13, has its minimum in closed form: only distances
        within the plane normal to the axis depend on the angle.
        """
        x, y = local[..., 0], local[..., 1]
        along = np.nansum(x * self.template[:, 0] + y * self.template[:, 1], axis=1)
        across = np.nansum(y * self.template[:, 0] - x * self.template[:, 1], axis=1)
        return np.where((along == 0) & (across == 0), np.nan, np.arctan2(across, along))

    def reach(self, seen: NDArray) -> NDArray:
        """(N,) root of the sum of squared radii of the seen markers (N, P), m: movement for a radian."""
        return np.sqrt(seen @ np.nan_to_num(self.radii) ** 2)

    def reset(self, angle: float) -> "Hinge":
        """The same hinge, with what was `angle` (rad) as its angle zero."""
        return replace(self, template=self.turned(np.array([angle]))[0])

    def reversed(self) -> "Hinge":
        """The same hinge with its axis, and all angles, the other way round."""
        flip = np.array([1.0, -1.0, -1.0])
        return replace(self, frame=self.frame * flip, template=self.template * flip)


def start_hinge(markers: NDArray, axis: NDArray, center: NDArray) -> Hinge:
    """Hinge about a known axis: radii, heights and angles between markers as medians, which few outliers do not move.

    A marker that is never seen together with any other, directly or over others, stays unknown.

    Args:
        markers: (N, P, 3) m, NaN where not seen.
        axis: (3,) unit vector.
        center: (3,) m.

    """
    hinge = Hinge(axis_frame(axis), center, np.full((markers.shape[1], 3), np.nan))
    local = hinge.local(markers)
    seen = np.isfinite(local[..., 0])
    phase = np.arctan2(local[..., 1], local[..., 0])
    first = int(np.argmax(seen.sum(axis=0)))
    turn, known = phase[:, first].copy(), seen[:, first].copy()
    hinge.template[first, :2] = 1.0, 0.0
    waiting = set(range(markers.shape[1])) - {first}
    while waiting:
        next_one = max(waiting, key=lambda p: int(np.sum(known & seen[:, p])))
        both = known & seen[:, next_one]
        if not both.any():
            break
        offset = _median_angle(phase[both, next_one] - turn[both])
        hinge.template[next_one, :2] = np.cos(offset), np.sin(offset)
        turn = np.where(known, turn, phase[:, next_one] - offset)
        known |= seen[:, next_one]
        waiting.remove(next_one)
    for p in np.flatnonzero(np.isfinite(hinge.template[:, 0])):
        mine = local[seen[:, p], p]
        hinge.template[p, :2] *= np.median(np.hypot(mine[:, 0], mine[:, 1]))
        hinge.template[p, 2] = np.median(mine[:, 2])
    return hinge


def _median_angle(angles: NDArray) -> float:
    """Median about the circular mean, rad; from the mode's side, so that a few angles elsewhere do not count."""
    middle = np.angle(np.mean(np.exp(1j * angles)))
    return float(middle + np.median(np.angle(np.exp(1j * (angles - middle)))))
