"""Detection of an arm that begins to move by itself while the gravity torque is increased.

A model that is too heavy, or includes a load that the arm does not carry, lifts the arm as soon as the excess torque
exceeds dry friction. A person who leads the arm by hand also moves it. To distinguish the two, torque is withdrawn. If
the model is wrong, the arm stops, and moves again at the same torque each time. If a hand leads the arm, it continues,
or stops and stays at rest.

A model that is too light, or an unannounced load, lets the arm sink. A virtual spring about the present pose then holds
the arm. If the arm comes to rest while the spring bears part of the weight, the arm sank by itself.
"""

import enum
import math
from collections.abc import Sequence

MIN_DEPARTURE = 0.02
"""Displacement from the pose of rest beyond which a joint has moved, rad (m)."""
MIN_SPEED = 0.04
"""Speed above which a joint moves, rad/s (m/s)."""
STOPPED_FRACTION = 0.3
"""Speed below which a joint has stopped, as a fraction of its largest speed since the suspicion."""
BACK_PACE = 3.0
"""Rate at which torque is withdrawn during a suspicion, and restored if a hand led the arm: fraction per second."""
MIN_BACK_SCALE = 0.5
"""Smallest fraction of the torque that remains after a withdrawal, so that a hand does not bear the whole weight."""
MIN_PUSH_FRACTION = 0.01
"""Smallest change of a joint's torque, as a fraction of its limit, after which its motion is watched."""
PROBE_S = 0.6
"""Longest time to wait for the arm to stop after torque is withdrawn or a spring engages, s."""
SPRING_S = 2.0
"""Time for which a spring holds a sinking arm, s; without a leading hand, the arm then rests in the spring."""
MIN_CARRIED = 0.2
"""Smallest spring torque that shows weight on the spring, as a fraction of the spring's largest torque."""
FULL_SPRING = 0.95
"""Spring torque at which the spring is saturated, as a fraction of its largest torque."""
SETTLE_S = 0.5
"""Duration of the watch after the end of a change, s."""
MIN_DEPARTURES = 3
"""Number of departures of one joint, the last two at equal torque, that indicates a motion by itself."""
MIN_RELEASED_DEPARTURES = 2
"""The same for an arm that another controller has just released, because no hand leads it yet."""
MIN_SINKINGS = 3
"""Number of times that a joint must sink into the spring, unless the spring saturates."""
SAME_PROGRESS = 0.06
"""Largest difference in the progress of the change between two departures at equal torque."""


class Verdict(enum.Enum):
    """Verdict of the watch on the motion of the arm."""

    QUIET = "quiet"
    RISES = "rises"
    """A joint moves in the direction of the added torque, which is withdrawn during the suspicion."""
    SINKS = "sinks"
    """A joint moves against the added torque; a spring holds the arm during the suspicion."""
    ROSE_BY_ITSELF = "rose by itself"
    SANK_BY_ITSELF = "sank by itself"


