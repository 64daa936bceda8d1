"""Motion of joints from positions: to the ends of a recording, and without the noise of joints that rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.polynomial.polynomial import polyfit, polyval
from numpy.typing import NDArray

from dynid_ros.recording.channel_checks import MOVED
from dynid_ros.signals import LowPass, Motion, filtered_motion
from dynid_ros.signals.motion import STENCIL

AT_REST = 0.02
"""A joint slower than this share of its top speed rests; where all rest at the ends, friction can be anything."""


def joint_motions(positions: Sequence[NDArray], low_pass: LowPass) -> list[Motion]:
    """Motion of each of several stretches (M, n) of a recording, M >= 7.

    A joint that rests throughout has neither velocity nor acceleration: those of its sensor's noise have a direction,
    and would pass for friction that is known to be zero.
    """
    motions = [_continued_motion(stretch, low_pass) for stretch in positions]
    if motions:
        top = np.max([motion.position.max(axis=0) for motion in motions], axis=0)
        still = top - np.min([motion.position.min(axis=0) for motion in motions], axis=0) < MOVED
        for motion in motions:
            motion.velocity[:, still] = motion.acceleration[:, still] = 0.0
    return motions


def moving_rows(motion: Motion) -> slice:
    """Rows from the first to the last at which any joint moves."""
    speed = np.abs(motion.velocity)
    moving = np.flatnonzero((speed > AT_REST * speed.max(axis=0)).any(axis=1))
    return slice(int(moving[0]), int(moving[-1]) + 1) if moving.size else slice(0, 0)


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
