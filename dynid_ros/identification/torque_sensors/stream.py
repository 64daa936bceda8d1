"""Rests and slow motion of an arm at work, cut out of the stream of its joint states."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.identification.samples import SampleRules, Samples, slow_samples, spaced, static_samples
from dynid_ros.recording import Recording

LONGEST_REST = 30.0
"""An arm that rests longer than this gives a sample each such time, s."""
LONGEST_MOTION = 60.0
"""Motion without a rest is looked at after this time, s."""
SPACING = 1.0
"""Time between blocks of slow motion that are used, s: friction varies along the way, and neighbours vary alike."""


class SampleStream:
    """Gives each rest once, when it is over, and what was slow on the way.

    Args:
        joint_names: n joints.
        rules: what counts as static and as slow.
        slow: whether slow motion counts.

    """

    def __init__(self, joint_names: Sequence[str], rules: SampleRules, slow: bool = False) -> None:
        self.joint_names, self.rules, self.slow = tuple(joint_names), rules, slow
        self._states: deque[tuple[float, ArrayLike, ArrayLike]] = deque()

    def add(self, time: float, position: ArrayLike, reading: ArrayLike) -> None:
        """A joint state: time (s), positions and readings, (n,) each; one that comes too late is left out."""
        if not self._states or time > self._states[-1][0]:
            self._states.append((time, position, reading))

    def take(self) -> Samples | None:
        """What has been completed since the last call; None if nothing."""
        if len(self._states) < 10:
            return None
        recording = self._recording()
        static = static_samples(recording, self.rules)
        ends = [self._end(recording, static, m) for m in range(len(static))]
        done = [m for m, end in enumerate(ends) if end]
        if done:
            last = ends[done[-1]]
        elif recording.duration > (LONGEST_REST if len(static) else LONGEST_MOTION):
            done, last = list(range(len(static))), recording.n_samples
        else:
            return None
        parts = [static.take(done)]
        if self.slow:
            parts.append(spaced(slow_samples(recording.slice(slice(max(last, 10))), self.rules), SPACING))
        for _ in range(last):
            self._states.popleft()
        found = Samples.join(parts)
        return found if len(found) else None

    def _recording(self) -> Recording:
        time, position, reading = (np.array(values) for values in zip(*self._states, strict=True))
        return Recording(
            self.joint_names, time, position, np.full_like(position, np.nan), reading, source="joint states"
        )

    def _end(self, recording: Recording, samples: Samples, m: int) -> int:
        """Row at which the arm has left the place of a sample; 0 if it has not."""
        after = recording.time > samples.time[m]
        away = np.abs(recording.position - samples.position[m]).max(axis=1) > self.rules.minimum_approach
        return int(np.argmax(after & away))