def explain(verdict: Verdict, joint: str, *, is_change: bool) -> str:
    """Return the reason why a joint moves by itself, as a message; empty without such a verdict.

    Args:
        verdict: verdict of the watch.
        joint: name of the joint.
        is_change: whether a model, a load or a scale replaced an earlier one.
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


def pushes(before: Sequence[float], after: Sequence[float], limits: Sequence[float]) -> list[float]:
    """Return the changes of torques (n,), N m (N); changes that are small relative to the limits (n,) become zero."""
    changes = [new - old for old, new in zip(before, after, strict=True)]
    rows = zip(changes, limits, strict=True)
    return [change if abs(change) > MIN_PUSH_FRACTION * limit else 0.0 for change, limit in rows]


class MotionWatch:
    """Watch of the arm's motion during a change of the gravity torque, updated with each joint state.

    Attributes:
        joint: index of the joint that departed last from its position at rest.
    """

    def __init__(self) -> None:
        self.joint = 0
        self._push: tuple[float, ...] = ()
        self._rest_pose: tuple[float, ...] = ()
        self._ends = -math.inf
        self._probe: tuple[Verdict, float] | None = None  # suspicion, and time of its begin
        self._probe_speed = 0.0  # largest speed since the begin of the suspicion
        self._probe_direction = 1.0
        self._departures = 0
        self._released = False
        self._sinkings = 0
        self._sinking_joint = 0
        self._last_rise: tuple[int, float] | None = None  # joint that rose last, and the progress at that time

    @property
    def is_on(self) -> bool:
        """Whether a change is being watched."""
        return bool(self._push)

    def begin(
        self, position: Sequence[float], velocity: Sequence[float], push: Sequence[float], *, released: bool = False
    ) -> None:
        """Watch a change of the torque that begins now.

        Args:
            position: (n,) position at rest, rad (m).
            velocity: (n,) rad/s (m/s); an arm that already moves is led by a hand and is not watched.
            push: (n,) change of the torque, N m (N), from `pushes`; joints with zero are not watched.
            released: whether another controller just released the arm, which may therefore already move.
        """
        self.end()
        self._released = released
        if any(push) and (released or all(abs(v) < MIN_SPEED for v in velocity)):
            self._push = tuple(push)
            self._rest_pose = tuple(position)
            self._ends = math.inf

    def end(self) -> None:
        """End the watch."""
        self._push = ()
        self._probe = None
        self._last_rise = None
        self._departures = 0
        self._sinkings = 0

    def update(
        self,
        time: float,
        position: Sequence[float],
        velocity: Sequence[float],
        progress: float,
        *,
        carried: Sequence[float] = (),
    ) -> Verdict:
        """Return the verdict after one joint state.

        Args:
            time: time of the steady clock, s.
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s).
            progress: progress of the change, 0 to 1.
            carried: (n,) absolute spring torques as fractions of their maxima; empty without a spring.
        """
        if not self.is_on:
            return Verdict.QUIET
        if self._probe is not None:
            return self._await_stop(time, position, velocity, carried)
        if progress >= 1.0 and math.isinf(self._ends):
            self._ends = time + SETTLE_S
        if time > self._ends:
            self.end()
            return Verdict.QUIET
        return self._detect_departure(time, position, velocity, progress)

    def _detect_departure(
        self, time: float, position: Sequence[float], velocity: Sequence[float], progress: float
    ) -> Verdict:
        """Detect a joint that departs from its pose of rest."""
        for i, (push, rest, q, v) in enumerate(zip(self._push, self._rest_pose, position, velocity, strict=True)):
            if not push or abs(q - rest) < MIN_DEPARTURE or abs(v) < MIN_SPEED or (q - rest) * v < 0.0:
                continue
            rises = push * v > 0.0
            if not rises and self._last_rise is not None:
                self._rest_pose = tuple(position)  # it sinks because of the withdrawn torque, which is being restored
                continue
            self.joint = i
            if rises and self._last_rise is not None and self._last_rise[0] == i:
                self._departures += 1
                is_same_torque = abs(progress - self._last_rise[1]) < SAME_PROGRESS
                is_repeated = self._departures >= MIN_DEPARTURES and is_same_torque
                if is_repeated or (self._released and self._departures >= MIN_RELEASED_DEPARTURES):
                    self.end()
                    return Verdict.ROSE_BY_ITSELF
            elif rises:
                self._departures = 1
            if rises:
                self._last_rise = (i, progress)
            suspicion = Verdict.RISES if rises else Verdict.SINKS
            self._probe = (suspicion, time)
            self._probe_speed = abs(v)
            self._probe_direction = math.copysign(1.0, v)
            return suspicion
        return Verdict.QUIET

    def _await_stop(
        self, time: float, position: Sequence[float], velocity: Sequence[float], carried: Sequence[float]
    ) -> Verdict:
        """Wait for the arm to stop, and return the verdict; a leading hand does not let it stop."""
        assert self._probe is not None
        suspicion, since = self._probe
        speed = self._probe_direction * velocity[self.joint]  # a joint that reverses has stopped
        self._probe_speed = max(self._probe_speed, speed)
        stopped = speed < max(STOPPED_FRACTION * self._probe_speed, MIN_SPEED)
        spring_share = carried[self.joint] if carried else 0.0
        if suspicion is Verdict.RISES and not stopped and time - since < PROBE_S:
            return suspicion
        if suspicion is Verdict.SINKS:
            rests = abs(speed) < MIN_SPEED
            if time - since < PROBE_S or (rests and time - since < SPRING_S):
                return suspicion
            stopped = rests or spring_share > FULL_SPRING  # a hand hardly pushes against a saturated spring
        self._probe = None
        if not stopped:
            self.end()
        elif suspicion is Verdict.SINKS and spring_share > MIN_CARRIED:
            self._sinkings = self._sinkings + 1 if self._sinking_joint == self.joint else 1
            self._sinking_joint = self.joint
            if self._sinkings >= MIN_SINKINGS or spring_share > FULL_SPRING:
                self.end()
                return Verdict.SANK_BY_ITSELF
            self._rest_pose = tuple(position)
            self._ends = math.inf  # without the spring the arm sinks again soon
        else:
            self._rest_pose = tuple(position)
            self._ends = math.inf  # the torque is restored, and the watch continues
        return Verdict.QUIET
