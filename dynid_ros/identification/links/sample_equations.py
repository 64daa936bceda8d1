"""Equations of samples that are motion and torque already."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import AnyColumns
from dynid_ros.identification.equations import EquationBlock, Equations
from dynid_ros.identification.motion_kinds import MotionKinds
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks, joint_samples


class SampleEquations(Equations[AnyColumns]):
    """The equations of samples (N, n) of q, qd, qdd and torque, neither filtered nor decimated.

    Args:
        kinds: whether to tell `MotionKinds` apart, for errors that allow for residuals that are no noise.

    Attributes:
        speed_rms: (n,) RMS velocity of each joint, rad/s or m/s.

    Raises:
        ModelError: arrays of unlike shapes.
        IdentificationError: no samples, or values that are not finite.

    """

    def __init__(
        self,
        robot: RobotModel,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        torque: ArrayLike,
        *,
        kinds: bool = True,
    ):
        arrays = {"q": q, "qd": qd, "qdd": qdd, "torque": torque}
        self._samples = joint_samples(robot.joint_names, **arrays)
        for name, array in zip(arrays, self._samples, strict=True):
            if not len(array):
                raise IdentificationError(f"{name} has no samples; record motion")
            for window in blocks(len(array)):
                if not np.isfinite(array[window]).all():
                    row, joint = np.argwhere(~np.isfinite(array[window]))[0]
                    raise IdentificationError(
                        f"{name} of {robot.joint_names[joint]} is {array[window][row, joint]} in sample "
                        f"{window.start + row}; leave such samples out"
                    )
        size = len(self._samples[0])
        self.sizes, self.spans = [size], [(0.0, float(size))]
        position, velocity = self._samples[:2]
        self._kinds = MotionKinds([(position, velocity)]) if kinds else None
        self.speed_rms = np.sqrt(np.einsum("ij,ij->j", velocity, velocity) / size)

    def blocks(self, columns: AnyColumns) -> Iterator[EquationBlock]:
        """All equations, in flat memory; their times are their numbers."""
        for window in blocks(self.sizes[0]):
            *motion, torque = (array[window] for array in self._samples)
            time = window.start + np.arange(len(torque))
            kind = None if self._kinds is None else self._kinds.of(*motion[:2])
            yield EquationBlock(0, time, np.zeros(len(torque)), kind, columns.rows(*motion), torque)
