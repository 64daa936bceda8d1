"""Equations A x = b of samples as they arrive, where b is the torque without its known part.

A torque regressor is bilinear in the joints' unit twists and the wrenches of unit parameters on the links (Atkeson, An
and Hollerbach 1986, eqs 8 and 15). Generated scalar code without loops computes the factors of this product for each
sample. A few products of stacked matrices then give each sum over all samples and links at once.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat, starmap

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.presliding import STANDSTILL_SPEED, Presliding, stiction
from dynid_ros.identified.links import KnownArm
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.base_parameters import LINK_PARAMETERS, BaseParameters
from dynid_ros.model.friction import FrictionModel, JointFriction, OneSampleFriction
from dynid_ros.model.friction_terms import SlidingMemory
from dynid_ros.model.generated_code import Lines, compiled, constants, function_text
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.recursion import frame_lines, motion_lines
from dynid_ros.model.regressor import N_FEATURES, WRENCH_TENSOR

PER_LINK = N_FEATURES + 12
"""Numbers per link and sample: features of the wrench, rotation and origin of the joint frame."""
ROTATION = slice(N_FEATURES, N_FEATURES + 9)
ORIGIN = slice(N_FEATURES + 9, PER_LINK)
NEXT_AXES = [1, 2, 0]
LAST_AXES = [2, 0, 1]


class RegressorSums:
    """Weighted sums of torque regressors over samples.

    Attributes:
        features: function from q, qd and qdd, n floats each, to a tuple of the factors of one sample.
        size: length of that tuple.
    """

    def __init__(self, robot: RobotModel):
        chain = robot.chain
        n = chain.n_links
        self.size = PER_LINK * n
        self.features: Callable[[Sequence[float], Sequence[float], Sequence[float]], tuple[float, ...]]
        self.features = compiled(features_source(robot), "features", tuple)
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        maps = np.einsum("lkp,pwf->lfwk", about_joint, WRENCH_TENSOR)
        self._wrenches = np.ascontiguousarray(maps.reshape(n, N_FEATURES, 6 * PARAMETERS_PER_LINK))
        # Indices of the entries of the transforms [R 0; p × R, R] and of the twists in the array [features, p × R, 0].
        place = np.arange(self.size + 9 * n + 1)
        links = place[: self.size].reshape(n, PER_LINK)
        rotations = links[:, ROTATION].reshape(n, 3, 3)
        levers = place[self.size : -1].reshape(n, 3, 3)
        upper = np.concatenate([rotations, np.full((n, 3, 3), place[-1])], axis=2)
        transforms = np.concatenate([upper, np.concatenate([levers, rotations], axis=2)], axis=1)
        self._transforms = transforms.transpose(1, 0, 2).ravel()
        # The unit twist of a joint is that of its z axis; its linear part comes first.
        axes = transforms[range(n), :, np.where(chain.slides, 5, 2)]
        self._twists = np.roll(axes, 3, axis=1).ravel()
        origins = np.broadcast_to(links[:, ORIGIN, None], (n, 3, 3))
        self._products = [
            (origins[:, one].ravel(), rotations[:, other].ravel())
            for one, other in ((NEXT_AXES, LAST_AXES), (LAST_AXES, NEXT_AXES))
        ]
        self._acts = chain.moves[:, :, None].astype(float)
        self._chain = chain

    def __call__(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sums (k, n, 10 m) of the regressors of the parameters about the link frames.

        Args:
            features: (N, size) factors of the samples.
            weights: (k, N) weights of the samples in each sum.
        """
        (sums, samples), n = weights.shape, len(self._acts)
        links = features.reshape(samples, n, PER_LINK)
        (p, r), (other_p, other_r) = self._products
        levers = features.take(p, 1) * features.take(r, 1) - features.take(other_p, 1) * features.take(other_r, 1)
        entries = np.concatenate([features, levers, np.zeros((samples, 1))], axis=1)
        # The transforms map wrenches in joint frames to forces and moments about the origin of the base.
        transforms = entries.take(self._transforms, 1).reshape(samples, 6, 6 * n)
        twists = entries.take(self._twists, 1).reshape(samples, n, 6)
        twists = (twists @ transforms).reshape(samples, n, n, 6) * self._acts
        wrenches = (links[..., :N_FEATURES].transpose(1, 0, 2) @ self._wrenches).reshape(n, 6 * samples, -1)
        weighted = weights[:, None, :, None] * twists.transpose(2, 1, 0, 3)[:, None]
        matrices = weighted.reshape(n, sums * n, 6 * samples) @ wrenches
        of_links = matrices.reshape(n, sums, n, -1).transpose(2, 1, 0, 3).reshape(n, sums, -1)
        return self._chain.of_joints(of_links).transpose(1, 0, 2)


