"""Signs and order of the joints' positions and torques, judged by how well each explains the torques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.effort_check import SIGN
from dynid_ros.recording.explanation import LIKELY, Explanation
from dynid_ros.recording.finding import Kind
from dynid_ros.recording.gravity_sign import GravitySigns
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.torque_fit import Terms, TorqueEquations, TorqueFit, TorqueModel

SWAP: Final = "swapped joints"
RATIO: Final = "position ratio"
RATIOS = {2.0: "half", 0.5: "twice"}
"""By which a position may have to be multiplied, and what it is then: a wrong gear, or counts of one edge in two."""
SIGN_OF = {
    "torque": ("its torque has the wrong sign", "turn it with effort_convention motor_current and a gain of -1"),
    "position": ("its position has the wrong sign", "turn the joint's axis in the URDF, or its sign in the driver"),
    "both": (
        "position and torque both have the wrong sign",
        "turn the joint's axis in the URDF, or its direction in the driver",
    ),
}
WITHOUT_GRAVITY = " (judged by inertia and friction: gravity hardly shows in {})"
"""Said of a torque whose sign gravity does not tell, as of an upright axis."""
SWAP_OF = {
    "torque": ("their torques are swapped", "the driver fills effort in another order than name: mend it"),
    "position": ("their positions are swapped", "the driver fills position in another order than name: mend it"),
    "both": (
        "position and torque of the one are those of the other",
        "swap their names in the driver or in joint_names",
    ),
}


def order_explanations(
    model: TorqueModel, samples: MotionSamples, equations: TorqueEquations, given: TorqueFit, gravity: GravitySigns
) -> Iterator[Explanation]:
    """What wrong signs and swapped joints would explain: of torque, of position and of both.

    Only joints that move enough take part: of the others neither order nor sign can be told. A sign that gravity
    contradicts is no explanation: effort that is sampled at one end of the period has friction of the wrong sign.
    """
    robot, moving = model.robot, [int(j) for j in equations.judged]
    turned = -np.ones(robot.n_joints)
    if not gravity.oppose(turned, np.ones(robot.n_joints)):
        yield Explanation(
            SIGN,
            given.misfit - equations.fit(signs=turned).misfit,
            "all torques have the wrong sign" + WITHOUT_GRAVITY.format("them") * (not np.any(gravity.as_recorded)),
            "the driver reports the reaction: use effort_convention motor_current with gains of -1",
        )
    yield from _ratios(model, samples, moving, given)
    held: tuple[TorqueEquations, TorqueFit] | None = None
    for choice in _choices(robot.n_joints, moving):
        changed = model.terms(samples, choice.order, choice.signs)
        gains = _gains(equations, TorqueEquations(changed, samples.torque, robot.chain.prismatic), choice, given)
        if choice.kind == SWAP and max(gains.values()) > LIKELY:
            # Where one joint moves at a time, the torque of one that rests is the easier to explain; but then it must
            # also do without the friction of the one that moves.
            if held is None:
                every = _every_sample(model.terms(samples), samples.alive, samples.torque, robot.chain.prismatic)
                held = every, every.fit()
            every, fit = held
            alive = samples.alive[:, choice.order]
            others = _every_sample(changed, alive, samples.torque, robot.chain.prismatic)
            with_rest = _gains(every, others, choice, fit)
            gains = {channel: gain if with_rest[channel] > 0.0 else min(gain, 0.0) for channel, gain in gains.items()}
        names = tuple(robot.joint_names[j] for j in choice.joints)
        for channel, gain in gains.items():
            message, fix = choice.texts[channel]
            if choice.kind == SIGN:
                if _opposed(gravity, choice.signs, channel):
                    continue
                if channel == "torque" and not gravity.as_recorded[choice.joints[0]]:
                    message += WITHOUT_GRAVITY.format("it")
            yield Explanation(choice.kind, gain, message, fix, names)


def _opposed(gravity: GravitySigns, signs: NDArray, channel: str) -> bool:
    """Whether gravity contradicts these signs (n,) of torques, positions or both."""
    same = np.ones(len(signs))
    return gravity.oppose(same if channel == "position" else signs, same if channel == "torque" else signs)


def _every_sample(terms: Terms, alive: NDArray, torque: NDArray, prismatic: NDArray) -> TorqueEquations:
    """Equations of the joints that rest, too, as far as their torque is alive (M, n)."""
    return TorqueEquations(replace(terms, moving=alive), torque, prismatic)


def _gains(
    equations: TorqueEquations, positions: TorqueEquations, choice: _Choice, given: TorqueFit
) -> dict[str, float]:
    """Of torques, of positions and of both in another order or with other signs."""
    fits = {
        "torque": equations.fit(choice.order, choice.signs),
        "position": positions.fit(),
        "both": positions.fit(choice.order, choice.signs),
    }
    return {channel: given.misfit - fit.misfit for channel, fit in fits.items()}


def _ratios(
    model: TorqueModel, samples: MotionSamples, moving: Sequence[int], given: TorqueFit
) -> Iterator[Explanation]:
    robot = model.robot
    for j in moving:
        for factor, said in RATIOS.items():
            terms = model.terms(samples, signs=np.where(np.arange(robot.n_joints) == j, factor, 1.0))
            yield Explanation(
                RATIO,
                given.misfit - TorqueEquations(terms, samples.torque, robot.chain.prismatic).fit().misfit,
                f"its position is {said} of what the torques show",
                "look at the gear ratio and the counts per turn in the driver; the angle must be that behind the gear",
                (robot.joint_names[j],),
            )


class _Choice(NamedTuple):
    kind: Kind
    texts: Mapping[str, tuple[str, str]]
    joints: tuple[int, ...]
    order: NDArray
    signs: NDArray


def _choices(n: int, moving: Sequence[int]) -> Iterator[_Choice]:
    for j in moving:
        yield _Choice(SIGN, SIGN_OF, (j,), np.arange(n), np.where(np.arange(n) == j, -1.0, 1.0))
    for i, j in combinations(moving, 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        yield _Choice(SWAP, SWAP_OF, (i, j), order, np.ones(n))
