"""Watch for an arm that begins to move by itself while more torque comes in.

A model that is too heavy, or a load that is not there, lifts the arm as soon as its excess exceeds dry friction. A hand
moves the arm as well. The two differ in what happens when the torque goes back: a wrong model stops, and moves again at
the same torque time after time, while a hand goes on, or has stopped for good.

A model that is too light, or a load that nobody announced, lets the arm sink. The arm is then held by a spring: where
it rests in the spring and the spring carries weight, nobody leads it.
"""

import enum
import math
from collections.abc import Sequence

DEPARTURE = 0.02
"""rad (m) from the pose of rest beyond which a joint has moved."""
MIN_SPEED = 0.04
"""rad/s (m/s) above which a joint moves."""
STOPPED_FRACTION = 0.3
"""Part of its speed at the suspicion below which a joint has stopped."""
BACK_PACE = 3.0
"""Pace at which the torque goes back while the arm may rise by itself, and comes again where a hand led it, 1/s."""
MIN_BACK_SCALE = 0.5
"""Part of its scale to which the torque goes back at most: a hand that leads the arm must not get all of its weight."""
PROBE_S = 0.6
"""Longest time for which the torque goes back, or a spring holds, until the arm stops, s."""
SPRING_S = 2.0
"""Time for which a spring holds an arm that sank; an arm that nobody leads rests in it, s."""
MIN_CARRIED = 0.2
"""Part of its largest torque that the spring must carry for a joint to sink by itself."""
FULL_SPRING = 0.95
"""Part of its largest torque from which on the spring carries all that it can."""
SETTLE_S = 0.5
"""Time after the end of a change during which the watch goes on, s."""
MIN_DEPARTURES = 3
"""Number of departures of one joint, the last two at the same torque, that a hand hardly makes within the watch."""
MIN_RELEASED_DEPARTURES = 2
"""The same for an arm that was just released to a torque at full scale, which nobody leads yet."""
MIN_SINKINGS = 3
"""Number of times that a joint sinks into the spring."""
SAME_PROGRESS = 0.06
"""Difference of the change's progress at two departures with the same cause; a hand pulls differently each time."""


class Verdict(enum.Enum):
    """What the watch sees."""

    QUIET = "quiet"
    RISES = "rises"
    """A joint moves the way the torque changed: the torque goes back meanwhile."""
    SINKS = "sinks"
    """A joint moves the other way: a spring holds the arm meanwhile."""
    ROSE_BY_ITSELF = "rose by itself"
    SANK_BY_ITSELF = "sank by itself"


def explain(verdict: Verdict, joint: str, *, is_change: bool) -> str:
    """Say why a joint moves by itself; empty: none does.

    Args:
        verdict: of the watch.
        joint: name of the joint.
        is_change: whether a model, a load or a scale came in place of another one.
    """
    if verdict is Verdict.SANK_BY_ITSELF:
        return (
            f"joint '{joint}' sinks by itself: scale is low, the model is too light, or the arm carries a load that "
            "was not announced"
        )
    if verdict is not Verdict.ROSE_BY_ITSELF:
        return ""
    if is_change:
        return f"joint '{joint}' began to move by itself: the last change of model, load or scale was taken back"
    return f"joint '{joint}' rises by itself: the model is too heavy, or the arm does not carry the load in force"


