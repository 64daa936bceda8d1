"""Wrong signs, exchanged joints and wrong gear ratios: which arrangement of the channels fits the torques best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.effort_convention import GravitySigns
from dynid_ros.checks.finding import MIN_WARNING_GAIN, SIGN, SWAP, Explanation
from dynid_ros.checks.torque_model import TorqueProblem, TorqueTerms, with_presliding

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
            problem.fit.misfit - problem.equations.fit(signs=turned).misfit,
            "all torques have the wrong sign" + remark,
            "the driver reports the reaction: use effort_convention motor_current with gains of -1",
        )
    arrangements = _Arrangements(problem)
    for choice in _choices(robot.n_joints, moving):
        gains = arrangements.gains(choice)
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

    def gains(self, choice: _Choice) -> dict[str, float]:
        """Return the gain of a choice for each kind of channel that it may concern."""
        problem = self._problem
        changed = problem.model.terms(problem.samples, choice.order, choice.factors)
        gains = _gains(problem.terms, changed, choice)
        if max(gains.values()) <= MIN_WARNING_GAIN:
            return gains
        presliding = with_presliding(changed, problem.samples, choice.order, choice.factors)
        remaining = _gains(problem.presliding.terms, presliding, choice)
        gains = {channel: min(gain, remaining[channel]) for channel, gain in gains.items()}
        if choice.kind == SWAP:
            everywhere = replace(changed, moving=problem.samples.alive[:, choice.order])
            at_rest = _gains(self._every_sample, everywhere, choice)
            gains = {channel: gain if at_rest[channel] > 0.0 else min(gain, 0.0) for channel, gain in gains.items()}
        return gains

    @cached_property
    def _every_sample(self) -> TorqueTerms:
        """Terms with the samples at standstill, as far as the torques are alive."""
        return replace(self._problem.terms, moving=self._problem.samples.alive)


def _gains(given: TorqueTerms, changed: TorqueTerms, choice: _Choice) -> dict[str, float]:
    """Return the gains of changing torques, positions and both, over the terms as recorded.

    Args:
        given: terms with the positions as recorded.
        changed: terms with the positions of the choice.
        choice: arrangement of the channels.
    """
    fits = {"position": changed.fit}
    if "torque" in choice.texts:
        fits["torque"] = given.equations.fit(choice.order, choice.factors)
    if "both" in choice.texts:
        fits["both"] = changed.equations.fit(choice.order, choice.factors)
    return {channel: given.fit.misfit - fits[channel].misfit for channel in choice.texts}
