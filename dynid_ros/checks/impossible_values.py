"""Positions and torques that an arm of this kind cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import ABSURD, CheckSettings, Finding, recording_check
from dynid_ros.checks.length_and_gaps import MAX_SPEED
from dynid_ros.files.disk_arrays import column_ranges, overlapping_blocks, read_column
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

BEYOND_LIMITS: Final = "beyond limits"
MAX_LIMIT_EXCESS = 0.1
"""Largest excess of positions over the limits of the URDF, rad or m."""
MIN_WRONG_UNIT_EXCESS = np.pi
"""Excess over the limits above which positions are in another unit than rad or m."""
MIN_JUMP = 0.1
"""Smallest jump of a position from one sample to the next, rad or m."""
MIN_JUMP_SPEED = 50.0
"""Smallest speed of a jump, rad/s or m/s."""
SPEED_WINDOW_S = 0.1
"""Time over which the speed of a joint is judged: positions in degrees, where a joint has no limits that matter."""
MAX_GLITCH_SAMPLES = 5
"""Largest number of samples that a glitch of an encoder lasts."""
MAX_TORQUE_RATIO = 100.0
"""Largest torque, as a multiple of the arm's weight at its full length: three orders above those of arms."""
MAX_GLITCH_SHARE = 0.05
"""Largest share of the samples for which torques beyond that are glitches."""


@recording_check(rank=50)
def check_values(recording: Recording, settings: CheckSettings) -> Iterator[Finding]:
    """Yield findings about positions outside the limits or in another unit, jumps, and torques above any plausible."""
    robot = settings.robot
    if robot is None:
        return
    lower = robot.limits.lower
    upper = robot.limits.upper
    low, high = column_ranges(recording.position)
    # Limits that are missing, or both 0, are ignored: a joint without a range could not move.
    excess = np.where(lower < upper, np.maximum(lower - low, high - upper), 0.0)
    jumps = np.concatenate(
        [
            _find_jumps(recording.time[window], recording.position[window])[place]
            for _, window, place in overlapping_blocks(recording.n_samples, MAX_GLITCH_SAMPLES + 1)
        ]
    )[: recording.n_samples - 1]
    fastest = _largest_speeds(recording)
    max_torque = MAX_TORQUE_RATIO * torque_scale(robot)
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        if jumps[:, j].any():
            first = int(np.argmax(jumps[:, j]))
            yield Finding(
                "error",
                where,
                f"its position jumps {np.sum(jumps[:, j])} times, first from {recording.position[first, j]:.4g} to "
                f"{recording.position[first + 1, j]:.4g} at t = {recording.time[first]:.3f} s",
                "positions must go on continuously, not wrap at a full turn; remove glitches of the encoder",
                ABSURD,
            )
        elif excess[j] > MAX_LIMIT_EXCESS:
            wrong_unit = excess[j] > MIN_WRONG_UNIT_EXCESS
            yield Finding(
                "error" if wrong_unit else "warning",
                where,
                f"it goes from {low[j]:.4g} to {high[j]:.4g}, but its limits are {lower[j]:.4g} to {upper[j]:.4g}",
                "positions must be in rad (m) and count from the zero of this arm's URDF",
                ABSURD if wrong_unit else BEYOND_LIMITS,
            )
        elif fastest[j] > MAX_SPEED:
            yield Finding(
                "error",
                where,
                f"it moves at up to {fastest[j]:.3g} rad/s (m/s), from {low[j]:.4g} to {high[j]:.4g}",
                "positions must be in rad (m), and the time in s",
                ABSURD,
            )
        yield from _check_torque_size(recording, j, where, max_torque[j])


def _check_torque_size(recording: Recording, j: int, where: str, largest: float) -> Iterator[Finding]:
    """Yield an error if the torque of joint j exceeds the largest plausible one, N m."""
    beyond = np.abs(read_column(recording.torque, j)) > largest
    if not beyond.any():
        return
    first = int(np.argmax(beyond))
    message = f"its torque is {recording.torque[first, j]:.4g} at t = {recording.time[first]:.3f} s"
    if np.mean(beyond) > MAX_GLITCH_SHARE:
        message += (
            f", and above {largest:.2g} in {100 * np.mean(beyond):.0f} % of the samples: far more than an arm as "
            "light as the URDF's needs"
        )
        remedy = (
            "or the URDF has masses in place of unknown ones: give what links weigh, or leave their inertial elements "
            "out"
        )
    else:
        message += f" ({np.sum(beyond)} samples above {largest:.2g})"
        remedy = "remove these samples if they are glitches of the driver"
    yield Finding("error", where, message, f"torques must be in N m (N); {remedy}", ABSURD)


def _find_jumps(time: NDArray, position: NDArray) -> NDArray:
    """Return a mask (N - 1, n) of the steps that wrap at a full turn, or that are reversed soon after."""
    steps = np.diff(position, axis=0)
    fast = (np.abs(steps) > MIN_JUMP) & (np.abs(steps) > MIN_JUMP_SPEED * np.diff(time)[:, None])
    wrapped = np.abs(np.abs(steps) - 2 * np.pi) < MIN_JUMP
    reversed_soon = np.zeros_like(fast)
    for row, j in zip(*np.nonzero(fast), strict=True):
        following = steps[row + 1 : row + 1 + MAX_GLITCH_SAMPLES, j]
        reversed_soon[row, j] = np.any(np.abs(following + steps[row, j]) < 0.1 * np.abs(steps[row, j]))
    return fast & (wrapped | reversed_soon)


def _largest_speeds(recording: Recording) -> NDArray:
    """Return the largest speeds (n,) over `SPEED_WINDOW_S`, apart from a few glitches."""
    steps = max(1, round(SPEED_WINDOW_S * (recording.n_samples - 1) / max(recording.duration, SPEED_WINDOW_S)))
    if recording.n_samples <= steps:
        return np.zeros(recording.n_joints)
    duration = np.maximum(recording.time[steps:] - recording.time[:-steps], SPEED_WINDOW_S)
    columns = (read_column(recording.position, j) for j in range(recording.n_joints))
    return np.array([np.percentile(np.abs(q[steps:] - q[:-steps]) / duration, 99.0) for q in columns])


def torque_scale(robot: RobotModel) -> NDArray:
    """Return the weight of the arm times its length (n,), N m, or its weight, N; infinite without masses."""
    weight = np.sum(robot.parameters[::PARAMETERS_PER_LINK]) * max(np.linalg.norm(robot.gravity), 1.0)
    origins = robot.forward_kinematics(np.zeros((1, robot.n_joints)))[0, :, :3, 3]
    parents = robot.chain.parents
    length = 0.1 + np.sum(np.linalg.norm((origins - origins[parents])[parents >= 0], axis=1))
    scale = np.where(robot.chain.prismatic, weight, weight * length)
    return np.where(scale > 0, scale, np.inf)
