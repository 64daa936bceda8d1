"""Torque of drives in MIT mode, computed from their commands, without a torque sensor.

Such a drive (Damiao, RobStride, CyberGear, Unitree) receives a position q_d, a velocity q̇_d, a feed-forward torque
τ_ff and two gains, and closes the loop itself at several kHz:

    τ = k_p (q_d − q) + k_d (q̇_d − q̇) + τ_ff

A command acts from `delay` after its time stamp until the next one. Samples and commands have different clocks, so the
commanded part is averaged over one sampling period about each sample, as the low-pass of an identification does too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.series import CommandPath, CommandSeries
from dynid_ros.signals import differentiate

if TYPE_CHECKING:
    from dynid_ros.recording.recording import Recording

VELOCITY_WINDOW_S = 0.05
"""Length of the local fit that gives velocities which the drive does not report."""


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
