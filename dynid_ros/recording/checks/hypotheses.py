"""Direction of gravity, signs, order and time of positions and torques: which fits the torques best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.gravity_direction import angle_between
from dynid_ros.recording.checks.effort_convention import GravitySigns
from dynid_ros.recording.checks.finding import (
    COMPENSATED,
    DIRECTION,
    LAG,
    MIN_WARNING_GAIN,
    SIGN,
    SWAP,
    Explanation,
    Kind,
)
from dynid_ros.recording.checks.jackknife import Change, Jackknife
from dynid_ros.recording.checks.low_pass import shows_in_rigid_torques, with_presliding
from dynid_ros.recording.checks.torque_fit import (
    MotionSamples,
    Terms,
    TorqueEquations,
    TorqueFit,
    TorqueModel,
    motion_samples,
)
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

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
"""Said of a torque whose sign gravity does not show, as of an upright axis."""
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

    Only joints that move enough take part: of the others neither order nor sign can be determined. A sign that gravity
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
        if choice.kind == SWAP and max(gains.values()) > MIN_WARNING_GAIN:
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
    """Equations of the joints at standstill, too, as far as their torque is alive (M, n)."""
    return TorqueEquations(replace(terms, moving=alive), torque, prismatic)


class _Choice(NamedTuple):
    kind: Kind
    texts: Mapping[str, tuple[str, str]]
    joints: tuple[int, ...]
    order: NDArray
    signs: NDArray


def _gains(
    equations: TorqueEquations, positions: TorqueEquations, choice: _Choice, given: TorqueFit
) -> dict[str, float]:
    """Return the scores of torques, of positions and of both in another order or with other signs."""
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


def _choices(n: int, moving: Sequence[int]) -> Iterator[_Choice]:
    for j in moving:
        yield _Choice(SIGN, SIGN_OF, (j,), np.arange(n), np.where(np.arange(n) == j, -1.0, 1.0))
    for i, j in combinations(moving, 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        yield _Choice(SWAP, SWAP_OF, (i, j), order, np.ones(n))


LONGEST, STEP = 0.3, 0.03
"""Lags that are tried, s."""
REFINED_STEP_FRACTION = 0.2
"""Steps of the second round, in parts of STEP."""
MIN_LAG_S = 0.01
"""Smallest lag to report, s: filters in the drives of sound recordings make up to 7 ms."""
LAG_CHECK_SEEN = 0.04
"""Gain from which a lag is looked at more closely: friction that the model lacks can feign it."""
MIN_SECOND_JOINT_GAIN = 0.15
"""Gain of the second joint from which it is a lag."""
MIN_CERTAIN_GAIN = 1.2
"""Gain, beside friction that builds up, of a lag whose jackknife is asked: in slow motion friction feigns 0.8."""
HALF_STEP = 0.005
"""Half of the time over which torques are differentiated, s."""
FIRST_ORDER_SHARE = 0.5
"""Least part of a lag that its first-order estimate has: of a fast motion it is too small."""
MIN_MOVING_JOINTS = 2
"""One moving joint alone shows no lag, but its friction's."""


def lag_explanation(
    model: TorqueModel, samples: MotionSamples, terms: Terms, given: TorqueFit
) -> Iterator[Explanation]:
    """The lag of the torques that fits them best, if it is long enough to matter."""
    prismatic = model.robot.chain.prismatic
    if np.count_nonzero(np.isfinite(given.rms)) < MIN_MOVING_JOINTS:
        return
    lag, found = _best_lag(terms, samples, prismatic)
    gain = given.misfit - found.misfit
    if abs(lag) < MIN_LAG_S or gain < LAG_CHECK_SEEN:
        return
    # Is it one of all that moves, or of friction alone?
    columns = terms.rigid
    terms = with_presliding(terms, samples)
    given = TorqueEquations(terms, samples.torque, prismatic).fit()
    lag, found = _best_lag(terms, samples, prismatic)
    if abs(lag) < MIN_LAG_S or given.shared_gain(found) < MIN_SECOND_JOINT_GAIN:
        return
    rigid = columns @ found.rigid[: columns.shape[2]]
    if shows_in_rigid_torques(samples.shifted(rigid, lag), rigid, found, terms.moving) or (
        given.misfit - found.misfit >= MIN_CERTAIN_GAIN and _is_certain(jackknifed_lag(terms, samples, prismatic), lag)
    ):
        later, earlier = ("torques", "positions") if lag > 0 else ("positions", "torques")
        at_least = "at least " if abs(lag) > LONGEST - STEP else ""
        yield Explanation(
            LAG,
            gain,
            f"{later} come {at_least}{abs(lag) * 1e3:.0f} ms after the {earlier} that they belong to",
            "take both from one message with one time stamp and without a filter in between, or shift one of them",
            severity="warning",
        )


def jackknifed_lag(terms: Terms, samples: MotionSamples, prismatic: NDArray) -> Change:
    """Estimate the lag of the torques, s, to first order, with its standard error."""
    rate = (samples.delayed_torque(HALF_STEP) - samples.delayed_torque(-HALF_STEP)) / (2 * HALF_STEP)
    return Jackknife(terms, -rate[:, :, None], samples.torque, prismatic).estimate([0])


