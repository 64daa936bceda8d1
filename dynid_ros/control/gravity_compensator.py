"""Gravity feed-forward, one joint state at a time: ramps, limits, and a safe end to every fault."""

import enum
import math
from collections.abc import Callable, Sequence

from dynid_ros.control.compensator_settings import JointSettings, Timing
from dynid_ros.control.joint_feedback import JointFeedback
from dynid_ros.errors import ControlError

GravityTorque = Callable[..., Sequence[float]]
"""From positions of the motors, and from those of the links where they are measured."""
STAMP_JITTER = 0.05  # s, between the stamp and the sample of a driver that is no real-time process
ALTERNATION = 1.0  # s within which two jumps are those of two drivers; one alone is of an encoder that was set


class State(enum.Enum):
    """What the compensator does with its torque."""

    DISABLED = "disabled"
    RAMPING_IN = "ramping in"
    ACTIVE = "active"
    RAMPING_OUT = "ramping out"
    FAULT = "fault"


class TorqueRamp:
    """Torque `scale · target + weight · start`: what acted at the beginning gives way as the target comes in.

    Both weights change by the time since the last command over the length of the ramp: `scale` up or down, that of the
    start down alone. So a ramp in goes from the start to the target on a straight line, and one that reverses on its
    way takes what is left of both to zero.

    Attributes:
        torque: (n,) last command, N m (N).
        scale: weight of the target, 0 to 1.
    """

    def __init__(self, joints: int) -> None:
        self.torque = [0.0] * joints
        self.scale = 0.0
        self._start = [0.0] * joints
        self._weight = 0.0
        self._time = -math.inf
        self._held_until = -math.inf

    def begin(self, start: Sequence[float]) -> None:
        """Begin at `start` (n,), N m (N), with the next step, however late that is."""
        self.torque, self._start = list(start), list(start)
        self.scale, self._weight = 0.0, 1.0
        self._time = math.inf
        self._held_until = -math.inf

    def fade(self, time: float) -> list[float]:
        """Begin the way to zero; the torque (n,) that fades."""
        self.scale, self._weight = 1.0, 0.0
        self._time = time  # the ramp begins now: the time since the last command would be a step
        self._held_until = -math.inf
        return list(self.torque)

    def hold(self, until: float = -math.inf) -> None:
        """Keep the torque as it is up to that time; a time that is over: no longer."""
        self._held_until = until

    def clear(self) -> None:
        """Be at zero at once, where no command arrives."""
        self.torque = [0.0] * len(self.torque)
        self._weight = 0.0

    def elapsed(self, time: float) -> float:
        """Time since the last command, s."""
        return max(time - self._time, 0.0)

    def step(self, time: float, target: Sequence[float], joints: JointSettings, ramp: float) -> list[float]:
        """Torque (n,) at `time`; `ramp`: s from nothing to all of the target, below 0 from all to nothing."""
        if time < self._held_until:
            self._time = max(time, self._time)
            return list(self.torque)
        elapsed = self.elapsed(time)
        self._time = time if math.isinf(self._time) else max(time, self._time)
        self.scale = min(max(self.scale + elapsed / ramp, 0.0), 1.0)
        self._weight = max(self._weight - elapsed / abs(ramp), 0.0)
        for i, (last, start, value, limit, rate) in enumerate(
            zip(self.torque, self._start, target, joints.torque, joints.rate, strict=True)
        ):
            step = rate * elapsed
            wanted = self.scale * value + min(max(self._weight * start, -limit), limit)
            self.torque[i] = min(max(wanted, last - step), last + step)
        return list(self.torque)


