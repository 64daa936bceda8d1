"""Torques of single joints in another unit: raw counts, percent of the rated torque, mN m."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import CURRENT, MIN_WARNING_GAIN, Explanation, Finding
from dynid_ros.checks.impossible_values import torque_scale
from dynid_ros.checks.motion_samples import MotionSamples
from dynid_ros.checks.torque_model import TorqueProblem

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

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

    Effort limits below the torque that the URDF predicts for the motion are placeholders and are ignored. Limits that
    every joint exceeds are ignored as well.
    """
    limits = robot.limits.effort
    nominal = robot.inverse_dynamics(samples.position, samples.velocity, samples.acceleration)
    needed, recorded = (np.quantile(np.abs(torque), PEAK_QUANTILE, axis=0) for torque in (nominal, samples.torque))
    heaviest = torque_scale(robot)
    limited = np.isfinite(limits) & (limits > 0)
    beyond_limit = np.divide(recorded, np.maximum(limits, needed), out=np.zeros_like(needed), where=limited)
    placeholders = np.any(needed[limited] > PLACEHOLDER_LIMIT_RATIO * limits[limited])
    if placeholders or not np.any((beyond_limit > 0.0) & (beyond_limit < 1.0)):
        beyond_limit[:] = 0.0
    for j, joint in enumerate(robot.joint_names):
        others = [k for k in range(robot.n_joints) if k != j and robot.chain.prismatic[k] == robot.chain.prismatic[j]]
        largest = max((*recorded[others], *needed[[*others, j]]))
        alone = bool(others) and recorded[j] > max(OTHER_JOINTS_RATIO * largest, heaviest[j])
        if not alone and beyond_limit[j] <= MAX_LIMIT_RATIO:
            continue
        unit = "N" if robot.chain.prismatic[j] else "N m"
        size = f"{recorded[j] / limits[j]:.2g} times its effort limit of {limits[j]:g} {unit} in the URDF"
        if beyond_limit[j] <= MAX_LIMIT_RATIO:
            size = f"more than {OTHER_JOINTS_RATIO:g} times the {largest:.3g} {unit} of every other joint"
        ratio = recorded[j] / needed[j] if needed[j] > 0.0 else np.inf
        guess = _unit_name(float(ratio), float(limits[j]))
        yield Finding(
            "error" if alone or beyond_limit[j] > ERROR_LIMIT_RATIO else "warning",
            f"{source}, joint '{joint}'",
            f"its torque reaches {recorded[j]:.3g}, {size}: {guess}",
            TORQUE_UNIT_REMEDY,
            CURRENT,
        )


def scale_explanations(problem: TorqueProblem) -> Iterator[Explanation]:
    """Yield the explanations by another unit of torque: of a single joint, and of all joints in percent of limits."""
    robot = problem.robot
    for j in problem.equations.judged:
        scale, gain = _best_scale(problem, int(j))
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
            _confirmed(problem, scales, _scale_gain(problem, scales)),
            "the torques belong together once each is multiplied by the effort limit of its joint: they look like "
            "percent of the rated torque",
            "give them in N m: effort_convention motor_current with a gain for each joint, its rated torque / 100",
        )


def undecided_units(problem: TorqueProblem) -> Iterator[str]:
    """Yield the joints whose torque fits equally well with a wrong factor, for example pure friction."""
    n = problem.robot.n_joints
    hidden = [
        problem.robot.joint_names[j]
        for j in problem.equations.judged
        if max(_scale_gain(problem, _single(n, int(j), scale)) for scale in (HIDDEN_SCALE, 1 / HIDDEN_SCALE))
        > -MIN_WARNING_GAIN
    ]
    if hidden:
        yield f"a torque in another unit, {HIDDEN_SCALE:g} times too large or too small: {', '.join(hidden)}"


def _single(n: int, joint: int, scale: float) -> NDArray:
    """Return factors (n,) of the torques that change one joint only."""
    return np.where(np.arange(n) == joint, scale, 1.0)


def _best_scale(problem: TorqueProblem, joint: int) -> tuple[float, float]:
    """Return the factor on the torque of one joint with the best fit of all torques, and its gain."""

    def gain(scale: float) -> float:
        return _scale_gain(problem, _single(problem.robot.n_joints, joint, scale))

    gains = {scale: gain(scale) for scale in SCALES}
    best = max(gains, key=gains.__getitem__)
    for factor in SCALE_REFINEMENTS if gains[best] > MIN_REFINED_GAIN else ():
        gains |= {scale: gain(scale) for scale in (best * factor, best / factor)}
        best = max(gains, key=gains.__getitem__)
    return best, gains[best]


def _is_explained(problem: TorqueProblem, joint: int, scales: NDArray) -> bool:
    """Return whether the model explains the torque of a joint that is multiplied by a scale."""
    scaled = problem.equations.scaled(scales)
    return bool(scaled.fit().misfits[joint] < np.log(MAX_UNEXPLAINED))


def _confirmed(problem: TorqueProblem, scales: NDArray, gain: float) -> float:
    """Return the part of a gain that remains with presliding friction, which looks like gravity in short motions."""
    return gain if gain <= MIN_WARNING_GAIN else min(gain, _scale_gain(problem.presliding, scales))


def _scale_gain(problem: TorqueProblem, scales: NDArray) -> float:
    """Return the decrease of the misfit if the torques are multiplied by scales (n,).

    The allowed systematic error is a fraction of the largest torque. It must be equal in both fits; otherwise a smaller
    torque of the largest joint would seem to improve the fit of all others. The recorded torques therefore use the
    error of the scaled torques, divided by the scales.
    """
    scaled = problem.equations.scaled(scales)
    recorded = copy(problem.equations)
    recorded.floor = scaled.floor / scales
    return recorded.fit().misfit - scaled.fit().misfit


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
