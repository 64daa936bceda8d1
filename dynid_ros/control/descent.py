"""Ramps of the commanded torque in bounded steps, controlled descent, and the brake and spring that hold the arm."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings, Timing
from dynid_ros.control.joint_brake import JointBrake
from dynid_ros.control.joint_states import JointMotion

MAX_STEP_PERIODS = 3.0
"""Largest time step of the ramp, in mean periods of the commands; after a longer gap the ramp continues later."""
MIN_STEP_PERIOD_S = 0.01
"""Smallest mean period in that product, s: the period of the watch, which drives ramps without joint states."""
PERIOD_SHARE = 0.1
"""Weight of the newest interval in the mean period."""
LOAD_CHANGE_S = 0.3
"""Longest ramp after a change of load, s; during a longer one an arm that holds the load would sink."""

END_SPEED_FACTOR = 2.0
"""Factor on the descent speed if the process must end soon."""
REST_SPEED = 0.02
"""Speed below which a joint is at rest, rad/s (m/s)."""
REST_S = 0.3
"""Time at rest after which the brakes are released, s."""
MAX_BRAKING_S = 5.0
"""Longest braking after the gravity torque has reached zero, s."""
MAX_LOWERING_S = 60.0
"""Longest time for which the lowering waits for the motion, s; then the torque ramps out at a fixed pace."""
MAX_RAMP_S = 10.0
"""Longest lowering ramp, s, even if stability of the loop needs a slower one."""

ENGAGE_S = 0.1
"""Time in which the brakes reach full damping and the spring reaches or loses its largest torque, s."""
PLANNED_SPEED_MARGIN = 1.2
"""Multiple of the planned speed above which a joint is braked."""


class TorqueRamp:
    """Torque `scale · target + weight · start`: the torque of the beginning gives way while the target comes in.

    The scale rises or falls with time, and the weight of the start normally falls. A ramp in therefore goes from the
    start to the target on a straight line, and a ramp that reverses takes both to zero.

    This torque changes by at most the joint's rate times the time between two commands. That time is limited to
    `MAX_STEP_PERIODS` mean periods, so that the torque does not catch up at once after a gap in the joint states.
    Braking torque is added without a rate limit, which would delay it and make the arm swing. It is continuous in the
    arm's motion.

    Attributes:
        torque: (n,) last command, N m (N).
        scale: weight of the target, 0 to 1.
        weight: weight of the start, 0 to 1.
    """

    def __init__(self, joints: int) -> None:
        self.torque = [0.0] * joints
        self.scale = 0.0
        self.weight = 0.0
        self._unbraked = [0.0] * joints  # last command without the brakes
        self._start = [0.0] * joints
        self._time = -math.inf
        self._held_until = -math.inf
        self._period = MIN_STEP_PERIOD_S

    def begin(self, start: Sequence[float]) -> None:
        """Start the ramp at `start` (n,), N m (N), with the next step."""
        self.torque = list(start)
        self._unbraked = list(start)
        self._start = list(start)
        self.scale = 0.0
        self.weight = 1.0
        self._time = math.inf
        self._held_until = -math.inf

    def shift(self, difference: Sequence[float]) -> None:
        """Add the old target minus the new one, `difference` (n,), N m (N), to the start, which then fades."""
        self._start = [
            self.weight * start + self.scale * change for start, change in zip(self._start, difference, strict=True)
        ]
        self.weight = 1.0

    def fade(self, time: float) -> list[float]:
        """Start the ramp to zero and return the torque (n,) that fades, N m (N)."""
        self.scale = 1.0
        self.weight = 0.0
        self._time = time  # the ramp begins now: the time since the last command would make a step
        self._held_until = -math.inf
        self._unbraked = list(self.torque)
        return list(self.torque)

    def hold(self, until: float = -math.inf) -> None:
        """Keep the torque constant until that time, s of the steady clock; the default ends a hold at once."""
        self._held_until = until

    def clear(self) -> None:
        """Set the torque to zero at once, because commands have no effect."""
        self.torque = [0.0] * len(self.torque)
        self._unbraked = [0.0] * len(self.torque)
        self.weight = 0.0

    def elapsed(self, time: float) -> float:
        """Return the time step of the ramp, s: the time since the last command, limited to some mean periods."""
        longest = MAX_STEP_PERIODS * max(self._period, MIN_STEP_PERIOD_S)
        return min(max(time - self._time, 0.0), longest)

    def step(
        self,
        time: float,
        target: Sequence[float],
        joints: JointSettings,
        pace: float,
        *,
        weight_pace: float | None = None,
        brake: Sequence[float] | None = None,
    ) -> list[float]:
        """Return the torque (n,) at `time`.

        Args:
            time: s of the steady clock.
            target: (n,) torque at scale 1, N m (N).
            joints: limits and rates.
            pace: change of the scale, 1/s; negative: out.
            weight_pace: change of the weight of the start, 1/s; None: minus the magnitude of `pace`.
            brake: (n,) torque that is added without scale and rate limit, N m (N); None without brakes.
        """
        if time < self._held_until:
            self._time = max(time, self._time)
            return list(self.torque)
        elapsed = self.elapsed(time)
        if math.isfinite(self._time) and time > self._time:
            interval = min(time - self._time, 2.0 * self._period)
            self._period += PERIOD_SHARE * (interval - self._period)
        self._time = time if math.isinf(self._time) else max(time, self._time)
        fade = -abs(pace) if weight_pace is None else weight_pace
        self.scale = min(max(self.scale + elapsed * pace, 0.0), 1.0)
        self.weight = min(max(self.weight + elapsed * fade, 0.0), 1.0)
        for i, (last, start, value, limit, rate) in enumerate(
            zip(self._unbraked, self._start, target, joints.torque, joints.rate, strict=True)
        ):
            step = rate * elapsed
            unlimited = self.scale * value + min(max(self.weight * start, -limit), limit)
            self._unbraked[i] = min(max(unlimited, last - step), last + step)
        if brake is None:
            self.torque = list(self._unbraked)
        else:
            rows = zip(self._unbraked, brake, joints.torque, strict=True)
            self.torque = [min(max(value + braking, -limit), limit) for value, braking, limit in rows]
        return list(self.torque)


class Descent:
    """Pace at which the torque goes to zero, controlled by the motion of the arm.

    The arm is held until `hold_until`. Then the scale of the torque falls at the pace of the ramp while the arm rests,
    stays constant while a joint sinks at the descent speed, and rises while a joint sinks faster. Each joint therefore
    sinks at about that speed at most, until it hangs or lies on a support.

    Args:
        hold_until: end of the hold, s of the steady clock.
        ramp_time: duration of the ramp to zero for an arm at rest, s.
        speed: descent speed of each joint, rad/s (m/s).
        ends: time after which the ramp no longer waits for the motion, s of the steady clock; None: a minute after the
            hold.
    """

    def __init__(self, hold_until: float, ramp_time: float, speed: float, ends: float | None = None) -> None:
        self.hold_until = hold_until
        self.ends = hold_until + MAX_LOWERING_S if ends is None else ends
        self._ramp_time = ramp_time
        self._speed = speed
        self._last_motion = -math.inf
        self._zero_since: float | None = None

    @classmethod
    def plan(
        cls, hold_until: float, timing: Timing, brake: JointBrake | None, delay: float, ends: float | None
    ) -> "Descent":
        """Return a descent that does not make the arm swing.

        Args:
            hold_until: end of the hold, s of the steady clock.
            timing: descent speed, and duration of the ramp, which is extended if the brake needs that.
            brake: damping of the loop; None: joints are not braked.
            delay: delay of the loop, s.
            ends: time by which the descent must end, s of the steady clock, which doubles its speed; None: no limit.
        """
        ramp_time = timing.ramp_time
        speed = timing.descent_speed if ends is None else END_SPEED_FACTOR * timing.descent_speed
        if brake is not None:
            ramp_time = max(ramp_time, min(brake.lowering_time(delay, speed), MAX_RAMP_S))
        return cls(hold_until, ramp_time, speed, ends)

    def pace(self, time: float, velocity: Sequence[float], brakes: bool) -> float:
        """Return the rate of the scale, 1/s: (fastest / descent speed - 1) / ramp time, clipped to 1 / ramp time.

        Args:
            time: s of the steady clock.
            velocity: (n,) rad/s (m/s).
            brakes: whether the arm can be braked; otherwise the ramp ignores the motion.
        """
        fastest = max(map(abs, velocity), default=0.0)
        if fastest > REST_SPEED:
            self._last_motion = time
        if time < self.hold_until:
            return 0.0
        ratio = fastest / self._speed if brakes and time < self.ends else 0.0
        return min(max(ratio - 1.0, -1.0), 1.0) / self._ramp_time

    def done(self, time: float, scale: float) -> bool:
        """Return whether the descent has ended: the scale is zero and the arm rests, or brakes for `MAX_BRAKING_S`."""
        if scale > 0.0:
            self._zero_since = None
            return False
        if self._zero_since is None:
            self._zero_since = time
        return time - self._last_motion > REST_S or time - self._zero_since > MAX_BRAKING_S


class ArmHold:
    """Damping of the joints and a spring towards a pose; their sum is continuous in time.

    Attributes:
        pose: (n,) equilibrium of the spring, rad (m); empty without a spring.
    """

    def __init__(self, joints: int) -> None:
        self.pose: tuple[float, ...] = ()
        self._spring = [0.0] * joints
        self._braked_since = math.inf
        self._time = math.inf

    def torque(
        self,
        time: float,
        position: Sequence[float],
        motion: JointMotion,
        joints: JointSettings,
        *,
        brakes: bool,
        scale: float,
        planned: Sequence[float],
    ) -> list[float] | None:
        """Return the torque (n,) of brake and spring, N m (N); None if both are off.

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            motion: velocities of the joints and delay of the loop.
            joints: speed limits, brake, and damping gains of the feedback, which are subtracted from the damping.
            brakes: whether to brake at any speed; otherwise only above the speed limits.
            scale: factor on the spring torque, 0 to 1.
            planned: (n,) speeds of a planned motion, which is not braked.
        """
        brake = joints.brake
        if brake is None:
            return None
        elapsed = min(max(time - self._time, 0.0), ENGAGE_S)
        self._time = time
        spring_target = self._spring_target(position, motion, joints)
        for i, (target, limit) in enumerate(zip(spring_target, brake.hold_limit, strict=True)):
            step = limit * elapsed / ENGAGE_S
            self._spring[i] = min(max(target, self._spring[i] - step), self._spring[i] + step)
        allowed = [0.0] * len(joints.names)
        if not brakes:
            allowed = [
                max(limit, PLANNED_SPEED_MARGIN * speed)
                for limit, speed in zip(joints.speed_limit, planned, strict=True)
            ]
        is_slow = all(abs(v) <= free for v, free in zip(motion.velocity, allowed, strict=True))
        if is_slow and not brakes and not any(self._spring):
            self._braked_since = math.inf
            return None
        self._braked_since = min(self._braked_since, time)
        share = min((time - self._braked_since) / ENGAGE_S, 1.0) if brakes else 1.0
        damping = [
            share * max(coefficient - gain, 0.0)
            for coefficient, gain in zip(brake.damping(motion.delay), joints.feedback.damping, strict=True)
        ]
        torque = brake.torque(motion.velocity, allowed, damping)
        return [braking + scale * spring for braking, spring in zip(torque, self._spring, strict=True)]

    def carried(self, joints: JointSettings) -> list[float]:
        """Return the spring torque of each joint as a fraction of its maximum; empty without a spring."""
        if joints.brake is None or not self.pose:
            return []
        return [abs(torque) / limit for torque, limit in zip(self._spring, joints.brake.hold_limit, strict=True)]

    def release(self) -> None:
        """Remove brake and spring at once, because the torque no longer follows the pose."""
        self.pose = ()
        self._spring = [0.0] * len(self._spring)
        self._braked_since = math.inf

    def _spring_target(self, position: Sequence[float], motion: JointMotion, joints: JointSettings) -> list[float]:
        """Return the spring torque (n,), N m (N), that the spring reaches after it has engaged; zero without a pose."""
        if not self.pose or joints.brake is None:
            return [0.0] * len(position)
        deflection = [rest - q for rest, q in zip(self.pose, position, strict=True)]
        return joints.brake.spring(deflection, motion.delay)
