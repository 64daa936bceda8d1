"""Equations of a load from joint torques: what the arm's own model leaves of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.equations import EquationBlock, Equations
from dynid_ros.identification.links.equations import LinkEquations
from dynid_ros.identification.load.columns import TorqueLoadColumns
from dynid_ros.identification.load.known_arm import KnownArm
from dynid_ros.identification.samples import SampleRules, Samples, static_samples
from dynid_ros.recording import Recording


class LoadEquations(LinkEquations[TorqueLoadColumns]):
    """Of motion: torque less the arm's own, and every column, through the low-pass of the arm's identification."""

    def __init__(self, arm: KnownArm, recordings: Sequence[Recording]):
        super().__init__(arm.model.signals, recordings)
        self.segments = [replace(part, torque=part.torque - arm.model.predict(*part.motion)) for part in self.segments]


class StaticLoadEquations(Equations[TorqueLoadColumns]):
    """Of rests: their mean torques less the arm's gravity torque and offsets.

    Attributes:
        samples: one for each rest.

    Raises:
        IdentificationError: no joint rests long enough.

    """

    def __init__(self, arm: KnownArm, recordings: Sequence[Recording], rules: SampleRules | None = None):
        rules = rules or SampleRules()
        parts = [static_samples(recording, rules) for recording in recordings]
        self.samples = Samples.join(parts)
        if not len(self.samples):
            raise IdentificationError(
                f"{', '.join(recording.source for recording in recordings)}: no rest of at least "
                f"{rules.minimum_dwell:g} s; record poses with dwells, or identify from motion"
            )
        self._arm = arm
        self.sizes = [len(part) for part in parts]
        self.spans = [(recording.time[0], recording.time[-1]) for recording in recordings]

    def blocks(self, columns: TorqueLoadColumns) -> Iterator[EquationBlock]:
        """All equations."""
        for recording, size in enumerate(self.sizes):
            if size:
                yield self._block(columns, recording)

    def _block(self, columns: TorqueLoadColumns, recording: int) -> EquationBlock:
        own = self.samples.part == recording
        position, torque, direction = (
            values[own] for values in (self.samples.position, self.samples.torque, self.samples.direction)
        )
        still = np.zeros_like(position)
        rows = columns.rest_rows(position, direction)
        time = self.samples.time[own]
        torque = torque - self._arm.model.predict(position, still, still)
        return EquationBlock(recording, time, np.zeros(len(time)), None, rows, torque)
