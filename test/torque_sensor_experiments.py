"""Simulate experiments on confidence intervals of torque sensors: arms that come to rest with unmodeled friction.

Single joints rotate in steps, up and down, first without and then with a mass, and approach each rest from below and
from above. Each approach is integrated with a servo that knows the arm but not the mass, a rotor, coupled links, and
friction with presliding, a Stribeck peak, a ripple over the angle and dependence on the load. An arm that moves slowly
stops against its friction; a fast one swings back and rests against any part of it.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from clean_recordings import arm as common_arm, fix_other_joints
from pinocchio_arm import example_urdf

from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.simulation import Drives, SimulatedArm
from dynid_ros.simulation.truth import ArmTruth

JUDGED = {
    "alex": ("alex_description/urdf/alex_nub_hands.urdf", "leftNub", "Torso"),
    "centauro": ("centauro_description/urdf/centauro.urdf", "arm1_8", "torso_2"),
}
"""Arms that were not used for tuning: URDF, tip, base."""
STEP = 0.004
REST, SETTLING = 0.5, 0.1
"""Duration of a dwell and of its omitted beginning in s."""
ARRIVAL = 0.6
"""Longest simulated time before a rest in s."""
PEAK = 1.875
"""Ratio of the largest to the mean speed of a minimum-jerk move."""
APPROACH = 0.05
"""Distance of the approach of joints that do not rotate in rad."""
GAIN = 0.1
OFFSET = 0.05
NOISE = 0.005 / np.sqrt(40)
"""Noise of a dwell's mean relative to the range."""
COULOMB = (0.02, 0.1)
"""Range of a joint's friction relative to its largest gravity torque."""
REACH = 0.1
"""Largest distance of the mass's center from the flange in each direction in m."""
SLOW, FAST = 0.25, 2.0
"""Highest speeds of the rotating joint in rad/s."""


@dataclass(frozen=True)
class SensorConditions:
    """Common conditions of experiments.

    Attributes:
        arm: one of `JUDGED`, or of `clean_recordings.ARMS`.
        speed: highest speed of the rotating joint in rad/s.
        steps: dwells per direction.
        poses: number of poses of the other joints, for each joint.
        weight: torque of the mass at full reach relative to the largest gravity torque.
        coulomb: range of a joint's friction relative to its largest gravity torque.
    """

    arm: str
    speed: float = SLOW
    steps: int = 4
    poses: int = 2
    weight: float = 0.25
    coulomb: tuple[float, float] = COULOMB


@dataclass(frozen=True)
class SensorExperiment:
    """Dwells without and with the mass (kg), true gains and offsets (n,), and the range of the readings.

    Friction is symmetric, because half of its difference between directions would add to the offset.
    """

    robot: RobotModel
    samples: Samples
    loaded: np.ndarray
    mass: float
    gain: np.ndarray
    offset: np.ndarray
    size: np.ndarray


@cache
def arm(name: str) -> RobotModel:
    if name not in JUDGED:
        return common_arm(name)
    path, tip, base = JUDGED[name]
    return fix_other_joints(RobotModel.from_urdf(example_urdf(path), tip=tip, base=base), tip, base)


def draw(conditions: SensorConditions, seed: int) -> SensorExperiment:
    """Draw an experiment with its own poses, mass, friction, servo and sensors."""
    rng = np.random.default_rng(seed)
    robot, truth, size, reach = _known(conditions.arm)
    truth.carry(None)
    n = robot.n_joints
    mass = conditions.weight * size.max() / (9.81 * reach)
    load = from_center_of_mass(mass, rng.uniform(-REACH, REACH, 3), 2e-3 * mass * np.eye(3))
    joints = _Joints.draw(truth, size, conditions, rng)
    q, travel = _rotations(robot, conditions, rng)
    model = _Poses(truth, q)
    arrivals = []
    for body in (None, load):
        truth.carry(body)
        arrivals.append(_arrive(truth, model, joints, travel, conditions.speed))
    position, torque = (np.vstack(both) for both in zip(*arrivals, strict=True))
    gain = 1 / (1 + rng.choice([-GAIN, GAIN], n))
    offset = rng.choice([-OFFSET, OFFSET], n) * size
    part = np.repeat([0, 1], len(q))
    samples = Samples(
        position=position,
        velocity=np.zeros_like(position),
        torque=torque / gain + offset + rng.normal(0, NOISE, torque.shape) * size,
        direction=np.tile(np.sign(travel), (2, 1)),
        static=np.ones(len(part), bool),
        time=np.arange(len(part), dtype=float),
        part=part,
    )
    return SensorExperiment(robot, samples, part == 1, mass, gain, offset, size)


