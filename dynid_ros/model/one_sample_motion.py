"""The motion of all links of one sample: straight-line Python on floats, written once per robot.

What the torque of a body is linear in, and where its joint frame is in the base frame: with these, regressors are a few
products of small stacked matrices (`regressor_sums`).
"""

from __future__ import annotations

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.one_sample import DIRECTION_DECIMALS, Lines, Term, function_text, variable
from dynid_ros.model.regressor import N_FEATURES

PER_LINK = N_FEATURES + 12
ROTATION, ORIGIN = slice(N_FEATURES, N_FEATURES + 9), slice(N_FEATURES + 9, PER_LINK)

_ZERO = Term(0.0)
_Vector = list[Term]


def motion_source(chain: Chain, gravity: np.ndarray) -> str:
    """Text of a function `motion(q, qd, qdd)` of lists of n floats, which returns 24 n numbers.

    For each link the 12 features of `regressor.WRENCH` in its joint frame, and the rotation (3, 3) and the origin of
    that frame in the base frame.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.

    """
    n = chain.n_joints
    lines = Lines()
    results: list[Term] = []
    omega, alpha = [_ZERO] * 3, [_ZERO] * 3
    # Gravity enters as an acceleration of the base upwards.
    acceleration = [Term(-float(component)) for component in gravity]
    products = [_ZERO] * 6
    axes = [[Term(float(i == k)) for i in range(3)] for k in range(3)]
    origin = [_ZERO] * 3
    for j in range(n):
        transform, prismatic = chain.transforms[j], bool(chain.prismatic[j])
        rotation = transform[:3, :3]
        slide, speed, gain = variable(f"q{j}"), variable(f"v{j}"), variable(f"a{j}")
        arm = [Term(float(component)) for component in transform[:3, 3]]
        if prismatic:
            along = np.round(rotation[:, 2], DIRECTION_DECIMALS)
            arm = [
                lines.sum(f"r{j}{x}", part, Term(float(c)).times(slide))
                for x, part, c in zip("xyz", arm, along, strict=True)
            ]
        origin = [
            lines.sum(f"o{j}{x}", origin[i], *(axes[k][i].times(arm[k]) for k in range(3))) for i, x in enumerate("xyz")
        ]
        acceleration = _carried(lines, f"e{j}", acceleration, alpha, products, arm=arm)
        turn = None if prismatic else (variable(f"c{j}"), variable(f"s{j}"))
        omega, alpha, acceleration = (
            _inward(lines, f"{letter}{j}", rotation, vector, turn)
            for letter, vector in (("w", omega), ("b", alpha), ("d", acceleration))
        )
        if prismatic:
            acceleration = [
                lines.sum(f"f{j}x", acceleration[0], Term(2.0).times(omega[1]).times(speed)),
                lines.sum(f"f{j}y", acceleration[1], Term(-2.0).times(omega[0]).times(speed)),
                lines.sum(f"f{j}z", acceleration[2], gain),
            ]
        else:
            alpha = [
                lines.sum(f"k{j}x", alpha[0], omega[1].times(speed)),
                lines.sum(f"k{j}y", alpha[1], -omega[0].times(speed)),
                lines.sum(f"k{j}z", alpha[2], gain),
            ]
            omega = [*omega[:2], lines.sum(f"h{j}z", omega[2], speed)]
        pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
        products = [lines.sum(f"p{j}{i}{k}", omega[i].times(omega[k])) for i, k in pairs]
        axes = _turned_axes(lines, j, rotation, axes, turn)
        results += [*acceleration, *alpha, *products]
        results += [axes[k][i] for i in range(3) for k in range(3)]
        results += origin
    return function_text("motion", {"q": "q", "v": "qd", "a": "qdd"}, lines, results, n, given="")


def _carried(
    lines: Lines, name: str, acceleration: _Vector, alpha: _Vector, products: _Vector, *, arm: _Vector
) -> _Vector:
    """Acceleration of the point at `arm` of a body that turns."""
    xx, yy, zz, xy, yz, zx = products
    x, y, z = arm
    ax, ay, az = alpha
    return [
        lines.sum(
            f"{name}x",
            *(acceleration[0], -yy.times(x), -zz.times(x)),
            *(xy.times(y), -az.times(y), zx.times(z), ay.times(z)),
        ),
        lines.sum(
            f"{name}y",
            *(acceleration[1], -xx.times(y), -zz.times(y)),
            *(xy.times(x), az.times(x), yz.times(z), -ax.times(z)),
        ),
        lines.sum(
            f"{name}z",
            *(acceleration[2], -xx.times(z), -yy.times(z)),
            *(zx.times(x), -ay.times(x), yz.times(y), ax.times(y)),
        ),
    ]


def _inward(lines: Lines, name: str, rotation: np.ndarray, vector: _Vector, turn: tuple[Term, Term] | None) -> _Vector:
    """Vector in the next joint frame, given in the one before."""
    still = lines.rotated(f"{name}r", rotation.T, vector)
    return still if turn is None else lines.turned(f"{name}t", turn[0], -turn[1], still)


def _turned_axes(
    lines: Lines, j: int, rotation: np.ndarray, axes: list[_Vector], turn: tuple[Term, Term] | None
) -> list[_Vector]:
    """Axes in the base frame of the next joint frame, given those of the one before."""
    factors = np.round(rotation, DIRECTION_DECIMALS)
    still = [
        [
            lines.sum(f"n{j}{k}{x}", *(Term(float(factors[m, k])).times(axes[m][i]) for m in range(3)))
            for i, x in enumerate("xyz")
        ]
        for k in range(3)
    ]
    if turn is None:
        return still
    cos, sin = turn
    first = [lines.sum(f"x{j}{x}", cos.times(still[0][i]), sin.times(still[1][i])) for i, x in enumerate("xyz")]
    second = [lines.sum(f"y{j}{x}", cos.times(still[1][i]), -sin.times(still[0][i])) for i, x in enumerate("xyz")]
    return [first, second, still[2]]
