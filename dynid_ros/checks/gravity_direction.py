"""Direction of gravity that fits the torques best, and torques without gravity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import COMPENSATED, DIRECTION, Explanation
from dynid_ros.checks.jackknife import Jackknife
from dynid_ros.checks.motion_samples import MAX_SAMPLES, motion_samples
from dynid_ros.checks.torque_model import TorqueFit, TorqueModel, TorqueProblem
from dynid_ros.model.gravity import angle_between
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

TILT_ERROR_DEG = 10.0
"""Smallest angle that is an error."""
TILT_WARNING_DEG = 3.0
"""Smallest angle that is a warning."""
TILT_MIN_GAIN = 0.1
"""Smallest gain of a tilt that is a warning."""
HOTELLING_95 = 12.0
"""Squared distance, in standard deviations, of the 95 % region of a turn about two axes from eight blocks (Hotelling:
2 · 7 / 6 times the quantile of F(2, 6))."""
MAX_ITERATIONS = 4
MAX_STEP_RAD = 0.5
MAX_GRAVITY_LEFT = 0.4
"""Largest fraction of the nominal gravity torque that a driver's compensation leaves."""


def best_gravity(recordings: Sequence[Recording], robot: RobotModel) -> NDArray | None:
    """Return gravity (3,) along the direction that fits the torques best, m/s².

    Returns None if nothing moves, or there is no gravity.
    """
    samples = motion_samples(recordings)
    if samples is None or not robot.gravity.any():
        return None
    return GravityFits(TorqueProblem(TorqueModel(robot), samples.thinned(MAX_SAMPLES))).best()[0]


def gravity_explanations(problem: TorqueProblem) -> Iterator[Explanation]:
    """Yield the explanations by gravity along another direction, and by torques without gravity."""
    robot = problem.robot
    if not robot.gravity.any():
        return
    fits = GravityFits(problem)
    yield from fits.compensation()
    gravity, fit = fits.best()
    angle = np.degrees(angle_between(gravity, robot.gravity))
    gain = problem.fit.misfit - fit.misfit
    if angle >= TILT_WARNING_DEG and gain >= TILT_MIN_GAIN:
        gain = min(gain, fits.gain_beside_presliding(gravity))
        if gain >= TILT_MIN_GAIN and fits.region_contains_given(gravity):
            gain = 0.0
    if angle >= TILT_ERROR_DEG or (angle >= TILT_WARNING_DEG and gain >= TILT_MIN_GAIN):
        components = ", ".join(f"{value:.2f}" for value in gravity)
        yield Explanation(
            DIRECTION,
            gain,
            f"gravity points {angle:.1f} degrees away from where the robot model has it: ({components}) m/s^2 in the "
            f"frame of '{robot.base}' fits the torques best",
            "give the gravity of the robot as it is mounted (--gravity, parameter gravity), or have it found with its "
            "interval, along with gravity or links: gravity_direction estimated",
            severity="error" if angle >= TILT_ERROR_DEG else "warning",
        )