def features_source(robot: RobotModel) -> str:
    """Return the source text of a function `features(q, qd, qdd)` of lists of n floats, which returns 24 m floats.

    They are for each of m links the 12 features of `regressor.WRENCH_TENSOR` in its joint frame, and the rotation
    (3, 3) and the origin of that frame in the base frame.
    """
    lines = Lines()
    motions = motion_lines(lines, robot.chain, constants(robot.gravity))
    results = []
    for motion, (axes, origin) in zip(motions, frame_lines(lines, robot.chain, motions), strict=True):
        results += [*motion.acceleration, *motion.angular_acceleration, *motion.products]
        results += [*(axis[k] for k in range(3) for axis in axes), *origin]
    return function_text("features", {"q": "q", "v": "qd", "a": "qdd"}, lines, results, robot.n_joints, given="")


# One causal low-pass for all columns of an equation, then decimation. An equation A x = b that holds at each instant
# for constant x holds for its filtered columns too, whatever the lag of the filter, from the first sample on if all
# columns start from zero. So the noise of accelerations, which is largest at high frequencies, is removed before it can
# bias the estimate, and no signal needs to be shifted in time. The filter is linear: its output is a function of its
# two earlier states and of weighted sums of the samples since. So columns are computed for these sums, not for each
# sample, which is cheaper.


CORNER_OF_RATE = 0.1024
"""Product of time constant and cutoff frequency of two equal lags in series: sqrt(sqrt(2) − 1) / (2 π)."""

SPACING_RATIO = 2.0
"""Time between equations, in time constants: closer equations are redundant, wider spacing loses information."""


class RowFilter:
    """Two equal first-order lags in series, exact for any spacing of samples.

    Args:
        cutoff: frequency at which half of the power passes, Hz.

    Attributes:
        time_constant: time constant of each lag, s.
        spacing: time between equations that are used, s.
    """

    def __init__(self, cutoff: float):
        self.time_constant = CORNER_OF_RATE / cutoff
        self.spacing = SPACING_RATIO * self.time_constant
        self.reset()

    def reset(self) -> None:
        """Forget all samples; the next output starts from zero."""
        self._times: list[float] = []
        self._used = math.nan
        self._states: NDArray | None = None

    def add(self, time: float) -> bool:
        """Add the time of a sample and return whether the next equation is due.

        The first sample after a reset has no weight, because the step before it counts as zero.
        """
        if not self._times:
            self._times = [time]
            self._used = time
        self._times.append(time)
        # The spacing is often a multiple of the step, so a tolerance of 1e-6 absorbs rounding.
        due = time - self._used >= self.spacing * (1.0 - 1e-6)
        if due:
            self._used = time
        return due

    @property
    def waiting(self) -> int:
        """Number of samples since the last output."""
        return len(self._times) - 1

    def output(self, sums: Callable[[NDArray], NDArray]) -> NDArray:
        """Return the filtered rows (n, k) at the last sample.

        Args:
            sums: function from weights (2, N) of the N samples since the last output to sums (2, n, k) of their rows.
        """
        first = []
        second = []
        decay = 1.0
        following = 0.0
        for earlier, time in zip(self._times[-2::-1], self._times[:0:-1], strict=True):
            left = math.exp((earlier - time) / self.time_constant)
            following += 1.0 - left
            first.append((1.0 - left) * decay)
            second.append(first[-1] * following)
            decay *= left
        states = sums(np.array([first[::-1], second[::-1]]))
        if self._states is not None:
            kept = np.array([[decay, 0.0], [decay * following, decay]])
            states += (kept @ self._states.reshape(2, -1)).reshape(states.shape)
        self._times = self._times[-1:]
        self._states = states
        return states[1]


