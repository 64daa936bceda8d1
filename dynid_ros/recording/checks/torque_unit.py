"""Torques of single joints in another unit: raw counts, percent of the rated torque, mN m."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks.finding import CURRENT, LIKELY, Explanation, Finding
from dynid_ros.recording.checks.motion import torque_scale
from dynid_ros.recording.checks.torque_fit import MotionSamples, TorqueEquations

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

MAX_LIMIT_RATIO = 3.0
"""Torque in parts of the effort limit of the URDF, and of what the URDF needs for the motion, from which it is
reported: motors reach two to three times their rated torque for moments."""
ERROR_LIMIT_RATIO = 5.0
"""… and from which it is an error."""
OWN_LIMIT_RATIO = 1.5
"""Torque that the URDF needs for the motion, in parts of its effort limit, from which the limits are placeholders."""
OTHERS_RATIO = 5.0
"""Torque of a joint in parts of the largest of all others, and of what the URDF needs, from which it is an error, if it
also exceeds the weight of the arm at its full length: beside an upright arm, friction of the base is large, too."""
PEAK_QUANTILE = 0.99
"""Part of the samples that stays below the peak: single spikes are no unit."""
SCALES = tuple(factor**sign for factor in (2.0, 4.0, 10.0, 30.0, 100.0, 1e3, 1e4) for sign in (-1, 1))
"""Factors by which the torque of a joint is multiplied first."""
MIN_REFINED_GAIN = 0.2
"""Gain from which the best of them is refined."""
SCALE_REFINEMENTS = (1.7, 1.3, 1.15, 1.07)
"""Factors by which the best is moved, either way, one after the other."""
MIN_SCALE_ERROR = 1.5
"""Smallest factor between a torque and N m to report, either way: gains of real drives are wrong by up to 30 %."""
MAX_UNEXPLAINED = 0.5
"""Part of the joint's torque that the model may leave unexplained in the other unit: a torque in another unit has the
course of the true one. What is noise alone has not: a scale only makes it a joint that bounds no parameter."""
HIDDEN_SCALE = 3.0
"""Factor that should show in a torque."""
MAX_PERCENT_RATIO = 2.0
"""Factor, either way, within which a scale is that of percent of the effort limit, or of a power of ten."""
FIX = "give its torque in N m: effort_convention motor_current with a gain for each joint"


def check_torque_sizes(robot: RobotModel, samples: MotionSamples, source: str) -> Iterator[Finding]:
    """Yield a finding for each joint whose torque is far beyond its effort limit, or beyond all other torques.

    Effort limits below what the URDF itself needs for the motion are placeholders and say nothing, and neither do
    limits that every joint exceeds.
    """
    limits = robot.limits.effort
    nominal = robot.inverse_dynamics(samples.position, samples.velocity, samples.acceleration)
    needed, recorded = (np.quantile(np.abs(torque), PEAK_QUANTILE, axis=0) for torque in (nominal, samples.torque))
    heaviest = torque_scale(robot)
    limited = np.isfinite(limits) & (limits > 0)
    beyond_limit = np.divide(recorded, np.maximum(limits, needed), out=np.zeros_like(needed), where=limited)
    placeholders = np.any(needed[limited] > OWN_LIMIT_RATIO * limits[limited])
    if placeholders or not np.any((beyond_limit > 0.0) & (beyond_limit < 1.0)):
        beyond_limit[:] = 0.0
    for j, joint in enumerate(robot.joint_names):
        others = [k for k in range(robot.n_joints) if k != j and robot.chain.prismatic[k] == robot.chain.prismatic[j]]
        largest = max((*recorded[others], *needed[[*others, j]]))
        alone = bool(others) and recorded[j] > max(OTHERS_RATIO * largest, heaviest[j])
        if not alone and beyond_limit[j] <= MAX_LIMIT_RATIO:
            continue
        unit = "N" if robot.chain.prismatic[j] else "N m"
        size = f"{recorded[j] / limits[j]:.2g} times its effort limit of {limits[j]:g} {unit} in the URDF"
        if beyond_limit[j] <= MAX_LIMIT_RATIO:
            size = f"more than {OTHERS_RATIO:g} times the {largest:.3g} {unit} of every other joint"
        guess = _unit_name(recorded[j] / max(needed[j], np.finfo(float).tiny), float(limits[j]))
        yield Finding(
            "error" if alone or beyond_limit[j] > ERROR_LIMIT_RATIO else "warning",
            f"{source}, joint '{joint}'",
            f"its torque reaches {recorded[j]:.3g}, {size}: {guess}",
            FIX,
            CURRENT,
        )


def scale_explanations(robot: RobotModel, samples: MotionSamples, equations: TorqueEquations) -> Iterator[Explanation]:
    """Yield what a torque in another unit would explain: of one joint, and of all joints in percent of their limits."""
    for j in equations.judged:
        scale, gain = _best_scale(equations, samples.torque, int(j))
        if max(scale, 1 / scale) >= MIN_SCALE_ERROR and _is_explained(equations, samples.torque, int(j), scale):
            guess = _unit_name(1 / scale, float(robot.limits.effort[j]))
            yield Explanation(
                CURRENT,
                gain,
                f"its torque is about {1 / scale:.2g} times what the torques of the other joints show: {guess}",
                FIX,
                (robot.joint_names[j],),
            )
    limits = robot.limits.effort
    if np.all(np.isfinite(limits) & (limits > 0)) and np.ptp(limits) > 0.0:
        percent = _scaled_misfit(equations, samples.torque, limits / np.exp(np.mean(np.log(limits))))
        yield Explanation(
            CURRENT,
            percent[0] - percent[1],
            "the torques belong together once each is multiplied by the effort limit of its joint: they look like "
            "percent of the rated torque",
            "give them in N m: effort_convention motor_current with a gain for each joint, its rated torque / 100",
        )


def undecided_units(robot: RobotModel, samples: MotionSamples, equations: TorqueEquations) -> Iterator[str]:
    """Name the joints whose torque fits as well with a wrong factor, as where all of it is friction."""
    hidden = [
        robot.joint_names[j]
        for j in equations.judged
        if max(_scale_gain(equations, samples.torque, int(j), s) for s in (HIDDEN_SCALE, 1 / HIDDEN_SCALE)) > -LIKELY
    ]
    if hidden:
        yield f"a torque in another unit, {HIDDEN_SCALE:g} times too large or too small: {', '.join(hidden)}"


def _best_scale(equations: TorqueEquations, torque: NDArray, joint: int) -> tuple[float, float]:
    """Return the factor for the torque of one joint with which all torques fit best, and the gain."""
    gains = {scale: _scale_gain(equations, torque, joint, scale) for scale in SCALES}
    best = max(gains, key=gains.__getitem__)
    for factor in SCALE_REFINEMENTS if gains[best] > MIN_REFINED_GAIN else ():
        gains |= {scale: _scale_gain(equations, torque, joint, scale) for scale in (best * factor, best / factor)}
        best = max(gains, key=gains.__getitem__)
    return best, gains[best]


def _scale_gain(equations: TorqueEquations, torque: NDArray, joint: int, scale: float) -> float:
    """Return how much better the torques fit with that of one joint multiplied by a scale."""
    scales = np.ones(equations.n)
    scales[joint] = scale
    recorded, scaled = _scaled_misfit(equations, torque, scales)
    return recorded - scaled


def _is_explained(equations: TorqueEquations, torque: NDArray, joint: int, scale: float) -> bool:
    """Return whether the model explains the torque of a joint that is multiplied by a scale."""
    scales = np.ones(equations.n)
    scales[joint] = scale
    return bool(equations.explaining(torque * scales).fit().misfits[joint] < np.log(MAX_UNEXPLAINED))


def _scaled_misfit(equations: TorqueEquations, torque: NDArray, scales: NDArray) -> tuple[float, float]:
    """Return the misfit of the torques (M, n) as recorded, and multiplied by scales (n,).

    The systematic error that is allowed for is a part of the largest torque. It must be the same for both, or else a
    smaller torque of the largest joint would seem to make all others fit better. So it is that of the torques with
    their scales, divided by the scale where the torque is as recorded.
    """
    scaled = equations.explaining(torque * scales)
    recorded = equations.explaining(torque)
    recorded.floor = scaled.floor / scales
    return recorded.fit().misfit, scaled.fit().misfit


def _unit_name(ratio: float, limit: float) -> str:
    """Name the unit in which a torque of 1 N m is `ratio`, by the effort limit, N m."""

    def near(expected: float) -> bool:
        return bool(1 / MAX_PERCENT_RATIO < ratio / expected < MAX_PERCENT_RATIO)

    if np.isfinite(limit) and limit > 0 and near(100.0 / limit):
        return "it looks like percent of the rated torque"
    if near(1000.0):
        return "it looks like mN m, permille or raw counts of the driver"
    if ratio > 1.0:
        return "it looks like raw counts of the driver, percent of the rated torque, or torque in another unit"
    return "it looks like motor current or torque before the gear"
