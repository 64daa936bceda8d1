"""Values and steps that no arm of this kind can have, gaps, repeated rows, and motion that is too little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from dynid_ros.checks.finding import ABSURD, LITTLE_MOTION, STAMPS, Finding, Severity
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import stale_rows
from dynid_ros.signals.resampling import STAMPS_FIX, judged_times

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


REST = (0.02, 0.005)
"""A joint that covers less rests: rad, m."""
RANGE = (0.08, 0.02)
"""A joint should cover as much: rad, m."""
MIN_DURATION_S = 3.0
"""Shortest motion that several harmonics fit into, s."""


def check_motion(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Errors if nothing moves; warnings for joints that hardly move and for little time, over all recordings."""
    source = ", ".join(part.source for part in recordings)
    ranges = np.max([np.ptp(part.position, axis=0) for part in recordings], axis=0)
    rest, enough = (np.where(robot.chain.prismatic, metres, radians) for radians, metres in (REST, RANGE))
    fix = "excite all joints over most of their range, at several frequencies"
    if np.all(ranges < rest):
        yield Finding(
            "error",
            source,
            "all joints are at rest: inertias and friction do not show",
            f"{fix}, or identify gravity only",
            LITTLE_MOTION,
        )
        return
    for j in np.flatnonzero(ranges < enough):
        state = "rests" if ranges[j] < rest[j] else "hardly moves"
        yield Finding(
            "warning",
            f"{source}, joint '{robot.joint_names[j]}'",
            f"it {state}: it covers {ranges[j]:.2g} {'m' if robot.chain.prismatic[j] else 'rad'}",
            fix,
            LITTLE_MOTION,
        )
    duration = sum(_moving_time(part, rest) for part in recordings)
    if duration < MIN_DURATION_S:
        yield Finding(
            "warning", source, f"it moves for {duration:.1f} s only", f"{fix}, for 20 s and more", LITTLE_MOTION
        )


def _moving_time(recording: Recording, rest: np.ndarray) -> float:
    """Time from the first to the last sample that is off the pose at either end, s."""
    first, last = (np.abs(recording.position - recording.position[end]) > rest for end in (0, -1))
    off_first, off_last = np.flatnonzero(first.any(axis=1)), np.flatnonzero(last.any(axis=1))
    if not off_first.size or not off_last.size:
        return 0.0
    return float(max(0.0, recording.time[off_last[-1]] - recording.time[off_first[0]]))


STEP: Final = "position step"
SIDE = 4
"""Samples on each side, from which the position between the sides is foretold by a parabola."""
EDGE = 2
"""A step counts once within so many samples."""
NOISE, USUAL = 10.0, 3.0
"""A step is larger than so many times the median of these differences, and than so many times 99 % of them, or all of
those nearby."""
STAYS, LATE = 0.5, 2
"""Part of a step that must be left without the last few samples before it, and without those after: samples that were
read late, while those of other joints were not, are off by themselves, and what follows them is not."""
MISSED = 0.35
"""What a joint is behind, less its travel in a sample, in parts of that: it was not read once."""
POSITION_STEP_CHECK_FASTEST = 40.0
"""Acceleration that an arm may reach, rad/s^2 or m/s^2: what it makes within a sample is no step."""
ROUNDED = 1.5
"""… and than so many times what the rounding of the encoder can make."""
MIN_POSITION_STEP = 1e-3
"""Smaller ones do no harm, rad or m."""
MINIMUM_SAMPLES = 100


def check_position_steps(recording: Recording) -> Iterator[Finding]:
    """A warning for each joint whose position steps and stays.

    Errors of the time stamps move all joints equally, each by its velocity: what a shift of time explains is no step.
    """
    fresh = ~stale_rows(recording.position)
    time, position = recording.time[fresh], recording.position[fresh]
    if len(time) < MINIMUM_SAMPLES:
        return
    steps, sizes = _steps(time, position)
    for j, joint in enumerate(recording.joint_names):
        if not steps[:, j].any():
            continue
        found = np.flatnonzero(steps[:, j])
        first = found[0]
        yield Finding(
            "warning",
            f"{recording.source}, joint '{joint}'",
            f"its position steps {len(found)} time{'s' * (len(found) > 1)}, first by {sizes[first, j]:.3g} at "
            f"t = {time[first]:.3f} s, faster than an arm can move, and goes on from there",
            "the encoder lost counts, or the driver set its zero anew: mend it and record again",
            STEP,
        )