# Motion and torque of the same instant from positions and torques as they arrive.
# Velocity is the 5-point derivative of position, acceleration that of velocity (Khosla and Kanade 1987, section 5.1).
# Each derivative is two samples late, so position, velocity and torque are delayed to match the acceleration.


WEIGHTS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 10
"""Weights of five samples, oldest first, for the slope at the middle one of the parabola through them, per step."""
CAUSAL_DELAY_SAMPLES = 2
"""Delay of this slope behind the newest sample, in samples."""
_SLOPES = np.stack([np.pad(WEIGHTS, CAUSAL_DELAY_SAMPLES), np.convolve(WEIGHTS, WEIGHTS)])
"""Weights of nine positions for the slope in their middle, and for the slope of slopes, per step."""

_NINE = np.arange(_SLOPES.shape[1])


class CausalMotion:
    """Causal differentiation of positions that are sampled at constant steps; torques are delayed alike."""

    def __init__(self) -> None:
        self._derived: list[NDArray] = []
        self._steps: list[float] = []
        self._samples: list[NDArray] = []
        self._times: deque[float] = deque(maxlen=self.delay + 1)

    @property
    def delay(self) -> int:
        """Delay of the derivatives, in samples."""
        return 2 * CAUSAL_DELAY_SAMPLES

    def reset(self) -> None:
        """Forget all samples, and all instants that `take` has not returned yet."""
        self._derived = []
        self._steps = []
        self._samples = []
        self._times.clear()

    def add(self, time: float, sample: NDArray, step: float) -> float | None:
        """Add positions and torques (2, n), which follow the last ones after a `step` (s).

        Returns:
            Time of the instant four samples earlier, whose motion is now known; None for the first samples.
        """
        self._times.append(time)
        self._samples.append(sample)
        if len(self._samples) - len(self._steps) < _NINE.size:
            return None
        self._steps.append(step)
        return self._times[0]

    def take(self) -> list[NDArray]:
        """Return arrays (4, N, n) of q, qd, qdd and torque of the instants since the last call."""
        self._differentiate()
        derived = self._derived
        self._derived = []
        return derived

    def _differentiate(self) -> None:
        """Differentiate all samples that have enough neighbours by now."""
        if not self._steps:
            return
        steps = np.array(self._steps)[:, None]
        positions, torques = np.array(self._samples).transpose(1, 0, 2)
        slopes = _SLOPES @ positions[np.arange(len(steps))[:, None] + _NINE]
        now = slice(self.delay, -self.delay)
        self._derived.append(np.stack([positions[now], slopes[:, 0] / steps, slopes[:, 1] / steps**2, torques[now]]))
        self._samples = self._samples[1 - _NINE.size :]
        self._steps = []


CHANGING_FRICTION = JointFriction(offset=True)
"""Terms that are estimated with a load: friction changes with the load and from day to day, and sensors drift."""

_UNUSED = 1e3
"""Noise of a joint at rest, as a multiple of its noise in motion, where stiction is unknown: the equation is unused."""