def _is_certain(change: Change, lag: float) -> bool:
    """Whether the first-order estimate of a lag is certain, and about as large as the lag that fits best."""
    return change.certain and change.values[0] * lag > FIRST_ORDER_SHARE * lag**2


def _best_lag(terms: Terms, samples: MotionSamples, prismatic: NDArray) -> tuple[float, TorqueFit]:
    """The lag, s, and the fit with it."""
    equations = TorqueEquations(terms, samples.torque, prismatic)

    def fit(lag: float) -> TorqueFit:
        return equations.explaining(samples.delayed_torque(lag)).fit()

    def misfit(lag: float) -> float:
        return fit(lag).misfit

    lag = _lowest(misfit, STEP * np.arange(-round(LONGEST / STEP), round(LONGEST / STEP) + 1))
    lag = _lowest(misfit, lag + REFINED_STEP_FRACTION * STEP * np.arange(-4, 5))
    return lag, fit(lag)


def _lowest(misfit: Callable[[float], float], lags: NDArray) -> float:
    """Vertex of the parabola through the lowest of the misfits and its neighbours."""
    values = [misfit(lag) for lag in lags]
    k = int(np.argmin(values))
    if not 0 < k < len(lags) - 1:
        return float(lags[k])
    left, middle, right = values[k - 1 : k + 2]
    return float(lags[k] + (lags[k + 1] - lags[k]) * 0.5 * (left - right) / (left - 2 * middle + right))


TILT_ERROR_DEG = 10.0
"""Smallest angle that is an error, degrees."""
TILT_WARNING_DEG = 3.0
"""Smallest angle that is a warning, degrees."""
TILT_MIN_GAIN = 0.1
"""Smallest gain of a tilt that is a warning."""
JACKKNIFE_BLOCKS = 8
"""Stretches of the samples that are left out in turn."""
HOTELLING_95 = 12.0
"""Squared distance, in standard deviations, of the 95 % region of a turn about two axes by so many stretches
(Hotelling: 2 · 7 / 6 times the quantile of F(2, 6))."""
STEPS, LARGEST = 4, 0.5
"""Number of steps of the search, and the longest of them, rad."""
MAX_SAMPLES = 800
"""Enough to prefer one hypothesis to another."""
MAX_GRAVITY_LEFT = 0.4
"""Most of the nominal gravity torque that a driver's compensation leaves."""


def best_gravity(recordings: Sequence[Recording], robot: RobotModel) -> NDArray | None:
    """Gravity (3,) along the direction that fits the torques best, m/s^2; None: nothing moves, or there is none."""
    everything = motion_samples(recordings)
    if everything is None or not robot.gravity.any():
        return None
    samples, model = everything.thinned(MAX_SAMPLES), TorqueModel(robot)
    return _fitted_gravity(model, samples, model.terms(samples))[0]


def gravity_explanations(
    model: TorqueModel, samples: MotionSamples, terms: Terms, given: TorqueFit
) -> Iterator[Explanation]:
    """What gravity along another direction, and none at all, would explain."""
    robot = model.robot
    if not robot.gravity.any():
        return
    yield from _compensated(model, samples, terms, model.rigid_without_gravity(samples), given)
    gravity, fit = _fitted_gravity(model, samples, terms)
    angle = np.degrees(angle_between(gravity, robot.gravity))
    gain = given.misfit - fit.misfit
    if angle >= TILT_WARNING_DEG and gain >= TILT_MIN_GAIN:
        gain = _believed(model, samples, terms, gravity, gain)
    if angle >= TILT_ERROR_DEG or (angle >= TILT_WARNING_DEG and gain >= TILT_MIN_GAIN):
        found = ", ".join(f"{value:.2f}" for value in gravity)
        yield Explanation(
            DIRECTION,
            gain,
            f"gravity points {angle:.1f} degrees away from where the robot model has it: ({found}) m/s^2 in the frame "
            f"of '{robot.base}' fits the torques best",
            "give the gravity of the robot as it is mounted (--gravity, parameter gravity), or have it found with its "
            "interval, along with gravity or links: gravity_direction estimated",
            severity="error" if angle >= TILT_ERROR_DEG else "warning",
        )


def _believed(model: TorqueModel, samples: MotionSamples, terms: Terms, gravity: NDArray, gain: float) -> float:
    """What of the gain of this gravity (3,) is not friction's; none where its interval holds the given gravity."""
    prismatic = model.robot.chain.prismatic
    there = model.rigid_without_gravity(samples) + np.tensordot(gravity, model.rigid_of_gravity(samples), 1)
    beside = with_presliding(terms, samples)
    own = beside.rigid[:, :, terms.rigid.shape[2] :]
    turned = Terms(np.concatenate([there, own], axis=2), beside.drive, beside.moving)
    misfits = [TorqueEquations(each, samples.torque, prismatic).fit().misfit for each in (beside, turned)]
    gain = min(gain, misfits[0] - misfits[1])
    if gain >= TILT_MIN_GAIN and _within(model, samples, Terms(there, terms.drive, terms.moving), gravity):
        return 0.0
    return gain