def _steps(time: NDArray, position: NDArray) -> tuple[NDArray, NDArray]:
    """(N, n) True at the last sample before a step; its size, rad or m."""
    interval = np.diff(time)
    step = float(np.median(interval))
    (time_left, time_right), (left, right) = _foretold(time[:, None]), _foretold(position)
    time_jump, jump = time_right - time_left, right - left
    velocity = np.zeros_like(position)
    velocity[SIDE:-SIDE] = (position[2 * SIDE :] - position[: -2 * SIDE]) / (time[2 * SIDE :] - time[: -2 * SIDE])[
        :, None
    ]
    power = velocity**2
    others = power.sum(axis=1, keepdims=True) - power
    shift = ((velocity * jump).sum(axis=1, keepdims=True) - velocity * jump) / np.maximum(others, 1e-4)
    candidates = np.array([jump, jump - velocity * time_jump, jump - velocity * shift])
    least = np.min(np.abs(candidates), axis=0)
    typical = np.minimum(np.quantile(least, 0.99, axis=0), _beside(least))
    bound = np.maximum(NOISE * np.median(least, axis=0), USUAL * typical)
    # What an arm can do within a sample: by its acceleration, or by stopping dead.
    dead = 2.0 * maximum_filter1d(np.abs(velocity), 6 * SIDE + 1, axis=0) * step
    bound = np.maximum(bound, np.maximum(MIN_POSITION_STEP, np.minimum(POSITION_STEP_CHECK_FASTEST * step**2, dead)))
    # Rounding of all samples by half a count can add up to so much.
    bound = np.maximum(bound, ROUNDED * np.abs(_ahead()).sum() * _resolution(position))
    # A sample lost somewhere near makes any curve step.
    whole = np.zeros(len(time), bool)
    whole[2 * SIDE : -2 * SIDE] = True
    for gap in np.flatnonzero(interval > 2.5 * step):
        whole[max(0, gap - SIDE) : gap + SIDE + 1] = False
    found = (least > bound) & whole[:, None]
    if found.any():
        found &= _stays(position, left, right) & ~_missed(position, velocity * step, jump) & ~_together(velocity, jump)
    best = np.zeros_like(found)
    for j in range(position.shape[1]):
        for k in np.flatnonzero(found[:, j]):
            near = slice(max(0, k - 2 * SIDE), k + 2 * SIDE + 1)
            best[k, j] = least[k, j] >= least[near, j].max()
    return best, jump


def _beside(values: NDArray) -> NDArray:
    """(N, n) largest of those that the same step cannot have touched, before and after."""
    width = 4 * SIDE + 1
    largest = maximum_filter1d(values, width, axis=0)
    away = width // 2 + 2 * SIDE
    return np.maximum(np.roll(largest, away, axis=0), np.roll(largest, -away, axis=0))


def _stays(position: NDArray, left: NDArray, right: NDArray) -> NDArray:
    """(N, n) True where a jump from left to right, foretold by all samples, is there without the nearest of a side."""
    jump = right - left
    others = []
    for skipped in range(1, LATE + 1):
        farther_left, farther_right = _foretold(position, skipped)
        others += [right - farther_left, farther_right - left]
    return np.all([other * np.sign(jump) > STAYS * np.abs(jump) for other in others], axis=0)


def _missed(position: NDArray, travel: NDArray, jump: NDArray) -> NDArray:
    """(N, n) True where a joint that was not read once gives its last position again, and goes on a sample later.

    Args:
        position: (N, n).
        travel: (N, n) of a sample at each's velocity.
        jump: (N, n) by which it is then behind.
    """
    again = np.zeros(position.shape, bool)
    again[:-1] = np.diff(position, axis=0) == 0.0
    behind = np.abs(jump + travel) < MISSED * np.abs(travel)
    return behind & maximum_filter1d(again, 2 * EDGE + 1, axis=0)


def _together(velocity: NDArray, jump: NDArray) -> NDArray:
    """(N, n) True where another joint jumps as well, both as far as they go in the same time: read late together."""
    found = np.zeros(jump.shape, bool)
    for j in range(jump.shape[1]):
        moving = np.abs(velocity[:, j]) > MIN_MOVING_SPEED
        time = np.divide(jump[:, j], velocity[:, j], out=np.zeros(len(jump)), where=moving)
        travel = velocity * time[:, None]
        alike = (np.abs(jump - travel) < MISSED * np.abs(travel)) & (np.abs(travel) > MIN_POSITION_STEP / 2)
        found[:, j] = np.delete(alike, j, axis=1).any(axis=1)
    return found