class MotionWatch:
    """Watches the arm through one change of the torque after another.

    Attributes:
        joint: index of the joint that departed last.
    """

    def __init__(self) -> None:
        self.joint = 0
        self._push: tuple[float, ...] = ()
        self._rest: tuple[float, ...] = ()
        self._ends = -math.inf
        self._probe: tuple[Verdict, float] | None = None  # what is suspected, and since when
        self._speed = 0.0
        self._way = 1.0
        self._departures = 0
        self._released = False
        self._sank = 0
        self._sank_joint = 0
        self._rose: tuple[int, float] | None = None  # joint that rose last, and the progress at that time

    @property
    def is_on(self) -> bool:
        """Whether a change is being watched."""
        return bool(self._push)

    def begin(
        self, position: Sequence[float], velocity: Sequence[float], push: Sequence[float], *, released: bool = False
    ) -> None:
        """Watch a change of the torque that begins now.

        Args:
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s); an arm that moves already is led, and is not watched.
            push: (n,) change of the torque, N m (N), zero where it is too small to move the joint.
            released: whether the arm was just left to this torque; it may move already before that is known.
        """
        self.end()
        self._released = released
        if any(push) and (released or all(abs(v) < MIN_SPEED for v in velocity)):
            self._push = tuple(push)
            self._rest = tuple(position)
            self._ends = math.inf

    def end(self) -> None:
        """Watch no longer."""
        self._push = ()
        self._probe = None
        self._rose = None
        self._departures = 0
        self._sank = 0

    def update(
        self,
        time: float,
        position: Sequence[float],
        velocity: Sequence[float],
        progress: float,
        *,
        carried: Sequence[float] = (),
    ) -> Verdict:
        """Judge one joint state.

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s).
            progress: of the change, 0 to 1.
            carried: (n,) torque of the spring as a part of its largest; empty: there is no spring.
        """
        if not self.is_on:
            return Verdict.QUIET
        if self._probe is not None:
            return self._end_probe(time, position, velocity, carried)
        if progress >= 1.0 and math.isinf(self._ends):
            self._ends = time + SETTLE_S
        if time > self._ends:
            self.end()
            return Verdict.QUIET
        return self._look(time, position, velocity, progress)

    def _look(self, time: float, position: Sequence[float], velocity: Sequence[float], progress: float) -> Verdict:
        """Look for a joint that departs from where it rested."""
        for i, (push, rest, q, v) in enumerate(zip(self._push, self._rest, position, velocity, strict=True)):
            if not push or abs(q - rest) < DEPARTURE or abs(v) < MIN_SPEED or (q - rest) * v < 0.0:
                continue
            rises = push * v > 0.0
            if not rises and self._rose is not None:
                self._rest = tuple(position)  # the torque went back too far, and comes again
                continue
            self.joint = i
            if rises and self._rose is not None and self._rose[0] == i:
                self._departures += 1
                same = abs(progress - self._rose[1]) < SAME_PROGRESS
                enough = self._departures >= MIN_DEPARTURES and same
                if enough or (self._released and self._departures >= MIN_RELEASED_DEPARTURES):
                    self.end()
                    return Verdict.ROSE_BY_ITSELF
            elif rises:
                self._departures = 1
            if rises:
                self._rose = (i, progress)
            suspicion = Verdict.RISES if rises else Verdict.SINKS
            self._probe = (suspicion, time)
            self._speed = abs(v)
            self._way = math.copysign(1.0, v)
            return suspicion
        return Verdict.QUIET

    def _end_probe(
        self, time: float, position: Sequence[float], velocity: Sequence[float], carried: Sequence[float]
    ) -> Verdict:
        """Wait for the arm to stop; a hand does not let it stop."""
        assert self._probe is not None
        suspicion, since = self._probe
        speed = self._way * velocity[self.joint]  # a joint that turns round has stopped
        self._speed = max(self._speed, speed)
        stopped = speed < max(STOPPED_FRACTION * self._speed, MIN_SPEED)
        part = carried[self.joint] if carried else 0.0
        if suspicion is Verdict.RISES and not stopped and time - since < PROBE_S:
            return suspicion
        if suspicion is Verdict.SINKS:
            rests = abs(speed) < MIN_SPEED
            if time - since < PROBE_S or (rests and time - since < SPRING_S):
                return suspicion
            stopped = rests or part > FULL_SPRING  # a hand would have to push it down against all of the spring
        self._probe = None
        if not stopped:
            self.end()
        elif suspicion is Verdict.SINKS and part > MIN_CARRIED:
            self._sank = self._sank + 1 if self._sank_joint == self.joint else 1
            self._sank_joint = self.joint
            if self._sank >= MIN_SINKINGS or part > FULL_SPRING:
                self.end()
                return Verdict.SANK_BY_ITSELF
            self._rest = tuple(position)
            self._ends = math.inf  # without the spring the arm sinks again soon
        else:
            self._rest = tuple(position)
            self._ends = math.inf  # the torque comes again, and is watched again
        return Verdict.QUIET
