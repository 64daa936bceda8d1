"""Detection of encoder zeros that differ from the URDF, from the position offset that fits the torques best."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import Explanation
from dynid_ros.checks.jackknife import MIN_SIGMAS, Jackknife
from dynid_ros.checks.torque_model import TorqueProblem

ENCODER_ZERO: Final = "encoder zero"
STEP_RAD = 1e-4
"""Step of the numerical derivative with respect to an offset."""
MIN_OFFSET_RAD = np.radians(3.0)
"""Smallest offset to report: torque gains and delays of sound recordings simulate up to 2 degrees."""
MAX_OFFSET_RAD = np.radians(100.0)
"""Largest offset to report; a larger estimate means that the offset has no effect on the torques."""
MIN_GAIN = 0.005
"""Smallest gain of an offset; sound recordings exceed it only with a large standard error."""
MIN_PREFERENCE = 0.05
"""Smallest difference of gains that prefers one joint to another. Joints with parallel axes share an offset, because
the parameters of the link in between absorb it."""
MIN_PREFERENCE_SHARE = 0.1
"""Smallest difference of gains that prefers one joint to another, as a fraction of the best gain."""
MAX_ITERATIONS = 6
CONVERGENCE_RAD = np.radians(0.2)
MAX_STEP_RAD = 0.4
HIDDEN_RAD = np.radians(5.0)
"""Offset that a recording should be able to show; joints that cannot show it are named."""


def offset_columns(problem: TorqueProblem, rigid: NDArray) -> NDArray:
    """Return the derivatives (M, n, n) of the torques with respect to a position offset of each joint."""
    robot = problem.robot
    samples = problem.samples
    parameters = problem.model.plausible_parameters(rigid)

    def torque(offset: NDArray) -> NDArray:
        return robot.inverse_dynamics(samples.position + offset, samples.velocity, samples.acceleration, parameters)

    steps = STEP_RAD * np.eye(robot.n_joints)
    return np.stack([(torque(step) - torque(-step)) / (2 * STEP_RAD) for step in steps], axis=2)


class OffsetHypotheses:
    """Hypotheses that one encoder has an offset, in a model with presliding friction."""

    def __init__(self, problem: TorqueProblem):
        chain = problem.robot.chain
        presliding = problem.presliding
        columns = offset_columns(problem, presliding.fit.rigid[: problem.terms.rigid.shape[2]])
        jackknife = Jackknife(presliding.terms, columns, problem.samples.disturbed_torques())
        joints = [int(j) for j in problem.equations.judged if not chain.prismatic[j]]
        self._problem = problem
        self._changes = {j: jackknife.estimate([j]) for j in joints}

    def explanations(self) -> Iterator[Explanation]:
        """Yield the offset that fits best, if it is significant."""
        certain = [j for j, change in self._changes.items() if change.gain >= MIN_GAIN and change.certain]
        if not certain:
            return
        best = max(self._changes[j].gain for j in certain)
        alike = [j for j in certain if self._changes[j].gain >= best - max(MIN_PREFERENCE, MIN_PREFERENCE_SHARE * best)]
        offsets = []
        for j in alike:
            offset, sigma = _refined_offset(self._problem, j, float(self._changes[j].values[0]))
            if max(MIN_OFFSET_RAD, MIN_SIGMAS * sigma) <= abs(offset) <= MAX_OFFSET_RAD:
                offsets.append((j, f"{np.degrees(-offset):+.1f} ± {1.96 * np.degrees(sigma):.1f} degrees"))
        if not offsets:
            return
        names = tuple(self._problem.robot.joint_names[j] for j, _ in offsets)
        sizes = " or ".join(f"that of '{name}' by {size}" for name, (_, size) in zip(names, offsets, strict=True))
        if len(names) == 1:
            message = f"its encoder's zero is {offsets[0][1]} off that of the URDF"
        else:
            message = (
                f"the zero of one of their encoders is off that of the URDF, {sizes}; the torques do not show which"
            )
        fix = "subtract it from the positions, or set the zero of the encoder anew"
        yield Explanation(ENCODER_ZERO, best, message, fix, names, severity="warning")

    def undecided(self) -> Iterator[str]:
        """Yield the joints that cannot show an offset of 5 degrees, with the smallest offset that they can show."""
        hidden = []
        for j, change in self._changes.items():
            smallest = max(MIN_OFFSET_RAD, change.smallest_certain)
            if smallest > HIDDEN_RAD:
                shows = f"shows from {np.degrees(smallest):.0f}°" if smallest < MAX_OFFSET_RAD else "never shows"
                hidden.append(f"{self._problem.robot.joint_names[j]} ({shows})")
        if hidden:
            yield f"an encoder zero that is {np.degrees(HIDDEN_RAD):.0f}° off: {', '.join(hidden)}"


def _refined_offset(problem: TorqueProblem, joint: int, first_step: float) -> tuple[float, float]:
    """Return the least-squares offset and its standard error, rad, after Gauss-Newton iterations."""
    offset = 0.0
    step = first_step
    sigma = np.inf
    for _ in range(MAX_ITERATIONS):
        offset += float(np.clip(step, -MAX_STEP_RAD, MAX_STEP_RAD))
        moved = copy(problem.samples)
        moved.position = problem.samples.position + offset * np.eye(problem.robot.n_joints)[joint]
        corrected = TorqueProblem(problem.model, moved)
        presliding = corrected.presliding
        columns = offset_columns(corrected, presliding.fit.rigid[: corrected.terms.rigid.shape[2]])[:, :, [joint]]
        change = Jackknife(presliding.terms, columns, moved.disturbed_torques()).estimate([0])
        step = float(change.values[0])
        sigma = change.sigma
        if abs(step) < CONVERGENCE_RAD:
            break
    return offset + step, sigma