def _foretold(values: NDArray, skipped: int = 0) -> tuple[NDArray, NDArray]:
    """(N, n) value halfway between a sample and the next, by the parabolas through SIDE samples left and right of it.

    Args:
        values: (N, n); zero is foretold where a side has too few.
        skipped: so many samples next to that place are left out on the side of each.
    """
    n, reach, ahead = len(values), SIDE + skipped, _ahead(skipped)
    before, after = (
        np.array([np.convolve(column, weights, "valid") for column in values.T]).T for weights in (ahead[::-1], ahead)
    )
    left, right = np.zeros(values.shape), np.zeros(values.shape)
    left[reach - 1 : n - reach] = before[: n - 2 * reach + 1]
    right[reach - 1 : n - reach] = after[reach + skipped :]
    return left, right


def _ahead(skipped: int = 0) -> NDArray:
    """(SIDE,) weights of samples at -SIDE + 1 … 0 that foretell the value at 1/2 + skipped by a parabola."""
    powers = np.vander(np.arange(-SIDE + 1, 1), 3)
    return np.linalg.pinv(powers).T @ np.vander([0.5 + skipped], 3)[0]


def _resolution(position: NDArray) -> NDArray:
    """(n,) smallest difference that comes often: what the encoder resolves, rad or m."""
    found = np.zeros(position.shape[1])
    for j, column in enumerate(np.abs(np.diff(position, axis=0)).T):
        some = column[column > 1e-12]
        found[j] = np.quantile(some, 0.02) if some.size else 0.0
    return found


STEP_CHECKS_MINIMUM_SAMPLES = 10
"""Fewer show nothing of velocity or noise."""
FEW_SAMPLES = 100
"""Fewer average noise badly: their mean is no better than a tenth of one sample's noise."""
REGULAR_STEPS = 0.98
"""A clock is regular if this share of its steps lies within a quarter of the median step; then a step of 1.5 medians
is a lost sample. Without a regular clock only a long step is one: 10 medians and 20 ms, a tenth of a 5 Hz period."""
FAR_APART, TRAVELLED, CREEPING = 0.2, 0.05, 0.01
"""Samples that are so far apart, s, of a motion of so many rad or m at less than so many rad/s or m/s: poses that were
recorded one by one differ by more."""
MIN_REPORTED_JITTER = 0.1
"""Deviation of the stamps from the clock that is used, RMS, in steps, from which it is reported."""
UNITS = {"ms": 1e3, "µs": 1e6, "ns": 1e9}
"""Units of time that are met in place of s, in one of which it is."""
MAX_REPEATED_SHARE = 0.02
"""Share of the rows that may repeat the row before while the arm moves."""
MIN_MOVING_SPEED = 0.02
"""An arm moves if a joint is faster over some rows, rad/s or m/s."""
NEIGHBOURS = 10


def check_steps(recording: Recording, motion: bool) -> Iterator[Finding]:
    """Yield findings of too few samples, a file cut off, a wrong clock, gaps, and rows that repeat the row before.

    Args:
        recording: to look at.
        motion: whether the fit needs motion; else noise of the stamps does no harm.
    """
    yield from _check_length(recording)
    if recording.clock_remark:
        yield Finding(
            "warning",
            recording.source,
            recording.clock_remark,
            "let the driver fill the stamp of each message with the time at which it read the robot",
            STAMPS,
        )
    if recording.n_samples > STEP_CHECKS_MINIMUM_SAMPLES:
        yield from _check_clock(recording)
        yield from _check_stamps(recording, motion)
        yield from _check_gaps(recording)
        yield from _check_repetition(recording)


def _check_length(recording: Recording) -> Iterator[Finding]:
    if recording.n_samples < FEW_SAMPLES:
        yield Finding(
            "error" if recording.n_samples < STEP_CHECKS_MINIMUM_SAMPLES else "warning",
            recording.source,
            f"only {recording.n_samples} samples",
            "record longer",
            "too short",
        )
    if recording.truncated:
        yield Finding(
            "warning",
            recording.source,
            f"the file is cut off: {recording.duration:.1f} s could be read",
            "its recorder was killed; record again if the end of the motion matters",
            "cut off",
        )


