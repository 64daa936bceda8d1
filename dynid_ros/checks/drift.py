"""Torque that falls with speed by more than friction could, and friction or offset that changes over a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from dynid_ros.checks.finding import DRIFT, MIN_ERROR_GAIN, Explanation, Finding
from dynid_ros.checks.jackknife import Jackknife
from dynid_ros.checks.motion_samples import MotionSamples
from dynid_ros.checks.torque_model import TorqueFit, TorqueProblem, TorqueTerms, own_columns
from dynid_ros.recording.recording import Recording

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


MIN_MOTION_S = 5.0
"""Shortest motion that can show a drift."""
MIN_FRICTION_FRACTION = 0.15
"""Smallest change to report, as a fraction of the joint's friction."""
MIN_TORQUE_FRACTION = 0.03
"""Smallest change to report, as a fraction of the joint's torque."""
MIN_GAIN = 0.12
"""Smallest decrease of log(residual RMS) of the drifting joint: sound recordings of real arms simulate up to 0.09."""
MIN_LINEAR_RATIO = 1.5
"""Smallest ratio of the gain of a linear course to that of a course that turns back."""
MIN_SIGMAS = 3.5
"""Smallest ratio of a drift to its standard error: the quantile for 1 % of Student's t with the 7 degrees of freedom of
the jackknife."""


def check_drift(recordings: Sequence[Recording], problem: TorqueProblem) -> Iterator[Finding]:
    """Yield a warning for each joint whose friction or offset drifts."""
    robot = problem.robot
    samples = problem.samples
    for part, recording in enumerate(recordings):
        rows = samples.part == part
        if not rows.any() or np.ptp(samples.time[rows]) < MIN_MOTION_S:
            continue
        changes = _DriftModel.from_rows(problem.terms, samples, rows, recording).changes()[0]
        if not changes.any():
            continue
        # Friction that builds up slowly, or grows less at speed, differs between motions that differ.
        model = _DriftModel.from_rows(_with_thinning(problem.presliding.terms, samples), samples, rows, recording)
        remaining, friction = model.changes()
        for j in np.flatnonzero(changes):
            if remaining[j] and model.is_certain(int(j)):
                unit = "N" if robot.chain.prismatic[j] else "N m"
                yield Finding(
                    "warning",
                    f"{recording.source}, joint '{robot.joint_names[j]}'",
                    f"its friction or offset changes by {changes[j]:.3g} {unit} during the {recording.duration:.0f} s; "
                    f"all its friction is about {friction[j]:.3g} {unit}",
                    "move the arm until it is warm, then record; or zero the torque sensors and record again",
                    DRIFT,
                )


def _with_thinning(terms: TorqueTerms, samples: MotionSamples) -> TorqueTerms:
    """Add viscous friction of each joint that grows less above its RMS velocity."""
    typical = np.sqrt(np.mean(samples.velocity**2, axis=0))
    thinning = samples.velocity / (1.0 + np.abs(samples.velocity) / np.where(typical > 0, typical, 1.0))
    return terms.with_drive(thinning[:, :, None])


@dataclass(frozen=True, eq=False)
class _DriftModel:
    """Torque model of one recording, with columns whose coefficients may drift.

    Attributes:
        terms: terms of the model at the M samples of the recording.
        shapes: (M, n, 3) offset, Coulomb and viscous friction, which may drift.
        now: (M,) time, from -1 at the beginning of the recording to 1 at its end.
    """

    terms: TorqueTerms
    shapes: NDArray
    now: NDArray

    @classmethod
    def from_rows(cls, terms: TorqueTerms, samples: MotionSamples, rows: NDArray, recording: Recording) -> _DriftModel:
        """Select the samples of a recording by the mask `rows` (M,)."""
        drive = terms.drive[rows]
        return cls(
            terms=terms.rows(rows),
            shapes=np.concatenate([np.ones((*drive.shape[:2], 1)), drive[:, :, :2]], axis=2),
            now=2 * (samples.time[rows] - recording.time[0]) / recording.duration - 1,
        )

    def changes(self) -> tuple[NDArray, NDArray]:
        """Return the change of each joint's friction and offset (n,), 0 without a drift, and its friction (n,)."""
        equations = self.terms.equations
        before = np.hypot(self.terms.fit.rms, equations.floor)
        fits = [self._fit_course(Legendre.basis(degree)(self.now)) for degree in (1, 2, 3)]
        gains = np.log(before / [np.hypot(fit.rms, equations.floor) for fit in fits])
        # Errors of the model can look like any course, whereas a drift goes one way.
        drifts = (gains[0] > MIN_GAIN) & (gains[0] > MIN_LINEAR_RATIO * np.max(gains[1:], axis=0))
        rates = 2 * fits[0].rigid[-self.shapes[0].size :].reshape(equations.n, -1)
        change = np.sqrt(np.mean(np.einsum("mjk,jk->mj", self.shapes, rates) ** 2, axis=0))
        coefficients = fits[0].drive[:, :2]
        friction = np.sqrt(np.mean(np.einsum("mjk,jk->mj", self.shapes[:, :, 1:], coefficients) ** 2, axis=0))
        smallest = np.maximum(MIN_FRICTION_FRACTION * friction, MIN_TORQUE_FRACTION * equations.size)
        return np.where(drifts & (change > smallest), change, 0.0), friction

    def is_certain(self, joint: int) -> bool:
        """Return whether stretches of the recording agree on the drift of a joint.

        In slow motion, where a pose comes once, friction that the model lacks is another at the end.
        """
        columns = np.zeros_like(self.shapes)
        columns[:, joint] = self.now[:, None] * self.shapes[:, joint]
        change = Jackknife(self.terms, columns).estimate(range(columns.shape[2]))
        # Squared size of the change and, by the delta method, half of its standard error.
        shapes = self.shapes[:, joint]
        weights = shapes.T @ shapes @ change.values / len(shapes)
        return bool(weights @ change.values > MIN_SIGMAS * np.sqrt(weights @ change.covariance @ weights))

    def _fit_course(self, course: NDArray) -> TorqueFit:
        """Fit with coefficients of each joint's shapes that follow a course (M,)."""
        return self.terms.with_rigid(own_columns(course[:, None, None] * self.shapes)).fit