class OnlineRows:
    """Equations [A b] of an arm, N m, as sums over samples, with the columns E of its known part.

    Args:
        names: (k,) names of the columns of A.
        bodies: (10 n, p + 1 + e) map from the columns of all links to the first p columns of A, the torque of the known
            links, and E.
        frictions: friction models of the joints, each with the map (terms, n, k - p + 1 + e) from its terms to the
            columns of [A b E] after the first p.
        stiction: (n,) largest friction of a joint at rest in either direction, N m.
        n_inertial: number p of inertial columns.

    Attributes:
        names, stiction, n_inertial: as the arguments.
        known: arm whose torque is subtracted from b; None: nothing is subtracted.
    """

    known: KnownArm | None = None

    def __init__(
        self,
        robot: RobotModel,
        names: tuple[str, ...],
        bodies: NDArray,
        frictions: Sequence[tuple[FrictionModel, NDArray]],
        *,
        stiction: NDArray,
        n_inertial: int,
    ):
        n = robot.n_joints
        self.names = names
        self.stiction = stiction
        self.n_inertial = n_inertial
        self._robot = robot
        self._regressor = RegressorSums(robot)
        self._bodies = bodies
        self._frictions = [
            (friction, OneSampleFriction(friction, n), SlidingMemory(friction.memory_keys(n)))
            for friction, _ in frictions
        ]
        # Map from friction terms, torque t and the masks u and s of a sample to the columns [A b E t u s] after p.
        signals = np.zeros((3 * n, n, frictions[0][1].shape[2] + 3))
        signals[range(n), range(n), len(names) - n_inertial] = 1.0
        for k in range(3):
            signals[range(k * n, (k + 1) * n), range(n), k - 3] = 1.0
        parts = [np.pad(places, ((0, 0), (0, 0), (0, 3))) for _, places in frictions]
        self._places = np.concatenate([*parts, signals]).reshape(-1, signals[0].size)
        self._presliding = Presliding()

    def restart(self) -> None:
        """Forget the direction of friction, as the joints may have moved since the last sample."""
        self._presliding.restart()
        for *_, memory in self._frictions:
            memory.restart()

    @property
    def n_known(self) -> int:
        """Number e of columns of the known part."""
        return self._bodies.shape[1] - self.n_inertial - 1

    def sums(self, samples: NDArray, weights: NDArray) -> NDArray:
        """Return the sums (m, n, k + e + 4) of [A b E t u s] of N samples, where t is the measured torque.

        s is one where a joint is at standstill. u is one where its friction is unknown: at standstill, and until
        friction has reached the direction of the motion.

        Args:
            samples: (4, N, n) q, qd, qdd and torque, all later than the samples before.
            weights: (m, N) weights of the samples in each sum.
        """
        q, qd, qdd, torque = samples
        still = np.abs(qd) < STANDSTILL_SPEED
        unknown = self._presliding.unknown(q, qd)
        # Velocity that is only noise about zero would reverse friction from sample to sample.
        sliding = np.where(unknown & (self.stiction > 0.0), 0.0, qd)
        motion = zip(*samples[:3].tolist(), strict=True)
        features = _matrix(starmap(self._regressor.features, motion), len(qd), self._regressor.size)
        frictions = []
        still_loads = [0.0] * q.shape[1]
        for friction, terms, memory in self._frictions:
            before = zip(*(direction.tolist() for direction in memory.advance(q).values()), strict=True)
            load = friction.load_torque(self._robot, q, qd, qdd)
            moving = zip(
                *(x.tolist() for x in (q, sliding, qdd)),
                before if memory.keys else repeat((), len(q)),
                repeat(still_loads, len(q)) if load is None else load.tolist(),
                strict=True,
            )
            frictions.append(_matrix(starmap(terms.evaluate, moving), len(qd), len(terms.places)))
        regressor = self._regressor(features, weights)
        inertial = regressor @ self._bodies
        others = np.concatenate([*frictions, torque, unknown, still], axis=1)
        rest = (weights @ others @ self._places).reshape(*regressor.shape[:2], -1)
        p = self.n_inertial
        b = len(self.names) - self.n_inertial
        rest[:, :, b] -= inertial[:, :, p]
        rest[:, :, b + 1 : -3] += inertial[:, :, p + 1 :]
        return np.concatenate([inertial[:, :, :p], rest], axis=2)

    def considered(self, sums: NDArray) -> NDArray:
        """Return the directions (n, e + n) of errors of b: the columns E, then the torque of each joint for its gain.

        An error of a gain scales the whole measured torque. If the dependence of the arm's parameters on the gains is
        unknown, the known part is assumed to have the same error as the measured torque, so the error scales b only.

        Args:
            sums: (n, k + e + 4) as returned by `sums`.
        """
        size = len(self.names)
        whole = self.known is None or (self.known.covariance is not None and self.known.gain_shifts is not None)
        return np.hstack([sums[:, size + 1 : -3], np.diag(sums[:, -3 if whole else size])])


