"""Torque that falls with speed by more than friction could: the joint would push its motor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import MIN_ERROR_GAIN, Explanation, Finding
from dynid_ros.checks.motion_samples import MotionSamples
from dynid_ros.checks.torque_model import TorqueFit, TorqueProblem

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

FALLING: Final = "falling torque"
MIN_GAIN_ADVANTAGE = 0.2
"""Smallest advantage over the gain of the best sign, order or ratio. Where one of these is true it explains everything,
so that falling torque cannot explain more."""


def falling_joints(problem: TorqueProblem) -> tuple[NDArray, float]:
    """Return the joints (n,) whose torque falls with speed so much that it pushes, and the gain.

    Coulomb friction still brakes, so a torque with the wrong sign, which turns Coulomb friction too, is not among them.
    """
    samples = problem.samples
    fit = TorqueProblem(problem.model.falling(np.ones(problem.robot.n_joints, bool)), samples).fit
    falling = _pushes(samples, fit)
    if falling.any() and not falling.all():
        fit = TorqueProblem(problem.model.falling(falling), samples).fit
        falling &= _pushes(samples, fit)
    return falling, problem.fit.misfit - fit.misfit


def _pushes(samples: MotionSamples, fit: TorqueFit) -> NDArray:
    """Return a mask (n,) of the joints to which friction gives energy."""
    coulomb = fit.drive[:, 0]
    slope = fit.drive[:, 1] - fit.drive[:, 3]
    speed = np.abs(samples.velocity)
    power = coulomb * speed.mean(axis=0) + slope * np.mean(speed**2, axis=0)
    return np.isfinite(fit.rms) & (power < 0)


def explains_more(gain: float, explanations: Sequence[Explanation]) -> bool:
    """Return whether falling torque is clear, and explains more than every exchange."""
    return gain > MIN_ERROR_GAIN and gain > MIN_GAIN_ADVANTAGE + max((each.gain for each in explanations), default=0.0)


def falling_findings(robot: RobotModel, fit: TorqueFit, falling: NDArray, source: str) -> Iterator[Finding]:
    """Yield a warning about the joints (n,) whose torque falls."""
    found = []
    for j in np.flatnonzero(falling):
        coulomb = fit.drive[j, 0]
        slope = fit.drive[j, 3] - fit.drive[j, 1]
        unit, speed = ("N s/m", "m/s") if robot.chain.prismatic[j] else ("N m s/rad", "rad/s")
        found.append(f"'{robot.joint_names[j]}' by {slope:.3g} {unit}, from {coulomb / slope:.2g} {speed} on")
    yield Finding(
        "warning",
        source,
        f"torque falls with speed by more than its Coulomb friction: {', '.join(found)}; no friction does, and neither "
        "sign nor order explains it",
        "the effort lacks, or holds, a part that goes with velocity, as friction that the driver compensates: record "
        "what the motor gives, or take what is fitted as friction for this effort's, not the joint's",
        FALLING,
    )
