"""The best Fourier motion as a problem of minimisation."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.design.fourier_basis import FourierBasis
from dynid_ros.design.motion_room import MotionRoom
from dynid_ros.errors import TrajectoryError
from dynid_ros.information.criteria import Criterion
from dynid_ros.information.torque_information import InformationSource, MotionWithJerk, Rows, information

UNFORESEEN = 1e4
"""The criterion of a motion that the source cannot foresee: worse than any other."""


class DesignProblem:
    """Minimises a criterion of the information of a Fourier motion that keeps to its room.

    Args:
        basis: of the motions.
        source: what a motion tells.
        criterion: how it is rated.
        room: what limits it.
        known: (p, p) information there is already, for a motion of this length; None: none.

    """

    def __init__(
        self,
        basis: FourierBasis,
        source: InformationSource,
        criterion: Criterion,
        room: MotionRoom,
        known: NDArray | None = None,
    ) -> None:
        self._basis, self._source, self._criterion, self._room = basis, source, criterion, room
        self._known = 0.0 if known is None else known
        self._rows: Rows | None = None

    def evaluate(self, vector: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """The smooth criterion, and the excess (N, C); remembered for `gradient`."""
        motion = self._basis.motion(vector)
        try:
            self._rows = self._source.rows(motion)
        except TrajectoryError:
            # Nobody knows what happens there: a step back.
            self._rows = None
            return UNFORESEEN, np.zeros((1, 1))
        objective, self._by_information = self._criterion.smooth(information(self._rows) + self._known, sharpness)
        return objective, self._room.excess(motion, self._rows.torque)

    def gradient(self, by_excess: NDArray) -> NDArray:
        """Gradient of the last criterion plus sum(by_excess * excess)."""
        if self._rows is None:
            return np.zeros(self._basis.size)
        by_room, by_torque = self._room.gradient(by_excess)
        regressor = self._rows.regressor
        by_regressor = (2.0 / regressor.shape[-1]) * np.tensordot(self._by_information, regressor, axes=1)
        by_rows = self._source.gradient(Rows(by_regressor, by_torque))
        return self._basis.gradient(MotionWithJerk(*(a + b for a, b in zip(by_room, by_rows, strict=True))))

    def information(self, vector: NDArray) -> NDArray:
        """Information (p, p), with what was known."""
        return information(self._source.rows(self._basis.motion(vector))) + self._known

    def value(self, vector: NDArray) -> float:
        """The criterion itself."""
        return self._criterion.value(self.information(vector))
