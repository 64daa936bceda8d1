"""Faults that only a model shows: it fits the torques much better once the fault is undone.

The torques are linear in the inertial parameters and the friction of an arm, whatever these are, and joints share the
parameters of the links beyond them. So a wrong sign, a wrong order, a wrong gravity or a lag leaves residuals that no
parameters remove, and the URDF's own inertias need not be known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import parse_urdf
from dynid_ros.recording.checks.effort_convention import GravitySigns, check_effort, check_scale
from dynid_ros.recording.checks.encoder_zero import OffsetHypotheses
from dynid_ros.recording.checks.falling_torque import explains_more, falling_findings, falling_joints
from dynid_ros.recording.checks.finding import (
    CURRENT,
    DIRECTION,
    DRIFT,
    LAG,
    MIN_ERROR_GAIN,
    MIN_WARNING_GAIN,
    OTHER_ROBOT,
    SIGN,
    SWAP,
    Explanation,
    Finding,
)
from dynid_ros.recording.checks.hypotheses import (
    MAX_SAMPLES,
    MIN_SECOND_JOINT_GAIN,
    RATIO,
    TILT_MIN_GAIN,
    gravity_explanations,
    lag_explanation,
    order_explanations,
)
from dynid_ros.recording.checks.jackknife import Jackknife
from dynid_ros.recording.checks.link_origin import ORIGIN_MIN_GAIN, origin_columns, origin_explanations
from dynid_ros.recording.checks.low_pass import check_contents, low_pass_explanation, own_columns, with_presliding
from dynid_ros.recording.checks.motion import REST
from dynid_ros.recording.checks.torque_fit import (
    MotionSamples,
    Terms,
    TorqueEquations,
    TorqueFit,
    TorqueModel,
    motion_samples,
)
from dynid_ros.recording.checks.torque_unit import check_torque_sizes, scale_explanations, undecided_units
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


# What a recording leaves undecided: faults that would not show in it, so that nobody takes silence for a proof.


HIDDEN_TILT_DEG = 5.0
"""Tilt of the base that should show, degrees."""
HIDDEN_LAGS_S = (0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2)
"""Lags of which the smallest that would show is said, unless it is the first."""
HIDDEN_SHIFTS_M = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Errors of an origin of which the smallest that would show is said, unless it is one of the first two."""
PUSHING = (
    "signs that only friction shows, and its drift: what looks like friction pushes, as where effort is sampled at "
    "another time than position"
)
"""Said where gravity says that signs are right, and friction that they are not."""
MAX_LISTED_NAMES = 6
"""Names in a line."""
SUBJECTS = {
    SIGN: "sign of torque or position",
    SWAP: "order",
    RATIO: "gear ratio of the position (half or twice)",
}


