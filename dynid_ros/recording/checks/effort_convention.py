"""Is the effort what it is said to be? Held against the gravity torque that the URDF predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording.checks.finding import COMPENSATED, CURRENT, SIGN, Finding
from dynid_ros.recording.checks.torque_fit import ENOUGH_ROWS, MotionSamples, Terms, TorqueEquations, TorqueFit
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import differentiate

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


FIT_WINDOW_S = 0.1
"""Length of the local fit that gives velocity and acceleration, s."""
AT_REST = 0.01
"""Below this speed the sign of friction is not known, rad/s or m/s."""
MINIMUM_SAMPLES = 10
MAXIMUM_SAMPLES = 20_000
MIN_LEVER_M = 0.01
"""Gravity is seen in a joint if its torque varies by the weight of the arm on a lever of 1 cm, …"""
MIN_LOAD_SHARE = 0.2
"""… and by a fifth of what the most loaded joint sees: the torques of the small joints are mostly friction."""
MIN_GRAVITY_CORRELATION = 0.9
"""Correlation above which effort follows gravity; true torques have 0.96 and more."""
MAX_ABSENT_SHARE = 0.3
"""Below this share of the nominal gravity torque, if it is not scaled by the unit, gravity is not in the effort,
provided that it would stand out from what the fit does not explain."""
MIN_OTHER_LOAD_SHARE, MIN_OTHER_CORRELATION = 0.1, 0.6
"""Part of what the most loaded joint sees, and correlation, from which another joint shows that gravity is in the
effort: a counterbalance may carry the most loaded joint; a driver compensates all of them."""
PLAUSIBLE_GRAVITY_SHARES = (0.5, 4.0)
"""Share of the nominal gravity torque that true torques can show: URDF masses may be wrong, a payload adds to them."""


def check_effort(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Errors if the effort cannot be joint torque with gravity included.

    Per joint, effort = share · nominal gravity torque + nominal inertial torque (free factor) + offset + Coulomb and
    viscous friction is fitted over all samples, so that neither friction nor fast motion is taken for gravity. Judged
    are only joints in which gravity varies enough: recordings of one pose, or of a vertical joint alone, pass.

    Args:
        recordings: of one robot and one driver, with the joints in the robot's order.
        robot: with the inertial parameters of its URDF; masses wrong by a factor of two pass.
    """
    parts = [_terms(part, robot) for part in recordings if part.n_samples >= MINIMUM_SAMPLES]
    if not parts:
        return
    effort, gravity, inertial, velocity = (np.concatenate(terms) for terms in zip(*parts, strict=True))
    friction = np.where(np.abs(velocity) > AT_REST, np.sign(velocity), 0.0)
    fits = []
    for j in range(robot.n_joints):
        others = np.column_stack([inertial[:, j], np.ones(len(effort)), friction[:, j], velocity[:, j]])
        fits.append(partial_fit(effort[:, j], gravity[:, j], others))
    loaded = loaded_joints(robot, fits)
    if loaded.size:
        source = ", ".join(part.source for part in recordings)
        balanced = [fit for j, fit in enumerate(fits) if j not in loaded and _felt(fit, fits)]
        findings = _judge(source, {robot.joint_names[j]: fits[j] for j in loaded})
        yield from (finding for finding in findings if finding.kind != COMPENSATED or not balanced)


def _felt(fit: GravityShare, all_fits: Sequence[GravityShare]) -> bool:
    """Whether gravity is in the effort of a joint that is not the most loaded one."""
    low, high = PLAUSIBLE_GRAVITY_SHARES
    enough = fit.variation > MIN_OTHER_LOAD_SHARE * max(each.variation for each in all_fits)
    return enough and low < fit.share < high and fit.correlation > MIN_OTHER_CORRELATION


class GravityShare(NamedTuple):
    """Share of the nominal gravity torque in the effort of a joint, besides the other terms.

    `variation` is the rms of the gravity torque that no other term explains, `rest` that of the effort unexplained.
    """

    share: float
    correlation: float
    variation: float
    rest: float


