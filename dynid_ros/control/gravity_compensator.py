"""Gravity feed-forward, updated with each joint state: ramps, limits, faults and the controlled descent after them."""

import enum
import math
from collections.abc import Callable, Sequence

from dynid_ros.control.added_torques import AddedTorques
from dynid_ros.control.compensator_settings import JointSettings, Timing
from dynid_ros.control.descent import LOAD_CHANGE_S, ArmHold, Descent, TorqueRamp
from dynid_ros.control.gravity_feedforward import LoadedGravity
from dynid_ros.control.joint_feedback import JointFeedback
from dynid_ros.control.joint_states import JointMotion, JointStateCheck
from dynid_ros.control.motion_watch import BACK_PACE, MIN_BACK_SCALE, MotionWatch, Verdict, explain, pushes
from dynid_ros.errors import ControlError

GravityTorque = Callable[..., Sequence[float]]
"""Function that maps motor positions, and link positions if measured, to gravity torques."""


class State(enum.Enum):
    """Phase of the compensation."""

    DISABLED = "disabled"
    RAMPING_IN = "ramping in"
    ACTIVE = "active"
    RAMPING_OUT = "ramping out"
    FAULT = "fault"


class GravityCompensator:
    """Compensation torque computed from joint positions; the caller passes the time, in seconds of one steady clock.

    While enabled the target is `s · clip(gain · gravity(q) + feedback + planned + rest, ±limit)`, where s rises from 0
    to 1 within `ramp_time`. `feedback` is PD control about a desired pose and compensation of friction, where the
    settings have gains for them. The desired pose is the pose at `enable` until `aim` moves it. `planned` is the torque
    of a planned motion (`plan`), and `rest` the torque against friction of joints at rest. Between two commands the
    torque changes by at most `rate · dt` in every state, where dt is limited to a few mean periods. The ramp starts at
    zero, or at the torque that the controller already applies. A new model, load or gain ramps in within `ramp_time`.
    A joint that exceeds its speed limit is braked. It is a fault if the arm begins to move by itself while torque is
    added. If it rises after a change of model, load or gain, the change is reversed instead; `notice` gives the reason.

    Faults in which the pose is known (`interrupt`) end in a controlled descent if the timing has a `descent_time`:
    gravity torque and damping hold the arm for that time, then it is lowered at `descent_speed`. `disable` lowers the
    arm at once in the same way. Faults in which the pose is not known (`fault`) take the last command to zero on a
    straight line within `fault_ramp_time`. If late joint states are the only fault, the command is first held for
    `hold_on_silence`. A fault stays until `enable` is called again, even if good states return: the arm may have moved,
    and somebody may have come close to it. The pose counts as unknown if no good joint state arrived for longer than
    `timeout`, if `JointStateCheck` rejects a state, if the gravity torque is not finite, or if the springs of flexible
    joints cannot carry it. A torque beyond its limit is clipped, which is not a fault.

    Attributes:
        state: phase of the compensation.
        fault_reason: reason of the fault that is not yet acknowledged; otherwise empty.
        faults: number of faults so far.
        notice: reason why the last change of model, load or gain was reversed; otherwise empty.
        limited: names of the joints whose torque was clipped to its limit in the last command.
        joints: settings in force.
        motion: velocities of the joints and delay of the loop.
        plan: planned motion, whose torque is added while enabled.
    """

    def __init__(self, gravity: GravityTorque, joints: JointSettings, timing: Timing) -> None:
        self.state = State.DISABLED
        self.fault_reason = ""
        self.faults = 0
        self.notice = ""
        self.limited: tuple[str, ...] = ()
        self.joints = joints
        self.motion = JointMotion(len(joints.names))
        self._feedback = JointFeedback()
        self._added = AddedTorques(joints, self._feedback, self.motion)
        self.plan = self._added.plan
        self._gravity = gravity
        self._timing = timing
        self._ramp = TorqueRamp(len(joints.names))
        self._fading: list[float] | None = None  # torque that fades out independently of the pose
        self._descent: Descent | None = None
        self._watch = MotionWatch()
        self._suspicion = Verdict.QUIET
        self._min_scale = 0.0  # scale below which a suspicion withdraws no torque
        self._arm_hold = ArmHold(len(joints.names))
        self._process_ends = False
        self._replaced: tuple[GravityTorque, JointSettings] | None = None  # in force before the change that is watched
        self._change_time = timing.ramp_time
        self._check = JointStateCheck()

    @property
    def position(self) -> tuple[float, ...]:
        """Last good joint positions (n,), rad (m); empty before the first."""
        return self._check.position

    @property
    def gravity(self) -> GravityTorque:
        """Gravity torque in force."""
        return self._gravity

    @property
    def torque(self) -> tuple[float, ...]:
        """Last command (n,), N m (N)."""
        return tuple(self._ramp.torque)

    @property
    def desired(self) -> tuple[float, ...]:
        """Set-points (n,) of the position feedback, rad (m); empty before the first `enable`."""
        return tuple(self._feedback.desired)

    @property
    def at_rest(self) -> bool:
        """Whether the output is zero and stays there."""
        idle = self.state in (State.DISABLED, State.FAULT) and self._descent is None
        return idle and not any(self._ramp.torque)

    @property
    def descends(self) -> bool:
        """Whether the arm is held or lowered on the way to zero."""
        return self._descent is not None

    @property
    def _following(self) -> bool:
        """Whether the torque follows the pose; the pose must then be trusted."""
        return self.state is not State.DISABLED and self._fading is None

    @property
    def _loaded_pose(self) -> Sequence[float]:
        """Pose (n,) of the gravity torque: the set-point of position servos, otherwise the measured pose."""
        return self.desired if self.joints.servo is not None and self.desired else self.position

    @property
    def _enabled(self) -> bool:
        return self.state in {State.RAMPING_IN, State.ACTIVE}

    def enable(
        self,
        time: float,
        start: Sequence[float] | None = None,
        desired: Sequence[float] | None = None,
        *,
        confirmed: bool = False,
    ) -> None:
        """Ramp in; this also acknowledges a fault.

        Args:
            time: s of the steady clock.
            start: (n,) torque that the controller applies now, N m (N); None: the last command, or zero.
            desired: (n,) position to hold, rad (m); None: the measured one.
            confirmed: whether measured effort confirms the model; motions are then not watched.

        Raises:
            ControlError: the newest joint state is unfit or too old, joint states of the last second alternate, or the
                applied torque exceeds the limits.
        """
        if self._enabled:
            return
        check = self._check
        if unfit := check.unfit or check.stale(time, self._timing.timeout) or check.alternating(time):
            raise ControlError(f"cannot enable: {unfit}")
        if not self._following:
            is_commanding = any(self.torque) or not self.at_rest
            self._ramp.begin(self.torque if start is None or is_commanding else self.joints.checked_start(start))
            self._fading = None
        self._feedback.hold(self.position if desired is None else desired)
        self._descent = None
        self._process_ends = False
        self._arm_hold.pose = ()
        self.fault_reason = ""
        self.notice = ""
        self._change_time = self._timing.ramp_time
        self.state = State.RAMPING_IN
        self._replaced = None
        self._watch.end()
        if not confirmed:
            self._watch_change(self._ramp.torque)

    def released(self) -> None:
        """Watch the motion as after `enable`, because another controller has just released the arm to this torque."""
        if self._enabled and self._replaced is None:
            self._watch_change([0.0] * len(self.joints.names), released=True)

    def aim(self, position: Sequence[float]) -> None:
        """Move the desired pose towards a target.

        Args:
            position: (n,) target, rad (m); NaN for joints that keep theirs.

        Raises:
            ControlError: the compensation is not enabled, or the target is beyond the robot's limits.
        """
        if not self._enabled:
            raise ControlError(f"the compensation is {self.state.value}; enable it first, it then holds its pose")
        self._feedback.aim(self.joints.checked_target(position))
        self._watch.end()  # the motion that follows is commanded

    def disable(self, time: float = math.nan) -> None:
        """Ramp out and lower the arm; this also acknowledges a fault, while the ramp of the fault continues.

        Args:
            time: s of the steady clock; NaN: the ramp ignores the motion.
        """
        if self.state is State.DISABLED:
            return
        self.fault_reason = ""
        self._ramp.hold()  # end a hold after silence
        self.state = State.DISABLED if self.at_rest else State.RAMPING_OUT
        if self._following and self._timing.descent_time > 0.0 and math.isfinite(time):
            self._descend(time, 0.0)

    def stop(self, time: float, within: float = 0.0) -> None:
        """Ramp the torque to zero because the process must end.

        Args:
            time: s of the steady clock.
            within: time in which the arm may be lowered, s; 0: the last command fades within `fault_ramp_time`.
        """
        self.fault_reason = ""
        if self.at_rest:
            self.state = State.DISABLED
            return
        self.state = State.RAMPING_OUT
        if self._following and within > 0.0 and self._timing.descent_time > 0.0:
            self._process_ends = True
            self._descend(time, 0.0, ends=time + within)
        elif self._fading is None:
            self._begin_fade(time)
        self._ramp.hold()

    def fault(self, time: float, reason: str) -> None:
        """Reject a joint state; while enabled, begin the ramp to zero."""
        self._check.unfit = reason
        self.motion.forget()
        self.interrupt(time, reason, fade=True)

    def interrupt(self, time: float, reason: str, *, fade: bool = False) -> None:
        """End the compensation with a fault: by a controlled descent, or by a ramp to zero.

        Args:
            time: s of the steady clock.
            reason: reason of the fault.
            fade: whether to ramp to zero at once, because no computed torque can be right.
        """
        if not self._following:
            self._ramp.hold()
            return
        descends = self._timing.descent_time > 0.0 and not fade
        if self.state is State.FAULT and descends:
            return
        if descends:
            self._descend(time, self._timing.descent_time)
        else:
            self._begin_fade(time)
        earlier = f"{self.fault_reason}; then " if self.fault_reason else ""
        self.fault_reason = f"{earlier}{reason}"
        self.faults += 1
        self.state = State.FAULT
        self._ramp.hold()

    def drop(self, time: float, reason: str) -> None:
        """Stop commanding at once, because the controller ignores the commands; if enabled, this is a fault."""
        self.interrupt(time, reason, fade=True)
        self._ramp.clear()
        if self.state is State.RAMPING_OUT:
            self._finish()

    def replace(self, gravity: GravityTorque, joints: JointSettings, *, load: bool = False) -> None:
        """Change to another model or load.

        The torque of a new model ramps in within `ramp_time`, that of a new load within at most `LOAD_CHANGE_S`.

        Args:
            gravity: gravity torque of the new model.
            joints: limits and gains that belong to the new model.
            load: whether only the load changes.

        Raises:
            ControlError: the model has other joints.
        """
        self.joints.check_names(joints.names)
        ramp_time = self._timing.ramp_time
        self._change(gravity, joints, min(ramp_time, LOAD_CHANGE_S) if load else ramp_time)

    def adjust(self, joints: JointSettings, timing: Timing) -> None:
        """Change gains, limits and durations; the set-point of a joint that gains stiffness is its present position.

        Raises:
            ControlError: a torque limit is below the present torque, from which a fault could not fade in time.
        """
        joints.check_torque(self._ramp.torque)
        if self._following:
            self._feedback.stiffen(self.joints.feedback, joints.feedback, self.position)
        self._timing = timing
        if joints.gain != self.joints.gain:
            self._change(self._gravity, joints, timing.ramp_time)
        else:
            self.joints = joints
        self.plan.joints = joints

    def update(
        self,
        time: float,
        position: Sequence[float],
        stamp: float | None = None,
        links: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None,
        *,
        age: float = 0.0,
    ) -> list[float] | None:
        """Return the torque for one joint state.

        Args:
            time: arrival of the joint state, s of the steady clock.
            position: (n,) rad (m) in the model's joint order.
            stamp: sampling time by the driver's clock, s; None: unknown.
            links: (n,) measured link positions of flexible joints, rad (m); None: not measured.
            velocity: (n,) measured velocities, rad/s (m/s); None: not measured.
            age: time between measurement and arrival, s; 0: unknown.

        Returns:
            Torque (n,), N m (N); None without a command.
        """
        if problem := self._state_problem(time, position, stamp):
            self.fault(time, problem)
            return self._continue_fade(time)
        self.motion.update(time, position, velocity, stamp, age)
        self._check.accept(time, position, stamp)
        if not self._following:
            return self._continue_fade(time)
        try:
            is_measured = links is not None and self.joints.servo is None
            gravity = self._gravity(position, links) if is_measured else self._gravity(self._loaded_pose)
            feedback = self._feedback.torque(self.joints.feedback, self._ramp.elapsed(time), position, velocity)
        except ControlError as error:
            self.fault(time, str(error))
            return self._continue_fade(time)
        if not all(map(math.isfinite, gravity)):
            self.fault(time, f"gravity torque {list(gravity)} is not finite at position {list(position)}")
            return self._continue_fade(time)
        model = self._gravity if self._enabled and isinstance(self._gravity, LoadedGravity) else None
        planned = self._added.planned(time, position, gravity, model.motion if model else None)
        if self.plan.moves:
            self._watch.end()
        self._react_to_motion(time)
        is_calm = self.state is State.ACTIVE and not self._watch.is_on
        payload_torque = model.payload_torque if model else None
        rest = self._added.at_rest(time, position, gravity, payload_torque, self.joints, active=is_calm)
        target, self.limited = self.joints.clipped(gravity, feedback, planned, rest)
        return self._step(time, target)

    def watch(self, time: float) -> list[float] | None:
        """Return the torque between joint states, or None; called periodically to detect silence and drive ramps."""
        if self._following and (stale := self._check.stale(time, self._timing.timeout)):
            self.fault(time, stale)
            self._ramp.hold(time + self._timing.hold_on_silence)
        return self._continue_fade(time)

    def _state_problem(self, time: float, position: Sequence[float], stamp: float | None) -> str:
        """Return why a joint state cannot be followed; empty if it can, or if no torque follows the pose."""
        check = self._check
        timeout = self._timing.timeout
        if problem := check.problem(position, self.joints):
            return problem
        jump = check.jump(time, position, stamp, self.joints, timeout)
        if self._following:
            return check.stale(time, timeout) or jump
        if jump:
            check.remember(time, jump)
        return ""

    def _change(self, gravity: GravityTorque, joints: JointSettings, span: float, *, watched: bool = True) -> None:
        """Change gravity torque or gain; the difference in the present pose fades within `span`, s."""
        before = (self._gravity, self.joints)
        old = self._gravity_target()
        self._gravity = gravity
        self.joints = self.plan.joints = joints
        new = self._gravity_target()
        if not (self._following and old and new):
            return
        self._ramp.shift([a - b for a, b in zip(old, new, strict=True)])
        self._change_time = span
        if self._enabled and watched:
            self._replaced = before
            self.notice = ""
            self._watch_change(old)

    def _gravity_target(self) -> list[float]:
        """Return the clipped gravity torque (n,) in the last pose; empty where it is not known."""
        return self.joints.clipped_gravity(self._gravity, self._loaded_pose)

    def _watch_change(self, before: Sequence[float], *, released: bool = False) -> None:
        """Watch the motion while the torque goes from `before` (n,) to its target."""
        target = self._gravity_target()
        if not (target and self._timing.watch_motion):
            return
        push = pushes(before, target, self.joints.torque)
        self._watch.begin(self.position, self.motion.velocity, push, released=released)

    def _react_to_motion(self, time: float) -> None:
        """Withdraw torque if the arm rises by itself while torque is added, or hold the arm if it sinks."""
        if not (self._enabled and (self._watch.is_on or self._arm_hold.pose)):
            self._suspicion = Verdict.QUIET
            return
        progress = self._ramp.scale if self._replaced is None else 1.0 - self._ramp.weight
        verdict = self._watch.update(
            time, self.position, self.motion.velocity, progress, carried=self._arm_hold.carried(self.joints)
        )
        if verdict is Verdict.SINKS and self._suspicion is not Verdict.SINKS:
            self._arm_hold.pose = self.position
        elif verdict is Verdict.QUIET:
            self._arm_hold.pose = ()
        if verdict is Verdict.RISES and self._suspicion is not Verdict.RISES:
            self._min_scale = MIN_BACK_SCALE * self._ramp.scale
        self._suspicion = verdict
        reason = explain(verdict, self.joints.names[self._watch.joint], is_change=self._replaced is not None)
        if verdict is Verdict.ROSE_BY_ITSELF and self._replaced is not None:
            gravity, joints = self._replaced
            self._replaced = None
            self._change(gravity, joints, LOAD_CHANGE_S, watched=False)
            self.notice = reason
        elif reason:
            self.interrupt(time, reason)

    def _descend(self, time: float, hold: float, ends: float | None = None) -> None:
        """Begin to hold the arm for `hold` s, and then to lower it, by the time `ends` if there is one."""
        timing = self._timing
        self._descent = Descent.plan(time + hold, timing, self.joints.brake, self.motion.delay, ends)
        if hold > 0.0 and not self._arm_hold.pose:
            self._arm_hold.pose = self.position
        self._suspicion = Verdict.QUIET
        self._feedback.halt()
        self._watch.end()
        self.limited = ()

    def _begin_fade(self, time: float) -> list[float]:
        """Begin the ramp of the last command (n,) to zero, which ignores the pose, and return that command."""
        self._fading = self._ramp.fade(time)
        self._descent = None
        self._arm_hold.release()
        self._watch.end()
        self.limited = ()
        return list(self._ramp.torque)

    def _continue_fade(self, time: float) -> list[float] | None:
        """Return the next torque (n,) of the ramp to zero; None if there is no such ramp or it has ended."""
        if self._fading is None or self.at_rest:
            return None
        return self._ramp_to(time, self._fading, -1.0 / self._timing.fault_ramp_time)

    def _step(self, time: float, target: list[float]) -> list[float]:
        """Return the next torque (n,) on the way to its target, or to zero."""
        pace = 1.0 / self._timing.ramp_time
        if self._enabled:
            if self._suspicion is not Verdict.RISES:
                # The watch attributed the motion to a hand: restore the withdrawn torque quickly.
                is_led_by_hand = self.state is State.ACTIVE and not self._watch.is_on
                scale_pace = BACK_PACE if is_led_by_hand else pace
                return self._ramp_to(time, target, scale_pace, weight_pace=-1.0 / self._change_time)
            # The added torque may lift the arm: reduce the scale after `enable`, or return from a change.
            if self._replaced is None:
                return self._ramp_to(time, target, -BACK_PACE if self._ramp.scale > self._min_scale else 0.0)
            return self._ramp_to(time, target, 0.0, weight_pace=1.0 / min(self._change_time, LOAD_CHANGE_S))
        if self._descent is None:
            return self._ramp_to(time, target, -pace)
        if time > self._descent.ends and self.state is State.RAMPING_OUT and self._process_ends:
            return self._begin_fade(time)
        pace = self._descent.pace(time, self.motion.velocity, self.joints.brake is not None)
        torque = self._ramp_to(time, target, pace)
        if self._descent is not None and self._descent.done(time, self._ramp.scale):
            self._ramp.clear()
            torque = list(self._ramp.torque)
            self._finish()
        return torque

    def _ramp_to(
        self, time: float, target: Sequence[float], pace: float, weight_pace: float | None = None
    ) -> list[float]:
        """Return the next torque (n,) of the ramp, and update the state; see `TorqueRamp.step` for arguments."""
        torque = self._ramp.step(time, target, self.joints, pace, weight_pace=weight_pace, brake=self._braking(time))
        if self.state is State.RAMPING_IN and self._ramp.scale == 1.0:
            self.state = State.ACTIVE
        elif self.state is State.RAMPING_OUT and self._ramp.scale == 0.0 and not any(torque) and not self.descends:
            self._finish()
        return torque

    def _finish(self) -> None:
        """Stay at zero: disabled, or in a fault until it is acknowledged."""
        self._descent = None
        if self.state is State.FAULT:
            self._fading = list(self._ramp.torque)
        else:
            self.state = State.DISABLED
            self._fading = None

    def _braking(self, time: float) -> list[float] | None:
        """Return the torque (n,) of brakes and spring, N m (N); None if both are off."""
        if self._fading is not None:
            return None
        brakes = self.descends or self._suspicion is not Verdict.QUIET
        scale = self._ramp.scale
        return self._arm_hold.torque(
            time, self.position, self.motion, self.joints, brakes=brakes, scale=scale, planned=self.plan.speed
        )
