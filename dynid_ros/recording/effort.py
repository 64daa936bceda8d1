"""Meaning of recorded effort, and torque of drives in MIT mode, computed from their commands without a torque sensor.

Such a drive (Damiao, RobStride, CyberGear, Unitree) receives a position q_d, a velocity q̇_d, a feed-forward torque
τ_ff and two gains, and closes the loop itself at several kHz:

    τ = k_p (q_d − q) + k_d (q̇_d − q̇) + τ_ff

A command acts from `delay` after its time stamp until the next one. Samples and commands have different clocks, so the
commanded part is averaged over one sampling period about each sample, as the low-pass of an identification does too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.recording.series import CommandPath, CommandSeries
from dynid_ros.signals import differentiate

if TYPE_CHECKING:
    from dynid_ros.recording.recording import Recording

GRAVITY_COMPENSATED = "gravity_compensated"
MAX_COMMAND_DELAY_S = 1.0
"""Longest delay of a command: a longer one means a recording with two clocks."""
IMPEDANCE = "impedance"
EFFORT_KINDS = ("torque", "motor_current", GRAVITY_COMPENSATED, IMPEDANCE)

VELOCITY_WINDOW_S = 0.05
"""Length of the local fit that gives velocities which the drive does not report."""


@dataclass(frozen=True)
class EffortConvention:
    """Meaning of the recorded effort.

    Args:
        kind: "torque": joint torque in N m with gravity. "motor_current": current in A, converted to joint torque by
            `gains`. "gravity_compensated": the driver has subtracted its own gravity model. "impedance": the torque of
            drives in MIT mode, computed from their commands; the recorded effort is ignored.
        gains: gains at the joints, N m / A, in the order of the joint names; for motor_current only. A negative gain
            belongs to a motor that turns against its joint.
        residual: whether the torque without gravity is requested; for gravity_compensated.
        readings: whether the currents without gains are requested; for motor_current.
        stiffness: gains of the position error, N m/rad (N/m), one for all joints or one per joint; for impedance. None:
            the commands contain them.
        damping: gains of the velocity error, N m s/rad (N s/m), likewise.
        delay: time after which a command acts, s; for impedance. None: estimated where the arm is known.

    Raises:
        RecordingError: the kind is unknown, or gains are missing, unexpected, zero or not finite.
    """

    kind: str
    gains: Sequence[float] | None = None
    residual: bool = False
    readings: bool = False
    stiffness: Sequence[float] | None = None
    damping: Sequence[float] | None = None
    delay: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in EFFORT_KINDS:
            raise RecordingError(
                f"effort_convention '{self.kind}' is unknown; expected one of {', '.join(EFFORT_KINDS)}"
            )
        wanted = self.kind == "motor_current" and not self.readings
        if wanted != (self.gains is not None):
            raise RecordingError(
                f"effort_convention '{self.kind}' {'needs' if wanted else 'takes no'} gains; "
                "gains (N m / A, one per joint) belong to motor_current"
            )
        if self.gains is not None:
            gains = np.asarray(self.gains, dtype=float)
            if gains.ndim != 1 or not np.all(np.isfinite(gains)) or np.any(gains == 0):
                raise RecordingError(f"effort_convention: gains must be finite and not zero, N m / A; got {self.gains}")
            object.__setattr__(self, "gains", tuple(gains.tolist()))
        self._check_impedance()

    def _check_impedance(self) -> None:
        """Convert the gains of drives to tuples, and refuse impossible ones."""
        given = [name for name in ("stiffness", "damping", "delay") if getattr(self, name) is not None]
        if given and self.kind != IMPEDANCE:
            raise RecordingError(f"effort_convention '{self.kind}' takes no {', '.join(given)}; they are for impedance")
        if self.delay is not None and not 0.0 <= self.delay <= MAX_COMMAND_DELAY_S:
            raise RecordingError(
                f"effort_convention: the delay of commands is {self.delay:g} s; expected 0 to {MAX_COMMAND_DELAY_S:g} s"
            )
        for name in set(given) - {"delay"}:
            gains = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
            if gains.ndim != 1 or not np.all(np.isfinite(gains) & (gains >= 0)):
                raise RecordingError(
                    f"effort_convention: {name} must be finite and not negative, one for all joints or one per joint; "
                    f"got {getattr(self, name)}"
                )
            object.__setattr__(self, name, tuple(gains.tolist()))

    def to_torque(self, effort: np.ndarray) -> np.ndarray:
        """Convert recorded effort (N, n) to joint torque (N, n), N m, with gravity unless `residual` is set.

        Raises:
            RecordingError: the number of gains is not n, or gravity is not in the effort.
        """
        if self.kind == GRAVITY_COMPENSATED and not self.residual:
            raise RecordingError(
                "effort_convention 'gravity_compensated': gravity is not in the recorded effort, so neither torques "
                "nor gravity parameters can be found from it, but a load that the driver does not know; switch the "
                "driver's compensation off, or record its uncompensated torque and give that as torque_topic"
            )
        if self.kind == IMPEDANCE:
            raise RecordingError(
                "effort_convention 'impedance': torques follow from commands, which joint states do not contain; use a "
                "recording with command_topic"
            )
        if self.gains is None:
            return effort
        if len(self.gains) != effort.shape[1]:
            raise RecordingError(
                f"effort_convention has {len(self.gains)} gains for {effort.shape[1]} joints; give one per joint"
            )
        return effort * np.asarray(self.gains)


class CommandDelay(NamedTuple):
    """Time after which a command acts.

    Attributes:
        value: delay, s.
        error: standard error, s; 0 for a given delay, NaN for one that nobody knows yet.
    """

    value: float
    error: float


UNKNOWN_DELAY = CommandDelay(0.0, np.nan)


def with_impedance_torque(recording: Recording, convention: EffortConvention) -> Recording:
    """Return the recording with the torque of its commands."""
    command = recording.command
    if command is None:
        raise RecordingError(
            f"{recording.source}: effort_convention 'impedance' computes torques from commands, and there are none; "
            "name their topic (command_topic), or give columns '<joint>_command', '<joint>_command_velocity' and "
            "'<joint>_command_torque'"
        )
    gains = {name: _gains(recording, command, name, getattr(convention, name)) for name in ("stiffness", "damping")}
    recording = replace(recording, command=replace(command, **gains))
    delay = UNKNOWN_DELAY if convention.delay is None else CommandDelay(convention.delay, 0.0)
    return at_delay(recording, delay)


def at_delay(recording: Recording, delay: CommandDelay) -> Recording:
    """Return a recording with gains in its commands, with the torque for another delay of the commands."""
    return replace(recording, torque=_impedance_torque(recording, delay.value), command_delay=delay)


def equivalent_positions(command: CommandSeries) -> CommandSeries:
    """Return the set-points whose position error alone makes the torque of the commands at standstill."""
    assert command.stiffness is not None
    columns = [
        _drive(command, j).position / _path(command, command.stiffness, j).position
        for j in range(command.position.shape[1])
    ]
    return CommandSeries(command.time, np.where(np.isfinite(command.position), np.column_stack(columns), np.nan))


def _impedance_torque(recording: Recording, delay: float) -> NDArray:
    """Return the torques (N, n), N m (N); NaN before the first command, which counts from its time stamp on."""
    command = recording.command
    assert command is not None
    assert command.stiffness is not None
    assert command.damping is not None
    time = recording.time
    step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    if step == 0.0:
        raise RecordingError(f"{recording.source}: a single sample has no torque of commands; record longer")
    velocity = recording.velocity
    if not np.isfinite(velocity).all():
        (slope,) = differentiate(time, recording.position, VELOCITY_WINDOW_S, orders=(1,))
        velocity = np.where(np.isfinite(velocity), velocity, slope)
    edges = np.stack([time - step / 2, time + step / 2]) - delay
    torque = np.full(recording.position.shape, np.nan)
    for j in np.flatnonzero(np.isfinite(command.position).any(axis=0)).tolist():
        paths = (_drive(command, j), _path(command, command.stiffness, j), _path(command, command.damping, j))
        drive, k, d = (np.diff(path.integral(edges), axis=0)[0] / step for path in paths)
        begin = command.time[np.argmax(np.isfinite(command.position[:, j]))]
        value = drive - k * recording.position[:, j] - d * velocity[:, j]
        torque[:, j] = np.where(time + step / 2 < begin, np.nan, value)
    return torque


def _drive(command: CommandSeries, joint: int) -> CommandPath:
    """Return k_p q_d + k_d q̇_d + τ_ff of one joint as a function of time."""
    assert command.stiffness is not None
    value = _held(command.stiffness[:, joint]) * _held(command.position[:, joint])
    if command.velocity is not None and command.damping is not None:
        value = value + _held(command.damping[:, joint]) * _held(command.velocity[:, joint])
    if command.effort is not None:
        value = value + _held(command.effort[:, joint])
    return CommandPath(command.time, value)


def _path(command: CommandSeries, values: NDArray, joint: int) -> CommandPath:
    return CommandPath(command.time, _held(values[:, joint]))


def _held(values: NDArray) -> NDArray:
    """Return values (K,) in which a command without a value repeats the last one; the first extends backwards.

    A joint that never receives a velocity or a torque receives 0.
    """
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return np.zeros(len(values))
    at = np.maximum(np.searchsorted(known, np.arange(len(values)), side="right") - 1, 0)
    return values[known[at]]


def _gains(recording: Recording, command: CommandSeries, name: str, given: Sequence[float] | None) -> NDArray:
    """Return the gains (K, n) of a name, as given or from the commands."""
    shape = command.position.shape
    if given is not None:
        if len(given) not in (1, shape[1]):
            raise RecordingError(
                f"effort_convention has {len(given)} values of {name} for {shape[1]} joints; give one per joint"
            )
        return np.broadcast_to(np.asarray(given), shape)
    recorded = getattr(command, name)
    missing = recording.joint_names
    if recorded is not None:
        known = np.isfinite(recorded).any(axis=0)
        missing = tuple(joint for joint, some in zip(recording.joint_names, known, strict=True) if not some)
    if missing:
        raise RecordingError(
            f"{recording.source}: the {name} of the drive of {', '.join(missing)} is unknown; give {name} "
            f"({'N m/rad' if name == 'stiffness' else 'N m s/rad'}, as sent to the drive), or columns '<joint>_{name}'"
        )
    return np.asarray(recorded)
