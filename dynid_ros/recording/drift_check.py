"""Friction and offsets that change while the arm warms up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from dynid_ros.recording.finding import Finding
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.presliding import own_columns, with_presliding
from dynid_ros.recording.torque_fit import Terms, TorqueEquations, TorqueFit

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel
    from dynid_ros.recording.recording import Recording

DRIFT: Final = "drift"
SHORTEST = 5.0
"""A recording must move for so long to show a drift, s."""
OF_FRICTION, OF_TORQUE = 0.15, 0.03
"""Smallest change to report, as a part of the joint's friction and of its torque."""
SEEN = 0.12
"""Drop of log(residual rms) of the joint that shows it: sound recordings of real arms feign up to 0.09."""
ONE_WAY = 1.5
"""Factor by which a steady course must explain more than one that turns."""


def check_drift(
    recordings: Sequence[Recording], robot: RobotModel, samples: MotionSamples, terms: Terms
) -> Iterator[Finding]:
    """Warnings for joints whose friction or offset changes from the beginning to the end of a recording."""
    with_friction: Terms | None = None
    for part, recording in enumerate(recordings):
        rows = samples.part == part
        if not rows.any() or np.ptp(samples.time[rows]) < SHORTEST:
            continue
        changes = _changes(robot, samples, terms, rows, recording)
        if not any(change for change, _ in changes):
            continue
        # Friction that builds up slowly may be another in motions that differ.
        with_friction = with_friction or with_presliding(terms, samples)
        built_up = _changes(robot, samples, with_friction, rows, recording)
        for j, ((change, friction), still) in enumerate(zip(changes, built_up, strict=True)):
            if change and still[0]:
                unit = "N" if robot.chain.prismatic[j] else "N m"
                yield Finding(
                    "warning",
                    f"{recording.source}, joint '{robot.joint_names[j]}'",
                    f"its friction or offset changes by {change:.3g} {unit} during the {recording.duration:.0f} s; all "
                    f"its friction is about {friction:.3g} {unit}",
                    "move the arm until it is warm, then record; or zero the torque sensors and record again",
                    DRIFT,
                )


def _changes(
    robot: RobotModel, samples: MotionSamples, terms: Terms, rows: NDArray, recording: Recording
) -> list[tuple[float, float]]:
    """By how much each joint's friction or offset changes in these rows, and all its friction; 0: it does not."""
    steady = Terms(terms.rigid[rows], terms.drive[rows], terms.moving[rows])
    shapes = np.concatenate([np.ones((*steady.drive.shape[:2], 1)), steady.drive[:, :, :2]], axis=2)
    equations = TorqueEquations(steady, samples.torque[rows], robot.chain.prismatic)
    before = np.hypot(equations.fit().rms, equations.floor)
    now = 2 * (samples.time[rows] - recording.time[0]) / recording.duration - 1
    courses = [Legendre.basis(degree)(now) for degree in (1, 2, 3)]
    fits = [_changing(steady, course, shapes, samples.torque[rows], robot) for course in courses]
    drops = np.log(before / [np.hypot(fit.rms, equations.floor) for fit in fits])
    # What is wrong with the model can look like any course; drifts go one way.
    seen = (drops[0] > SEEN) & (drops[0] > ONE_WAY * np.max(drops[1:], axis=0))
    rates = 2 * fits[0].rigid[-shapes[0].size :].reshape(robot.n_joints, -1)
    change = np.sqrt(np.mean(np.einsum("mjk,jk->mj", shapes, rates) ** 2, axis=0))
    friction = np.sqrt(np.mean(np.einsum("mjk,jk->mj", shapes[:, :, 1:], fits[0].drive[:, :2]) ** 2, axis=0))
    smallest = np.maximum(OF_FRICTION * friction, OF_TORQUE * equations.size)
    return list(zip(np.where(seen & (change > smallest), change, 0.0), friction, strict=True))


def _changing(terms: Terms, course: NDArray, shapes: NDArray, torque: NDArray, robot: RobotModel) -> TorqueFit:
    """Fit with coefficients of each joint's `shapes` (M, n, k) that follow a course (M,) besides."""
    rigid = np.concatenate([terms.rigid, own_columns(course[:, None, None] * shapes)], axis=2)
    return TorqueEquations(Terms(rigid, terms.drive, terms.moving), torque, robot.chain.prismatic).fit()
