"""Convention of the effort, wrong signs, exchanged joints and gear ratios: which of them fits the torques best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from dynid_ros.checks.finding import COMPENSATED, CURRENT, MIN_WARNING_GAIN, SIGN, SWAP, Explanation, Finding
from dynid_ros.checks.torque_model import (
    MIN_ROWS,
    TorqueEquations,
    TorqueProblem,
    TorqueTerms,
    fit_together,
    with_presliding,
)
from dynid_ros.files.disk_arrays import pick_rows
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording.recording import Recording
from dynid_ros.signals.low_pass import differentiate_at

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

DERIVATIVE_WINDOW_S = 0.1
"""Length of the local fit that gives velocity and acceleration."""
MAX_REST_SPEED = 0.01
"""Largest speed at which the sign of friction is unknown, rad/s or m/s."""
MIN_SAMPLES = 10
MAX_EFFORT_SAMPLES = 20_000
MIN_LEVER_M = 0.01
"""Lever of the arm's weight by which the gravity torque of a joint must vary at least."""
MIN_LOAD_SHARE = 0.2
"""Smallest variation of a joint's gravity torque, as a fraction of the most loaded joint's: the torques of the small
joints are mostly friction."""
MIN_GRAVITY_CORRELATION = 0.9
"""Correlation above which effort follows gravity; true torques have 0.96 and more."""
MAX_ABSENT_SHARE = 0.3
"""Share of the nominal gravity torque below which gravity is not in the effort, if it would exceed the residual."""
MIN_OTHER_LOAD_SHARE = 0.1
"""Smallest variation, as a fraction of the most loaded joint's, by which another joint shows gravity in the effort: a
counterbalance may carry the most loaded joint, whereas a driver compensates all of them."""
MIN_OTHER_CORRELATION = 0.6
"""Smallest correlation by which another joint shows gravity in the effort."""
MIN_PLAUSIBLE_SHARE = 0.5
"""Smallest share of the nominal gravity torque in true torques: URDF masses may be wrong."""
MAX_PLAUSIBLE_SHARE = 4.0
"""Largest share of the nominal gravity torque in true torques: a payload adds to it."""
MIN_SIGN_CORRELATION = 0.5
"""Smallest correlation of a torque with the URDF's gravity torque that shows its sign: sound torques of arms whose
masses are wrong by 30 % have 0.85 and more, and 0.57 where an arm jumps after stalls."""


class GravityShare(NamedTuple):
    """Share of the nominal gravity torque in the effort of a joint, fitted together with other terms.

    Attributes:
        share: estimated factor of the nominal gravity torque.
        correlation: correlation of effort and gravity torque without the other terms.
        variation: RMS of the gravity torque that other terms do not explain.
        rest: RMS of the unexplained effort.
    """

    share: float
    correlation: float
    variation: float
    rest: float


HIDDEN_GRAVITY = GravityShare(0.0, 0.0, 0.0, 0.0)
"""Share of a joint without visible gravity."""


