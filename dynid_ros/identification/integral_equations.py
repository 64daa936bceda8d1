"""Equations of motion without accelerations, integrated over windows (Atkeson, An and Hollerbach 1986, sec. 4.1.2)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.equations import EquationBlock, LinkEquations
from dynid_ros.model import FrictionModel, RobotModel
from dynid_ros.model.arrays import BLOCK, joint_samples
from dynid_ros.model.friction_terms import Memory
from dynid_ros.model.link_columns import LinkColumns

# The paper integrates the equations of a load on a wrist sensor (eqs. 25 to 27). Those of joint torques are
#     τ = d/dt (M q̇) − Ṁ q̇ + c(q, q̇) + g(q),
#     ∫ w τ dt = [w M q̇] − ∫ ẇ M q̇ dt + ∫ w (c + g − Ṁ q̇) dt
# for any weight w(t) of a window. With w = 1 this is the paper's form, which takes the momenta at the two ends, with
# all the noise of two velocities. A weight that is zero at the ends averages the momentum instead (Shinbrot 1957,
# modulating functions).
# All terms are linear in the parameters. Their columns follow from the torque regressor Y(q, q̇, q̈): M v from
# Y(q, 0, v) without gravity, c + g from Y(q, q̇, 0), and Ṁ q̇ from the derivative of M(q) v along q̇.


DIFFERENCE_STEP = 1e-5
"""Largest displacement of a joint in the central difference that gives Ṁ q̇, rad or m. Relative errors are about
DIFFERENCE_STEP² = 1e-10 by truncation, and 1e-16 / DIFFERENCE_STEP = 1e-11 by rounding."""


def integral_blocks(
    robot: RobotModel,
    friction: FrictionModel | None,
    step: float,
    motion: tuple[ArrayLike, ArrayLike],
    torque: ArrayLike,
    *,
    window: float,
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield regressors (W, n, p) and impulses (W, n), in N m s, of W windows at a time.

    Windows are Hann's, sin²(π t / window), and overlap by half, so that all samples have equal weight. The noise of
    neighbouring windows then has a correlation of 1/6. A window attenuates periods shorter than about its length, so
    choose it well below the shortest period of the motion.

    Integrals follow Simpson's rule. Their relative error is about (ω step)⁴ / 180 for motion at the angular frequency
    ω; a jump of Coulomb friction is located to half a step.

    Args:
        robot: the arm.
        friction: friction of its joints, whose columns come last; integration turns rotor inertia into a momentum.
        step: time between samples, s.
        motion: q and its derivative qd, (N, n) each, of one uniformly sampled segment without gaps.
        torque: (N, n) torques, N m or N.
        window: length of a window, s; at least two steps.

    Raises:
        IdentificationError: the step or the window is impossible, or friction depends on the load.
        ModelError: an array has another shape.
    """
    q, qd, torque = joint_samples(robot.joint_names, q=motion[0], qd=motion[1], torque=torque)
    if not (np.isfinite(step) and step > 0):
        raise IdentificationError(f"Integral form: the step is {step:g} s; expected a positive number")
    size = round(window / step) + 1
    if not 3 <= size <= len(q):
        raise IdentificationError(
            f"Integral form: a window of {window:g} s is impossible with {len(q)} samples every {step:g} s; choose one "
            f"from {2 * step:g} s to {(len(q) - 1) * step:g} s"
        )
    of_momentum, of_rest, hop = window_weights(size, step)
    weightless = RobotModel(robot.chain, gravity=np.zeros(3))
    starts = np.arange(0, len(q) - size + 1, hop)
    together = max(1, BLOCK // hop)
    if friction is not None and friction.needs_load:
        raise IdentificationError("Integral form: terms 'load' need accelerations, which it has not; leave them out")
    memory = {} if friction is None else friction.memory(q)
    for first in range(0, len(starts), together):
        group = starts[first : first + together]
        part = slice(group[0], group[-1] + size)
        inside = group[:, None] - group[0] + np.arange(size)
        before = {key: direction[part] for key, direction in memory.items()}
        momentum = _momentum(weightless, friction, q[part], qd[part], memory=before)
        rest = _rest(robot, weightless, friction, q[part], qd[part], memory=before)
        regressor = np.einsum("l,wlnp->wnp", of_momentum, momentum[inside])
        regressor += np.einsum("l,wlnp->wnp", of_rest, rest[inside])
        yield regressor, np.einsum("l,wln->wn", of_rest, torque[part][inside])


def window_weights(size: int, step: float) -> tuple[NDArray, NDArray, int]:
    """Return weights (size,) of the momentum and of all other terms in the integrals, and the spacing of windows.

    Args:
        size: number of samples of a window, including both ends.
        step: time between samples, s.

    Returns:
        Weights −ẇ dt of the momentum, weights w dt of the other terms, and the number of samples to the next window.
    """
    from scipy.integrate import simpson  # noqa: PLC0415  # takes 0.05 s, and few identifications need it

    integral = simpson(np.eye(size), dx=step)
    phase = np.pi * np.arange(size) / (size - 1)
    slope = np.pi / ((size - 1) * step) * np.sin(2 * phase)
    return -slope * integral, np.sin(phase) ** 2 * integral, (size - 1) // 2


def _momentum(
    weightless: RobotModel, friction: FrictionModel | None, q: NDArray, qd: NDArray, *, memory: Memory
) -> NDArray:
    """Return the regressor (N, n, p) of the momentum M q̇ and of that of the rotors."""
    still = np.zeros_like(qd)
    links = weightless.torque_regressor(q, still, qd)
    if friction is None:
        return links
    moved, stood = (friction.regressor(still, rate, q, memory=memory) for rate in (qd, still))
    return np.concatenate([links, moved - stood], axis=-1)


def _rest(
    robot: RobotModel,
    weightless: RobotModel,
    friction: FrictionModel | None,
    q: NDArray,
    qd: NDArray,
    *,
    memory: Memory,
) -> NDArray:
    """Return the regressor (N, n, p) of c + g − Ṁ q̇ and of friction."""
    still = np.zeros_like(qd)
    time = DIFFERENCE_STEP / np.maximum(np.max(np.abs(qd), axis=1, keepdims=True), DIFFERENCE_STEP)
    ahead, behind = (weightless.torque_regressor(q + shift, still, qd) for shift in (time * qd, -time * qd))
    links = robot.torque_regressor(q, qd, still) - (ahead - behind) / (2 * time[..., None])
    if friction is None:
        return links
    return np.concatenate([links, friction.regressor(qd, still, q, memory=memory)], axis=-1)


WINDOW_PERIODS = 1.0
"""Length of a window in periods of the cutoff frequency, at which it attenuates about as the low-pass does."""
MIN_WINDOW_STEPS = 14
"""Smallest length of a window in steps: Simpson's rule has an error of 2 % of the torque with 7, of 0.01 % with 14."""


class IntegralEquations(LinkEquations[LinkColumns]):
    """Equations of motion with means over Hann windows in place of the low-pass."""

    @property
    def noise_factor(self) -> float:
        """Factor by which overlapping windows raise the effective noise: their correlation 1/6 twice adds 1/3."""
        return float(np.sqrt(4 / 3))

    def blocks(self, columns: LinkColumns) -> Iterator[EquationBlock]:
        """Yield all equations in blocks, so that memory does not grow with their number."""
        friction = columns.friction(columns.first)
        for owner, part in zip(self._owner, self.segments, strict=True):
            step = 1 / part.rate
            # Simpson's rule needs an even number of steps.
            length = max(2 * round(WINDOW_PERIODS * part.rate / self.signals.cutoff / 2), MIN_WINDOW_STEPS)
            if length + 1 > len(part.time):
                continue
            done = 0
            window = length * step
            motion = part.motion.position, part.motion.velocity
            for regressor, impulse in integral_blocks(
                columns.robot, friction, step, motion, part.torque, window=window
            ):
                # The middle of each window, as windows overlap by half.
                middle = np.minimum((done + np.arange(len(impulse)) + 1) * (length // 2), len(part.time) - 1)
                done += len(impulse)
                yield EquationBlock(
                    int(owner),
                    part.time[middle],
                    self._speed(part, middle),
                    self._kinds.of(*self._state(part, middle)),
                    columns.rows_of(regressor / (window / 2)),
                    impulse / (window / 2),
                )
