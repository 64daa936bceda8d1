"""What the design of a motion needs to know of what the motion tells."""

from typing import Protocol

from numpy.typing import NDArray

from dynid_ros.information.motion import Motion
from dynid_ros.information.torque_information import Rows


class InformationSource(Protocol):
    """Rows of the equations that a motion of the motors gives, with a gradient.

    Motions are one period, at N times spread evenly over it. `rows` and `torque` raise `TrajectoryError` where they
    cannot foresee what a motion does.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The p parameters that are asked for."""

    def rows(self, motion: Motion) -> Rows:
        """Equations of a motion, remembered for `gradient`."""

    def gradient(self, by: Rows) -> Motion:
        """Gradient by the motion, of the last rows."""

    def torque(self, motion: Motion) -> NDArray:
        """Nominal torques (N, n) of a motion, N m or N."""

    def over_time(self, time: NDArray, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Information (p, p) of a motion (N, n) that took place, at times (N,), integrated over time, s.

        Raises:
            TrajectoryError: the source knows of planned motions alone.

        """
