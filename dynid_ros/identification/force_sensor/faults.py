"""Readings that fit poses much better once they are taken to be in another frame, or poses another way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import solve
from dynid_ros.identification.force_sensor.equations import StaticReading
from dynid_ros.identification.wrench.frame import Frame, sensor_wrench

UNEXPLAINED = 0.1
"""Part of the variation of the readings that is left, from which on other explanations are looked for."""
BETTER = 0.4
"""Part of what is left that another one must leave at most."""
ENOUGH = 4
"""Poses with which two explanations can be told apart."""


def refuse_contradiction(
    reading: StaticReading, rotations: NDArray, wrench: NDArray, frame: Frame, bias: NDArray
) -> None:
    """Refuse readings (M, 6) that contradict the frame they are said to be in, or the poses (M, 3, 3).

    Args:
        reading: what they should be.
        rotations: axes of the sensor in the base, as columns.
        wrench: as read.
        frame: of the wrenches.
        bias: (6,) that is known, in the sensor's axes.

    Raises:
        IdentificationError: says what they look like.

    """
    if len(wrench) < ENOUGH or reading.bends:
        return
    given = _left(reading, rotations, sensor_wrench(wrench, rotations, frame) - bias)
    if given < UNEXPLAINED:
        return
    others = {words: _left(reading, poses, own - bias) for words, (poses, own) in _others(rotations, wrench, frame)}
    words = min(others, key=others.__getitem__)
    if others[words] < BETTER * given:
        raise IdentificationError(
            f"wrench frame '{frame}' contradicts the data: {given:.0%} of the change of the readings from pose to pose "
            f"is left unexplained, but {others[words]:.0%} {words}"
        )


def _others(rotations: NDArray, wrench: NDArray, frame: Frame) -> Iterator[tuple[str, tuple[NDArray, NDArray]]]:
    (other,) = set(get_args(Frame)) - {frame}
    yield (
        f"if they are in the frame of the {other}: set frame='{other}'",
        (rotations, sensor_wrench(wrench, rotations, other)),
    )
    inverse = np.swapaxes(rotations, 1, 2)
    reordered = Rotation.from_quat(Rotation.from_matrix(rotations).as_quat()[:, [1, 2, 3, 0]]).as_matrix()
    for poses, words in (
        (inverse, "if the orientations are those of the base in the sensor: give the sensor's in the base"),
        (reordered, "if the quaternions are in the order w x y z: give x y z w"),
    ):
        yield words, (poses, sensor_wrench(wrench, poses, frame))
        yield f"{words}, and set frame='{other}'", (poses, sensor_wrench(wrench, poses, other))


def _left(reading: StaticReading, rotations: NDArray, wrench: NDArray) -> float:
    """Part of the variation that is left: geometric mean of force's and torque's."""
    columns = reading.columns(rotations, np.linspace(-1.0, 1.0, len(wrench)))
    shares = []
    for rows in (slice(0, 3), slice(3, 6)):
        values = wrench[:, rows]
        residual = solve(columns[:, rows].reshape(values.size, -1), values.ravel()).residual
        variation = np.linalg.norm(values - values.mean(axis=0))
        shares.append(np.linalg.norm(residual) / variation if variation else 1.0)
    return float(np.sqrt(np.prod(shares)))