def check_effort(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Yield an error if the effort cannot be joint torque with gravity included.

    Per joint, effort = share · nominal gravity torque + nominal inertial torque (free factor) + offset + Coulomb and
    viscous friction is fitted over all samples, so that friction and fast motion do not look like gravity. Only joints
    with enough variation of gravity are judged: recordings of one pose, or of a vertical joint alone, pass.

    Args:
        recordings: recordings of one robot and one driver, with the joints in the robot's order.
        robot: robot model with the inertial parameters of its URDF; masses wrong by a factor of two pass.
    """
    parts = [_effort_terms(part, robot) for part in recordings if part.n_samples >= MIN_SAMPLES]
    if not parts:
        return
    effort, gravity, inertial, velocity = (np.concatenate(terms) for terms in zip(*parts, strict=True))
    friction = np.where(np.abs(velocity) > MAX_REST_SPEED, np.sign(velocity), 0.0)
    shares = []
    for j in range(robot.n_joints):
        others = np.column_stack([inertial[:, j], np.ones(len(effort)), friction[:, j], velocity[:, j]])
        shares.append(fit_gravity_share(effort[:, j], gravity[:, j], others))
    loaded = loaded_joints(robot, shares)
    if loaded.size:
        source = ", ".join(part.source for part in recordings)
        balanced = any(_shows_gravity(share, shares) for j, share in enumerate(shares) if j not in loaded)
        findings = _judge_shares(source, {robot.joint_names[j]: shares[j] for j in loaded})
        yield from (finding for finding in findings if finding.kind != COMPENSATED or not balanced)


def _shows_gravity(share: GravityShare, all_shares: Sequence[GravityShare]) -> bool:
    """Return whether gravity is in the effort of a joint that is not the most loaded one."""
    enough = share.variation > MIN_OTHER_LOAD_SHARE * max(other.variation for other in all_shares)
    plausible = MIN_PLAUSIBLE_SHARE < share.share < MAX_PLAUSIBLE_SHARE
    return enough and plausible and share.correlation > MIN_OTHER_CORRELATION


def loaded_joints(robot: RobotModel, shares: Sequence[GravityShare]) -> NDArray:
    """Return the indices of the joints with a visible variation of gravity."""
    variations = np.array([share.variation for share in shares])
    weight = np.sum(robot.parameters[::PARAMETERS_PER_LINK]) * np.linalg.norm(robot.gravity)
    return np.flatnonzero(variations > max(MIN_LEVER_M * weight, MIN_LOAD_SHARE * np.max(variations)))


def _effort_terms(recording: Recording, robot: RobotModel) -> tuple[NDArray, ...]:
    """Return effort, nominal gravity and inertial torque, and velocity (M, n), M <= MAX_EFFORT_SAMPLES."""
    rows = np.arange(0, recording.n_samples, -(-recording.n_samples // MAX_EFFORT_SAMPLES))
    velocity, acceleration = differentiate_at(rows, recording.time, recording.position, DERIVATIVE_WINDOW_S)
    position = pick_rows(recording.position, rows)
    gravity = robot.gravity_torque(position)
    inertial = robot.inverse_dynamics(position, velocity, acceleration) - gravity
    return pick_rows(recording.torque, rows), gravity, inertial, velocity


def fit_gravity_share(effort: NDArray, gravity: NDArray, others: NDArray) -> GravityShare:
    """Fit effort (N,) by gravity (N,) and others (N, k), by the residuals of both without the others."""
    known = np.isfinite(effort)
    both = np.column_stack([effort, gravity])[known]
    if not np.any(both[:, 1]):
        return HIDDEN_GRAVITY
    effort, gravity = (both - others[known] @ lstsq(others[known], both)[0]).T
    power = np.sqrt(np.mean(effort**2))
    variation = np.sqrt(np.mean(gravity**2))
    if not (power > 0 and variation > 0):
        return GravityShare(0.0, 0.0, variation, power)
    correlation = np.mean(gravity * effort) / (power * variation)
    rest = power * np.sqrt(max(0.0, 1 - correlation**2))
    return GravityShare(correlation * power / variation, correlation, variation, rest)


def check_scale(problem: TorqueProblem, source: str) -> Iterator[Finding]:
    """Yield an error if the torques of fast motion follow those of the URDF, but in another unit.

    This is `check_effort` for arms whose inertial torques hide gravity: per joint, effort = share · nominal torque +
    offset + drive is fitted.
    """
    samples = problem.samples
    nominal = problem.robot.inverse_dynamics(samples.position, samples.velocity, samples.acceleration)
    shares = {}
    for j, joint in enumerate(problem.robot.joint_names):
        rows = problem.terms.moving[:, j]
        if np.sum(rows) >= MIN_SAMPLES:
            others = np.column_stack([np.ones(len(rows)), problem.terms.drive[:, j]])[rows]
            shares[joint] = fit_gravity_share(samples.torque[rows, j], nominal[rows, j], others)
    largest = max((share.variation for share in shares.values()), default=0.0)
    loaded = {joint: share for joint, share in shares.items() if share.variation > MIN_LOAD_SHARE * largest}
    if loaded:
        yield from (finding for finding in _judge_shares(source, loaded) if finding.kind == CURRENT)


def _judge_shares(source: str, joints: Mapping[str, GravityShare]) -> Iterator[Finding]:
    """Yield an error if the shares of all joints are those of another convention."""
    shares, correlations, variations, rests = np.array(list(joints.values())).T
    listed = ", ".join(f"{joint} {share.share:.2g}" for joint, share in joints.items())
    remark = f"(share of the URDF's torque: {listed})"
    low = MIN_PLAUSIBLE_SHARE
    high = MAX_PLAUSIBLE_SHARE
    proportional = np.all(np.abs(correlations) > MIN_GRAVITY_CORRELATION)
    if proportional and np.all(shares > 0) and (np.all(shares < low) or np.all(shares > high)):
        yield Finding(
            "error",
            source,
            f"effort follows gravity, but is no joint torque in N m {remark}",
            "if it is motor current or torque before the gear, use effort_convention motor_current with gains",
            CURRENT,
        )
    elif proportional and np.all((shares < -low) & (shares > -high)):
        yield Finding(
            "error",
            source,
            f"effort has the opposite sign of the gravity torque {remark}",
            "the driver reports the reaction: use effort_convention motor_current with gains of -1",
            SIGN,
        )
    elif np.all(np.abs(shares) < MAX_ABSENT_SHARE) and np.all(rests < variations):
        yield Finding(
            "error",
            source,
            f"there is no gravity in the effort, though the poses differ {remark}",
            "if the driver subtracts gravity (effort_convention gravity_compensated), switch its compensation off or "
            "give its uncompensated torque as torque_topic; if effort is current, use motor_current with gains",
            COMPENSATED,
        )


class GravitySigns:
    """Signs of the torques against the gravity torque of the URDF; without masses gravity shows in no joint.

    Attributes:
        as_recorded: (n,) 1 where a torque follows gravity, -1 where it opposes it, 0 where gravity does not show.
    """

    def __init__(self, problem: TorqueProblem):
        self._problem = problem
        self.as_recorded = self._signs_with(np.ones(problem.robot.n_joints))

    def oppose(self, torques: NDArray, positions: NDArray) -> bool:
        """Return whether torques and positions times these signs (n,) oppose gravity where they follow it as recorded.

        Args:
            torques: (n,) signs of the torques.
            positions: (n,) signs of the positions.
        """
        turned = torques * (self._signs_with(positions) if np.any(positions < 0) else self.as_recorded)
        return bool(np.any((self.as_recorded > 0) & (turned < 0)))

    def friction_pushes(self) -> bool:
        """Return whether gravity shows right signs of all torques, but friction would fit better with all turned.

        Effort that is sampled at another time than the position, or before the damping of the servo acts, has a part
        along the velocity that looks like friction that pushes. It then shows no sign, except in a single joint
        without visible gravity, which may be connected the wrong way round.
        """
        follows = self.as_recorded > 0
        if not np.any(follows) or np.any(self.as_recorded < 0):
            return False
        equations = self._problem.equations
        gains = self._problem.fit.misfits - equations.scaled(-np.ones(equations.n)).fit().misfits
        return bool(max(np.sum(gains[follows]), np.sum(gains) - np.max(gains)) > 0.0)

    def _signs_with(self, signs: NDArray) -> NDArray:
        """Return the signs (n,) of the torques against gravity, with the positions times signs (n,)."""
        robot = self._problem.robot
        samples = self._problem.samples
        terms = self._problem.terms
        position = samples.position * signs
        gravity = robot.gravity_torque(position)
        inertial = robot.inverse_dynamics(position, samples.velocity * signs, samples.acceleration * signs) - gravity
        shares = []
        for j in range(robot.n_joints):
            rows = terms.moving[:, j]
            others = np.column_stack([np.ones(len(rows)), terms.drive[:, j], inertial[:, j]])[rows]
            enough = np.sum(rows) >= MIN_ROWS
            share = fit_gravity_share(samples.torque[rows, j], gravity[rows, j], others) if enough else HIDDEN_GRAVITY
            shares.append(share)
        shown = np.zeros(robot.n_joints)
        for j in loaded_joints(robot, shares):
            correlation = shares[j].correlation
            shown[j] = np.sign(correlation) * (abs(correlation) >= MIN_SIGN_CORRELATION)
        return shown


RATIO: Final = "position ratio"
RATIO_TEXTS = {2.0: "half", 0.5: "twice"}
"""Factors that correct a position, and its description: a wrong gear, or counts of one edge in two."""
SIGN_TEXTS = {
    "torque": ("its torque has the wrong sign", "turn it with effort_convention motor_current and a gain of -1"),
    "position": ("its position has the wrong sign", "turn the joint's axis in the URDF, or its sign in the driver"),
    "both": (
        "position and torque both have the wrong sign",
        "turn the joint's axis in the URDF, or its direction in the driver",
    ),
}
WITHOUT_GRAVITY = " (judged by inertia and friction: gravity hardly shows in {})"
"""Remark on a torque whose sign gravity does not show, for example of an upright axis."""
SWAP_TEXTS = {
    "torque": ("their torques are swapped", "the driver fills effort in another order than name: mend it"),
    "position": ("their positions are swapped", "the driver fills position in another order than name: mend it"),
    "both": (
        "position and torque of the one are those of the other",
        "swap their names in the driver or in joint_names",
    ),
}


def order_explanations(problem: TorqueProblem, gravity: GravitySigns) -> Iterator[Explanation]:
    """Yield the explanations by wrong signs, exchanged joints and gear ratios, of torques, positions or both.

    Joints that hardly move show neither order nor sign and take no part. A sign that gravity contradicts is
    omitted, because effort that is sampled at one end of the period has friction of the wrong sign.
    """
    robot = problem.robot
    moving = [int(j) for j in problem.equations.judged]
    turned = -np.ones(robot.n_joints)
    if not gravity.oppose(turned, np.ones(robot.n_joints)):
        remark = "" if np.any(gravity.as_recorded) else WITHOUT_GRAVITY.format("them")
        yield Explanation(
            SIGN,
            problem.fit.misfit - problem.equations.scaled(turned).fit().misfit,
            "all torques have the wrong sign" + remark,
            "the driver reports the reaction: use effort_convention motor_current with gains of -1",
        )
    arrangements = _Arrangements(problem)
    choices = list(_choices(robot.n_joints, moving))
    for choice, gains in zip(choices, arrangements.gains(choices), strict=True):
        names = tuple(robot.joint_names[j] for j in choice.joints)
        for channel, gain in gains.items():
            message, fix = choice.texts[channel]
            if choice.kind == SIGN:
                if _opposed(gravity, choice.factors, channel):
                    continue
                if channel == "torque" and not gravity.as_recorded[choice.joints[0]]:
                    message += WITHOUT_GRAVITY.format("it")
            yield Explanation(choice.kind, gain, message, fix, names)


def _opposed(gravity: GravitySigns, signs: NDArray, channel: str) -> bool:
    """Return whether gravity contradicts these signs (n,) of torques, positions or both."""
    same = np.ones(len(signs))
    return gravity.oppose(same if channel == "position" else signs, same if channel == "torque" else signs)


class _Choice(NamedTuple):
    """Arrangement of the channels: their order (n,) and factors (n,), with the texts of each kind of channel."""

    kind: str
    texts: Mapping[str, tuple[str, str]]
    joints: tuple[int, ...]
    order: NDArray
    factors: NDArray


def _choices(n: int, moving: Sequence[int]) -> Iterator[_Choice]:
    """Yield the arrangements of n joints that differ from the recorded one in the moving joints."""
    joints = np.arange(n)
    for j in moving:
        for factor, text in RATIO_TEXTS.items():
            message = f"its position is {text} of what the torques show"
            fix = "look at the gear ratio and the counts per turn in the driver; the angle must be that behind the gear"
            yield _Choice(RATIO, {"position": (message, fix)}, (j,), joints, np.where(joints == j, factor, 1.0))
        yield _Choice(SIGN, SIGN_TEXTS, (j,), joints, np.where(joints == j, -1.0, 1.0))
    for i, j in combinations(moving, 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        yield _Choice(SWAP, SWAP_TEXTS, (i, j), order, np.ones(n))


class _Arrangements:
    """Gains of the arrangements, reduced to the part that nothing else explains.

    A joint that moves little has friction that builds up over its whole motion and looks like the gravity torque of
    another joint. A gain must therefore remain with presliding friction in the model. Where one joint moves at a time,
    the torque of a joint at rest is the easier to explain, so an exchange must also explain the samples at standstill.
    """

    def __init__(self, problem: TorqueProblem):
        self._problem = problem

    def gains(self, choices: Sequence[_Choice]) -> list[dict[str, float]]:
        """Return the gain of each choice for each kind of channel that it may concern."""
        problem = self._problem
        terms = (problem.model.terms(problem.samples, choice.order, choice.factors) for choice in choices)
        gains = _gains(problem.terms, terms, choices)
        return [
            self._remaining(choice, of_choice) if max(of_choice.values()) > MIN_WARNING_GAIN else of_choice
            for choice, of_choice in zip(choices, gains, strict=True)
        ]

    def _remaining(self, choice: _Choice, gains: dict[str, float]) -> dict[str, float]:
        """Return the gains of a choice that presliding friction and samples at standstill leave."""
        problem = self._problem
        changed = problem.model.terms(problem.samples, choice.order, choice.factors)
        presliding = with_presliding(changed, problem.samples, choice.order, choice.factors)
        remaining = _gains(problem.presliding.terms, [presliding], [choice])[0]
        gains = {channel: min(gain, remaining[channel]) for channel, gain in gains.items()}
        if choice.kind == SWAP:
            everywhere = replace(changed, moving=problem.samples.alive[:, choice.order])
            at_rest = _gains(self._every_sample, [everywhere], [choice])[0]
            gains = {channel: gain if at_rest[channel] > 0.0 else min(gain, 0.0) for channel, gain in gains.items()}
        return gains

    @cached_property
    def _every_sample(self) -> TorqueTerms:
        """Terms with the samples at standstill, as far as the torques are alive."""
        return replace(self._problem.terms, moving=self._problem.samples.alive)


def _gains(given: TorqueTerms, changed: Iterable[TorqueTerms], choices: Sequence[_Choice]) -> list[dict[str, float]]:
    """Return the gains of changing torques, positions and both by each choice, over the terms as recorded.

    Args:
        given: terms as recorded.
        changed: terms of each choice.
        choices: H choices.
    """

    def hypotheses() -> Iterator[TorqueEquations]:
        for terms, choice in zip(changed, choices, strict=True):
            for channel in choice.texts:
                equations = (given if channel == "torque" else terms).equations
                yield equations if channel == "position" else equations.arranged(choice.order, choice.factors)

    fits = iter(fit_together(hypotheses()))
    return [{channel: given.fit.misfit - next(fits).misfit for channel in choice.texts} for choice in choices]