def loaded_joints(robot: RobotModel, fits: Sequence[GravityShare]) -> np.ndarray:
    """Indices of the joints in which gravity varies enough to be seen, from the fits of all joints."""
    variations = np.array([fit.variation for fit in fits])
    weight = np.sum(robot.parameters[::PARAMETERS_PER_LINK]) * np.linalg.norm(robot.gravity)
    return np.flatnonzero(variations > max(MIN_LEVER_M * weight, MIN_LOAD_SHARE * np.max(variations)))


def _terms(recording: Recording, robot: RobotModel) -> tuple[np.ndarray, ...]:
    """Effort, nominal gravity and inertial torque, and velocity: (M, n) each, M <= MAXIMUM_SAMPLES."""
    velocity, acceleration = differentiate(recording.time, recording.position, FIT_WINDOW_S)
    rows = slice(None, None, -(-recording.n_samples // MAXIMUM_SAMPLES))
    q, velocity, acceleration = recording.position[rows], velocity[rows], acceleration[rows]
    gravity = robot.gravity_torque(q)
    return recording.torque[rows], gravity, robot.inverse_dynamics(q, velocity, acceleration) - gravity, velocity


def partial_fit(effort: np.ndarray, gravity: np.ndarray, others: np.ndarray) -> GravityShare:
    """Fit of effort (N,) by gravity (N,) and others (N, k): what is left of both without the others is compared."""
    known = np.isfinite(effort)
    both = np.column_stack([effort, gravity])[known]
    if not np.any(both[:, 1]):
        return GravityShare(0.0, 0.0, 0.0, 0.0)
    effort, gravity = (both - others[known] @ lstsq(others[known], both)[0]).T
    power, variation = np.sqrt(np.mean(effort**2)), np.sqrt(np.mean(gravity**2))
    if not (power > 0 and variation > 0):
        return GravityShare(0.0, 0.0, variation, power)
    correlation = np.mean(gravity * effort) / (power * variation)
    return GravityShare(
        correlation * power / variation, correlation, variation, power * np.sqrt(max(0.0, 1 - correlation**2))
    )


def check_scale(robot: RobotModel, samples: MotionSamples, terms: Terms, source: str) -> Iterator[Finding]:
    """An error if the torques of fast motion follow those of the URDF, but are no joint torques.

    As `check_effort`, for arms whose inertial torques hide gravity: per joint, effort = share · nominal torque + offset
    + drive is fitted.
    """
    nominal = robot.inverse_dynamics(samples.position, samples.velocity, samples.acceleration)
    fits = {}
    for j, joint in enumerate(robot.joint_names):
        rows = terms.moving[:, j]
        if np.sum(rows) >= MINIMUM_SAMPLES:
            others = np.column_stack([np.ones(len(rows)), terms.drive[:, j]])[rows]
            fits[joint] = partial_fit(samples.torque[rows, j], nominal[rows, j], others)
    largest = max((fit.variation for fit in fits.values()), default=0.0)
    loaded = {joint: fit for joint, fit in fits.items() if fit.variation > MIN_LOAD_SHARE * largest}
    if loaded:
        yield from (finding for finding in _judge(source, loaded) if finding.kind == CURRENT)


def _judge(source: str, fits: Mapping[str, GravityShare]) -> Iterator[Finding]:
    shares, correlations, variations, rests = np.array(list(fits.values())).T
    found = ", ".join(f"{joint} {fit.share:.2g}" for joint, fit in fits.items())
    found = f"(share of the URDF's torque: {found})"
    low, high = PLAUSIBLE_GRAVITY_SHARES
    proportional = np.all(np.abs(correlations) > MIN_GRAVITY_CORRELATION)
    if proportional and np.all(shares > 0) and (np.all(shares < low) or np.all(shares > high)):
        yield Finding(
            "error",
            source,
            f"effort follows gravity, but is no joint torque in N m {found}",
            "if it is motor current or torque before the gear, use effort_convention motor_current with gains",
            CURRENT,
        )
    elif proportional and np.all((shares < -low) & (shares > -high)):
        yield Finding(
            "error",
            source,
            f"effort has the opposite sign of the gravity torque {found}",
            "the driver reports the reaction: use effort_convention motor_current with gains of -1",
            SIGN,
        )
    elif np.all(np.abs(shares) < MAX_ABSENT_SHARE) and np.all(rests < variations):
        yield Finding(
            "error",
            source,
            f"there is no gravity in the effort, though the poses differ {found}",
            "if the driver subtracts gravity (effort_convention gravity_compensated), switch its compensation off or "
            "give its uncompensated torque as torque_topic; if effort is current, use motor_current with gains",
            COMPENSATED,
        )


MIN_SIGN_CORRELATION = 0.5
"""Correlation of a torque with the URDF's gravity torque from which its sign is known: sound torques of arms whose
masses are wrong by 30 % have 0.85 and more, and 0.57 where an arm jumps after stalls."""
NOT_SEEN = GravityShare(0.0, 0.0, 0.0, 0.0)


class GravitySigns:
    """Signs of the torques against the gravity torque of the URDF.

    Args:
        robot: with the inertial parameters of its URDF; without masses gravity shows in no joint.
        samples: of its motion.
        terms: of the torque model on them.

    Attributes:
        as_recorded: (n,) 1 where a torque follows gravity, -1 where it opposes it, 0 where gravity does not show.
    """

    def __init__(self, robot: RobotModel, samples: MotionSamples, terms: Terms):
        self._robot, self._samples, self._terms = robot, samples, terms
        self.as_recorded = self._of_positions(np.ones(robot.n_joints))

    def oppose(self, torques: NDArray, positions: NDArray) -> bool:
        """Whether torques and positions times these signs (n,) turn against gravity what follows it as recorded."""
        turned = torques * (self._of_positions(positions) if np.any(positions < 0) else self.as_recorded)
        return bool(np.any((self.as_recorded > 0) & (turned < 0)))

    def friction_pushes(self, equations: TorqueEquations, given: TorqueFit) -> bool:
        """Whether no torque opposes gravity and some follow it, but friction would rather have them all turned.

        Effort that is sampled at another time than the position, or before the damping of the servo acts, has a part
        along the velocity that looks like friction that pushes. It shows no sign then. In one joint alone, in which
        gravity does not show, it does: that one may be connected the wrong way round.

        Args:
            equations: of a model whose friction brakes.
            given: their fit to the torques as recorded.
        """
        follows = self.as_recorded > 0
        if not np.any(follows) or np.any(self.as_recorded < 0):
            return False
        gains = given.misfits - equations.fit(signs=-np.ones(equations.n)).misfits
        return bool(max(np.sum(gains[follows]), np.sum(gains) - np.max(gains)) > 0.0)

    def _of_positions(self, signs: NDArray) -> NDArray:
        robot, samples = self._robot, self._samples
        q, qd, qdd = (array * signs for array in (samples.position, samples.velocity, samples.acceleration))
        gravity = robot.gravity_torque(q)
        inertial = robot.inverse_dynamics(q, qd, qdd) - gravity
        fits = []
        for j in range(robot.n_joints):
            rows = self._terms.moving[:, j]
            others = np.column_stack([np.ones(len(rows)), self._terms.drive[:, j], inertial[:, j]])[rows]
            enough = np.sum(rows) >= ENOUGH_ROWS
            fits.append(partial_fit(samples.torque[rows, j], gravity[rows, j], others) if enough else NOT_SEEN)
        seen = np.zeros(robot.n_joints)
        for j in loaded_joints(robot, fits):
            correlation = fits[j].correlation
            seen[j] = np.sign(correlation) * (abs(correlation) >= MIN_SIGN_CORRELATION)
        return seen