def _check_clock(recording: Recording) -> Iterator[Finding]:
    """Time in another unit: samples far apart between which next to nothing moves, though much does in the end."""
    step = float(np.median(np.diff(recording.time)))
    travel = np.abs(np.diff(recording.position, axis=0))
    if step < FAR_APART or np.ptp(recording.position, axis=0).max() < TRAVELLED:
        return
    speed = float(np.percentile(travel.max(axis=1), 99.0)) / step
    fitting = [(unit, size) for unit, size in UNITS.items() if speed * size < FASTEST and step / size < FAR_APART]
    if speed < CREEPING and fitting:
        unit, size = fitting[0]
        yield Finding(
            "error",
            recording.source,
            f"its samples are {step:.3g} s apart, and no joint is faster than {speed:.2g} rad/s (m/s)",
            f"time must be in s; as {unit} it would make sense: divide it by {size:g}",
            ABSURD,
        )


def _check_stamps(recording: Recording, motion: bool) -> Iterator[Finding]:
    """Noise of the time stamps that another clock mends, or that spoils the motion."""
    times, fresh = judged_times(recording.time, recording.position, recording.torque)
    fault = times.fault()
    off = float(np.std(recording.time[fresh] - times.time)) / float(np.median(np.diff(times.time)))
    if fault or (times.mended and off > MIN_REPORTED_JITTER):
        severity: Severity = "error" if fault and motion else "warning"
        yield Finding(severity, recording.source, fault or times.reason, STAMPS_FIX, STAMPS)


def _check_gaps(recording: Recording) -> Iterator[Finding]:
    steps = np.diff(recording.time)
    step = float(np.median(steps))
    regular = np.mean(np.abs(steps - step) < step / 4) >= REGULAR_STEPS
    gaps = np.flatnonzero(steps > (1.5 * step if regular else max(10 * step, 0.02)))
    if gaps.size:
        longest = gaps[np.argmax(steps[gaps])]
        lost = np.sum(np.round(steps[gaps] / step) - 1)
        yield Finding(
            "warning",
            recording.source,
            f"{gaps.size} gaps, about {lost:.0f} samples lost; the longest is {steps[longest] * 1e3:.0f} ms at "
            f"t = {recording.time[longest]:.3f} s, where the step is {step * 1e3:.3g} ms",
            "record with a deep queue and reliable QoS, on a machine with time to spare",
            "gaps",
        )


def _check_repetition(recording: Recording) -> Iterator[Finding]:
    """A robot at rest with coarse sensors repeats itself too: rows count while it moves."""
    values = np.hstack([recording.position, recording.velocity, recording.torque])
    values = values[:, np.isfinite(values).all(axis=0)]
    travel = np.abs(recording.position[NEIGHBOURS:] - recording.position[:-NEIGHBOURS]).max(axis=1)
    moving = travel > MIN_MOVING_SPEED * (recording.time[NEIGHBOURS:] - recording.time[:-NEIGHBOURS])
    repeated = stale_rows(values)[NEIGHBOURS:][moving]
    if repeated.size >= FEW_SAMPLES and np.mean(repeated) > MAX_REPEATED_SHARE:
        yield Finding(
            "warning",
            recording.source,
            f"{100 * np.mean(repeated):.0f} % of its rows only repeat the row before, though the arm moves",
            "record as fast as the driver publishes, each message once; differentiate positions without these rows",
            "repeated rows",
        )


MAX_LIMIT_EXCESS = 0.1
"""How far positions may pass the limits of the URDF, rad or m."""
FAR = np.pi
"""So far beyond them they are something else than rad or m, …"""
WILD_SPEED = 50.0
"""… and if they change so fast, rad/s or m/s, by more than JUMP from one sample to the next."""
JUMP = 0.1
FASTEST, STRETCH = 25.0, 0.1
"""Speed over a stretch of time, s, that no joint of an arm has, rad/s or m/s: positions in degrees, where a joint has
no limits that matter."""
MAX_GLITCH_SAMPLES = 5
"""Most samples that a glitch of an encoder lasts."""
WILD_TORQUE = 100.0
"""Torque in parts of the arm's weight at its full length: three orders above what arms have."""
USUAL_TORQUE = 0.05
"""Part of the samples from which torques beyond that are no glitches."""