def undecided_hypotheses(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Hypotheses that explain the torques about as well as the recording as it is."""
    for kind, subject in SUBJECTS.items():
        joints = [e.joints for e in explanations if e.kind == kind and e.joints and e.gain > -MIN_WARNING_GAIN]
        named = dict.fromkeys(" and ".join(names) if kind == SWAP else names[0] for names in joints)
        if named:
            yield f"{subject}: {_listed(list(named))}"


def undecided_joints(robot: RobotModel, equations: TorqueEquations) -> Iterator[str]:
    """Joints of which nothing can be determined."""
    names = [name for j, name in enumerate(robot.joint_names) if j not in equations.judged]
    if names:
        yield f"anything about joints that hardly move: {', '.join(names)}"


def undecided_geometry(
    model: TorqueModel, samples: MotionSamples, equations: TorqueEquations, given: TorqueFit
) -> Iterator[str]:
    """Name a tilt of the base, lags and wrong lengths that would not show, with the smallest that would."""
    robot = model.robot
    if samples.torque.shape[1] > 1:
        shown = next((lag for lag in HIDDEN_LAGS_S if _lag_shows(samples, equations, given, lag)), None)
        if shown != HIDDEN_LAGS_S[0]:
            smallest = f"shows from {1e3 * shown:.0f} ms" if shown else "never shows"
            yield f"a constant lag between torques and positions ({smallest})"
    size = float(np.linalg.norm(robot.gravity))
    if size:
        of_gravity = model.rigid_of_gravity(samples) @ given.rigid
        tangents = np.linalg.svd((robot.gravity / size)[None])[2][1:]
        changes = np.radians(HIDDEN_TILT_DEG) * size * np.tensordot(tangents, of_gravity, 1)
        if min(_harm(equations, given, samples.torque + change) for change in changes) < TILT_MIN_GAIN:
            yield f"a base that is tilted by {HIDDEN_TILT_DEG:.0f} degrees"
    hidden = []
    for joint, columns in origin_columns(model, samples, given.rigid):
        shown = next(
            (size for size in HIDDEN_SHIFTS_M if _shift_shows(samples, equations, given, size * columns)), None
        )
        if shown not in HIDDEN_SHIFTS_M[:2]:
            smallest = f"shows from {100 * shown:.0f} cm" if shown else "never shows"
            hidden.append(f"{robot.joint_names[joint]} ({smallest})")
    if hidden:
        yield f"an origin that is 10 cm off in the URDF: {_listed(hidden)}"


def _shift_shows(samples: MotionSamples, equations: TorqueEquations, given: TorqueFit, changes: NDArray) -> bool:
    """Whether a shift along any axis would show, given the changes (M, n, 3) of the torques by it."""
    return any(
        _harm(equations, given, samples.torque + change) >= ORIGIN_MIN_GAIN for change in np.moveaxis(changes, 2, 0)
    )


def _harm(equations: TorqueEquations, given: TorqueFit, torque: NDArray) -> float:
    """How much worse the model would fit these torques."""
    return equations.explaining(torque).fit().misfit - given.misfit


def _lag_shows(samples: MotionSamples, equations: TorqueEquations, given: TorqueFit, lag: float) -> bool:
    """Whether torques that come this much later, or earlier, would fit worse in two joints."""
    shifted = [equations.explaining(samples.delayed_torque(shift)).fit() for shift in (-lag, lag)]
    return min(fit.shared_gain(given) for fit in shifted) >= MIN_SECOND_JOINT_GAIN


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MAX_LISTED_NAMES]) + (
        f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    )


MIN_DRIFT_RECORDING_S = 5.0
"""A recording must move for so long to show a drift, s."""
OF_FRICTION, OF_TORQUE = 0.15, 0.03
"""Smallest change to report, as a part of the joint's friction and of its torque."""
MIN_DRIFT_GAIN = 0.12
"""Drop of log(residual rms) of the joint that shows it: sound recordings of real arms feign up to 0.09."""
ONE_WAY = 1.5
"""Factor by which a steady course must explain more than one that turns."""
MIN_DRIFT_SIGMAS = 3.5
"""Standard errors by which a drift must differ from zero: the quantile for 1 % of Student's t with the 7 degrees of
freedom of the jackknife."""


def check_drift(
    recordings: Sequence[Recording], robot: RobotModel, samples: MotionSamples, terms: Terms
) -> Iterator[Finding]:
    """Warnings for joints whose friction or offset changes from the beginning to the end of a recording."""
    with_friction: Terms | None = None
    for part, recording in enumerate(recordings):
        rows = samples.part == part
        if not rows.any() or np.ptp(samples.time[rows]) < MIN_DRIFT_RECORDING_S:
            continue
        changes = _changes(robot, samples, terms, rows, recording)
        if not any(change for change, _ in changes):
            continue
        # Friction that builds up slowly, or grows less at speed, may be another in motions that differ.
        with_friction = with_friction or _with_thinning(with_presliding(terms, samples), samples)
        built_up = _changes(robot, samples, with_friction, rows, recording)
        steady = _steady(samples, with_friction, rows, recording)
        for j, ((change, friction), still) in enumerate(zip(changes, built_up, strict=True)):
            if change and still[0] and _is_certain_drift(samples.torque[rows], steady, j, robot.chain.prismatic):
                unit = "N" if robot.chain.prismatic[j] else "N m"
                yield Finding(
                    "warning",
                    f"{recording.source}, joint '{robot.joint_names[j]}'",
                    f"its friction or offset changes by {change:.3g} {unit} during the {recording.duration:.0f} s; all "
                    f"its friction is about {friction:.3g} {unit}",
                    "move the arm until it is warm, then record; or zero the torque sensors and record again",
                    DRIFT,
                )


def _is_certain_drift(torque: NDArray, steady: _Steady, joint: int, prismatic: NDArray) -> bool:
    """Return whether stretches of the recording agree on the change of a joint's friction and offset.

    In slow motion, where a pose comes once, friction that the model lacks is another at the end.
    """
    columns = np.zeros_like(steady.shapes)
    columns[:, joint] = steady.now[:, None] * steady.shapes[:, joint]
    change = Jackknife(steady.terms, columns, torque, prismatic).estimate(range(columns.shape[2]))
    # Squared size of the change and, by the delta method, half of its standard error.
    shapes = steady.shapes[:, joint]
    weights = shapes.T @ shapes @ change.values / len(shapes)
    return bool(weights @ change.values > MIN_DRIFT_SIGMAS * np.sqrt(weights @ change.covariance @ weights))


class _Steady(NamedTuple):
    """Samples of one recording: their terms, shapes (M, n, 3) of what may drift, and time (M,) from -1 to 1."""

    terms: Terms
    shapes: NDArray
    now: NDArray


def _steady(samples: MotionSamples, terms: Terms, rows: NDArray, recording: Recording) -> _Steady:
    """Return the samples of a recording, which are these rows (M,)."""
    steady = Terms(terms.rigid[rows], terms.drive[rows], terms.moving[rows])
    shapes = np.concatenate([np.ones((*steady.drive.shape[:2], 1)), steady.drive[:, :, :2]], axis=2)
    return _Steady(steady, shapes, 2 * (samples.time[rows] - recording.time[0]) / recording.duration - 1)


def _with_thinning(terms: Terms, samples: MotionSamples) -> Terms:
    """The terms, and viscous friction of each joint that grows less above its RMS velocity."""
    usual = np.sqrt(np.mean(samples.velocity**2, axis=0))
    thinning = samples.velocity / (1.0 + np.abs(samples.velocity) / np.where(usual > 0, usual, 1.0))
    return Terms(terms.rigid, np.concatenate([terms.drive, thinning[:, :, None]], axis=2), terms.moving)


def _changes(
    robot: RobotModel, samples: MotionSamples, terms: Terms, rows: NDArray, recording: Recording
) -> list[tuple[float, float]]:
    """By how much each joint's friction or offset changes in these rows, and all its friction; 0: it does not."""
    steady, shapes, now = _steady(samples, terms, rows, recording)
    equations = TorqueEquations(steady, samples.torque[rows], robot.chain.prismatic)
    before = np.hypot(equations.fit().rms, equations.floor)
    courses = [Legendre.basis(degree)(now) for degree in (1, 2, 3)]
    fits = [_changing(steady, course, shapes, samples.torque[rows], robot) for course in courses]
    drops = np.log(before / [np.hypot(fit.rms, equations.floor) for fit in fits])
    # What is wrong with the model can look like any course; drifts go one way.
    seen = (drops[0] > MIN_DRIFT_GAIN) & (drops[0] > ONE_WAY * np.max(drops[1:], axis=0))
    rates = 2 * fits[0].rigid[-shapes[0].size :].reshape(robot.n_joints, -1)
    change = np.sqrt(np.mean(np.einsum("mjk,jk->mj", shapes, rates) ** 2, axis=0))
    friction = np.sqrt(np.mean(np.einsum("mjk,jk->mj", shapes[:, :, 1:], fits[0].drive[:, :2]) ** 2, axis=0))
    smallest = np.maximum(OF_FRICTION * friction, OF_TORQUE * equations.size)
    return list(zip(np.where(seen & (change > smallest), change, 0.0), friction, strict=True))


def _changing(terms: Terms, course: NDArray, shapes: NDArray, torque: NDArray, robot: RobotModel) -> TorqueFit:
    """Fit with coefficients of each joint's `shapes` (M, n, k) that follow a course (M,) besides."""
    rigid = np.concatenate([terms.rigid, own_columns(course[:, None, None] * shapes)], axis=2)
    return TorqueEquations(Terms(rigid, terms.drive, terms.moving), torque, robot.chain.prismatic).fit()


MOVING_HAND: Final = "moving hand"
MAX_HELD_DISTANCE = 0.02
"""Largest distance of a held joint from where it is held, rad or m."""


def check_hand(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Warnings for joints beyond the tip, or on branches, that do not stay where they are.

    The model takes what they carry for a part of the link that they hang on; recordings that are fitted together are
    looked at together, as a hand that is open in one and closed in the other is no such part either.
    """
    if robot.urdf is None or not any(part.others for part in recordings):
        return
    for name, at in robot.held.items():
        seen = [part.others[name] for part in recordings if name in part.others]
        away = [
            position for position in (np.concatenate(seen) if seen else []) if abs(position - at) > MAX_HELD_DISTANCE
        ]
        if away:
            yield Finding(
                "error",
                f"{', '.join(part.source for part in recordings)}, joint '{name}'",
                f"the model holds it at {at:.3g}, the recording has it at up to {max(away, key=abs):.3g} (rad or m)",
                f"hold it where it was, --hold {name}={np.median(away):.3g}, or leave it among the joints that move",
                MOVING_HAND,
            )
    for name, rest, unit in _carried(robot):
        seen = [part.others[name] for part in recordings if name in part.others]
        travel = np.ptp(np.concatenate(seen)) if seen else 0.0
        if travel > rest:
            yield Finding(
                "warning",
                f"{', '.join(part.source for part in recordings)}, joint '{name}'",
                f"the arm carries it, it is not of the model from '{robot.base}' to '{robot.tip}', and it moves by "
                f"{travel:.2g} {unit}: masses that move with it are taken to stay",
                "hold it while you record, or choose a tip beyond it",
                MOVING_HAND,
            )


def _carried(robot: RobotModel) -> Iterator[tuple[str, float, str]]:
    """Joints that the first moving link carries besides those of the model: name, what counts as rest, and unit."""
    tree = LinkTree(parse_urdf(robot.urdf or "", robot.name), robot.name)
    waiting = [link for link, parent in zip(robot.link_names, robot.chain.parents, strict=True) if parent < 0]
    while waiting:
        for joint in tree.child_joints[waiting.pop()]:
            waiting.append(joint.child)
            if joint.type != "fixed" and joint.name not in (*robot.chain.mover_names, *robot.held):
                slides = joint.type == "prismatic"
                yield joint.name, REST[slides], "m" if slides else "rad"


MIN_GAIN_ADVANTAGE = 0.2
"""Gain that decides between gravity upside down and torques of the wrong sign."""
MAX_RESIDUAL_RATIO = 1.7
"""Residual, over that with parameters of each joint's own, from which the joints do not belong to one arm. Sound
recordings of real arms have up to 1.3."""
MAX_UNEXPLAINED_FRACTIONS = (0.08, 0.15)
"""Part of the torques that is then left unexplained, for a warning and an error: friction that depends on load leaves
some too."""


def check_model(
    recordings: Sequence[Recording], robot: RobotModel, undecided: list[str] | None = None
) -> list[Finding]:
    """What the torques say against the model of the robot; of faults that exclude each other, the likeliest.

    Args:
        recordings: with the joints in the robot's order.
        robot: the arm as it is mounted.
        undecided: gets what the recordings leave undecided; None: nobody asks.
    """
    source = ", ".join(part.source for part in recordings)
    effort = list(check_effort(recordings, robot))
    everything = motion_samples(recordings)
    unknown: list[str] = [] if undecided is None else undecided
    if everything is None:
        unknown.append("signs, order, ratios and lags of the joints: nothing moves")
        return effort
    samples = everything.thinned(MAX_SAMPLES)
    model = TorqueModel(robot)
    terms = model.terms(samples)
    equations = TorqueEquations(terms, samples.torque, robot.chain.prismatic)
    scale = list(check_scale(robot, samples, terms, source)) or list(check_torque_sizes(robot, samples, source))
    if not equations.judged.size:
        return scale or effort
    given = equations.fit()
    gravity = GravitySigns(robot, samples, terms)
    if scale:
        units = scale_explanations(robot, samples, equations)
        others = (*units, *order_explanations(model, samples, equations, given, gravity))
        return _likeliest([e for e in others if e.kind == SWAP or not e.joints], scale, source)
    pushing = gravity.friction_pushes(equations, given)
    if pushing:
        # Every hypothesis that turns a velocity would explain it.
        model = TorqueModel(robot, braking=False)
        terms = model.terms(samples)
        equations = TorqueEquations(terms, samples.torque, robot.chain.prismatic)
        given = equations.fit()
    filtered = list(check_contents(samples, source))
    if filtered:
        return [*effort, *filtered]
    orders = list(order_explanations(model, samples, equations, given, gravity))
    falls: list[Finding] = []
    if not pushing:
        falling, gain = falling_joints(samples, model, given)
        if falling.any() and explains_more(gain, orders):
            # What else may be wrong is looked for beside it.
            model = model.falling(falling)
            terms = model.terms(samples)
            equations = TorqueEquations(terms, samples.torque, robot.chain.prismatic)
            given = equations.fit()
            orders = list(order_explanations(model, samples, equations, given, gravity))
            falls = list(falling_findings(robot, given, falling, source))
    offsets = OffsetHypotheses(model, samples, terms, equations)
    explanations = [
        *scale_explanations(robot, samples, equations),
        *orders,
        *gravity_explanations(model, samples, terms, given),
        *lag_explanation(model, samples, terms, given),
        *low_pass_explanation(model, everything),
        *origin_explanations(model, samples),
        *offsets.explanations(),
    ]
    findings = [_of_table(finding, robot) for finding in _likeliest(explanations, effort, source)]
    if not findings and _inconsistent(equations, given, source):
        # In motions of a few degrees friction that builds up slowly looks like joints of several arms.
        findings = _inconsistent(offsets.equations, offsets.fit, source)
    if undecided is not None and not any(finding.severity == "error" for finding in findings):
        undecided += [PUSHING] * pushing
        undecided += undecided_joints(robot, equations)
        undecided += undecided_hypotheses(explanations)
        undecided += undecided_units(robot, samples, equations)
        undecided += undecided_geometry(model, samples, equations, given)
        undecided += offsets.undecided()
    if any(finding.severity == "error" for finding in findings):
        return findings  # what falls is known when that is mended
    return [*falls, *(findings or ([] if pushing else check_drift(recordings, robot, samples, terms)))]


CRAIG = "rows of a modified (Craig) DH table taken for standard ones look the same: docs/files.md says how to turn them"


def _of_table(finding: Finding, robot: RobotModel) -> Finding:
    """The finding; of an arm without a URDF with what else makes joints look exchanged, or gravity turned."""
    if robot.urdf is None and finding.kind in (DIRECTION, SWAP):
        return replace(finding, fix=f"{finding.fix}; {CRAIG}")
    return finding


def _likeliest(explanations: Sequence[Explanation], effort: list[Finding], source: str) -> list[Finding]:
    """The best explanation or, where it says no more, what the effort itself shows."""
    if not explanations:
        return effort
    best = max(explanations, key=lambda explanation: explanation.gain)
    structural = best.severity == "error" and best.gain > MIN_ERROR_GAIN
    if effort:
        gain = max((e.gain for e in explanations if e.kind == effort[0].kind and not e.joints), default=-np.inf)
        # Gravity upside down looks like a reaction but for friction.
        upside_down = best.kind == DIRECTION and best.gain > MIN_GAIN_ADVANTAGE and effort[0].kind == SIGN
        better = best.kind != LAG and best.gain > max(0.0, gain) + MIN_ERROR_GAIN
        which_unit = best.kind == effort[0].kind == CURRENT and best.gain > MIN_ERROR_GAIN
        return [best.finding(source)] if upside_down or better or which_unit else effort
    if structural:
        return [best.finding(source)]
    if best.severity == "error" and best.gain > MIN_WARNING_GAIN:
        return [replace(best, severity="warning").finding(source)]
    # A low-pass with a delay shows as both: the likelier.
    lesser = [e for e in explanations if e.severity == "warning"]
    return [e.finding(source) for e in sorted(lesser, key=lambda e: -e.gain)[:1]]


def _inconsistent(equations: TorqueEquations, given: TorqueFit, source: str) -> list[Finding]:
    own = equations.own_rms()
    ratio = np.exp(np.nanmean(np.log(np.hypot(given.rms, equations.floor) / np.hypot(own, equations.floor))))
    left = np.sqrt(np.nansum(given.rms**2) / np.sum(equations.size[equations.judged] ** 2))
    if ratio < MAX_RESIDUAL_RATIO or left < MAX_UNEXPLAINED_FRACTIONS[0]:
        return []
    return [
        Finding(
            "warning" if left < MAX_UNEXPLAINED_FRACTIONS[1] else "error",
            source,
            f"the torques do not fit the arm of the URDF: {100 * left:.0f} % of them are left, {ratio:.2g} times more "
            "than if each joint had links of its own, and neither signs, order, gravity nor lag mend it",
            "check that URDF, base, tip and recording are of the same robot; springs, wrong torque gains and friction "
            "that grows with load look the same",
            OTHER_ROBOT,
        )
    ]
