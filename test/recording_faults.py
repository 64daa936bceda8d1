"""Add faults to valid recordings, each large enough to matter, and name the kind of finding that reports it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import sensor_faults
from clean_recordings import Case, clean_case, perturb_links, set_gravity
from gate_arms import gate_arm
from gate_recordings import MOTIONS
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from dynid_ros.errors import ModelError
from dynid_ros.recording import Finding, Recording
from dynid_ros.signals import LowPass, resample

SEEN = 0.02
"""Smallest variation of a joint's torque, relative to the arm's largest, for which signs and order matter."""
ALIKE = 0.5
"""Relative difference below which motions are alike."""
Fault = Callable[[Case, np.random.Generator], Case | None]


@dataclass(frozen=True)
class Kind:
    """Fault and its finding.

    Attributes:
        finding: kind of the finding that reports the fault.
        also: other correct findings.
        put: function that returns the faulty case, or None if the fault would not matter in this recording.
        motions: motions that make the fault visible.
        channel: whether the fault is visible without a robot model.
    """

    finding: str
    put: Fault
    also: tuple[str, ...] = ()
    motions: tuple[str, ...] = ("fourier",)
    channel: bool = False

    def found(self, findings: list[Finding]) -> bool:
        return any(f.kind in (self.finding, *self.also) for f in findings)


def _changed(case: Case, **arrays: np.ndarray) -> Case:
    return replace(case, recording=replace(case.recording, **arrays))


def _heavy(case: Case) -> np.ndarray:
    spread = np.nanstd(case.recording.torque, axis=0)
    return np.flatnonzero(spread >= SEEN * spread.max())


def _one(case: Case, rng: np.random.Generator) -> int:
    return int(rng.choice(_heavy(case)))


def current(case, rng):
    """Return motor current in A (5 to 60 N m / A at the joint) or mA, or torque before a gear of 30 to 160."""
    n = case.robot.n_joints
    gains = rng.choice([1.0, 1e-3]) * rng.uniform(5, 60, n) if rng.random() < 0.7 else rng.uniform(30, 160, n)
    return _changed(case, torque=case.recording.torque / gains)


def compensated(case, rng):
    """Subtract gravity by a driver model with errors of up to 10 %."""
    return _changed(case, torque=case.recording.torque - case.gravity)


def all_signs(case, rng):
    return _changed(case, torque=-case.recording.torque)


def torque_sign(case, rng):
    torque = case.recording.torque.copy()
    torque[:, _one(case, rng)] *= -1
    return _changed(case, torque=torque)


def position_sign(case, rng):
    j = _one(case, rng)
    position = case.recording.position.copy()
    velocity = case.recording.velocity.copy()
    position[:, j] *= -1
    velocity[:, j] *= -1
    return _within(_changed(case, position=position, velocity=velocity))


def _swap(case: Case, rng: np.random.Generator) -> np.ndarray:
    i, j = rng.choice(_heavy(case), 2, replace=False)
    order = np.arange(case.robot.n_joints)
    order[[i, j]] = j, i
    return order


def torque_swap(case, rng):
    return _changed(case, torque=case.recording.torque[:, _swap(case, rng)])


def position_swap(case, rng):
    """Exchange positions of two joints that move differently."""
    order = _swap(case, rng)
    recording = case.recording
    moved = recording.position - recording.position.mean(axis=0)
    if np.max(np.std(moved - moved[:, order], axis=0) / np.std(moved, axis=0)) < ALIKE:
        return None
    return _within(_changed(case, position=recording.position[:, order], velocity=recording.velocity[:, order]))


def _within(case: Case) -> Case | None:
    """Return the case if its positions exceed the limits by less than half a turn, otherwise None."""
    limits = case.robot.limits
    position = case.recording.position
    beyond = np.maximum(limits.lower - position.min(axis=0), position.max(axis=0) - limits.upper)
    return case if np.all(beyond < np.pi) else None


def gravity_direction(case, rng):
    """Change gravity to a wall (90 degrees), ceiling (180) or a tilt of 20 to 60 degrees about any horizontal axis."""
    gravity = case.robot.gravity
    axis = np.cross(gravity, rng.normal(size=3))
    angle = np.radians(rng.choice([90.0, 180.0, rng.uniform(20, 60)]))
    return set_gravity(case, Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).apply(gravity))


def lag(case, rng):
    """Shift the torque by 20 to 100 ms."""
    recording = case.recording
    shift = rng.choice([-1, 1]) * rng.uniform(0.02, 0.1)
    late = recording.time - shift
    torque = np.column_stack([np.interp(late, recording.time, column) for column in recording.torque.T])
    inside = (late >= recording.time[0]) & (late <= recording.time[-1])
    return replace(case, recording=replace(recording, torque=torque).slice(inside))


def _clip(case: Case, rng: np.random.Generator, channel: str) -> Case | None:
    """Clip the largest 5 to 20 % of the samples."""
    values = getattr(case.recording, channel).copy()
    j = _one(case, rng)
    if np.isnan(values[:, j]).any():
        return None
    share = rng.uniform(0.05, 0.2)
    if rng.random() < 0.5:
        values[:, j] = np.minimum(values[:, j], np.quantile(values[:, j], 1 - share))
    else:
        values[:, j] = np.maximum(values[:, j], np.quantile(values[:, j], share))
    return _changed(case, **{channel: values})


def _constant(case: Case, rng: np.random.Generator, channel: str) -> Case | None:
    values = getattr(case.recording, channel).copy()
    j = _one(case, rng)
    if np.isnan(values[:, j]).any() or (channel == "position" and np.isnan(case.recording.velocity[:, j]).any()):
        return None
    values[:, j] = rng.choice([0.0, values[0, j]])
    return _changed(case, **{channel: values})


def gaps(case, rng):
    """Remove samples in 2 to 20 gaps of 2 to 40 samples and at least 25 ms, too long for interpolation."""
    recording = case.recording
    mask = np.ones(recording.n_samples, bool)
    step = np.median(np.diff(recording.time))
    for start in rng.integers(10, recording.n_samples - 60, rng.integers(2, 20)):
        mask[start : start + max(int(rng.integers(2, 40)), int(0.025 / step) + 2)] = False
    return replace(case, recording=recording.slice(mask))


def repeated_rows(case, rng):
    """Repeat the previous row with a new stamp in 5 to 50 % of the rows."""
    recording = case.recording
    fresh = rng.random(recording.n_samples) > rng.uniform(0.05, 0.5)
    fresh[0] = True
    rows = np.maximum.accumulate(np.where(fresh, np.arange(recording.n_samples), 0))
    return _changed(
        case, position=recording.position[rows], velocity=recording.velocity[rows], torque=recording.torque[rows]
    )


def small_motion(case, rng):
    """Move each joint by half a degree to 3 degrees; for simulated arms only."""
    return _moved(case, rng, rng.uniform(0.002, 0.02))


def _moved(case: Case, rng: np.random.Generator, amplitude: float | np.ndarray) -> Case | None:
    """Return another recording of the same arm; None for a real one, or if MuJoCo fails."""
    try:
        return clean_case(rng, case.name, amplitude, gate_arm) if case.simulated else None
    except ModelError:
        return None


def resting_joint(case, rng):
    amplitude = np.ones(case.robot.n_joints)
    amplitude[rng.integers(case.robot.n_joints)] = 0.0
    return _moved(case, rng, amplitude)


def short_motion(case, rng):
    """Return 0.5 to 2.5 s of the recording."""
    recording = case.recording
    start = rng.uniform(0.2, 0.8) * recording.duration
    inside = (recording.time >= start) & (recording.time < start + rng.uniform(0.5, 2.5))
    return replace(case, recording=recording.slice(inside)) if np.sum(inside) >= 10 else None


def all_at_rest(case, rng):
    return _moved(case, rng, 0.0)


def _uniform(recording: Recording) -> tuple[Recording, float]:
    values = resample(recording.time, np.hstack([recording.position, recording.torque]))
    longest = max(values.segments, key=lambda segment: len(segment.time))
    position, torque = np.hsplit(longest.values, 2)
    velocity = np.full_like(position, np.nan)
    return replace(recording, time=longest.time, position=position, velocity=velocity, torque=torque), values.rate


def filtered_torque(case, rng):
    """Low-pass torques at 0.3 to 0.7 of the highest frequency of the motion."""
    recording, rate = _uniform(case.recording)
    low_pass = LowPass(rng.uniform(0.3, 0.7) * case.bandwidth, rate, order=int(rng.integers(1, 5)))
    return replace(case, recording=replace(recording, torque=low_pass.filter(recording.torque)))


def filtered_all(case, rng):
    """Low-pass all signals steeply at 0.5 to 1 of the highest frequency of the motion."""
    recording, rate = _uniform(case.recording)
    low_pass = LowPass(rng.uniform(0.5, 1.0) * case.bandwidth, rate)
    position = low_pass.filter(recording.position)
    torque = low_pass.filter(recording.torque)
    return replace(case, recording=replace(recording, position=position, torque=torque))


def _velocity(recording: Recording) -> np.ndarray:
    step = float(np.median(np.diff(recording.time)))
    window = max(5, int(0.1 / step) // 2 * 2 + 1)
    return savgol_filter(recording.position, window, 2, deriv=1, delta=step, axis=0)


def _drift(case: Case, rng: np.random.Generator, shape: np.ndarray) -> Case | None:
    """Add a change to all joints, linear or fast at first, if friction is a fifth of the torque in one joint."""
    recording = case.recording
    heavy = _heavy(case)
    if np.max(case.friction[heavy] / recording.torque[:, heavy].std(axis=0)) < 0.2:
        return None
    now = (recording.time - recording.time[0]) / recording.duration
    course = now if rng.random() < 0.5 else (1 - np.exp(-3 * now)) / (1 - np.exp(-3))
    return _changed(case, torque=recording.torque - course[:, None] * case.friction * shape)


def friction_drift(case, rng):
    """Reduce friction by 20 to 50 % over time."""
    direction = np.tanh(_velocity(case.recording) / 0.01)
    return _drift(case, rng, rng.uniform(0.2, 0.5, case.robot.n_joints) * direction)


def offset_drift(case, rng):
    """Change offsets by 20 to 50 % of the friction."""
    n = case.robot.n_joints
    return _drift(case, rng, rng.uniform(0.2, 0.5, n) * rng.choice([-1, 1], n))


def degrees(case, rng):
    recording = case.recording
    return _changed(case, position=np.rad2deg(recording.position), velocity=np.rad2deg(recording.velocity))


def wild_torque(case, rng):
    """Set a few samples to a million."""
    torque = case.recording.torque.copy()
    torque[rng.integers(len(torque), size=rng.integers(1, 5)), rng.integers(case.robot.n_joints)] = 1e6
    return _changed(case, torque=torque)


def encoder_glitch(case, rng):
    """Add a full turn or at least one radian to a sample."""
    position = case.recording.position.copy()
    j = rng.integers(case.robot.n_joints)
    if rng.random() < 0.5:
        position[rng.integers(10, len(position) - 10) :, j] += 2 * np.pi
    else:
        position[rng.integers(10, len(position) - 10), j] += rng.choice([-1, 1]) * rng.uniform(1, 10)
    return _changed(case, position=position)


UNLIKE = (("demo", "kinova"), ("panda", "xarm7", "z1"), ("romeo", "icub"))
"""Arms with equal numbers of joints but other proportions or orientations."""


def other_robot(case, rng):
    """Replace the model by that of an arm with another arrangement of joints."""
    others = [name for group in UNLIKE if case.name in group for name in group if name != case.name]
    if not others:
        return None
    robot = perturb_links(gate_arm(str(rng.choice(others))), rng)
    return replace(case, robot=robot, recording=replace(case.recording, joint_names=robot.joint_names))


FAULTS: dict[str, Kind] = {
    "motor current": Kind("motor current", current),
    "gravity compensated": Kind("gravity compensated", compensated),
    "all torques' signs": Kind("wrong sign", all_signs),
    "a torque's sign": Kind("wrong sign", torque_sign),
    "a position's sign": Kind("wrong sign", position_sign),
    "torques swapped": Kind("swapped joints", torque_swap),
    "positions swapped": Kind("swapped joints", position_swap),
    "gravity direction": Kind("gravity direction", gravity_direction),
    "time lag": Kind("time lag", lag),
    "torque clipped": Kind("clipped channel", lambda case, rng: _clip(case, rng, "torque"), channel=True),
    "position clipped": Kind("clipped channel", lambda case, rng: _clip(case, rng, "position"), channel=True),
    "velocity clipped": Kind("clipped channel", lambda case, rng: _clip(case, rng, "velocity"), channel=True),
    "torque constant": Kind("constant channel", lambda case, rng: _constant(case, rng, "torque"), channel=True),
    "position constant": Kind("constant channel", lambda case, rng: _constant(case, rng, "position"), channel=True),
    "velocity constant": Kind("constant channel", lambda case, rng: _constant(case, rng, "velocity"), channel=True),
    "gaps": Kind("gaps", gaps, channel=True),
    "repeated rows": Kind("repeated rows", repeated_rows, channel=True),
    "small motion": Kind("too little motion", small_motion),
    "a resting joint": Kind("too little motion", resting_joint),
    "short motion": Kind("too little motion", short_motion),
    "all at rest": Kind("too little motion", all_at_rest),
    "torque low-passed": Kind("low-passed", filtered_torque),
    "all low-passed": Kind("low-passed", filtered_all),
    "friction drifts": Kind("drift", friction_drift),
    "offset drifts": Kind("drift", offset_drift),
    "degrees": Kind("absurd value", degrees),
    "wild torque": Kind("absurd value", wild_torque),
    "encoder glitch": Kind("absurd value", encoder_glitch),
    "other robot": Kind("other robot", other_robot, ("beyond limits", "swapped joints", "wrong sign")),
    "encoder steps": Kind("position step", sensor_faults.encoder_step, motions=MOTIONS, channel=True),
    "torque freezes": Kind("frozen torque", sensor_faults.frozen_torque, motions=MOTIONS, channel=True),
    "torque drops to 0": Kind("frozen torque", sensor_faults.torque_drops, motions=MOTIONS, channel=True),
    "a position's ratio": Kind("position ratio", sensor_faults.position_ratio, ("absurd value", "beyond limits")),
    "a link's origin": Kind("link origin", sensor_faults.link_origin, ("other robot",), ("fast",)),
    "an encoder's zero": Kind("encoder zero", sensor_faults.encoder_zero, motions=MOTIONS),
    "unit of one torque": Kind(
        "motor current", sensor_faults.unit_of_one_torque, ("absurd value",), motions=("fourier", "fast", "stops")
    ),
    "percent of rated": Kind("motor current", sensor_faults.percent_of_rated_torque, motions=("fourier", "fast")),
    "lag of 20 ms": Kind("time lag", sensor_faults.lag_of_20_ms, motions=("fourier", "fast", "stops", "turns")),
    "base tilted by 5°": Kind("gravity direction", sensor_faults.tilted_base),
}
