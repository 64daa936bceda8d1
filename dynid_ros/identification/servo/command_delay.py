"""Delay of the commands of drives in MIT mode, for torques that are computed from their commands.

To first order, a delay d of the commanded position acts as viscous friction of k_p d. The delay is therefore estimated
together with friction and inertia by the closed loops of all joints, see `ServoIdentification`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.servo.servo_identification import ServoIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording.effort import CommandDelay, at_delay
from dynid_ros.recording.recording import Recording

WINDOW_S = 15.0
"""Duration of the motion that serves for the estimate; it determines a delay within 0.02 ms."""


def with_estimated_delay(recordings: Sequence[Recording], robot: RobotModel) -> list[Recording]:
    """Return the recordings with torques by the delay of their commands, estimated where it is unknown.

    Raises:
        IdentificationError: the motion does not determine the delay.
    """
    unknown = [part for part in recordings if part.delay_is_unknown]
    if not unknown:
        return list(recordings)
    delay = estimate_command_delay([part.select(robot.joint_names) for part in unknown], robot)
    return [at_delay(part, delay) if part.delay_is_unknown else part for part in recordings]


def estimate_command_delay(recordings: Sequence[Recording], robot: RobotModel) -> CommandDelay:
    """Estimate the delay that the drives of all joints share, with its standard error.

    Args:
        recordings: recordings of one robot whose commands have gains; the one that moves most serves.
        robot: robot model; its inertias are not used.

    Raises:
        IdentificationError: the motion does not determine the delay.
    """
    windows = [_liveliest(part) for part in recordings]
    part, _ = max(windows, key=lambda window: window[1])
    try:
        joints = ServoIdentification(robot).fit(part).joints.values()
    except IdentificationError as error:
        raise IdentificationError(
            f"the delay of the commands is unknown, and this motion does not show it ({error}); give it "
            "(--command-delay, EffortConvention(delay=...))"
        ) from error
    values, errors = np.array([joint.over_gain["delay"] for joint in joints]).T
    known = np.isfinite(errors) & (errors > 0)
    if not known.any():
        raise IdentificationError(
            f"{part.source}: the motion does not determine the delay of the commands; move faster, or give it "
            "(--command-delay, EffortConvention(delay=...))"
        )
    values = values[known]
    weights = 1 / errors[known] ** 2
    mean = float(weights @ values / weights.sum())
    scatter = np.sqrt(weights @ (values - mean) ** 2 / max(len(values) - 1, 1))
    return CommandDelay(mean, float(max(scatter, 1.0) / np.sqrt(weights.sum())))


def _liveliest(recording: Recording) -> tuple[Recording, float]:
    """Return the window of a recording in which all joints move most, and the way of the joint that moves least."""
    command = recording.command
    assert command is not None
    moves = np.abs(np.diff(np.nan_to_num(recording.position), axis=0, prepend=recording.position[:1]))
    way = np.cumsum(moves, axis=0)
    total = np.where(way[-1] > 0, way[-1], 1.0)
    first = np.arange(recording.n_samples)
    last = np.searchsorted(recording.time, recording.time + WINDOW_S, side="right") - 1
    shares: NDArray = ((way[last] - way[first]) / total).min(axis=1, where=way[-1] > 0, initial=1.0)
    start = int(np.argmax(shares))
    window = recording.slice(slice(start, int(last[start]) + 1))
    return window, float((way[last[start]] - way[start]).max())
