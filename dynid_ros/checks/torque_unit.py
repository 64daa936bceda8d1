"""Positions and torques that an arm cannot have, and torques of single joints in another unit, such as raw counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import (
    ABSURD,
    CURRENT,
    MIN_WARNING_GAIN,
    CheckSettings,
    Explanation,
    Finding,
    recording_check,
)
from dynid_ros.checks.length_and_gaps import MAX_SPEED
from dynid_ros.checks.motion_samples import MotionSamples
from dynid_ros.checks.torque_model import TorqueProblem
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


MAX_LIMIT_RATIO = 3.0
"""Largest plausible ratio of a torque to the effort limit, and to the torque that the URDF predicts for the motion:
motors briefly reach two to three times their rated torque."""
ERROR_LIMIT_RATIO = 5.0
"""Ratio of a torque to these two references above which the finding is an error."""
PLACEHOLDER_LIMIT_RATIO = 1.5
"""Ratio of the torque predicted by the URDF to its effort limit above which the limits are placeholders."""
OTHER_JOINTS_RATIO = 5.0
"""Ratio of a torque to the largest one of the other joints, and to the torque predicted by the URDF, above which it is
an error, if it also exceeds the weight of the stretched arm. For an upright arm, friction of the base dominates."""
PEAK_QUANTILE = 0.99
"""Quantile of the torque's magnitude that counts as its peak, which excludes single spikes."""
SCALES = tuple(factor**sign for factor in (2.0, 4.0, 10.0, 30.0, 100.0, 1e3, 1e4) for sign in (-1, 1))
"""Factors on the torque of a joint that are tried first."""
MIN_REFINED_GAIN = 0.2
"""Smallest gain of the best factor before it is refined."""
SCALE_REFINEMENTS = (1.7, 1.3, 1.15, 1.07)
"""Factors by which the best factor is multiplied or divided, one after the other."""
MIN_SCALE_ERROR = 1.5
"""Smallest factor between a torque and N m to report, either way: gains of real drives are wrong by up to 30 %."""
MAX_UNEXPLAINED = 0.5
"""Largest unexplained fraction of the joint's scaled torque. A torque in another unit is proportional to the true one.
Noise is not: its scale only reduces the weight of that joint."""
HIDDEN_SCALE = 3.0
"""Factor that a recording should be able to show; joints that cannot show it are named."""
MAX_PERCENT_RATIO = 2.0
"""Largest ratio, either way, of a factor to the one for percent of the effort limit, or for a power of ten."""
TORQUE_UNIT_REMEDY = "give its torque in N m: effort_convention motor_current with a gain for each joint"


def check_torque_sizes(robot: RobotModel, samples: MotionSamples, source: str) -> Iterator[Finding]:
    """Yield a finding for each joint whose torque is far beyond its effort limit, or beyond all other torques.

    Placeholders of effort limits are ignored: limits below the torque that the URDF predicts for the motion, and one
    number for all joints of a URDF that has no masses, or for revolute and prismatic joints alike. Limits that every
    joint exceeds are ignored as well.
    """
    limits = robot.limits.effort
    nominal = robot.inverse_dynamics(samples.position, samples.velocity, samples.acceleration)
    needed, recorded = (np.quantile(np.abs(torque), PEAK_QUANTILE, axis=0) for torque in (nominal, samples.torque))
    heaviest = torque_scale(robot)
    limited = np.isfinite(limits) & (limits > 0)
    beyond_limit = np.divide(recorded, np.maximum(limits, needed), out=np.zeros_like(needed), where=limited)
    are_too_low = bool(np.any(needed[limited] > PLACEHOLDER_LIMIT_RATIO * limits[limited]))
    has_both_kinds = 0 < np.count_nonzero(robot.chain.prismatic) < robot.n_joints
    are_one_number = robot.n_joints > 1 and bool(np.all(limits == limits[0]))
    if (
        are_too_low
        or (are_one_number and (has_both_kinds or not needed.any()))
        or not np.any((beyond_limit > 0.0) & (beyond_limit < 1.0))
    ):
        beyond_limit[:] = 0.0
    for j, joint in enumerate(robot.joint_names):
        others = [k for k in range(robot.n_joints) if k != j and robot.chain.prismatic[k] == robot.chain.prismatic[j]]
        largest = max((*recorded[others], *needed[[*others, j]]))
        alone = bool(others) and recorded[j] > max(OTHER_JOINTS_RATIO * largest, heaviest[j])
        if not alone and beyond_limit[j] <= MAX_LIMIT_RATIO:
            continue
        unit = "N" if robot.chain.prismatic[j] else "N m"
        if beyond_limit[j] > MAX_LIMIT_RATIO:
            size = f"{recorded[j] / limits[j]:.2g} times its effort limit of {limits[j]:g} {unit} in the URDF"
            remedy = f"{TORQUE_UNIT_REMEDY}; or correct the limit in the URDF, if it is a placeholder"
        else:
            size = f"more than {OTHER_JOINTS_RATIO:g} times the {largest:.3g} {unit} of every other joint"
            remedy = TORQUE_UNIT_REMEDY
        ratio = recorded[j] / needed[j] if needed[j] > 0.0 else np.inf
        guess = _unit_name(float(ratio), float(limits[j]))
        yield Finding(
            "error" if alone or beyond_limit[j] > ERROR_LIMIT_RATIO else "warning",
            f"{source}, joint '{joint}'",
            f"its torque reaches {recorded[j]:.3g}, {size}: {guess}",
            remedy,
            CURRENT,
        )


