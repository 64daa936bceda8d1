"""Geometry that differs from the URDF: direction of gravity, encoder zeros and origins of joints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import COMPENSATED, DIRECTION, Explanation
from dynid_ros.checks.jackknife import MIN_SIGMAS, Jackknife
from dynid_ros.checks.motion_samples import MAX_SAMPLES, motion_samples
from dynid_ros.checks.torque_model import TorqueFit, TorqueModel, TorqueProblem, fit_together
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
        terms = self._problem.terms
        fits = fit_together(replace(terms, rigid=self._rigid(gravity)).equations for gravity in starts)
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


LINK_ORIGIN: Final = "link origin"
ORIGIN_MIN_GAIN = 0.2
"""Smallest gain of a shift for a warning: less than for other hypotheses, because its size must be plausible too."""
MIN_SHIFT_M = 0.05
"""Smallest shift to report."""
MAX_SHIFT_M = 0.3
"""Largest shift to report; a larger one has another cause, which the model lacks."""
MAX_SHIFT_COST = 0.1
"""Smallest gain of the largest shift; it bounds shifts with little effect, such as along the joint's axis."""
DERIVATIVE_STEP_M = 1e-4
MAX_SHIFT_SAMPLES = 400
MAX_ORIGIN_ITERATIONS = 2


def origin_explanations(problem: TorqueProblem) -> Iterator[Explanation]:
    """Yield the explanation by another origin of one joint.

    Gravity alone never shows it, because the parameters of the link before absorb it. Only fast motion does.
    """
    robot = problem.robot
    n = robot.n_joints
    problem = TorqueProblem(problem.model, problem.samples.thinned(MAX_SHIFT_SAMPLES))
    given = problem.fit
    if not np.any(np.isfinite(given.rms)) or n < 2:
        return
    shifts = _shift_columns(problem, given.rigid, range(1, n))
    if given.misfit - problem.terms.with_rigid(shifts).fit.misfit < ORIGIN_MIN_GAIN:
        return
    fits = [problem.terms.with_rigid(shifts[:, :, 3 * k : 3 * k + 3]).fit for k in range(n - 1)]
    joint = 1 + int(np.argmin([fit.misfit for fit in fits]))
    shift = np.zeros(3)
    shifted = problem
    for _ in range(MAX_ORIGIN_ITERATIONS):
        shift = shift + _shift_step(shifted, joint, shift)
        shifted = TorqueProblem(TorqueModel(_shifted(robot, joint, shift)), problem.samples)
    gain = given.misfit - shifted.fit.misfit
    if gain < ORIGIN_MIN_GAIN or not MIN_SHIFT_M <= float(np.linalg.norm(shift)) <= MAX_SHIFT_M:
        return
    # Friction that the model lacks, wrong torque gains and delays can look like a shift.
    gain = min(gain, problem.presliding.fit.misfit - shifted.presliding.fit.misfit)
    if gain >= ORIGIN_MIN_GAIN and _is_certain(problem, shifts[:, :, 3 * joint - 3 : 3 * joint]):
        yield Explanation(
            LINK_ORIGIN,
            gain,
            "the torques fit better with its origin elsewhere in the link before than the URDF has it; where, the "
            "parameters absorb in part",
            "measure the lengths of the links; check that URDF, base and tip are those of this robot",
            (robot.joint_names[joint],),
            severity="warning",
        )


def _is_certain(problem: TorqueProblem, columns: NDArray) -> bool:
    """Return whether the first-order shift differs significantly from zero, given its columns (M, n, 3)."""
    jackknife = Jackknife(problem.presliding.terms, columns, problem.samples.disturbed_torques())
    return jackknife.estimate(np.flatnonzero(~jackknife.without_effect).tolist()).certain


def origin_columns(problem: TorqueProblem) -> list[tuple[int, NDArray]]:
    """Return the joints after the first, and the derivatives (M, n, 3) of the torques by each origin, N m / m."""
    n = problem.robot.n_joints
    columns = _shift_columns(problem, problem.fit.rigid, range(1, n))
    return [(k + 1, columns[:, :, 3 * k : 3 * k + 3]) for k in range(n - 1)]


def _shift_step(problem: TorqueProblem, joint: int, shift: NDArray) -> NDArray:
    """Return the further shift (3,) that fits best, if the whole shift has its cost."""
    columns = _shift_columns(problem, problem.fit.rigid, [joint])
    equations = problem.terms.with_rigid(columns).equations
    # If a joint's sum of squares is 1 + x times as large, its misfit is x / 2 larger.
    judged = equations.judged
    squares = equations.count[judged] * np.hypot(problem.fit.rms, equations.floor)[judged] ** 2
    costs = 2 * MAX_SHIFT_COST / MAX_SHIFT_M**2 / len(judged) * squares
    for k in range(3):
        at = equations.n_rigid - 3 + k
        equations.normal[judged, at, at] += costs
        equations.right[judged, judged, at] -= costs * shift[k]
    return equations.fit().rigid[-3:]


def _shifted(robot: RobotModel, joint: int, shift: NDArray) -> RobotModel:
    """Return the robot with the origin of a joint shifted by (3,), m."""
    placements = robot.chain.placements.copy()
    placements[robot.chain.own_links[joint], :3, 3] += shift
    return type(robot)(replace(robot.chain, placements=placements), robot.parameters, robot.gravity, robot.urdf)


def _shift_columns(problem: TorqueProblem, rigid: NDArray, joints: Iterable[int]) -> NDArray:
    """Return the derivatives (M, n, 3 k) of the torques by the origins of k joints, N m / m."""
    robot = problem.robot
    samples = problem.samples
    motion = samples.position, samples.velocity, samples.acceleration
    parameters = problem.model.plausible_parameters(rigid)

    def torque(arm: RobotModel) -> NDArray:
        # Each arm is used once: its regressor takes a fifth of the time that writing its inverse dynamics would take.
        return arm.torque_regressor(*motion) @ parameters

    given = torque(robot)
    shifted = (_shifted(robot, joint, DERIVATIVE_STEP_M * axis) for joint in joints for axis in np.eye(3))
    return np.stack([(torque(arm) - given) / DERIVATIVE_STEP_M for arm in shifted], axis=2)


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
MAX_OFFSET_ITERATIONS = 6
CONVERGENCE_RAD = np.radians(0.2)
MAX_OFFSET_STEP_RAD = 0.4
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
    for _ in range(MAX_OFFSET_ITERATIONS):
        offset += float(np.clip(step, -MAX_OFFSET_STEP_RAD, MAX_STEP_RAD))
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
