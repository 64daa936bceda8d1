"""Detection of encoder zeros that differ from the URDF, from the position offset that fits the torques best."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks.finding import Explanation
from dynid_ros.recording.checks.jackknife import MIN_SIGMAS, Jackknife
from dynid_ros.recording.checks.low_pass import with_presliding
from dynid_ros.recording.checks.torque_fit import MotionSamples, Terms, TorqueEquations, TorqueModel

ZERO: Final = "encoder zero"
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
MAX_PARAMETER = 1e6
"""Largest plausible inertial parameter, kg, kg m or kg m²."""
HIDDEN_RAD = np.radians(5.0)
"""Offset that a recording should be able to show; joints that cannot show it are named."""


def offset_columns(model: TorqueModel, samples: MotionSamples, rigid: NDArray) -> NDArray:
    """Return the derivatives (M, n, n) of the torques with respect to a position offset of each joint."""
    parameters = np.zeros(model.robot.parameters.size)
    # If few joints move, columns that differ by rounding errors have arbitrarily large parameters.
    parameters[model.columns] = np.where(np.abs(rigid) < MAX_PARAMETER, rigid, 0.0)

    def torque(offset: NDArray) -> NDArray:
        motion = samples.position + offset, samples.velocity, samples.acceleration
        return model.robot.inverse_dynamics(*motion, parameters)

    steps = STEP_RAD * np.eye(model.robot.n_joints)
    return np.stack([(torque(step) - torque(-step)) / (2 * STEP_RAD) for step in steps], axis=2)


class OffsetHypotheses:
    """Hypotheses that one encoder has an offset, with a model that includes presliding friction.

    Args:
        model: torque model.
        samples: samples of the motion.
        terms: regressors of the model at the samples.
        equations: normal equations of these terms.

    Attributes:
        equations: normal equations of the model with presliding friction.
        fit: least-squares fit of these equations.
    """

    def __init__(self, model: TorqueModel, samples: MotionSamples, terms: Terms, equations: TorqueEquations):
        chain = model.robot.chain
        built_up = with_presliding(terms, samples)
        self._model = model
        self._samples = samples
        self._joints = [int(j) for j in equations.judged if not chain.prismatic[j]]
        self.equations = TorqueEquations(built_up, samples.torque, chain.prismatic)
        self.fit = self.equations.fit()
        columns = offset_columns(model, samples, self.fit.rigid[: terms.rigid.shape[2]])
        jackknife = Jackknife(built_up, columns, samples.torque, chain.prismatic)
        self._changes = {j: jackknife.estimate([j]) for j in self._joints}

    def explanations(self) -> Iterator[Explanation]:
        """Yield the offset that fits best, if it is significant."""
        certain = [j for j, change in self._changes.items() if change.gain >= MIN_GAIN and change.certain]
        if not certain:
            return
        best = max(self._changes[j].gain for j in certain)
        alike = [j for j in certain if self._changes[j].gain >= best - max(MIN_PREFERENCE, MIN_PREFERENCE_SHARE * best)]
        offsets = []
        for j in alike:
            offset, sigma = _refined_offset(self._model, self._samples, j, float(self._changes[j].values[0]))
            if max(MIN_OFFSET_RAD, MIN_SIGMAS * sigma) <= abs(offset) <= MAX_OFFSET_RAD:
                offsets.append((j, f"{np.degrees(-offset):+.1f} ± {1.96 * np.degrees(sigma):.1f} degrees"))
        if not offsets:
            return
        names = tuple(self._model.robot.joint_names[j] for j, _ in offsets)
        sizes = " or ".join(f"that of '{name}' by {size}" for name, (_, size) in zip(names, offsets, strict=True))
        if len(names) == 1:
            message = f"its encoder's zero is {offsets[0][1]} off that of the URDF"
        else:
            message = (
                f"the zero of one of their encoders is off that of the URDF, {sizes}; the torques do not show which"
            )
        fix = "subtract it from the positions, or set the zero of the encoder anew"
        yield Explanation(ZERO, best, message, fix, names, severity="warning")

    def undecided(self) -> Iterator[str]:
        """Yield the joints that cannot show an offset of 5 degrees, with the smallest offset that they can show."""
        hidden = []
        for j, change in self._changes.items():
            smallest = max(MIN_OFFSET_RAD, change.smallest_certain)
            if smallest > HIDDEN_RAD:
                shows = f"shows from {np.degrees(smallest):.0f}°" if smallest < MAX_OFFSET_RAD else "never shows"
                hidden.append(f"{self._model.robot.joint_names[j]} ({shows})")
        if hidden:
            yield f"an encoder zero that is {np.degrees(HIDDEN_RAD):.0f}° off: {', '.join(hidden)}"


def _refined_offset(model: TorqueModel, samples: MotionSamples, joint: int, first_step: float) -> tuple[float, float]:
    """Return the least-squares offset and its standard error, rad, after Gauss-Newton iterations."""
    offset = 0.0
    step = first_step
    sigma = np.inf
    for _ in range(MAX_ITERATIONS):
        offset += float(np.clip(step, -MAX_STEP_RAD, MAX_STEP_RAD))
        moved = copy(samples)
        moved.position = samples.position + offset * np.eye(model.robot.n_joints)[joint]
        terms = with_presliding(model.terms(moved), moved)
        fit = TorqueEquations(terms, moved.torque, model.robot.chain.prismatic).fit()
        columns = offset_columns(model, moved, fit.rigid[: len(model.columns)])[:, :, [joint]]
        change = Jackknife(terms, columns, moved.torque, model.robot.chain.prismatic).estimate([0])
        step = float(change.values[0])
        sigma = change.sigma
        if abs(step) < CONVERGENCE_RAD:
            break
    return offset + step, sigma
