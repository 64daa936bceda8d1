"""Torque that falls with speed by more than friction could: the joint would push its motor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks.finding import MIN_ERROR_GAIN, Explanation, Finding
from dynid_ros.recording.checks.torque_fit import MotionSamples, TorqueEquations, TorqueFit, TorqueModel

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

FALLING: Final = "falling torque"
MIN_GAIN_ADVANTAGE = 0.2
"""Gain over the best of signs, orders and ratios from which it is the torque that falls: those explain all of what
they are about, so that where they are true this cannot explain more."""


def falling_joints(samples: MotionSamples, model: TorqueModel, given: TorqueFit) -> tuple[NDArray, float]:
    """Joints (n,) whose torque falls with speed so much that it pushes, and what that explains.

    Coulomb friction still brakes: so a torque with the wrong sign, which turns that too, does not pass for one.

    Args:
        samples: of the motion.
        model: whose friction brakes.
        given: its fit.
    """
    robot = model.robot
    slopes = model.falling(np.ones(robot.n_joints, bool))
    fit = TorqueEquations(slopes.terms(samples), samples.torque, robot.chain.prismatic).fit()
    falling = _pushes(samples, fit)
    if falling.any() and not falling.all():
        slopes = model.falling(falling)
        fit = TorqueEquations(slopes.terms(samples), samples.torque, robot.chain.prismatic).fit()
        falling &= _pushes(samples, fit)
    return falling, given.misfit - fit.misfit


def _pushes(samples: MotionSamples, fit: TorqueFit) -> NDArray:
    """(n,) True where friction gives the joint energy."""
    coulomb, slope = fit.drive[:, 0], fit.drive[:, 1] - fit.drive[:, 3]
    speed = np.abs(samples.velocity)
    power = coulomb * speed.mean(axis=0) + slope * np.mean(speed**2, axis=0)
    return np.isfinite(fit.rms) & (power < 0)


def explains_more(gain: float, explanations: Sequence[Explanation]) -> bool:
    """Whether torque that falls is clear, and explains more than every exchange."""
    return gain > MIN_ERROR_GAIN and gain > MIN_GAIN_ADVANTAGE + max((each.gain for each in explanations), default=0.0)


def falling_findings(robot: RobotModel, fit: TorqueFit, falling: NDArray, source: str) -> Iterator[Finding]:
    """A warning of the joints (n,) whose torque falls."""
    found = []
    for j in np.flatnonzero(falling):
        coulomb, slope = fit.drive[j, 0], fit.drive[j, 3] - fit.drive[j, 1]
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
