"""Add faults of sensors, gears and the model's geometry to valid recordings, each large enough to matter."""

from dataclasses import replace

import numpy as np
from clean_recordings import Case, set_gravity
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel

MATTERS = 0.05
"""Smallest residual of a joint's torque, relative to its torque, for which a wrong geometry matters."""
VISIBLE, ROWS = 1.33, 300
"""Smallest ratio to the residual of the correct geometry, and number of samples."""
SEEN = 0.02
"""Smallest variation of a joint's torque, relative to the arm's largest, for a fault."""


def _heavy(case: Case) -> np.ndarray:
    spread = np.nanstd(case.recording.torque, axis=0)
    return np.flatnonzero(spread >= SEEN * spread.max())


def encoder_step(case: Case, rng: np.random.Generator) -> Case:
    """Add one to three permanent steps of 3 to 50 mrad (mm) to a joint's position."""
    position = case.recording.position.copy()
    j = rng.integers(case.robot.n_joints)
    for row in rng.integers(20, len(position) - 20, rng.integers(1, 4)):
        position[row:, j] += rng.choice([-1, 1]) * np.exp(rng.uniform(*np.log([0.003, 0.05])))
    return replace(case, recording=replace(case.recording, position=position))


def frozen_torque(case: Case, rng: np.random.Generator) -> Case | None:
    """Hold a torque constant in one to five intervals of 0.2 to 2 s in which it would change by a tenth."""
    recording = case.recording
    torque = recording.torque.copy()
    j = rng.choice(_heavy(case))
    spread = np.nanstd(torque[:, j])
    step = float(np.median(np.diff(recording.time)))
    put = 0
    for _ in range(int(rng.integers(1, 6))):
        length = int(rng.uniform(0.2, 2.0) / step)
        first = int(rng.integers(50, max(51, len(torque) - length - 50)))
        rows = slice(first, first + length)
        moves = np.ptp(recording.position[rows], axis=0).max() > 0.05
        if moves and np.ptp(recording.torque[rows, j]) > 0.1 * spread:
            torque[rows, j] = torque[first, j]
            put += 1
    return replace(case, recording=replace(recording, torque=torque)) if put else None


def torque_drops(case: Case, rng: np.random.Generator) -> Case:
    """Set 5 to 35 % of the samples of a torque to zero, in intervals of 1 to 50 samples."""
    torque = case.recording.torque.copy()
    j = rng.choice(_heavy(case))
    longest = int(rng.integers(1, 51))
    share = rng.uniform(0.05, 0.35)
    while np.mean(torque[:, j] == 0) < share:
        first = int(rng.integers(len(torque)))
        torque[first : first + int(rng.integers(1, longest + 1)), j] = 0.0
    return replace(case, recording=replace(case.recording, torque=torque))


def position_ratio(case: Case, rng: np.random.Generator) -> Case | None:
    """Multiply a joint's angle by two, a half, or a gear ratio of 30 to 160."""
    j = rng.choice(_heavy(case))
    ratio = rng.choice([0.5, 2.0, rng.uniform(30, 160)])
    position = case.recording.position.copy()
    velocity = case.recording.velocity.copy()
    position[:, j] *= ratio
    velocity[:, j] *= ratio
    faulty = replace(case, recording=replace(case.recording, position=position, velocity=velocity))
    return faulty if ratio > 30 or _matters(case, faulty) else None


def encoder_zero(case: Case, rng: np.random.Generator) -> Case | None:
    """Shift a joint's zero by 5 to 20 degrees if the parameters cannot absorb it."""
    revolute = np.flatnonzero(~case.robot.chain.prismatic)
    position = case.recording.position.copy()
    position[:, rng.choice(revolute)] += rng.choice([-1, 1]) * np.radians(rng.uniform(5.0, 20.0))
    faulty = replace(case, recording=replace(case.recording, position=position))
    return faulty if _matters(case, faulty) else None


def unit_of_one_torque(case: Case, rng: np.random.Generator) -> Case:
    """Return a joint's torque in raw counts (100 to 2000 per N m) or in percent of a rated 5 to 50 N m."""
    factor = rng.uniform(100.0, 2000.0) if rng.random() < 0.5 else 100.0 / rng.uniform(5.0, 50.0)
    torque = case.recording.torque.copy()
    torque[:, rng.choice(_heavy(case))] *= factor
    return replace(case, recording=replace(case.recording, torque=torque))


