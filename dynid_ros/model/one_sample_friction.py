"""The terms of friction of one sample: straight-line Python, written once per friction model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dynid_ros.model.friction import FrictionModel, JointFriction


class FrictionTerms:
    """What the regressor of friction holds.

    Args:
        friction: its terms.
        n_joints: n.

    Attributes:
        of: function from velocities and accelerations, n floats each, to a tuple of the p entries that are not zero.
        places: (p, n, k) of ones and zeros, where these are in the regressor: the sum of terms times places.

    Raises:
        ModelError: the model is for another number of joints.

    """

    def __init__(self, friction: FrictionModel, n_joints: int):
        entries: list[tuple[int, int, str]] = []
        lines: list[str] = []
        column = 0
        joints = friction.of(n_joints)
        for i, joint in enumerate(joints):
            lines.append(f"d{i} = {_direction(joint, f'v{i}')}")
            for term in joint.terms:
                entries.append((i, column, _term(term, joint, i)))
                column += 1
        for i, j in friction.coupled:
            for letter in "av":
                entries += [(i, column, f"{letter}{j}"), (j, column, f"{letter}{i}")]
                column += 1
            entries += [(k, column, _direction(joints[i], f"(v{i} + v{j})")) for k in (i, j)]
            column += 1
        unpack = ["".join(f"{letter}{i}, " for i in range(n_joints)) + f"= {name}" for letter, name in _ARGUMENTS]
        body = "\n    ".join([*unpack, *lines, f"return ({''.join(f'{text}, ' for *_, text in entries)})"])
        namespace: dict = {"exp": math.exp, "tanh": math.tanh}
        # The text holds operators, names made here and floats, nothing that was read from anywhere.
        exec(f"def terms(qd, qdd, exp=exp, tanh=tanh):\n    {body}", namespace)
        self.of: Callable[[Sequence[float], Sequence[float]], tuple[float, ...]] = namespace["terms"]
        self.places = np.zeros((len(entries), n_joints, column))
        for k, (row, place, _) in enumerate(entries):
            self.places[k, row, place] = 1.0


_ARGUMENTS = (("v", "qd"), ("a", "qdd"))


def _direction(joint: JointFriction, velocity: str) -> str:
    text = f"tanh({velocity} / {joint.smoothing!r})" if joint.smoothing else f"({velocity} > 0.0) - ({velocity} < 0.0)"
    if joint.dead_zone:
        text = f"0.0 if abs({velocity}) <= {joint.dead_zone!r} else {text}"
    # NaN, which no comparison knows, stays NaN.
    return f"(({text}) + 0.0 * {velocity})"


def _term(term: str, joint: JointFriction, i: int) -> str:
    value = {"coulomb": f"d{i}", "viscous": f"v{i}", "offset": "1.0", "rotor_inertia": f"a{i}"}
    if term == "stribeck":
        return f"d{i} * exp(-((v{i} / {joint.stribeck_velocity!r}) * (v{i} / {joint.stribeck_velocity!r})))"
    name, _, side = term.rpartition("_")
    if side in ("positive", "negative"):
        return f"{'max' if side == 'positive' else 'min'}({value[name]}, 0.0)"
    return value[term]