@cache
def _known(name: str) -> tuple[RobotModel, ArmTruth, np.ndarray, float]:
    """Return an arm, its truth, its largest gravity torques (n,) and its reach in m."""
    robot = arm(name)
    truth = SimulatedArm(robot, drives=Drives(0.0, 0.0)).truth
    return robot, truth, _largest_gravity(robot, truth), _reach(robot)


def _rotations(robot, conditions, rng):
    """Return poses (M, n) of the dwells, and the distance (M, n) of each joint's move to them."""
    n = robot.n_joints
    steps = conditions.steps
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    poses = []
    travels = []
    for joint in list(range(n)) * conditions.poses:
        ends = lower[joint] + (upper[joint] - lower[joint]) * np.array([0.05, 0.95])
        angles = np.linspace(*ends, steps)
        turned = np.tile(rng.uniform(0.9 * lower + 0.1 * upper, 0.1 * lower + 0.9 * upper), (2 * steps, 1))
        turned[:, joint] = np.concatenate([angles, angles[::-1]])
        side = np.repeat([1.0, -1.0], steps)
        travel = np.tile(APPROACH * side[:, None], (1, n))
        travel[:, joint] = side * min(angles[1] - angles[0], ARRIVAL * conditions.speed / PEAK)
        poses.append(turned)
        travels.append(travel)
    return np.vstack(poses), np.vstack(travels)


def _largest_gravity(robot, truth: ArmTruth) -> np.ndarray:
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    poses = np.random.default_rng(0).uniform(lower, upper, (300, robot.n_joints))
    largest = np.abs(truth.gravity_torque(poses)).max(axis=0)
    return np.maximum(largest, 0.05 * largest.max())


def _reach(robot) -> float:
    """Return the largest distance of the tip link from its mean position in m."""
    poses = np.random.default_rng(0).uniform(-2, 2, (300, robot.n_joints))
    tips = robot.forward_kinematics(poses)[:, -1, :3, 3]
    return float(np.linalg.norm(tips - tips.mean(axis=0), axis=1).max())


@dataclass(frozen=True)
class _Joints:
    """Friction and servo of each joint, (n,) each."""

    coulomb: np.ndarray
    stribeck: np.ndarray
    stribeck_velocity: np.ndarray
    ripple: np.ndarray
    waves: np.ndarray
    phase: np.ndarray
    loaded: np.ndarray
    viscous: np.ndarray
    presliding: np.ndarray
    rotor: np.ndarray
    frequency: np.ndarray
    damping: np.ndarray

    @classmethod
    def draw(cls, truth, size, conditions, rng):
        n = len(size)
        rest = np.zeros((n, n))
        inertia = np.diag(truth.drive_torque(rest, rest, np.eye(n)) - truth.gravity_torque(rest))
        coulomb = size * rng.uniform(*conditions.coulomb, n)
        return cls(
            coulomb=coulomb,
            stribeck=rng.uniform(0.0, 0.3, n),
            stribeck_velocity=rng.uniform(0.03, 0.15, n),
            ripple=rng.uniform(0.0, 0.1, n),
            waves=rng.integers(1, 9, n).astype(float),
            phase=rng.uniform(0, 2 * np.pi, n),
            loaded=rng.uniform(0.0, 0.04, n),
            viscous=coulomb * rng.uniform(0.2, 1.0, n),
            presliding=rng.uniform(0.2e-3, 1e-3, n),
            # The reflected rotor inertia is of the order of the link inertia.
            rotor=np.maximum(inertia, 0.03 * inertia.max()) * rng.uniform(0.3, 1.0, n),
            frequency=rng.uniform(15.0, 60.0, n),
            damping=rng.uniform(0.2, 1.0, n),
        )

    def sliding(self, position, velocity, torque):
        """Return the friction magnitude (M, n) of sliding joints without its viscous part."""
        share = 1 + self.stribeck * np.exp(-((velocity / self.stribeck_velocity) ** 2))
        share += self.ripple * np.sin(self.waves * position + self.phase)
        return self.coulomb * share + self.loaded * np.abs(torque)


