"""Settings of gravity compensation: durations, limits and gains of the joints."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynid_ros.control.joint_brake import JointBrake
from dynid_ros.control.joint_feedback import FeedbackGains, numbers
from dynid_ros.control.servo_offset import ServoOffset
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel

MAX_FAULT_RAMP_TIME = 3.0  # s; launch kills a process 5 s after the request to end
MAX_HOLD_ON_SILENCE = 1.0  # s; later the unseen pose may have changed so far that the held torque is wrong
MAX_DESCENT_TIME = 60.0  # s
MAX_DESCENT_SPEED = 1.0  # rad/s (m/s)
SPEED_LIMIT_FRACTION = 0.5  # fraction of the URDF's velocity limits above which a floating arm is braked
DEFAULT_SPEED_LIMIT = 1.0  # rad/s (m/s), for joints without a velocity limit in the URDF
START_MARGIN = 0.05  # fraction of its limit by which a measured torque may exceed the limit because of sensor noise
MAX_GAIN = 1.5  # a feed-forward well above the gravity torque lifts the arm by itself


@dataclass(frozen=True)
class Timing:
    """Durations of ramps, holds and timeouts in seconds, and the reactions of the compensation that use them.

    Attributes:
        ramp_time: duration of a requested ramp in or out.
        fault_ramp_time: duration of the ramp to zero after a fault or before the process ends.
        timeout: largest age of a joint state that the torque may follow.
        hold_on_silence: time for which the torque is held before it ramps to zero, if late joint states are the only
            fault.
        descent_time: time for which gravity torque and damping hold the arm before it is lowered, after a fault with a
            known pose; 0: after every fault the torque goes to zero within `fault_ramp_time`.
        descent_speed: speed of each joint while the arm is lowered, rad/s (m/s).
        watch_motion: whether to withdraw torque when the arm begins to move by itself while torque is added.
    """

    ramp_time: float = 2.0
    fault_ramp_time: float = 0.5
    timeout: float = 0.2
    hold_on_silence: float = 0.0
    descent_time: float = 0.0
    descent_speed: float = 0.15
    watch_motion: bool = True

    def __post_init__(self) -> None:
        for name in ("ramp_time", "fault_ramp_time", "timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ControlError(f"{name} is {value}; expected a number of seconds above 0")
        if self.fault_ramp_time > MAX_FAULT_RAMP_TIME:
            raise ControlError(
                f"fault_ramp_time is {self.fault_ramp_time:g} s; expected at most {MAX_FAULT_RAMP_TIME:g} s, "
                "because a process that must end is killed soon after"
            )
        if not 0.0 <= self.hold_on_silence <= MAX_HOLD_ON_SILENCE:
            raise ControlError(f"hold_on_silence is {self.hold_on_silence}; expected 0 to {MAX_HOLD_ON_SILENCE:g} s")
        if not 0.0 <= self.descent_time <= MAX_DESCENT_TIME:
            raise ControlError(f"descent_time is {self.descent_time}; expected 0 to {MAX_DESCENT_TIME:g} s")
        if not 0.0 < self.descent_speed <= MAX_DESCENT_SPEED:
            raise ControlError(
                f"descent_speed is {self.descent_speed}; expected a number above 0, at most "
                f"{MAX_DESCENT_SPEED:g} rad/s (m/s)"
            )


@dataclass(frozen=True)
class JointSettings:
    """Limits and gains of n joints, in the model's order; units rad, rad/s, N m, N m/s (prismatic: m, m/s, N, N/s).

    Attributes:
        names: names of the joints.
        gain: factor on the gravity torque.
        torque: largest torque.
        rate: fastest change of the torque.
        lower: smallest plausible position, `margin` below the robot's limit.
        upper: largest plausible position, `margin` above the robot's limit.
        velocity: velocity limit; infinite if unknown.
        feedback: gains about the desired pose, and friction.
        margin: distance beyond the robot's position limits that still counts as plausible.
        speed_limit: speed above which a joint is braked.
        brake: damping that the loop can apply; None: joints are not braked.
        servo: offsets by which the torque is sent to position servos; None: it is sent as effort. The gravity torque is
            then that of the set-point, so that no measurement acts on the command.
        planned_scale: factor on the torque of the planned motion.
        planned_torque: largest torque of the planned motion.
    """

    names: tuple[str, ...]
    gain: tuple[float, ...]
    torque: tuple[float, ...]
    rate: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    velocity: tuple[float, ...]
    feedback: FeedbackGains
    margin: float
    speed_limit: tuple[float, ...] = ()
    brake: JointBrake | None = None
    planned_scale: tuple[float, ...] = ()
    planned_torque: tuple[float, ...] = ()
    servo: ServoOffset | None = None

    @classmethod
    def from_robot(
        cls,
        robot: RobotModel,
        *,
        fault_ramp_time: float,
        gain: Sequence[float] = (1.0,),
        torque: Sequence[float] = (),
        effort_limit_factor: float = 1.0,
        rate: Sequence[float] = (),
        limit_margin: float = 0.1,
        feedback: FeedbackGains | None = None,
        speed_limit: Sequence[float] = (),
        brake: JointBrake | None = None,
        planned_scale: Sequence[float] = (0.0,),
        planned_limit: float = 0.5,
        servo: ServoOffset | None = None,
    ) -> "JointSettings":
        """Derive the settings from a robot; a sequence of one value holds for all joints.

        Args:
            robot: arm whose URDF gives position, velocity and effort limits; a velocity limit of 0 means unknown.
            fault_ramp_time: time in which the largest torque must be able to reach zero, s.
            gain: factor on the gravity torque, 0 (no compensation) to 1.5.
            torque: largest torques; empty: the URDF's effort limits times `effort_limit_factor`.
            effort_limit_factor: factor on the URDF's effort limits, above 0, at most 1.
            rate: fastest changes of the torque; empty: `torque / fault_ramp_time`, the smallest rate that takes
                the torque from its limit to zero in time.
            limit_margin: distance by which a position may exceed its limits before it counts as a fault, rad or m.
            feedback: gains about the desired pose, and friction; None: no feedback.
            speed_limit: speeds above which joints are braked; empty: half of the URDF's velocity limits.
            brake: damping that the loop can apply; None: joints are not braked.
            planned_scale: factor on the torque of the planned motion, 0 (none) to 1.
            planned_limit: largest torque of the planned motion, as a fraction of the torque limits.
            servo: offsets of position servos, whose limits also bound the torques; None: the torque is sent as effort.

        Raises:
            ControlError: a value is out of range, a list has another length than the robot has joints, a joint has no
                known torque limit, or a rate is too slow for the fault ramp.
        """
        names = tuple(robot.joint_names)
        if not 0.0 < effort_limit_factor <= 1.0:
            raise ControlError(f"effort_limit_factor is {effort_limit_factor}; expected a number above 0, at most 1")
        if not (math.isfinite(limit_margin) and limit_margin >= 0.0):
            raise ControlError(f"limit_margin is {limit_margin}; expected a finite number of rad or m, at least 0")
        gains = numbers(gain, names, "scale")
        for name, value in zip(names, gains, strict=True):
            if not 0.0 <= value <= MAX_GAIN:
                raise ControlError(f"scale of joint '{name}' is {value}; expected 0 to {MAX_GAIN}")
        efforts = [effort_limit_factor * float(effort) for effort in robot.limits.effort]
        limits = numbers(torque, names, "torque_limits") if torque else tuple(efforts)
        torques = _torque_limits(names, limits if servo is None else tuple(servo.torque_limits(limits)))
        slowest = tuple(value / fault_ramp_time for value in torques)
        rates = numbers(rate, names, "max_rate") if rate else slowest
        for name, value, least in zip(names, rates, slowest, strict=True):
            if not (math.isfinite(value) and value >= least * (1.0 - 1e-9)):
                raise ControlError(
                    f"max_rate of joint '{name}' is {value} per second; a fault must reach zero from the torque limit "
                    f"within fault_ramp_time, which takes {least:g} or more. Raise it, or lower the torque limit"
                )
        return cls(
            names=names,
            gain=gains,
            torque=torques,
            rate=rates,
            lower=tuple(float(value) - limit_margin for value in robot.limits.lower),
            upper=tuple(float(value) + limit_margin for value in robot.limits.upper),
            velocity=tuple(float(value) if value > 0.0 else math.inf for value in robot.limits.velocity),
            feedback=feedback or FeedbackGains.from_robot(robot),
            margin=limit_margin,
            speed_limit=_speed_limits(robot, speed_limit),
            brake=brake,
            planned_scale=numbers(planned_scale, names, "motion_scale", least=0.0),
            planned_torque=tuple(planned_limit * value for value in torques),
            servo=servo,
        )

    def check_names(self, names: Sequence[str]) -> None:
        """Check that another model has these joints.

        Raises:
            ControlError: it has others.
        """
        if tuple(names) != self.names:
            new, old = ", ".join(names), ", ".join(self.names)
            raise ControlError(f"the new model is of joints {new}, the one in force of {old}; configure anew")

    def clipped(self, gravity: Sequence[float], *added: Sequence[float]) -> tuple[list[float], tuple[str, ...]]:
        """Return the torque (n,) within the limits, N m (N), and the names of the joints that a limit clips.

        Args:
            gravity: (n,) gravity torque, N m (N), without the gains.
            added: further torques (n,), N m (N).
        """
        rows = zip(self.gain, gravity, *added, strict=True)
        unclipped = [gain * value + sum(further) for gain, value, *further in rows]
        pairs = list(zip(self.names, unclipped, self.torque, strict=True))
        return (
            [min(max(value, -limit), limit) for _, value, limit in pairs],
            tuple(name for name, value, limit in pairs if abs(value) > limit),
        )

    def clipped_gravity(self, gravity: Callable[..., Sequence[float]], position: Sequence[float]) -> list[float]:
        """Return the gravity torque (n,), times the gains and within the limits, N m (N); empty where it is not known.

        Args:
            gravity: gravity torque (n,) of a position.
            position: (n,) rad (m); empty: not known.
        """
        if not position:
            return []
        try:
            torque = gravity(position)
        except ControlError:
            return []
        target, _ = self.clipped(torque)
        return target if all(map(math.isfinite, target)) else []

    def checked_target(self, position: Sequence[float]) -> Sequence[float]:
        """Return the target (n,), rad (m), unchanged if it is within the robot's limits; NaN: joint without a target.

        Raises:
            ControlError: the target is beyond a limit.
        """
        for name, value, lower, upper in zip(self.names, position, self.lower, self.upper, strict=True):
            smallest = lower + self.margin
            largest = upper - self.margin
            if not (math.isnan(value) or smallest <= value <= largest):
                raise ControlError(
                    f"joint '{name}' is to go to {value:.4f}; its limits are {smallest:.4f} to {largest:.4f}"
                )
        return position

    def check_torque(self, torque: Sequence[float]) -> None:
        """Check that the present torque (n,), N m (N), is within these limits.

        Raises:
            ControlError: a torque is above its limit, from which a fault could not fade in time.
        """
        for name, value, limit in zip(self.names, torque, self.torque, strict=True):
            if abs(value) > limit:
                raise ControlError(
                    f"on joint '{name}' {value:.3g} N m (N) act, and its limit is to be {limit:.3g}; disable first"
                )

    def checked_start(self, torque: Sequence[float]) -> list[float]:
        """Return the torque (n,) that acts before the first command, N m (N), clipped to the limits.

        Raises:
            ControlError: the torque is not finite, or so far beyond the limits that clipping it would be a step.
        """
        for name, value, limit in zip(self.names, torque, self.torque, strict=True):
            if not abs(value) <= (1.0 + START_MARGIN) * limit:
                raise ControlError(
                    f"cannot enable: on joint '{name}' {value:.3g} N m (N) act already, and its limit is {limit:.3g}; "
                    "raise torque_limits, or take that torque off first"
                )
        return [min(max(value, -limit), limit) for value, limit in zip(torque, self.torque, strict=True)]


def _speed_limits(robot: RobotModel, configured: Sequence[float]) -> tuple[float, ...]:
    """Return the speeds (n,) above which joints are braked: the configured ones, or a fraction of the URDF's limits."""
    if configured:
        return numbers(configured, tuple(robot.joint_names), "speed_limit", least=0.0)
    limits = [float(limit) for limit in robot.limits.velocity]
    return tuple(
        SPEED_LIMIT_FRACTION * limit if math.isfinite(limit) and limit > 0.0 else DEFAULT_SPEED_LIMIT
        for limit in limits
    )


def _torque_limits(names: tuple[str, ...], limits: tuple[float, ...]) -> tuple[float, ...]:
    """Return the torque limits (n,) unchanged if all of them are finite and above 0."""
    unknown = [name for name, limit in zip(names, limits, strict=True) if not (math.isfinite(limit) and limit > 0.0)]
    if unknown:
        raise ControlError(
            f"no torque limit is known for joint(s) {', '.join(unknown)}: give effort limits above 0 in the URDF, "
            "or the parameter torque_limits"
        )
    return limits