class LoadRows(OnlineRows):
    """Equations of a load at the tip: the torque minus that of the arm.

    Args:
        robot: arm to whose tip the load is fixed.
        known: identified links and friction of the arm without load.
        changes: friction and offsets that are estimated with the load, in addition to those of `known`.
    """

    def __init__(self, robot: RobotModel, known: KnownArm, changes: FrictionModel):
        n = robot.n_joints
        arm = known.model
        of_arm = arm.robot
        if of_arm.joint_names != robot.joint_names or of_arm.kinematics_sha256 != robot.kinematics_sha256:
            raise IdentificationError(
                f"arm: its model is of robot '{of_arm.name}' with joints {', '.join(of_arm.joint_names)}, which is not "
                f"'{robot.name}' with {', '.join(robot.joint_names)}; identify this arm's links first"
            )
        if arm.signals is not None and arm.signals.driver is not None:
            raise IdentificationError(
                f"arm: its driver's torque passed a filter ({arm.signals.driver}), which a load followed live would "
                "take for inertia; identify the load from a recording, or the links from torque without that filter"
            )
        # A load adds to the parameters of the last link, after a transformation from the tip frame.
        p = PARAMETERS_PER_LINK
        size = robot.parameters.size
        load_and_arm = np.zeros((size, p + 1))
        load_and_arm[robot.tip_columns, :-1] = transformed(np.eye(p), robot.tip_offset).T
        load_and_arm[:, -1] = finite_vector(arm.parameters, size, "parameters of the links")
        fixed = OneSampleFriction(arm.friction, n)
        free = OneSampleFriction(changes, n)
        coefficients = np.asarray(arm.coefficients, dtype=float)
        # The known part of the arm consists of parameters of links, then coefficients of friction.
        errors = np.eye(size + coefficients.size)[:, known.terms if known.covariance is not None else []]
        bodies = np.hstack([load_and_arm, errors[:size]])
        of_known = np.concatenate(
            [
                np.zeros((len(fixed.places), n, free.places.shape[2])),
                -fixed.places @ coefficients[:, None],
                fixed.places @ errors[size:],
            ],
            axis=2,
        )
        of_free = np.pad(free.places, ((0, 0), (0, 0), (0, 1 + errors.shape[1])))
        names = (*LINK_PARAMETERS, *changes.names(robot))
        frictions = [(arm.friction, of_known), (changes, of_free)]
        super().__init__(robot, names, bodies, frictions, stiction=stiction(arm), n_inertial=p)
        self.known = known


class LinkRows(OnlineRows):
    """Equations of all base parameters of an arm and its friction.

    Args:
        robot: arm.
        friction: friction terms to estimate.
        noise: (n,) standard deviation of the torques, N m.

    Attributes:
        base: base parameters of links and friction.
    """

    def __init__(self, robot: RobotModel, friction: FrictionModel, noise: ArrayLike):
        self.base: BaseParameters = robot.base_parameters(friction)
        n = robot.n_joints
        size = robot.parameters.size
        inertial = self.base.columns[self.base.columns < size]
        bodies = np.zeros((size, inertial.size + 1))
        bodies[inertial, range(inertial.size)] = 1.0
        terms = OneSampleFriction(friction, n)
        places = np.pad(terms.places[:, :, self.base.columns[inertial.size :] - size], ((0, 0), (0, 0), (0, 1)))
        sticks = [any(part.direction for part in joint.parts) for joint in friction.per_joint(n)]
        super().__init__(
            robot,
            self.base.expressions,
            bodies,
            [(friction, places)],
            stiction=np.where(sticks, _UNUSED * np.asarray(noise), 0.0),
            n_inertial=inertial.size,
        )


def _matrix(rows: Iterable[tuple[float, ...]], count: int, size: int) -> NDArray:
    """Return `count` rows of `size` floats as a matrix; packing bytes is several times faster than `np.array`."""
    return np.frombuffer(b"".join(starmap(struct.Struct(f"{size}d").pack, rows))).reshape(count, size)