def check_values(recording: Recording, robot: RobotModel) -> Iterator[Finding]:
    """Positions outside the limits or in another unit, jumps, torques far above what the arm could weigh."""
    low, high = recording.position.min(axis=0), recording.position.max(axis=0)
    # A URDF whose revolute joints have no limits, or both 0, says nothing: a joint without a range does not move.
    ranged = robot.limits.lower < robot.limits.upper
    beyond = np.where(ranged, np.maximum(robot.limits.lower - low, high - robot.limits.upper), 0.0)
    jumps = _jumps(recording)
    fastest = _fastest(recording)
    largest = WILD_TORQUE * torque_scale(robot)
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        if jumps[:, j].any():
            first = int(np.argmax(jumps[:, j]))
            yield Finding(
                "error",
                where,
                f"its position jumps {np.sum(jumps[:, j])} times, first from {recording.position[first, j]:.4g} to "
                f"{recording.position[first + 1, j]:.4g} at t = {recording.time[first]:.3f} s",
                "positions must go on continuously, not wrap at a full turn; remove glitches of the encoder",
                ABSURD,
            )
        elif beyond[j] > MAX_LIMIT_EXCESS:
            yield Finding(
                "error" if beyond[j] > FAR else "warning",
                where,
                f"it goes from {low[j]:.4g} to {high[j]:.4g}, but its limits are {robot.limits.lower[j]:.4g} to "
                f"{robot.limits.upper[j]:.4g}",
                "positions must be in rad (m) and count from the zero of this arm's URDF",
                ABSURD if beyond[j] > FAR else "beyond limits",
            )
        elif fastest[j] > FASTEST:
            yield Finding(
                "error",
                where,
                f"it moves at up to {fastest[j]:.3g} rad/s (m/s), from {low[j]:.4g} to {high[j]:.4g}",
                "positions must be in rad (m), and the time in s",
                ABSURD,
            )
        yield from _wild_torque(recording, j, where, largest[j])


def _wild_torque(recording: Recording, j: int, where: str, largest: float) -> Iterator[Finding]:
    wild = np.abs(recording.torque[:, j]) > largest
    if not wild.any():
        return
    first = int(np.argmax(wild))
    found = f"its torque is {recording.torque[first, j]:.4g} at t = {recording.time[first]:.3f} s"
    detail = f" ({np.sum(wild)} samples above {largest:.2g})"
    way_out = "remove these samples if they are glitches of the driver"
    if np.mean(wild) > USUAL_TORQUE:
        detail = (
            f", and above {largest:.2g} in {100 * np.mean(wild):.0f} % of the samples: far more than an arm as "
            "light as the URDF's needs"
        )
        way_out = (
            "or the URDF has masses in place of unknown ones: give what links weigh, or leave their inertial elements "
            "out"
        )
    yield Finding("error", where, found + detail, f"torques must be in N m (N); {way_out}", ABSURD)


def _jumps(recording: Recording) -> np.ndarray:
    """(N - 1, n) True before steps that wrap at a full turn, or that are taken back soon after."""
    steps = np.diff(recording.position, axis=0)
    wild = (np.abs(steps) > JUMP) & (np.abs(steps) > WILD_SPEED * np.diff(recording.time)[:, None])
    wrapped = np.abs(np.abs(steps) - 2 * np.pi) < JUMP
    taken_back = np.zeros_like(wild)
    for rows, j in zip(*np.nonzero(wild), strict=True):
        next_steps = steps[rows + 1 : rows + 1 + MAX_GLITCH_SAMPLES, j]
        taken_back[rows, j] = np.any(np.abs(next_steps + steps[rows, j]) < 0.1 * np.abs(steps[rows, j]))
    return wild & (wrapped | taken_back)


def _fastest(recording: Recording) -> np.ndarray:
    """(n,) highest speed over STRETCH but for a few glitches."""
    steps = max(1, round(STRETCH * (recording.n_samples - 1) / max(recording.duration, STRETCH)))
    if recording.n_samples <= steps:
        return np.zeros(recording.n_joints)
    time = np.maximum(recording.time[steps:] - recording.time[:-steps], STRETCH)
    speed = np.abs(recording.position[steps:] - recording.position[:-steps]) / time[:, None]
    return np.percentile(speed, 99.0, axis=0)


def torque_scale(robot: RobotModel) -> np.ndarray:
    """Return the weight of the arm times its length (n,), N m, or its weight, N; infinite without masses."""
    weight = np.sum(robot.parameters[::PARAMETERS_PER_LINK]) * max(np.linalg.norm(robot.gravity), 1.0)
    origins = robot.forward_kinematics(np.zeros((1, robot.n_joints)))[0, :, :3, 3]
    parents = robot.chain.parents
    length = 0.1 + np.sum(np.linalg.norm((origins - origins[parents])[parents >= 0], axis=1))
    scale = np.where(robot.chain.prismatic, weight, weight * length)
    return np.where(scale > 0, scale, np.inf)
