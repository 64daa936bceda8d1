"""Faults that only a model shows: it fits the torques much better once the fault is undone.

The torques are linear in the inertial parameters and the friction of an arm, whatever these are, and joints share the
parameters of the links beyond them. So a wrong sign, a wrong order, a wrong gravity or a lag leaves residuals that no
parameters remove, and the URDF's own inertias need not be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from dynid_ros.recording.drift_check import check_drift
from dynid_ros.recording.effort_check import SIGN, check_effort, check_scale
from dynid_ros.recording.explanation import CLEAR, LIKELY, Explanation
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.gravity_direction_check import DIRECTION, gravity_explanations
from dynid_ros.recording.gravity_sign import GravitySigns
from dynid_ros.recording.joint_order_check import order_explanations
from dynid_ros.recording.lag_check import LAG, lag_explanation
from dynid_ros.recording.link_origin_check import origin_explanations
from dynid_ros.recording.low_pass_check import check_contents, low_pass_explanation
from dynid_ros.recording.motion_samples import motion_samples
from dynid_ros.recording.torque_fit import TorqueEquations, TorqueFit, TorqueModel
from dynid_ros.recording.undecided import PUSHING, undecided_geometry, undecided_hypotheses, undecided_joints

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel
    from dynid_ros.recording.recording import Recording

OTHER_ROBOT: Final = "other robot"
SAMPLES = 800
"""Enough to tell one hypothesis from another."""
PREFERRED = 0.2
"""Gain that decides between gravity upside down and torques of the wrong sign."""
INCONSISTENT = 1.7
"""Residual, over that with parameters of each joint's own, from which the joints do not belong to one arm. Sound
recordings of real arms have up to 1.3."""
UNEXPLAINED = (0.08, 0.15)
"""Part of the torques that is then left unexplained, for a warning and an error: friction that depends on load leaves
some too."""


def check_model(
    recordings: Sequence[Recording], robot: RobotModel, undecided: list[str] | None = None
) -> list[Finding]:
    """What the torques say against the model of the robot; of faults that exclude each other, the likeliest.

    Args:
        recordings: with the joints in the robot's order.
        robot: the arm as it is mounted.
        undecided: gets what the recordings cannot tell; None: nobody asks.

    """
    source = ", ".join(part.source for part in recordings)
    effort = list(check_effort(recordings, robot))
    everything = motion_samples(recordings)
    unknown: list[str] = [] if undecided is None else undecided
    if everything is None:
        unknown.append("signs, order, ratios and lags of the joints: nothing moves")
        return effort
    samples = everything.thinned(SAMPLES)
    model = TorqueModel(robot)
    terms = model.terms(samples)
    equations = TorqueEquations(terms, samples.torque, robot.chain.prismatic)
    scale = list(check_scale(robot, samples, terms, source))
    if scale or not equations.judged.size:
        return scale or effort
    given = equations.fit()
    gravity = GravitySigns(robot, samples, terms)
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
    explanations = [
        *order_explanations(model, samples, equations, given, gravity),
        *gravity_explanations(model, samples, terms, given),
        *lag_explanation(model, samples, terms, given),
        *low_pass_explanation(model, everything),
        *origin_explanations(model, samples),
    ]
    findings = _likeliest(explanations, effort, source) or _inconsistent(equations, given, source)
    if undecided is not None and not any(finding.severity == "error" for finding in findings):
        undecided += [PUSHING] * pushing
        undecided += undecided_joints(robot, equations)
        undecided += undecided_hypotheses(explanations)
        undecided += undecided_geometry(model, samples, equations, given)
    return findings or ([] if pushing else list(check_drift(recordings, robot, samples, terms)))


def _likeliest(explanations: Sequence[Explanation], effort: list[Finding], source: str) -> list[Finding]:
    """The best explanation or, where it says no more, what the effort itself shows."""
    best = max(explanations, key=lambda explanation: explanation.gain)
    structural = best.severity == "error" and best.gain > CLEAR
    if effort:
        gain = max((e.gain for e in explanations if e.kind == effort[0].kind and not e.joints), default=-np.inf)
        # Gravity upside down looks like a reaction but for friction.
        upside_down = best.kind == DIRECTION and best.gain > PREFERRED and effort[0].kind == SIGN
        better = best.kind != LAG and best.gain > max(0.0, gain) + CLEAR
        return [best.finding(source)] if upside_down or better else effort
    if structural:
        return [best.finding(source)]
    if best.severity == "error" and best.gain > LIKELY:
        return [replace(best, severity="warning").finding(source)]
    # A low-pass with a delay shows as both: the likelier.
    lesser = [e for e in explanations if e.severity == "warning"]
    return [e.finding(source) for e in sorted(lesser, key=lambda e: -e.gain)[:1]]


def _inconsistent(equations: TorqueEquations, given: TorqueFit, source: str) -> list[Finding]:
    own = equations.own_rms()
    ratio = np.exp(np.nanmean(np.log(np.hypot(given.rms, equations.floor) / np.hypot(own, equations.floor))))
    left = np.sqrt(np.nansum(given.rms**2) / np.sum(equations.size[equations.judged] ** 2))
    if ratio < INCONSISTENT or left < UNEXPLAINED[0]:
        return []
    return [
        Finding(
            "warning" if left < UNEXPLAINED[1] else "error",
            source,
            f"the torques do not fit the arm of the URDF: {100 * left:.0f} % of them are left, {ratio:.2g} times more "
            "than if each joint had links of its own, and neither signs, order, gravity nor lag mend it",
            "check that URDF, base, tip and recording are of the same robot; springs, wrong torque gains and friction "
            "that grows with load look alike",
            OTHER_ROBOT,
        )
    ]
