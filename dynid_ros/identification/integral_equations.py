"""Equations of motion integrated over windows, which need no accelerations (Atkeson, An and Hollerbach 1986)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.equations import EquationBlock, LinkEquations
from dynid_ros.model import FrictionModel, RobotModel
from dynid_ros.model.arrays import BLOCK, joint_samples
from dynid_ros.model.friction_terms import Memory
from dynid_ros.model.link_columns import LinkColumns

# Torques integrated over windows, which need no acceleration (Atkeson, An and Hollerbach 1986, section 4.1.2).
# The paper integrates the equations of a load on a wrist sensor (eqs. 25 to 27); those of joint torques are
# τ = d/dt (M q̇) − Ṁ q̇ + c(q, q̇) + g(q),
# ∫ w τ dt = [w M q̇] − ∫ ẇ M q̇ dt + ∫ w (c + g − Ṁ q̇) dt
# for any weight w(t) of a window. With w = 1 this is the paper's form: the momenta at the two ends count, with all
# the noise of two velocities. A weight that is zero at the ends averages the momentum instead (Shinbrot 1957,
# modulating functions).
# All terms are linear in the parameters, and columns of the torque regressor Y: M v of Y(q, 0, v) without gravity, c
# + g of Y(q, q̇, 0), and Ṁ q̇ of the derivative of M(q) v along q̇.


DIFFERENCE_STEP = 1e-5
"""Largest displacement of a joint in the central difference that gives Ṁ q̇, rad or m. Truncation leaves some SHIFT²
of the term and rounding 1e-16 / DIFFERENCE_STEP: 1e-10 and 1e-11."""


def integral_blocks(
    robot: RobotModel,
    friction: FrictionModel | None,
    step: float,
    motion: tuple[ArrayLike, ArrayLike],
    torque: ArrayLike,
    *,
    window: float,
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield regressors (W, n, p) and impulses (W, n), in N m s, of some windows at a time.

    Windows are Hann's, sin²(π t / window), and overlap by half, so that all samples count alike. The noise of
    neighbouring windows then has a correlation of 1/6. A window damps periods shorter than about its length, so choose
    it well below the shortest period of the motion.

    Integrals are Simpson's. For motion at ω their error is about (ω step)⁴ / 180, at a jump of Coulomb friction half a
    step.

    Args:
        robot: the arm.
        friction: friction of its joints, whose columns are last. Terms of acceleration become terms of velocity.
        step: time between samples, s.
        motion: q and its derivative qd, (N, n) each, of one uniformly sampled segment without gaps.
        torque: (N, n).
        window: length, s; at least two steps.

    Raises:
        IdentificationError: an impossible step or window.
        ModelError: arrays of other shapes.
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
    """Factors (size,) of the momentum and of all else in the sum for the integral, and samples to the next window.

    Args:
        size: samples of a window, both ends counted.
        step: between them, s.
    """
    from scipy.integrate import simpson  # noqa: PLC0415  # takes 0.05 s, and few identifications need it

    integral = simpson(np.eye(size), dx=step)
    phase = np.pi * np.arange(size) / (size - 1)
    slope = np.pi / ((size - 1) * step) * np.sin(2 * phase)
    return -slope * integral, np.sin(phase) ** 2 * integral, (size - 1) // 2


def _momentum(
    weightless: RobotModel, friction: FrictionModel | None, q: NDArray, qd: NDArray, *, memory: Memory
) -> NDArray:
    """Return the regressor (N, n, p) of M q̇ and of the momentum of rotors."""
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
    """Regressor (N, n, p) of c + g − Ṁ q̇ and of friction."""
    still = np.zeros_like(qd)
    time = DIFFERENCE_STEP / np.maximum(np.max(np.abs(qd), axis=1, keepdims=True), DIFFERENCE_STEP)
    ahead, behind = (weightless.torque_regressor(q + shift, still, qd) for shift in (time * qd, -time * qd))
    links = robot.torque_regressor(q, qd, still) - (ahead - behind) / (2 * time[..., None])
    if friction is None:
        return links
    return np.concatenate([links, friction.regressor(qd, still, q, memory=memory)], axis=-1)


WINDOW_PERIODS = 1.0
"""Length of a window in periods of the cut-off: Hann's window of that length damps about as the low-pass does."""
MIN_WINDOW_STEPS = 14
"""Least samples from end to end of a window: with 7, Simpson's rule errs by 2 % of the torque, with 14 by 0.01 %."""


class IntegralEquations(LinkEquations[LinkColumns]):
    """Equations of motion with means over Hann windows in place of the low-pass."""

    @property
    def noise_factor(self) -> float:
        """Neighbouring windows share samples: means w have the variance ∫w², by half a window 4/3 of it."""
        return float(np.sqrt(4 / 3))

    def blocks(self, columns: LinkColumns) -> Iterator[EquationBlock]:
        """Yield all equations, in flat memory."""
        friction = columns.friction(columns.first)
        for owner, part in zip(self._owner, self.segments, strict=True):
            step = 1 / part.rate
            # Simpson's rule is best for even numbers.
            length = max(2 * round(WINDOW_PERIODS * part.rate / self.signals.cutoff / 2), MIN_WINDOW_STEPS)
            if length + 1 > len(part.time):
                continue
            done = 0
            window = length * step
            motion = part.motion.position, part.motion.velocity
            for regressor, impulse in integral_blocks(
                columns.robot, friction, step, motion, part.torque, window=window
            ):
                # Hann's windows overlap by half.
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