class GravityFits:
    """Fits of the torques with gravity along any direction.

    The rigid torques are weightless columns plus those of gravity along each axis, times the same parameters.
    """

    def __init__(self, problem: TorqueProblem):
        self._problem = problem
        self._weightless = problem.model.weightless_columns(problem.samples)
        self._per_axis = problem.model.gravity_columns(problem.samples)

    def best(self) -> tuple[NDArray, TorqueFit]:
        """Return gravity (3,) along the direction that fits best, m/s², and the fit.

        The search starts from the best of the given direction and a coarse grid, and takes Gauss-Newton steps.
        """
        given = self._problem.robot.gravity
        size = float(np.linalg.norm(given))
        directions = [np.array(direction) for direction in product((-1.0, 0.0, 1.0), repeat=3)]
        grid = [direction for direction in directions if np.abs(direction).sum() in (1, 3)]
        starts = [given, *(size * direction / np.linalg.norm(direction) for direction in grid)]
        fits = [self._fit(self._rigid(gravity)) for gravity in starts]
        best = int(np.argmin([fit.misfit for fit in fits]))
        gravity = starts[best]
        fit = fits[best]
        for _ in range(MAX_ITERATIONS):
            tangents = _tangents(gravity)
            columns = self._turn_columns(tangents, fit.rigid)
            turn = self._fit(np.concatenate([self._rigid(gravity), columns], axis=2)).rigid[-2:] @ tangents
            turned = gravity / size + turn * MAX_STEP_RAD / max(float(np.linalg.norm(turn)), MAX_STEP_RAD)
            turned *= size / np.linalg.norm(turned)
            following = self._fit(self._rigid(turned))
            if following.misfit >= fit.misfit:
                break
            gravity = turned
            fit = following
        return gravity, fit

    def gain_beside_presliding(self, gravity: NDArray) -> float:
        """Return the gain of this gravity (3,) in a model with presliding friction."""
        presliding = self._problem.presliding
        own = presliding.terms.rigid[:, :, self._weightless.shape[2] :]
        turned = replace(presliding.terms, rigid=np.concatenate([self._rigid(gravity), own], axis=2))
        return presliding.fit.misfit - turned.fit.misfit

    def region_contains_given(self, gravity: NDArray) -> bool:
        """Return whether the 95 % region of this gravity (3,) contains the given gravity."""
        problem = self._problem
        given = problem.robot.gravity
        terms = replace(problem.terms, rigid=self._rigid(gravity))
        tangents = _tangents(gravity)
        columns = self._turn_columns(tangents, terms.fit.rigid)
        turn = Jackknife(terms, columns, problem.samples.disturbed_torques()).estimate([0, 1])
        away = tangents @ given
        away *= angle_between(gravity, given) / max(float(np.linalg.norm(away)), np.finfo(float).tiny)
        return bool(away @ np.linalg.lstsq(turn.covariance, away, rcond=None)[0] < HOTELLING_95)

    def compensation(self) -> Iterator[Explanation]:
        """Yield the explanation by a driver that compensates gravity.

        Gravity gets separate parameters, because the driver's model leaves some of it in other proportions.
        """
        problem = self._problem
        robot = problem.robot
        gravity = robot.gravity_regressor(problem.samples.position)
        gravity = gravity[:, :, np.flatnonzero(np.any(gravity, axis=(0, 1)))]
        fit = self._fit(np.concatenate([self._weightless, gravity], axis=2))
        remaining = self._variation(gravity @ fit.rigid[self._weightless.shape[2] :])
        nominal = self._variation(robot.gravity_torque(problem.samples.position))
        if remaining < MAX_GRAVITY_LEFT * nominal:
            yield Explanation(
                COMPENSATED,
                problem.fit.misfit - fit.misfit,
                f"there is no gravity in the effort: {100 * remaining / nominal:.0f} % of the URDF's",
                "switch the driver's gravity compensation off, or give its uncompensated torque as torque_topic",
            )

    def _rigid(self, gravity: NDArray) -> NDArray:
        """Return the rigid columns (M, n, p) with gravity (3,), m/s²."""
        return self._weightless + np.tensordot(gravity, self._per_axis, 1)

    def _turn_columns(self, tangents: NDArray, parameters: NDArray) -> NDArray:
        """Return the derivatives (M, n, 2) of the torques by turns of gravity along two tangents (2, 3)."""
        size = float(np.linalg.norm(self._problem.robot.gravity))
        return np.moveaxis(size * np.tensordot(tangents, self._per_axis @ parameters, 1), 0, 2)

    def _fit(self, rigid: NDArray) -> TorqueFit:
        return replace(self._problem.terms, rigid=rigid).fit

    def _variation(self, torque: NDArray) -> float:
        """Return the RMS of torques (M, n) about their means, over the samples in motion."""
        return float(np.sqrt(np.mean(self._problem.terms.moving * (torque - torque.mean(axis=0)) ** 2)))


def _tangents(gravity: NDArray) -> NDArray:
    """Return two unit vectors (2, 3) orthogonal to gravity (3,) and to each other."""
    return np.linalg.svd(gravity[None] / np.linalg.norm(gravity))[2][1:]
