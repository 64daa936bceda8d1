"""Motion of joints from positions: to the ends of a recording, and without the noise of joints that rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.polynomial.polynomial import polyfit, polyval
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from dynid_ros.recording.channel_checks import MOVED
from dynid_ros.signals import LowPass, Motion, filtered_motion
from dynid_ros.signals.derivatives import STENCIL

UNDER_WAY = 0.2
"""Mean over the joints and a second of squared velocity, each over its own mean square, above which a motion is under
way. Around starts and stops friction is another: breakaway, and torque that a controller leaves behind."""


def joint_motions(positions: Sequence[NDArray], low_pass: LowPass) -> list[Motion]:
    """Motion of each of several stretches (M, n) of a recording, M >= 7.

    A joint that rests throughout does not move at all: its sensor's noise has a direction, and would pass for friction
    that is known to be zero, and for poses that tell gravity from offset.
    """
    motions = [_continued_motion(stretch, low_pass) for stretch in positions]
    if motions:
        high = np.max([motion.position.max(axis=0) for motion in motions], axis=0)
        low = np.min([motion.position.min(axis=0) for motion in motions], axis=0)
        still = high - low < MOVED
        for motion in motions:
            motion.position[:, still] = (low + high)[still] / 2
            motion.velocity[:, still] = motion.acceleration[:, still] = 0.0
    return motions


def moving_rows(motion: Motion, rate: float) -> slice:
    """Rows from the first to the last at which the motion is under way; rate in Hz."""
    squares = motion.velocity**2
    mean = squares.mean(axis=0)
    moves = mean > 0
    if not moves.any():
        return slice(0, 0)
    energy = (squares[:, moves] / mean[moves]).mean(axis=1)
    rows = np.flatnonzero(uniform_filter1d(energy, min(len(energy), round(rate)), mode="nearest") > UNDER_WAY)
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _continued_motion(position: NDArray, low_pass: LowPass) -> Motion:
    """Motion of positions (M, n) that go on beyond both ends as the cubic that fits best there.

    Continued point-symmetrically, as filters do by themselves, a motion would lose its acceleration at the ends.
    """
    edge = low_pass.edge
    fitted = np.arange(min(len(position), max(edge, STENCIL))) / edge
    beyond = np.arange(-edge, 0) / edge
    before, after = (polyval(beyond, polyfit(fitted, end[: len(fitted)], 3)).T for end in (position, position[::-1]))
    motion = filtered_motion(np.concatenate([before, position, after[::-1]]), low_pass)
    return Motion(*(values[edge : edge + len(position)] for values in motion))