class GravityCompensator:
    """Torque from joint positions; the caller passes the time, in seconds of one steady clock.

    While enabled the target is `s · clip(gain · gravity(q) + feedback, ±limit)`, where s runs from 0 to 1 within
    `ramp_time`, and back to 0 when disabled; feedback is PD about a desired pose, the one at which the arm was enabled
    until it is aimed elsewhere, and friction, as far as the settings have gains for them. The torque follows its target
    by at most `rate · dt` between two commands, in every state and through every change: ramps, jumps of the pose,
    another model, other limits. It begins at zero, or at the torque that acts already, as after a process that was
    killed: then it goes from there to the target within `ramp_time`.

    Fault: the state is no longer believed, so neither is a torque computed from it. The last command, which came from
    the last good state, goes to zero on a straight line within `fault_ramp_time` of the fault's detection (the rates
    allow it, see `JointSettings.of`); after silence alone it may be held for `hold_on_silence` before. A fault stays
    until `enable` is called again, even if good states return: the arm may have moved, and somebody may have come close
    to it. Faults are

    - no good joint state for longer than `timeout`, whoever was too slow;
    - a joint that is missing, not finite, or beyond its position limits by more than the margin;
    - a position that jumped further than its velocity limit allows between the stamps of two states, and some jitter.
      Without stamps, or where these jump, the limit is loose: a state may be up to `timeout` old when it arrives, so
      two arrivals dt apart may be `dt + timeout` apart;
    - a gravity torque that is not finite, or that the springs of flexible joints cannot carry.

    A torque at its limit is clipped; that is no fault.

    Attributes:
        state: see `State`.
        fault_reason: of the fault that is not yet acknowledged, else empty.
        faults: number of faults so far.
        limited: joints whose torque would exceed its limit.
        position: the last good joint positions, rad (m); empty before the first.
        joints: settings in force.
    """

    def __init__(self, gravity: GravityTorque, joints: JointSettings, timing: Timing) -> None:
        self.state = State.DISABLED
        self.fault_reason = ""
        self.faults = 0
        self.limited: tuple[str, ...] = ()
        self.position: tuple[float, ...] = ()
        self.joints = joints
        self._gravity = gravity
        self._feedback = JointFeedback()
        self._timing = timing
        self._ramp = TorqueRamp(len(joints.names))
        self._held: list[float] | None = None  # torque that fades out without regard to the pose
        self._state_time = -math.inf
        self._stamp: float | None = None
        self._unfit = "no joint state has arrived yet"
        self._jumps = -math.inf, -math.inf  # times of the last two while it did not follow
        self._jumped = ""

    @property
    def torque(self) -> tuple[float, ...]:
        """The last command, N m (N)."""
        return tuple(self._ramp.torque)

    @property
    def desired(self) -> tuple[float, ...]:
        """Positions that feedback pulls to, rad (m); empty before the arm was first enabled."""
        return tuple(self._feedback.desired)

    @property
    def at_rest(self) -> bool:
        """Whether the output is zero and stays there."""
        return self.state in (State.DISABLED, State.FAULT) and not any(self._ramp.torque)

    @property
    def _following(self) -> bool:
        """Whether the torque follows the pose; the pose must then be trusted."""
        return self.state is not State.DISABLED and self._held is None

    def enable(self, time: float, start: Sequence[float] | None = None, desired: Sequence[float] | None = None) -> None:
        """Ramp in; also the way out of a fault.

        Args:
            time: now.
            start: (n,) torque that acts, N m (N), where it is not the last command; None: that, or zero.
            desired: (n,) position to hold, rad (m); None: the measured one.

        Raises:
            ControlError: the newest joint state is unfit or too old, those of the last second disagree, or the torque
                that acts is more than may be commanded.
        """
        if self.state in (State.RAMPING_IN, State.ACTIVE):
            return
        if self._unfit:
            raise ControlError(f"cannot enable: {self._unfit}")
        if stale := self._stale(time):
            raise ControlError(f"cannot enable: {stale}")
        if time - self._jumps[0] < ALTERNATION:
            raise ControlError(f"cannot enable: {self._jumped}")
        if not self._following:
            # while it ramps out what acts is its own command, be that zero
            own = start is None or any(self.torque) or not self.at_rest
            self._ramp.begin(self.torque if own or start is None else self.joints.checked_start(start))
            self._held = None
            self._feedback.hold(self.position if desired is None else desired)
        self.fault_reason = ""
        self.state = State.RAMPING_IN

    def aim(self, position: Sequence[float]) -> None:
        """Let the desired pose go to `position` (n,), rad (m), where it is not NaN; raises where it must not."""
        if self.state not in (State.RAMPING_IN, State.ACTIVE):
            raise ControlError(f"the compensation is {self.state.value}; enable it first, it then holds its pose")
        self._feedback.aim(self.joints.checked_target(position))

    def disable(self) -> None:
        """Ramp out; acknowledges a fault, whose own ramp goes on."""
        if self.state is not State.DISABLED:
            self.fault_reason = ""
            self._ramp.hold()
            self.state = State.DISABLED if self.at_rest else State.RAMPING_OUT

    def stop(self, time: float) -> None:
        """Let the last command fade within `fault_ramp_time` whatever the arm does, as when the process must end."""
        self.fault_reason = ""
        if self.at_rest:
            self.state = State.DISABLED
            return
        if self._held is None:
            self._fade_out(time)
        self._ramp.hold()
        self.state = State.RAMPING_OUT

    def fault(self, time: float, reason: str) -> None:
        """Take note of a joint state that cannot be used; while enabled, begin the way to zero."""
        self._unfit = reason
        self.interrupt(time, reason)

    def interrupt(self, time: float, reason: str) -> None:
        """While enabled, begin the way to zero for a reason that is not of the joint states."""
        if self._following:
            self._fade_out(time)
            self.fault_reason = reason
            self.faults += 1
            self.state = State.FAULT
        self._ramp.hold()

    def drop(self, time: float, reason: str) -> None:
        """Be silent from now on, while enabled for this reason: commands do not act, nor would those of a ramp."""
        self.interrupt(time, reason)
        self._ramp.clear()
        if self.state is State.RAMPING_OUT:
            self.state, self._held = State.DISABLED, None

    def replace(self, gravity: GravityTorque, joints: JointSettings) -> None:
        """Use another model, and the limits that belong to it, from the next joint state on.

        Raises:
            ControlError: the model is of other joints.
        """
        if joints.names != self.joints.names:
            new, old = ", ".join(joints.names), ", ".join(self.joints.names)
            raise ControlError(f"the new model is of joints {new}, the one in force of {old}; configure anew")
        self._gravity = gravity
        self.joints = joints

    def adjust(self, joints: JointSettings, timing: Timing) -> None:
        """Use other gains, limits and times; a joint that nothing pulled before is pulled to where it is now.

        Raises:
            ControlError: a torque limit below the torque that acts, from which a fault could not fade in time.
        """
        for name, torque, limit in zip(joints.names, self._ramp.torque, joints.torque, strict=True):
            if abs(torque) > limit:
                raise ControlError(
                    f"on joint '{name}' {torque:.3g} N m (N) act, and its limit is to be {limit:.3g}; disable first"
                )
        if self._following:
            self._feedback.stiffen(self.joints.feedback, joints.feedback, self.position)
        self.joints, self._timing = joints, timing

    def update(
        self,
        time: float,
        position: Sequence[float],
        stamp: float | None = None,
        links: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None,
    ) -> list[float] | None:
        """Torque for one joint state.

        Args:
            time: at which it arrived.
            position: (n,) rad (m) in the model's joint order.
            stamp: s of the driver's clock at which it was taken; None: unknown.
            links: (n,) positions of the links of flexible joints, where they are measured and good.
            velocity: (n,) rad/s (m/s), where it is measured; the settings say whether it is needed.

        Returns:
            (n,) N m (N), or None if there is nothing to command.
        """
        problem = self._problem(time, position, stamp)
        if problem:
            self.fault(time, problem)
            return self._fade(time)
        if self.position and (jump := self._jump(time, position, stamp)):  # while it follows that is a problem
            self._jumps, self._jumped = (self._jumps[1], time), jump
        self.position = tuple(position)
        self._state_time = time
        self._stamp = stamp
        self._unfit = ""
        if not self._following:
            return self._fade(time)
        try:
            gravity = self._gravity(position) if links is None else self._gravity(position, links)
            feedback = self._feedback.torque(self.joints.feedback, self._ramp.elapsed(time), position, velocity)
        except ControlError as error:
            self.fault(time, str(error))
            return self._fade(time)
        if not all(map(math.isfinite, gravity)):
            self.fault(time, f"gravity torque {list(gravity)} is not finite at position {list(position)}")
            return self._fade(time)
        return self._step(time, self._clip(gravity, feedback), self._timing.ramp_time)

    def watch(self, time: float) -> list[float] | None:
        """Torque between joint states, to be asked for regularly: finds stale states and drives the fault ramp."""
        if self._following and (stale := self._stale(time)):
            self.fault(time, stale)
            self._ramp.hold(time + self._timing.hold_on_silence)
        return self._fade(time)

    def _stale(self, time: float) -> str:
        age = time - self._state_time
        if age <= self._timing.timeout:
            return ""
        return (
            f"no new joint state for {age:.3f} s (timeout {self._timing.timeout:g} s): "
            "the driver stopped, its stamps stand still, or this computer is overloaded"
        )

    def _problem(self, time: float, position: Sequence[float], stamp: float | None) -> str:
        """Why this joint state cannot be used; empty if it can."""
        joints = self.joints
        if len(position) != len(joints.names):
            return f"{len(position)} positions for {len(joints.names)} joints ({', '.join(joints.names)})"
        for name, value, lower, upper in zip(joints.names, position, joints.lower, joints.upper, strict=True):
            if not math.isfinite(value):
                return f"position of joint '{name}' is {value}; expected a finite number"
            if not lower <= value <= upper:
                return f"position of joint '{name}' is {value:.4f}, far outside its limits ({lower:.4f} to {upper:.4f})"
        return (self._stale(time) or self._jump(time, position, stamp)) if self._following else ""

    def _jump(self, time: float, position: Sequence[float], stamp: float | None) -> str:
        span = time - self._state_time + self._timing.timeout
        if stamp is not None and self._stamp is not None and stamp > self._stamp:
            span = min(span, stamp - self._stamp + STAMP_JITTER)
        joints = self.joints
        for name, value, before, velocity in zip(joints.names, position, self.position, joints.velocity, strict=True):
            if abs(value - before) > velocity * span:
                return (
                    f"position of joint '{name}' jumped from {before:.4f} to {value:.4f}, faster than its velocity "
                    f"limit {velocity:g} allows: check the encoder, and that no other node publishes its joint states"
                )
        return ""

    def _clip(self, gravity: Sequence[float], feedback: Sequence[float]) -> list[float]:
        joints = self.joints
        wanted = [gain * value + more for gain, value, more in zip(joints.gain, gravity, feedback, strict=True)]
        self.limited = tuple(
            name for name, value, limit in zip(joints.names, wanted, joints.torque, strict=True) if abs(value) > limit
        )
        return [min(max(value, -limit), limit) for value, limit in zip(wanted, joints.torque, strict=True)]

    def _fade_out(self, time: float) -> None:
        self._held = self._ramp.fade(time)
        self.limited = ()

    def _fade(self, time: float) -> list[float] | None:
        if self._held is None or self.at_rest:
            return None
        return self._step(time, self._held, self._timing.fault_ramp_time)

    def _step(self, time: float, full: list[float], ramp_time: float) -> list[float]:
        """Move the torque towards its target, or to zero, by what the time since the last command allows."""
        inwards = self.state in (State.RAMPING_IN, State.ACTIVE)
        torque = self._ramp.step(time, full, self.joints, ramp_time if inwards else -ramp_time)
        if self.state is State.RAMPING_IN and self._ramp.scale == 1.0:
            self.state = State.ACTIVE
        elif self.state is State.RAMPING_OUT and self._ramp.scale == 0.0 and not any(torque):
            self.state = State.DISABLED
            self._held = None
        return torque
