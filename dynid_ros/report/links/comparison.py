"""Measured torque beside what the identified links and those of the URDF say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.identified.validation import Validation, validate_torque
from dynid_ros.recording import Recording
from dynid_ros.signals import Motion


@dataclass(frozen=True, eq=False)
class TorqueComparison:
    """All torques of one recording through the same low-pass, decimated.

    Attributes:
        recording: its name.
        time: (M,) s.
        motion: position, velocity, acceleration at these times, (M, n) each.
        measured, identified, urdf: (M, n) torque.
        rate: of the samples before decimation, Hz.

    """

    recording: str
    time: NDArray
    motion: Motion
    measured: NDArray
    identified: NDArray
    urdf: NDArray
    rate: float

    @classmethod
    def of(cls, result: LinkResult, recording: Recording) -> TorqueComparison:
        """Of one recording.

        Raises:
            RecordingError: a joint of the robot is not in it.
            IdentificationError: no torque, or too short.

        """
        own = recording.select(result.robot.joint_names)
        time, measured, identified = result.model.compare(own)
        urdf = result.urdf_model.compare(own)[2]
        segments = result.model.signals.segments(own)
        rows = np.searchsorted(np.concatenate([part.time for part in segments]), time)
        motion = Motion(
            *(np.concatenate(parts)[rows] for parts in zip(*(part.motion for part in segments), strict=True))
        )
        return cls(recording.source, time, motion, measured, identified, urdf, segments[0].rate)

    @property
    def error(self) -> NDArray:
        """(M, n) measured less identified torque."""
        return self.measured - self.identified

    @property
    def step(self) -> float:
        """Time between samples, s."""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 1 / self.rate

    @property
    def stretches(self) -> list[slice]:
        """Rows without a gap between them, in order."""
        ends = np.flatnonzero(np.diff(self.time) > 1.5 * self.step) + 1
        return [slice(*pair) for pair in zip([0, *ends], [*ends, len(self.time)], strict=True)]

    @property
    def longest(self) -> slice:
        """The longest stretch."""
        return max(self.stretches, key=lambda rows: rows.stop - rows.start)


def agreement(
    joints: Sequence[str],
    comparisons: Sequence[TorqueComparison],
    predicted: Callable[[TorqueComparison], NDArray],
) -> Validation:
    """Agreement per joint over several recordings together."""
    names = ", ".join(one.recording for one in comparisons)
    measured = np.concatenate([one.measured for one in comparisons])
    return validate_torque(names, joints, measured, np.concatenate([predicted(one) for one in comparisons]))