def _within(model: TorqueModel, samples: MotionSamples, terms: Terms, gravity: NDArray) -> bool:
    """Whether the 95 % region of this gravity (3,) holds the given one: by what stretches of the samples say.

    What no model has of friction lasts for a stretch, so that residuals of single samples would say too much: each of
    JACKKNIFE_BLOCKS stretches is left out once, and the turn that the others ask for is compared (jackknife).
    """
    robot = model.robot
    size = float(np.linalg.norm(gravity))
    parameters = TorqueEquations(terms, samples.torque, robot.chain.prismatic).fit().rigid
    tangents = np.linalg.svd(gravity[None] / size)[2][1:]
    columns = np.moveaxis(size * np.tensordot(tangents, model.rigid_of_gravity(samples) @ parameters, 1), 0, 2)
    rigid = np.concatenate([terms.rigid, columns], axis=2)
    turns = []
    for part in np.array_split(np.arange(len(samples)), JACKKNIFE_BLOCKS):
        rows = np.delete(np.arange(len(samples)), part)
        others = Terms(rigid[rows], terms.drive[rows], terms.moving[rows])
        turns.append(TorqueEquations(others, samples.torque[rows], robot.chain.prismatic).fit().rigid[-2:])
    covariance = (JACKKNIFE_BLOCKS - 1) * np.cov(turns, rowvar=False, bias=True)
    away = tangents @ robot.gravity
    away *= angle_between(gravity, robot.gravity) / max(float(np.linalg.norm(away)), np.finfo(float).tiny)
    return bool(away @ np.linalg.lstsq(covariance, away, rcond=None)[0] < HOTELLING_95)


def _fitted_gravity(model: TorqueModel, samples: MotionSamples, terms: Terms) -> tuple[NDArray, TorqueFit]:
    """Gravity (3,) along the direction that fits best, and the fit."""
    robot = model.robot
    size = float(np.linalg.norm(robot.gravity))
    weightless, of_gravity = model.rigid_without_gravity(samples), model.rigid_of_gravity(samples)

    def along(direction: NDArray) -> NDArray:
        return weightless + size * np.tensordot(direction, of_gravity, 1)

    def solved(rigid: NDArray) -> TorqueFit:
        return TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic).fit()

    def fit(direction: NDArray) -> TorqueFit:
        return solved(along(direction))

    def step(direction: NDArray, parameters: NDArray) -> NDArray:
        """The turn (3,) of the direction that explains most of what is left: two tangents span those around it."""
        tangents = np.linalg.svd(direction[None])[2][1:]
        columns = np.moveaxis(size * np.tensordot(tangents, of_gravity @ parameters, 1), 0, 2)
        found = solved(np.concatenate([along(direction), columns], axis=2))
        return found.rigid[-len(tangents) :] @ tangents

    direction = _best_direction(fit, step, robot.gravity / size)
    return size * direction, fit(direction)


def _compensated(
    model: TorqueModel, samples: MotionSamples, terms: Terms, weightless: NDArray, given: TorqueFit
) -> Iterator[Explanation]:
    """Gravity apart from inertia: a driver's own model leaves some of it, in other proportions."""
    robot = model.robot
    gravity = robot.gravity_regressor(samples.position)
    gravity = gravity[:, :, np.flatnonzero(np.any(gravity, axis=(0, 1)))]
    rigid = np.concatenate([weightless, gravity], axis=2)
    equations = TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic)
    fit = equations.fit()
    found = gravity @ fit.rigid[weightless.shape[2] :]
    nominal = robot.gravity_torque(samples.position)
    sizes = [np.sqrt(np.mean(terms.moving * (torque - torque.mean(axis=0)) ** 2)) for torque in (found, nominal)]
    if sizes[0] < MAX_GRAVITY_LEFT * sizes[1]:
        yield Explanation(
            COMPENSATED,
            given.misfit - fit.misfit,
            f"there is no gravity in the effort: {100 * sizes[0] / sizes[1]:.0f} % of the URDF's",
            "switch the driver's gravity compensation off, or give its uncompensated torque as torque_topic",
        )


def _best_direction(
    fit: Callable[[NDArray], TorqueFit], step: Callable[[NDArray, NDArray], NDArray], nominal: NDArray
) -> NDArray:
    """Unit vector; from the best of a coarse grid and the nominal one by Gauss-Newton steps."""
    grid = [
        np.array(direction) for direction in product((-1.0, 0.0, 1.0), repeat=3) if sum(map(abs, direction)) in (1, 3)
    ]
    grid = [nominal, *(direction / np.linalg.norm(direction) for direction in grid)]
    fits = [fit(direction) for direction in grid]
    best = int(np.argmin([it.misfit for it in fits]))
    direction, found = grid[best], fits[best]
    for _ in range(STEPS):
        turn = step(direction, found.rigid)
        turned = direction + turn * LARGEST / max(float(np.linalg.norm(turn)), LARGEST)
        turned /= np.linalg.norm(turned)
        following = fit(turned)
        if following.misfit >= found.misfit:
            break
        direction, found = turned, following
    return direction