class _Poses:
    """Gravity torque (M, n) in poses, its slope and the inertia (M, n, n)."""

    def __init__(self, truth: ArmTruth, q: np.ndarray) -> None:
        units = np.eye(q.shape[1])
        still = np.zeros_like(q)
        self.q = q
        self.gravity = truth.gravity_torque(q)
        columns = [truth.drive_torque(q, still, np.tile(unit, (len(q), 1))) - self.gravity for unit in units]
        self.inertia = np.stack(columns, axis=2)
        self.slope = np.stack([(truth.gravity_torque(q + 1e-4 * u) - self.gravity) / 1e-4 for u in units], axis=2)


def _arrive(truth: ArmTruth, model: _Poses, joints: _Joints, travel, speed):
    """Return mean positions and torques of the drives (M, n) in the dwells.

    Gravity and inertia during a move are those of the dwell's pose, to first order in the distance from it.
    """
    true = _Poses(truth, model.q)
    duration = np.minimum(np.maximum(PEAK * np.abs(travel) / speed, ARRIVAL / 3), ARRIVAL)
    stiffness = (np.diagonal(model.inertia, axis1=1, axis2=2).mean(axis=0) + joints.rotor) * joints.frequency**2
    damping = 2 * joints.damping * stiffness / joints.frequency
    bristles = joints.coulomb / joints.presliding
    # Springs and dampers are integrated implicitly for stability.
    diagonal = joints.rotor + STEP * (damping + joints.viscous + STEP * (stiffness + bristles))
    inverse = np.linalg.inv(true.inertia + np.diag(diagonal))
    off = -travel.copy()
    velocity = np.zeros_like(travel)
    # Initially, the joint comes from the other side, and the mass has deflected the servo.
    bristle = -np.sign(travel) * joints.presliding
    off += (model.gravity - true.gravity) / stiffness
    count = round((duration.max() + REST) / STEP)
    rests: list[tuple] = []
    for k in range(count):
        s = np.clip((k * STEP - (duration.max() - duration)) / duration, 0.0, 1.0)
        way = s**3 * (10 - 15 * s + 6 * s**2) - 1
        rate = 30 * s**2 * (1 - s) ** 2 / duration
        bend = 60 * s * (1 - s) * (1 - 2 * s) / duration**2
        desired = travel * way
        desired_velocity = travel * rate
        desired_acceleration = travel * bend
        feed = model.gravity + _times(model.slope, desired) + _times(model.inertia, desired_acceleration)
        drive = feed + joints.rotor * desired_acceleration
        drive += stiffness * (desired - off) + damping * (desired_velocity - velocity)
        weight = true.gravity + _times(true.slope, off)
        most = joints.sliding(true.q + off, velocity, weight)
        # Bristles deflect, and slip at the largest friction.
        bristle = (bristle + STEP * velocity) / (1 + STEP * np.abs(velocity) * bristles / most)
        friction = bristles * bristle + joints.viscous * velocity
        if k * STEP > duration.max() + SETTLING:
            rests.append((off, drive - weight))
        velocity = velocity + STEP * _times(inverse, drive - friction - weight)
        off = off + STEP * velocity
    away, friction = (np.mean(values, axis=0) for values in zip(*rests, strict=True))
    return true.q + away, truth.gravity_torque(true.q + away) + friction


def _times(matrices, vectors):
    return (matrices @ vectors[:, :, None])[:, :, 0]
