"""Weighted sums of torque regressors over a few samples, as filters need them, in a control loop's time.

A torque regressor is bilinear in the joints' unit twists and the links' wrenches of unit parameters (Atkeson, An and
Hollerbach 1986, eqs 8 and 15). So straight-line scalar code gives what these are made of, for each sample as it comes,
and for each sum a handful of products of stacked matrices does the rest for all samples and links at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.generated_code import (
    DIRECTION_DECIMALS,
    Lines,
    Term,
    compiled,
    function_text,
    link_numbers,
    variable,
)
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.regressor import N_FEATURES, WRENCH
from dynid_ros.model.robot import RobotModel

# The motion of all links of one sample: straight-line Python on floats, written once per robot.
# What the torque of a body is linear in, and where its joint frame is in the base frame: with these, regressors are a
# few products of small stacked matrices (`regressor_sums`).


PER_LINK = N_FEATURES + 12
ROTATION, ORIGIN = slice(N_FEATURES, N_FEATURES + 9), slice(N_FEATURES + 9, PER_LINK)

_ZERO = Term(0.0)
_Vector = list[Term]


def motion_source(chain: Chain, gravity: np.ndarray) -> str:
    """Text of a function `motion(q, qd, qdd)` of lists of n floats, which returns 24 m numbers.

    For each link the 12 features of `regressor.WRENCH` in its joint frame, and the rotation (3, 3) and the origin of
    that frame in the base frame.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
    """
    lines = Lines()
    results = [term for link in motion_lines(lines, chain, gravity) for term in link]
    return function_text("motion", {"q": "q", "v": "qd", "a": "qdd"}, lines, results, chain.n_joints, given="")


def motion_lines(lines: Lines, chain: Chain, gravity: np.ndarray, *, velocities: bool = False) -> list[_Vector]:
    """Add the lines of `motion_source`, of joints at qi, vi, ai, si and ci; return the 24 terms of each link.

    With `velocities`, vi in place of ai of an arm at rest: what were accelerations are the links' velocities, which
    move from frame to frame as these do.
    """
    numbers = link_numbers(lines, chain)
    results: list[_Vector] = []
    # Gravity enters as an acceleration of the base upwards.
    up = [Term(-float(component)) for component in gravity]
    still = [[Term(float(i == k)) for i in range(3)] for k in range(3)]
    base = [_ZERO] * 3, [_ZERO] * 3, up, [_ZERO] * 6, still, [_ZERO] * 3
    moved = [base] * (chain.n_links + 1)  # the last is the base, of index -1
    for j, parent in enumerate(chain.parents):
        omega, alpha, acceleration, products, axes, origin = moved[parent]
        transform, prismatic = chain.transforms[j], bool(chain.slides[j])
        rotation = transform[:3, :3]
        slide, speed, gain = (variable(f"{letter}{numbers[j]}") for letter in "qva")
        if velocities:
            speed, gain = _ZERO, speed
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
        turn = None if prismatic else (variable(f"c{numbers[j]}"), variable(f"s{numbers[j]}"))
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
        moved[j] = omega, alpha, acceleration, products, axes, origin
        placement = [*(axes[k][i] for i in range(3) for k in range(3)), *origin]
        results.append([*acceleration, *alpha, *products, *placement])
    return results


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


_Floats = Sequence[float]
_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


class RegressorSums:
    """Sums of regressors over samples.

    Args:
        robot: the arm.

    Attributes:
        features: function from q, qd and qdd, n floats each, to a tuple of what the sums need of one sample.
        size: length of that tuple.
    """

    def __init__(self, robot: RobotModel):
        chain = robot.chain
        n = chain.n_links
        self.size = PER_LINK * n
        source = motion_source(chain, robot.gravity)
        self.features: Callable[[_Floats, _Floats, _Floats], tuple[float, ...]] = compiled(source, "motion", tuple)
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        maps = np.einsum("lkp,pwf->lfwk", about_joint, WRENCH)
        self._wrenches = np.ascontiguousarray(maps.reshape(n, N_FEATURES, 6 * PARAMETERS_PER_LINK))
        # Where the entries of transforms [R 0; p x R, R] and of twists are among features, p x R and zero.
        place = np.arange(self.size + 9 * n + 1)
        links = place[: self.size].reshape(n, PER_LINK)
        rotations, levers = links[:, ROTATION].reshape(n, 3, 3), place[self.size : -1].reshape(n, 3, 3)
        upper = np.concatenate([rotations, np.full((n, 3, 3), place[-1])], axis=2)
        transforms = np.concatenate([upper, np.concatenate([levers, rotations], axis=2)], axis=1)
        self._transforms = transforms.transpose(1, 0, 2).ravel()
        # The twist is that of z, linear part first.
        axes = transforms[range(n), :, np.where(chain.slides, 5, 2)]
        self._twists = np.roll(axes, 3, axis=1).ravel()
        origins = np.broadcast_to(links[:, ORIGIN, None], (n, 3, 3))
        self._products = [
            (origins[:, one].ravel(), rotations[:, other].ravel()) for one, other in ((_NEXT, _LAST), (_LAST, _NEXT))
        ]
        self._acts = chain.moves[:, :, None].astype(float)
        self._chain = chain

    def __call__(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Matrices (k, n, 10 m) from the parameters about the link frames to sums of torques.

        Args:
            features: (N, size) of the samples.
            weights: (k, N) of the samples in each sum.
        """
        (sums, samples), n = weights.shape, len(self._acts)
        links = features.reshape(samples, n, PER_LINK)
        (p, r), (other_p, other_r) = self._products
        levers = features.take(p, 1) * features.take(r, 1) - features.take(other_p, 1) * features.take(other_r, 1)
        entries = np.concatenate([features, levers, np.zeros((samples, 1))], axis=1)
        # Forces and moments about the base's origin, of those in joint frames.
        transforms = entries.take(self._transforms, 1).reshape(samples, 6, 6 * n)
        twists = entries.take(self._twists, 1).reshape(samples, n, 6)
        twists = (twists @ transforms).reshape(samples, n, n, 6) * self._acts
        wrenches = (links[..., :N_FEATURES].transpose(1, 0, 2) @ self._wrenches).reshape(n, 6 * samples, -1)
        weighted = weights[:, None, :, None] * twists.transpose(2, 1, 0, 3)[:, None]
        matrices = weighted.reshape(n, sums * n, 6 * samples) @ wrenches
        of_links = matrices.reshape(n, sums, n, -1).transpose(2, 1, 0, 3).reshape(n, sums, -1)
        return self._chain.of_joints(of_links).transpose(1, 0, 2)