def scale_explanations(problem: TorqueProblem) -> Iterator[Explanation]:
    """Yield the explanations by another unit of torque: of a single joint, and of all joints in percent of limits."""
    robot = problem.robot
    judged = problem.equations.judged
    trials = np.array([_single(robot.n_joints, int(j), scale) for j in judged for scale in SCALES])
    tried = problem.equations.scale_gains(trials).reshape(len(judged), len(SCALES))
    for j, first_gains in zip(judged, tried, strict=True):
        scale, gain = _best_scale(problem, int(j), first_gains)
        scales = _single(robot.n_joints, int(j), scale)
        if max(scale, 1 / scale) >= MIN_SCALE_ERROR and _is_explained(problem, int(j), scales):
            guess = _unit_name(1 / scale, float(robot.limits.effort[j]))
            yield Explanation(
                CURRENT,
                _confirmed(problem, scales, gain),
                f"its torque is about {1 / scale:.2g} times what the torques of the other joints show: {guess}",
                TORQUE_UNIT_REMEDY,
                (robot.joint_names[j],),
            )
    limits = robot.limits.effort
    if np.all(np.isfinite(limits) & (limits > 0)) and np.ptp(limits) > 0.0:
        scales = limits / np.exp(np.mean(np.log(limits)))
        yield Explanation(
            CURRENT,
            _confirmed(problem, scales, float(problem.equations.scale_gains(scales[None])[0])),
            "the torques belong together once each is multiplied by the effort limit of its joint: they look like "
            "percent of the rated torque",
            "give them in N m: effort_convention motor_current with a gain for each joint, its rated torque / 100",
        )


def undecided_units(problem: TorqueProblem) -> Iterator[str]:
    """Yield the joints whose torque fits equally well with a wrong factor, for example pure friction."""
    robot = problem.robot
    judged = problem.equations.judged
    trials = [_single(robot.n_joints, int(j), scale) for j in judged for scale in (HIDDEN_SCALE, 1 / HIDDEN_SCALE)]
    gains = problem.equations.scale_gains(np.array(trials)).reshape(-1, 2).max(axis=1)
    hidden = [robot.joint_names[j] for j, gain in zip(judged, gains, strict=True) if gain > -MIN_WARNING_GAIN]
    if hidden:
        yield f"a torque in another unit, {HIDDEN_SCALE:g} times too large or too small: {', '.join(hidden)}"


def _single(n: int, joint: int, scale: float) -> NDArray:
    """Return factors (n,) of the torques that change one joint only."""
    return np.where(np.arange(n) == joint, scale, 1.0)


def _best_scale(problem: TorqueProblem, joint: int, first_gains: NDArray) -> tuple[float, float]:
    """Return the factor on the torque of one joint with the best fit of all torques, and its gain.

    Args:
        problem: fitted model.
        joint: number of the joint.
        first_gains: gains of `SCALES`.
    """
    gains = dict(zip(SCALES, map(float, first_gains), strict=True))
    best = max(gains, key=gains.__getitem__)
    for factor in SCALE_REFINEMENTS if gains[best] > MIN_REFINED_GAIN else ():
        scales = best * factor, best / factor
        trials = np.array([_single(problem.robot.n_joints, joint, scale) for scale in scales])
        gains |= dict(zip(scales, map(float, problem.equations.scale_gains(trials)), strict=True))
        best = max(gains, key=gains.__getitem__)
    return best, gains[best]


def _is_explained(problem: TorqueProblem, joint: int, scales: NDArray) -> bool:
    """Return whether the model explains the torque of a joint that is multiplied by a scale."""
    scaled = problem.equations.scaled(scales)
    return bool(scaled.fit().misfits[joint] < np.log(MAX_UNEXPLAINED))


def _confirmed(problem: TorqueProblem, scales: NDArray, gain: float) -> float:
    """Return the part of a gain that remains with presliding friction, which looks like gravity in short motions."""
    return (
        gain
        if gain <= MIN_WARNING_GAIN
        else min(gain, float(problem.presliding.equations.scale_gains(scales[None])[0]))
    )


def _unit_name(ratio: float, limit: float) -> str:
    """Describe the likely unit of a torque, given its value for 1 N m and the effort limit, N m."""

    def near(expected: float) -> bool:
        return bool(1 / MAX_PERCENT_RATIO < ratio / expected < MAX_PERCENT_RATIO)

    if np.isfinite(limit) and limit > 0 and near(100.0 / limit):
        return "it looks like percent of the rated torque"
    if near(1000.0):
        return "it looks like mN m, permille or raw counts of the driver"
    if ratio > 1.0:
        return "it looks like raw counts of the driver, percent of the rated torque, or torque in another unit"
    return "it looks like motor current or torque before the gear"
