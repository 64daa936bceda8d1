"""Compensation of dry friction at rest: a hand starts a motion with a fraction of the breakaway friction.

A joint at rest gets a torque that alternates between both directions and is smaller than its friction, so that it does
not move (dither; Armstrong-Hélouvry, Dupont and Canudas de Wit 1994, section 4.2). A hand that adds the missing part
moves the joint in the half periods of its direction. After a small deflection the torque acts in that direction alone,
and it fades with the measured speed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MAX_REST_SCALE = 0.76
"""Largest compensated fraction of breakaway friction: with friction that is 25 % too high, 5 % are left."""
HALF_PERIOD_S = 0.04
"""Shortest half period of the alternation, s."""
RISE_SHARE = 0.3
"""Largest fraction of a half period in which the torque changes its sign at the fastest rate."""
MIN_DEFLECTION = 3e-4
"""Deflection that is attributed to noise, rad (m)."""
FULL_DEFLECTION = 1e-3
"""Deflection at which the torque acts in one direction alone, rad (m)."""
RISE_S = 1.5
"""Duration of the rise of the amplitude after a joint has come to rest, s."""
STOP_SPEED = 4e-3
"""Speed below which a joint is at rest, rad/s (m/s)."""
STOP_S = 0.15
"""Time below that speed after which a joint is at rest, s."""
SPEED_FILTER_S = 0.03
"""Time constant of the low-pass of the speed, s."""
TRIAL_SPEED = 0.025
"""Smallest speed at which the torque has faded during a trial, in which a hand or a weight may push, rad/s (m/s)."""
TRIAL_S = 0.7
"""Time after which a push that does not change counts as a weight, s."""
MAX_TRIAL_TRAVEL = 0.003
"""Travel after which a push also counts as a weight, rad (m); 0.006 instead of 0.003 rad saves a hand no force."""
STEADY_S = 0.25
"""Time after which the speed under a constant push is constant, s."""
MIN_TRIAL_SHARE = 0.3
"""Smallest speed whose changes are evaluated, as a fraction of the speed of the trial."""
MIN_SPEED_CHANGE = 0.15
"""Change of the speed that shows a hand, as a fraction of `TRIAL_SPEED`."""
PUSHED_SPEED = 1.5
"""Speed that only a push above the whole friction maintains, as a multiple of the speed of the trial."""
PUSHED_S = 0.1
"""Time above that speed that shows a hand, s."""
WITHDRAWAL_S = 0.06
"""Time after which a withdrawn torque no longer acts, s."""
TRUST_S = 0.1
"""Fade-in time of the friction compensation of a moving joint after a hand has been detected, s."""
MIN_ONSET = 0.03
"""Smallest amplitude, as a fraction of the compensated friction, at which the torque can cause a departure."""
CAP_SHARE = 0.6
"""Amplitude after a weight has moved a joint, as a fraction of the amplitude at which the joint moved."""
UNHELD_WEIGHT = 2.0
"""Payload weight over compensated friction above which the joint moves in any case once the payload is removed."""


@dataclass(frozen=True)
class BreakawayFriction:
    """Compensated part of dry friction, one entry per joint, N m (N) and rad/s (m/s).

    Attributes:
        coulomb: friction at high speed without load.
        stribeck: additional friction at rest, which falls with the speed.
        stribeck_velocity: speed at which it has fallen to 1/e; infinite without such friction.
        load: friction per gravity torque, without unit.
    """

    coulomb: tuple[float, ...]
    stribeck: tuple[float, ...]
    stribeck_velocity: tuple[float, ...]
    load: tuple[float, ...]

    def levels(self, speed: Sequence[float], gravity: Sequence[float]) -> list[float]:
        """Return the friction (n,) at speeds v (n,), rad/s (m/s), under gravity torques g (n,), N m (N).

        It is coulomb + stribeck exp(-(v / stribeck_velocity)^2) + load |g|.
        """
        rows = zip(self.coulomb, self.stribeck, self.stribeck_velocity, self.load, speed, gravity, strict=True)
        return [c + s * math.exp(-((v / w) ** 2)) + factor * abs(g) for c, s, w, factor, v, g in rows]


def moving_share(velocity: float, friction_velocity: float) -> float:
    """Return the factor on Coulomb friction of a moving joint: 0 below half of the friction velocity, 1 above it."""
    return min(max(2.0 * abs(velocity) / friction_velocity - 1.0, 0.0), 1.0)


class RestFriction:
    """Torque against dry friction of joints that a hand begins to move.

    The torque never exceeds the compensated part of friction, so that friction and torque together dissipate energy:
    noise and delay cannot drive a joint. A weight could: it pushes like a hand, but steadily.

    The compensated weight of a payload pushes the joints upwards once the payload is put down. While a payload is
    carried, the torque in that direction is therefore smaller by its weight. Other weights are not known, so a joint
    that departs from rest is on trial. Its speed stays below `TRIAL_SPEED` until the push changes or exceeds the whole
    friction, which shows a hand. Otherwise the torque is withdrawn after `TRIAL_S` and returns slowly. A joint that
    departs again is moved by a weight. Its amplitude in that direction is then smaller until a hand moves it.

    Attributes:
        trust: (n,) factor on the friction compensation of moving joints, 0 to 1.
    """

    def __init__(self, joints: int) -> None:
        self.trust = [1.0] * joints
        self._joints = [_Joint() for _ in range(joints)]
        self._time = -math.inf

    def torque(
        self,
        time: float,
        position: Sequence[float],
        velocity: Sequence[float],
        levels: Sequence[float],
        *,
        rates: Sequence[float],
        damping: Sequence[float],
        planned: Sequence[float],
        friction_velocity: float,
        payload: Sequence[float],
    ) -> list[float]:
        """Return the torque (n,), N m (N).

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s).
            levels: (n,) compensated part of the friction at this speed, N m (N).
            rates: (n,) fastest changes of the torque, N m/s (N/s).
            damping: (n,) largest coefficients that are stable with the delay of the loop, N m s/rad (N s/m).
            planned: (n,) velocities of the desired pose, rad/s (m/s).
            friction_velocity: speed at which friction compensation by the measured velocity has replaced this torque.
            payload: (n,) gravity torque of a payload that may be removed, N m (N).
        """
        step = min(max(time - self._time, 0.0), STOP_S)
        self._time = time
        torque = []
        arm_is_led = any(joint.is_led for joint in self._joints)
        rows = zip(self._joints, position, velocity, levels, rates, damping, planned, payload, strict=True)
        for i, (joint, q, v, level, rate, coefficient, speed, weight) in enumerate(rows):
            joint.weight = weight / level if level else 0.0
            joint.half_period = max(HALF_PERIOD_S, 2.0 * level / rate / RISE_SHARE)
            joint.trial_speed = max(TRIAL_SPEED, level / coefficient)
            joint.friction_velocity = friction_velocity
            joint.arm_is_led = arm_is_led
            torque.append(level * joint.share(time, step, q, v, speed))
            self.trust[i] = joint.trust
        return torque


class _Joint:
    """State of one joint: its deflection from the position of rest, and the evidence of a hand or a weight.

    Attributes:
        trust: factor on the friction compensation of the moving joint.
        half_period: half period of the alternation, s.
        trial_speed: speed at which the torque has faded on trial, rad/s (m/s).
        friction_velocity: speed at which the torque has faded while a hand leads the joint, rad/s (m/s).
        arm_is_led: whether a hand leads any joint of the arm, which then also moves this one.
        is_led: whether a hand leads this joint.
        weight: gravity torque of a removable payload as a fraction of the compensated friction.
    """

    def __init__(self) -> None:
        self.trust = 0.0
        self.half_period = HALF_PERIOD_S
        self.trial_speed = TRIAL_SPEED
        self.friction_velocity = math.inf
        self.arm_is_led = False
        self.is_led = False
        self.weight = 0.0
        self._rest_position: float | None = None
        self._mean_position = 0.0
        self._filtered_speed = 0.0
        self._amplitude = 0.0
        self._caps = {1.0: 1.0, -1.0: 1.0}  # largest amplitude by direction
        self._still_s = 0.0
        self._pushed_s = 0.0
        self._steady_s = 0.0
        self._trial_since: float | None = None
        self._steady_speed: float | None = None  # speed of the trial under a constant push
        self._trial_position = 0.0
        self._is_withdrawn = True  # until the joint rests
        self._withdrawn_s = 0.0
        self._withdrawn_speed = math.inf
        self._departure_amplitude = 0.0
        self._departures: set[float] = set()  # directions of departures in which no hand showed itself

    def share(self, time: float, step: float, q: float, v: float, planned: float) -> float:
        """Return the torque as a fraction of the compensated friction, -1 to 1."""
        if self._rest_position is None:
            self._rest_position = self._mean_position = q
        # The mean covers a whole period, in which the elastic deflections by the alternating torque cancel.
        self._mean_position += (1.0 - math.exp(-step / (2.0 * self.half_period))) * (q - self._mean_position)
        self._filtered_speed += (1.0 - math.exp(-step / SPEED_FILTER_S)) * (v - self._filtered_speed)
        if planned:
            return self._follow_setpoint(planned) * (1.0 - moving_share(v, self.friction_velocity))
        deflection = self._mean_position - self._rest_position
        side = math.copysign(1.0, deflection)
        directed_share = min(max((abs(deflection) - MIN_DEFLECTION) / (FULL_DEFLECTION - MIN_DEFLECTION), 0.0), 1.0)
        if not directed_share:
            self._departure_amplitude = self._amplitude_towards(side)
        if abs(deflection) > FULL_DEFLECTION:
            self._rest_position = self._mean_position - side * FULL_DEFLECTION
        self._watch_rest(step, q)
        self._detect_hand(time, step, side, directed_share)
        if self._is_withdrawn:
            return 0.0
        alternation = 1.0 if time % (2.0 * self.half_period) < self.half_period else -1.0
        directed = directed_share * side * self._amplitude_towards(side) * self._fade(v)
        return directed + (1.0 - directed_share) * alternation * self._amplitude_towards(alternation)

    def _follow_setpoint(self, planned: float) -> float:
        """Return the fraction of the friction that is compensated while a set-point moves the joint, -1 or 1."""
        self._rest_position = self._mean_position
        self._trial_since = None
        self._is_withdrawn = False
        self._still_s = 0.0
        self.trust = 1.0
        return math.copysign(1.0, planned)

    def _amplitude_towards(self, side: float) -> float:
        """Return the amplitude towards a side, 0 to 1; it is smaller where a removable payload would push.

        A payload above `UNHELD_WEIGHT` moves the joint after its removal in any case, so a reduction has no use.
        """
        amplitude = min(self._amplitude, self._caps[side])
        weight = side * self.weight
        return min(amplitude, max(1.0 - weight, weight - UNHELD_WEIGHT, 0.0)) if weight > 0.0 else amplitude

    def _fade(self, v: float) -> float:
        """Return the factor by which the torque fades with speed; during a trial this limits the speed."""
        if self.is_led:
            return 1.0 - moving_share(v, self.friction_velocity)
        return max(1.0 - abs(v) / self.trial_speed, 0.0)

    def _watch_rest(self, step: float, q: float) -> None:
        """Detect that the joint has come to rest, and let the amplitude rise while it rests."""
        self._still_s = self._still_s + step if abs(self._filtered_speed) < STOP_SPEED else 0.0
        is_still = self._still_s > STOP_S
        if is_still and self._is_withdrawn:
            self._amplitude = 0.0
        elif is_still and self._trial_since is not None:
            self._count_departure(math.copysign(1.0, self._mean_position - (self._rest_position or 0.0)))
        if is_still and (self.is_led or self._is_withdrawn or self._trial_since is not None):
            self._rest_position = self._mean_position = q
            self.is_led = self._is_withdrawn = False
            self._trial_since = None
        if self._trial_since is None and not self.is_led:
            self._amplitude = min(self._amplitude + step / RISE_S, 1.0)

    def _detect_hand(self, time: float, step: float, side: float, directed_share: float) -> None:
        """Decide whether a hand leads the joint, or a weight moves it."""
        if self.arm_is_led and abs(self._filtered_speed) > STOP_SPEED:
            self._follow_hand()
        if self.is_led:
            self.trust = min(self.trust + step / TRUST_S, 1.0)
            return
        self.trust = 0.0
        if self._is_withdrawn:
            self._detect_hand_without_torque(step)
            return
        if directed_share < 1.0:
            return
        if self._trial_since is None:
            self._trial_since = time
            self._steady_speed = None
            self._trial_position = self._mean_position
        elapsed = time - self._trial_since
        # A joint that sticks and slips has no constant speed, even under a constant push.
        moves = abs(self._filtered_speed) > max(STOP_SPEED, MIN_TRIAL_SHARE * self.trial_speed)
        self._steady_s = self._steady_s + step if moves else 0.0
        if not moves:
            self._steady_speed = None
        elif self._steady_s > STEADY_S and self._steady_speed is None:
            self._steady_speed = self._filtered_speed
        change = abs(self._filtered_speed - (self._steady_speed or self._filtered_speed))
        changed = moves and change > MIN_SPEED_CHANGE * self.trial_speed
        self._pushed_s = self._pushed_s + step if abs(self._filtered_speed) > PUSHED_SPEED * self.trial_speed else 0.0
        if changed or self._pushed_s > PUSHED_S:
            self._follow_hand()
        elif elapsed > TRIAL_S or abs(self._mean_position - self._trial_position) > MAX_TRIAL_TRAVEL:
            self._count_departure(side)
            self._is_withdrawn = True
            self._withdrawn_s = 0.0

    def _detect_hand_without_torque(self, step: float) -> None:
        """Detect a hand by a joint that becomes faster without torque: friction stops a joint that a weight moves."""
        time_before = self._withdrawn_s
        self._withdrawn_s += step
        if time_before < WITHDRAWAL_S <= self._withdrawn_s:
            self._withdrawn_speed = abs(self._filtered_speed)
        becomes_faster = abs(self._filtered_speed) - self._withdrawn_speed > MIN_SPEED_CHANGE * self.trial_speed
        if time_before >= WITHDRAWAL_S and becomes_faster:
            self._follow_hand()

    def _follow_hand(self) -> None:
        """Let the torque follow the hand that leads the joint, and forget evidence of a weight."""
        self.is_led = True
        self._is_withdrawn = False
        self._caps = {1.0: 1.0, -1.0: 1.0}
        self._departures = set()

    def _count_departure(self, side: float) -> None:
        """Reduce the amplitude towards the side of a departure without the sign of a hand.

        While the amplitude rises slowly, the joint departs at the amplitude that lets a weight move it. At full
        amplitude the first departure may come from a hand that let go again, so only a second one counts.
        """
        if self._departure_amplitude < MIN_ONSET:
            return
        if self._departure_amplitude < 1.0 or side in self._departures:
            self._caps[side] = CAP_SHARE * self._departure_amplitude
        self._departures.add(side)
