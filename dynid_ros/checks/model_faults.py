"""Faults that only a model shows: once they are undone, it fits the torques much better.

The torques are linear in the inertial parameters and the friction of an arm, whatever these are, and joints share the
parameters of the links beyond them. So a wrong sign, a wrong order, a wrong gravity or a lag leaves residuals that
parameters cannot remove, and the URDF's own inertias need not be known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.drift import check_drift, explains_more, falling_findings, falling_joints
from dynid_ros.checks.drive_gains import check_command_delay, check_drive_gains, with_drive_remedy
from dynid_ros.checks.effort_convention import RATIO, GravitySigns, check_effort, check_scale, order_explanations
from dynid_ros.checks.finding import (
    CURRENT,
    DIRECTION,
    LAG,
    MIN_ERROR_GAIN,
    MIN_WARNING_GAIN,
    OTHER_ROBOT,
    SIGN,
    SWAP,
    Explanation,
    Finding,
)
from dynid_ros.checks.geometry import (
    ORIGIN_MIN_GAIN,
    TILT_MIN_GAIN,
    OffsetHypotheses,
    gravity_explanations,
    origin_columns,
    origin_explanations,
)
from dynid_ros.checks.low_pass import (
    MIN_SECOND_JOINT_GAIN,
    check_contents,
    check_steep_end,
    fits_with_lags,
    lag_explanation,
    low_pass_explanation,
)
from dynid_ros.checks.motion_samples import MAX_SAMPLES, motion_samples
from dynid_ros.checks.torque_model import TorqueModel, TorqueProblem, fit_together
from dynid_ros.checks.torque_unit import check_torque_sizes, scale_explanations, undecided_units
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

HIDDEN_TILT_DEG = 5.0
"""Tilt of the base that a recording should show."""
HIDDEN_LAGS_S = (0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2)
"""Tried lags. The smallest visible one is reported, unless it is the first."""
HIDDEN_SHIFTS_M = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Tried errors of an origin. The smallest visible one is reported, unless it is one of the first two."""
MAX_LISTED_NAMES = 6
SUBJECTS = {
    SIGN: "sign of torque or position",
    SWAP: "order",
    RATIO: "gear ratio of the position (half or twice)",
}