def percent_of_rated_torque(case: Case, rng: np.random.Generator) -> Case | None:
    """Return torques in percent of the effort limits if these differ."""
    limits = case.robot.limits.effort
    if not np.all(np.isfinite(limits) & (limits > 0)) or np.ptp(limits) == 0:
        return None
    return replace(case, recording=replace(case.recording, torque=100.0 * case.recording.torque / limits))


def lag_of_20_ms(case: Case, rng: np.random.Generator) -> Case:
    """Delay all torques by 20 ms."""
    recording = case.recording
    torque = np.column_stack([np.interp(recording.time - 0.02, recording.time, c) for c in recording.torque.T])
    return replace(case, recording=replace(recording, torque=torque).slice(recording.time > 0.02))


def link_origin(case: Case, rng: np.random.Generator) -> Case | None:
    """Shift the origin of a joint after the first by 10 cm if the parameters cannot absorb it."""
    chain = case.robot.chain
    shift = rng.normal(size=3)
    placements = chain.placements.copy()
    placements[rng.integers(1, chain.n_joints), :3, 3] += 0.1 * shift / np.linalg.norm(shift)
    moved = replace(chain, placements=placements)
    robot = RobotModel(moved, case.robot.parameters, case.robot.gravity, case.robot.urdf)
    faulty = replace(case, robot=robot)
    return faulty if _matters(case, faulty) else None


def tilted_base(case: Case, rng: np.random.Generator) -> Case | None:
    """Tilt the base by 5 degrees about any horizontal axis."""
    gravity = case.robot.gravity
    axis = np.cross(gravity, rng.normal(size=3))
    faulty = set_gravity(case, Rotation.from_rotvec(np.radians(5.0) * axis / np.linalg.norm(axis)).apply(gravity))
    return faulty if _matters(case, faulty) else None


def _matters(case: Case, faulty: Case) -> bool:
    """Return whether parameters and friction cannot explain a joint's torque with the wrong geometry.

    The residual of least squares is compared with MATTERS of the torque and VISIBLE times that of the correct geometry.
    """
    heavy = _heavy(case)
    right = _left(case)[heavy]
    wrong = _left(faulty)[heavy]
    more = np.sqrt(np.maximum(wrong**2 - right**2, 0.0))
    size = np.nanstd(case.recording.torque, axis=0)[heavy]
    return bool(np.any((more > MATTERS * size) & (wrong > VISIBLE * right)))


def _left(case: Case) -> np.ndarray:
    """Return the RMS residual (n,) of the linear model in N m, with each joint weighted by its torque."""
    recording = case.recording
    n = case.robot.n_joints
    time = recording.time
    position = recording.position
    rows = np.linspace(20, len(time) - 21, ROWS).astype(int)
    step = max(1, round(0.04 / float(np.median(np.diff(time)))))
    before, now, after = (np.clip(rows + k * step, 0, len(time) - 1) for k in (-1, 0, 1))
    width = ((time[after] - time[before]) / 2)[:, None]
    speed = (position[after] - position[before]) / (2 * width)
    acceleration = (position[after] - 2 * position[now] + position[before]) / width**2
    rigid = case.robot.torque_regressor(position[now], speed, acceleration)
    drive = np.zeros((ROWS, n, n, 4))
    terms = np.stack([np.ones_like(speed), np.tanh(speed / 0.01), speed, acceleration], axis=2)
    drive[:, range(n), range(n)] = terms
    columns = np.concatenate([rigid, drive.reshape(ROWS, n, -1)], axis=2)
    weight = 1 / np.maximum(np.nanstd(recording.torque, axis=0), 1e-9)[:, None]
    target = recording.torque[now]
    flat = (columns * weight).reshape(ROWS * n, -1)
    solution = np.linalg.lstsq(flat, (target * weight[:, 0]).ravel(), rcond=1e-9)[0]
    return np.sqrt(np.mean((target - columns @ solution) ** 2, axis=0))
