"""Motions of one joint or of two neighbours, of which one can say in a sentence what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.trajectories.limits import MotionLimits

WIDTHS = (0.4, 0.9)
"""Amplitudes, in parts of half the range."""
SLOW, FAST = 0.2, 0.9
"""Speeds, in parts of what velocity and acceleration limits allow at an amplitude."""
PLACES = (0.15, 0.5, 0.85)
"""Where another joint stands, in parts of its range."""
LONGEST_PERIOD = 20.0  # s
PAIR_RATIO = 1.5
"""Between the frequencies of two joints: both come through each other's positions and speeds in all combinations."""
STEPS = {"rad": np.deg2rad(1.0), "m": 0.001}
"""What angles and lengths are rounded to, so that what is said is what was looked at."""


@dataclass(frozen=True, eq=False)
class ElementaryMotion:
    """Sinusoids of one joint or two, while the others stand.

    Attributes:
        joints: which move, counted from 0.
        amplitudes: of each, rad or m.
        rates: of each, rad/s: angular frequencies.
        pose: (n,) where the others stand, and what the joints move about.
        slow: whether it could be much faster.
        placed: the joint that stands elsewhere than in the pose asked about; None: none does.

    """

    joints: tuple[int, ...]
    amplitudes: tuple[float, ...]
    rates: tuple[float, ...]
    pose: NDArray
    slow: bool = False
    placed: int | None = None

    @property
    def period(self) -> float:
        """After which it repeats, s."""
        return 2 * np.pi / self.rates[0] * (1 if len(self.joints) == 1 else 2)

    @property
    def speeds(self) -> tuple[float, ...]:
        """Highest of each joint that moves."""
        return tuple(a * rate for a, rate in zip(self.amplitudes, self.rates, strict=True))

    @property
    def complexity(self) -> tuple[float, ...]:
        """What makes it harder to say and to do, most important first."""
        return len(self.joints), float(self.placed is not None), max(self.amplitudes), max(self.speeds)

    def at(self, time: NDArray) -> NDArray:
        """Position, velocity and acceleration (3, N, n) at times (N,), s."""
        motion = np.zeros((3, len(time), len(self.pose)))
        motion[0] = self.pose
        for joint, amplitude, rate in zip(self.joints, self.amplitudes, self.rates, strict=True):
            sine, cosine = np.sin(rate * time), np.cos(rate * time)
            motion[0, :, joint] += amplitude * sine
            motion[1:, :, joint] = amplitude * rate * cosine, -amplitude * rate**2 * sine
        return motion

    def one_period(self, samples: int) -> NDArray:
        """(3, samples, n) evenly over a period, none where a joint turns round."""
        return self.at((np.arange(samples) + 0.25) * self.period / samples)


def elementary_motions(limits: MotionLimits, pose: NDArray) -> Iterator[ElementaryMotion]:
    """Motions within limits about `pose` (n,), and fast ones about poses that differ from it in one joint."""
    steps = np.array([STEPS[unit] for unit in limits.units])
    pose = np.clip(pose, limits.lower, limits.upper)
    n = len(pose)
    for joints in [*((j,) for j in range(n)), *((j, j + 1) for j in range(n - 1))]:
        moves = list(_sinusoids(limits, steps, pose, joints))
        yield from moves
        for other in (k for k in range(n) if k not in joints):
            for place in PLACES:
                value = limits.lower[other] + place * (limits.upper[other] - limits.lower[other])
                for move in moves:
                    if move.slow:
                        continue
                    elsewhere = move.pose.copy()
                    elsewhere[other] = _towards_zero(value, steps[other])
                    yield replace(move, pose=elsewhere, placed=other)


def _sinusoids(
    limits: MotionLimits, steps: NDArray, pose: NDArray, joints: tuple[int, ...]
) -> Iterator[ElementaryMotion]:
    """Wide and narrow, fast and, of a joint alone, slow."""
    order = np.array(joints)
    half = (limits.upper - limits.lower)[order] / 2
    for width in WIDTHS:
        amplitudes = np.array([_towards_zero(a, s) for a, s in zip(width * half, steps[order], strict=True)])
        about = pose.copy()
        about[order] = np.clip(pose[order], limits.lower[order] + amplitudes, limits.upper[order] - amplitudes)
        ratios = np.array([1.0, PAIR_RATIO])[: len(joints)]
        fastest = np.minimum(limits.velocity[order] / amplitudes, np.sqrt(limits.acceleration[order] / amplitudes))
        for share in (FAST,) if len(joints) == 2 else (SLOW, FAST):
            rate = max(share * np.min(fastest / ratios), 2 * np.pi * len(joints) / LONGEST_PERIOD)
            if rate <= np.min(fastest / ratios):
                yield ElementaryMotion(
                    joints, tuple(map(float, amplitudes)), tuple(map(float, rate * ratios)), about, share == SLOW
                )


def _towards_zero(value: float, step: float) -> float:
    return float(np.trunc(value / step) * step) or value