def undecided_hypotheses(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Yield the hypotheses that explain the torques about as well as the unchanged recording."""
    for kind, subject in SUBJECTS.items():
        joints = [e.joints for e in explanations if e.kind == kind and e.joints and e.gain > -MIN_WARNING_GAIN]
        names = dict.fromkeys(" and ".join(pair) if kind == SWAP else pair[0] for pair in joints)
        if names:
            yield f"{subject}: {_listed(list(names))}"


def undecided_joints(problem: TorqueProblem) -> Iterator[str]:
    """Yield the joints that move too little to show anything."""
    names = [name for j, name in enumerate(problem.robot.joint_names) if j not in problem.equations.judged]
    if names:
        yield f"anything about joints that hardly move: {', '.join(names)}"


def undecided_geometry(problem: TorqueProblem) -> Iterator[str]:
    """Yield a tilt of the base, lags and wrong lengths that would not show, with the smallest that would."""
    robot = problem.robot
    if robot.n_joints > 1:
        shown = next((lag for lag in HIDDEN_LAGS_S if _lag_shows(problem, lag)), None)
        if shown != HIDDEN_LAGS_S[0]:
            smallest = f"shows from {1e3 * shown:.0f} ms" if shown else "never shows"
            yield f"a constant lag between torques and positions ({smallest})"
    size = float(np.linalg.norm(robot.gravity))
    if size:
        per_axis = problem.model.gravity_columns(problem.samples) @ problem.fit.rigid
        tangents = np.linalg.svd((robot.gravity / size)[None])[2][1:]
        changes = np.radians(HIDDEN_TILT_DEG) * size * np.tensordot(tangents, per_axis, 1)
        if min(_misfit_increases(problem, changes)) < TILT_MIN_GAIN:
            yield f"a base that is tilted by {HIDDEN_TILT_DEG:.0f} degrees"
    hidden = []
    for joint, columns in origin_columns(problem):
        shown = next((shift for shift in HIDDEN_SHIFTS_M if _shift_shows(problem, shift * columns)), None)
        if shown not in HIDDEN_SHIFTS_M[:2]:
            smallest = f"shows from {100 * shown:.0f} cm" if shown else "never shows"
            hidden.append(f"{robot.joint_names[joint]} ({smallest})")
    if hidden:
        yield f"an origin that is 10 cm off in the URDF: {_listed(hidden)}"


def _shift_shows(problem: TorqueProblem, changes: NDArray) -> bool:
    """Return whether a shift along any axis would show, given the changes (M, n, 3) of the torques by it."""
    return max(_misfit_increases(problem, np.moveaxis(changes, 2, 0))) >= ORIGIN_MIN_GAIN


def _misfit_increases(problem: TorqueProblem, changes: NDArray) -> list[float]:
    """Return how much worse the model fits the torques with each of these changes (k, M, n)."""
    fits = fit_together(problem.equations.explaining(problem.samples.torque + change) for change in changes)
    return [fit.misfit - problem.fit.misfit for fit in fits]


def _lag_shows(problem: TorqueProblem, lag: float) -> bool:
    """Return whether torques that come this much later, or earlier, would fit worse in two joints."""
    fits = fits_with_lags(problem, (-lag, lag))
    return min(fit.shared_gain(problem.fit) for fit in fits) >= MIN_SECOND_JOINT_GAIN


def _listed(names: list[str]) -> str:
    remaining = len(names) - MAX_LISTED_NAMES
    return ", ".join(names[:MAX_LISTED_NAMES]) + (f" and {remaining} more" if remaining > 0 else "")


MIN_GAIN_ADVANTAGE = 0.2
"""Smallest gain that decides between gravity upside down and torques of the wrong sign."""
MAX_RESIDUAL_RATIO = 1.7
"""Largest ratio of the residual to that with parameters of each joint's own, for joints of one arm. Sound recordings of
real arms have up to 1.3."""
MIN_UNEXPLAINED_WARNING = 0.08
"""Smallest unexplained fraction of the torques for a warning; friction that depends on load leaves some too."""
MIN_UNEXPLAINED_ERROR = 0.15
"""Smallest unexplained fraction of the torques for an error."""
PUSHING = (
    "signs that only friction shows, and its drift: what looks like friction pushes, as where effort is sampled at "
    "another time than position"
)
"""Remark where gravity shows that signs are right, and friction that they are not."""
MODIFIED_DH = (
    "rows of a modified (Craig) DH table taken for standard ones look the same: docs/files.md says how to turn them"
)


def check_model(
    recordings: Sequence[Recording], robot: RobotModel, undecided: list[str] | None = None
) -> list[Finding]:
    """Compare the torques with the model of the robot; of faults that exclude each other, the likeliest is returned.

    Args:
        recordings: recordings with the joints in the robot's order.
        robot: robot model with the gravity of its mounting.
        undecided: list that receives the faults which the recordings cannot show; None to omit them.
    """
    return [with_drive_remedy(finding, recordings) for finding in _model_findings(recordings, robot, undecided)]


def _model_findings(recordings: Sequence[Recording], robot: RobotModel, undecided: list[str] | None) -> list[Finding]:
    source = ", ".join(part.source for part in recordings)
    effort = list(check_effort(recordings, robot))
    everything = motion_samples(recordings)
    if everything is None:
        if undecided is not None:
            undecided.append("signs, order, ratios and lags of the joints: nothing moves")
        return effort
    samples = everything.thinned(MAX_SAMPLES)
    problem = TorqueProblem(TorqueModel(robot), samples)
    scale = list(check_scale(problem, source)) or list(check_torque_sizes(robot, samples, source))
    if not problem.equations.judged.size:
        return scale or effort
    gravity = GravitySigns(problem)
    if scale:
        others = (*scale_explanations(problem), *order_explanations(problem, gravity))
        return _likeliest([e for e in others if e.kind == SWAP or not e.joints], scale, source)
    pushing = gravity.friction_pushes()
    if pushing:
        # Every hypothesis that turns a velocity would explain it.
        problem = TorqueProblem(TorqueModel(robot, braking=False), samples)
    low_passed = list(check_contents(samples, source))
    if low_passed:
        return [*effort, *low_passed]
    orders = list(order_explanations(problem, gravity))
    falls: list[Finding] = []
    if not pushing:
        falling, gain = falling_joints(problem)
        if falling.any() and explains_more(gain, orders):
            # Other faults are looked for in a model that includes it.
            problem = TorqueProblem(problem.model.falling(falling), samples)
            orders = list(order_explanations(problem, gravity))
            falls = list(falling_findings(robot, problem.fit, falling, source))
    offsets = OffsetHypotheses(problem)
    explanations = [
        *scale_explanations(problem),
        *orders,
        *gravity_explanations(problem),
        *lag_explanation(problem),
        *low_pass_explanation(problem, everything),
        *origin_explanations(problem),
        *offsets.explanations(),
    ]
    findings = [_with_dh_hint(finding, robot) for finding in _likeliest(explanations, effort, source)]
    findings = findings or list(check_command_delay(recordings, problem, source))
    findings = findings or list(check_drive_gains(recordings, problem, source))
    findings = findings or list(check_steep_end(everything, source))
    if not findings and _inconsistent(problem, source):
        # In motions of a few degrees friction that builds up slowly looks like joints of several arms.
        findings = _inconsistent(problem.presliding, source)
    if any(finding.severity == "error" for finding in findings):
        return findings  # falling torque shows once the error is corrected
    if undecided is not None:
        undecided += [PUSHING] if pushing else []
        undecided += undecided_joints(problem)
        undecided += undecided_hypotheses(explanations)
        undecided += undecided_units(problem)
        undecided += undecided_geometry(problem)
        undecided += offsets.undecided()
    return [*falls, *(findings or ([] if pushing else check_drift(recordings, problem)))]


def _with_dh_hint(finding: Finding, robot: RobotModel) -> Finding:
    """Add, for an arm without a URDF, the other cause of exchanged joints and turned gravity."""
    if robot.urdf is None and finding.kind in (DIRECTION, SWAP):
        return replace(finding, fix=f"{finding.fix}; {MODIFIED_DH}")
    return finding


def _likeliest(explanations: Sequence[Explanation], effort: list[Finding], source: str) -> list[Finding]:
    """Return the best explanation or, where it explains no more, the findings about the effort."""
    if not explanations:
        return effort
    best = max(explanations, key=lambda explanation: explanation.gain)
    structural = best.severity == "error" and best.gain > MIN_ERROR_GAIN
    if effort:
        gain = max((e.gain for e in explanations if e.kind == effort[0].kind and not e.joints), default=-np.inf)
        # Except for friction, gravity upside down looks like the reaction of the torques.
        upside_down = best.kind == DIRECTION and best.gain > MIN_GAIN_ADVANTAGE and effort[0].kind == SIGN
        better = best.kind != LAG and best.gain > max(0.0, gain) + MIN_ERROR_GAIN
        which_unit = best.kind == effort[0].kind == CURRENT and best.gain > MIN_ERROR_GAIN
        return [best.finding(source)] if upside_down or better or which_unit else effort
    if structural:
        return [best.finding(source)]
    if best.severity == "error" and best.gain > MIN_WARNING_GAIN:
        return [replace(best, severity="warning").finding(source)]
    # A low-pass with a delay shows as a lag too: the likelier one is reported.
    lesser = [e for e in explanations if e.severity == "warning"]
    return [e.finding(source) for e in sorted(lesser, key=lambda e: -e.gain)[:1]]


def _inconsistent(problem: TorqueProblem, source: str) -> list[Finding]:
    """Return a finding if the joints do not share the parameters of one arm."""
    equations = problem.equations
    fit = problem.fit
    residual = np.hypot(fit.rms, equations.floor)
    ratio = np.exp(np.nanmean(np.log(residual / np.hypot(equations.own_rms(), equations.floor))))
    unexplained = np.sqrt(np.nansum(fit.rms**2) / np.sum(equations.size[equations.judged] ** 2))
    if ratio < MAX_RESIDUAL_RATIO or unexplained < MIN_UNEXPLAINED_WARNING:
        return []
    return [
        Finding(
            "warning" if unexplained < MIN_UNEXPLAINED_ERROR else "error",
            source,
            f"the torques do not fit the arm of the URDF: {100 * unexplained:.0f} % of them are left, {ratio:.2g} "
            "times more than if each joint had links of its own, and neither signs, order, gravity nor lag mend it",
            "check that URDF, base, tip and recording are of the same robot; springs, wrong torque gains and friction "
            "that grows with load look the same",
            OTHER_ROBOT,
        )
    ]
