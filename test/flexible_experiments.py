"""Recorded experiments on flexible joints, from equations of motion that owe nothing to the package.

The motors follow a periodic motion exactly. Links follow by eq. 10 of Lightcap and Banks 2007 (one joint, by LSODA) or
by Pinocchio's articulated-body algorithm with springs (six joints, Runge-Kutta of fourth order); the torque is the
second row of eq. 2. Coulomb friction is c tanh(qd / SMOOTHING), so narrow that only stiction differs from a sign. The
integration starts at rest and runs until successive periods agree to 3e-6 rad; from there on the motion repeats.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pa10
import pytest
from flexible_link import eq_10
from numpy.typing import NDArray
from pa10 import FlexibleJoint, table_one
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline

from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.trajectories.fourier import FourierSeries

RATE, DURATION, REPEATS = 250.0, 20.0, 10
MOTOR_NOISE, LINK_NOISE, TORQUE_NOISE = np.deg2rad(0.011), np.deg2rad(0.05), 0.005
"""Standard deviations: rad, rad, and of the RMS of each joint's torque."""
CLOCK_OFFSET = 0.005
"""robot_time = camera_time + CLOCK_OFFSET, s."""
SMOOTHING, ARM_SMOOTHING = 1e-4, 2e-3
"""rad/s"""
ARM_STEP, ARM_PARTS = 5e-4, 6
"""s; and the parts of such a step that resolve a change of a velocity's sign."""
SETTLED = 3e-6
"""rad"""
PERIODS = 60
"""At the most until it has settled."""
SPEED, ARM_SPEEDS = 1.5, np.array([1.5, 1.0, 1.0, 1.5, 1.5, 1.5])
"""Largest of the motors, rad/s: one at a time and together."""
MOTIONS = {1: (8, 11), 2: (5, 3), 3: (5, 3), 4: (8, 7), 5: (8, 15), 6: (8, 11)}
"""Harmonics and seed of each joint's motion, the best of a few; joints 2 and 3 keep off their resonances at 7 Hz."""
ARM_POSE = np.array([0.3, 0.4, 1.2, 0.3, 0.9, 0.2])


@dataclass(frozen=True)
class Springs:
    """Parameters (n,) of the joints of an arm, beside its links."""

    coulomb: NDArray
    viscous: NDArray
    motor_viscous: NDArray
    motor_inertia: NDArray
    stiffness: NDArray

    @staticmethod
    def of(joints: list[FlexibleJoint]) -> "Springs":
        names = ("coulomb", "viscous", "motor_viscous", "motor_inertia", "stiffness")
        return Springs(*(np.array([getattr(joint, name) for joint in joints]) for name in names))


@dataclass(frozen=True)
class LinkMotion:
    """Motion of the links from rest until it repeats.

    Attributes:
        time: (K,) s, the last one a whole number of periods.
        position, velocity: (K, n).
        period: s.

    """

    time: NDArray
    position: NDArray
    velocity: NDArray
    period: float

    def at(self, time: NDArray, settled: bool) -> NDArray:
        """(M, n) positions from the start at rest, or when that has died out."""
        return self._spline(self._where(time, settled))

    def velocity_at(self, time: NDArray, settled: bool) -> NDArray:
        """(M, n)"""
        return self._spline(self._where(time, settled), 1)

    def _where(self, time: NDArray, settled: bool) -> NDArray:
        last = self.time[-1]
        phase = last - self.period + np.mod(time, self.period)
        return phase if settled else np.where(time < last, time, phase)

    @cached_property
    def _spline(self) -> CubicHermiteSpline:
        return CubicHermiteSpline(self.time, self.position, self.velocity)


@dataclass(frozen=True)
class Experiment:
    """What is recorded, and what is true.

    Attributes:
        robot: the arm for the code under test; its masses and inertias are a fifth too small.
        truth: of springs, friction and motors, (n,) each.
        motor_series: what the motors follow.
        time: (N,) s on the robot's clock.
        motor: (N, n) measured rad.
        torque: (N, n) measured N m.
        link_encoder: (N, n) measured link angles on the same clock, rad.
        link_time: (M,) s on the camera's clock; robot_time = camera_time + clock_offset.
        link: (M, n) measured link angles at these, rad.
        exact: motor, torque, link_encoder and link without noise.
        clock_offset: s.

    """

    robot: RobotModel
    truth: Springs
    motor_series: FourierSeries
    time: NDArray
    motor: NDArray
    torque: NDArray
    link_encoder: NDArray
    link_time: NDArray
    link: NDArray
    exact: tuple[NDArray, NDArray, NDArray, NDArray]
    clock_offset: float

    @property
    def links(self) -> LinkAngles:
        """What cameras tell, on their clock."""
        errors, n = np.full_like(self.link, LINK_NOISE), self.link.shape[1]
        return LinkAngles(self.link_time, self.link, errors, np.zeros(0), np.nan, (), (), np.zeros(n))

    @property
    def recording(self) -> Recording:
        """Motors and torques; the links are seen by cameras."""
        unknown = np.full_like(self.motor, np.nan)
        return Recording(self.robot.joint_names, self.time, self.motor, unknown, self.torque, source="experiment")

    @property
    def recording_with_encoders(self) -> Recording:
        """Links are seen by encoders of their own."""
        unknown = np.full_like(self.motor, np.nan)
        return Recording(
            self.robot.joint_names,
            self.time,
            self.motor,
            unknown,
            self.torque,
            link_position=self.link_encoder,
            source="experiment",
        )


def motor_series(
    names: tuple[str, ...], speed: NDArray, base_frequency: float, harmonics: int, seed: int, offset: NDArray
) -> FourierSeries:
    """At rest at time 0, accelerations of all harmonics alike, with these largest speeds (n,)."""
    sine, cosine = np.random.default_rng(seed).standard_normal((2, len(names), harmonics)) / np.arange(1, harmonics + 1)
    series = FourierSeries.at_rest(names, base_frequency, sine, cosine)
    return series.scaled(speed / series.largest()[2]).shifted(offset)


def integrate(
    derivative: Callable[[float, NDArray], tuple], start: list[float], period: float, samples: int
) -> LinkMotion:
    """Motion of one link, state (q, qd), sampled so many times in a period."""
    times, states = [np.zeros(1)], [np.array([start])]
    grid = period * np.arange(1, samples + 1) / samples
    for count in range(PERIODS):
        solved = solve_ivp(
            derivative,
            (count * period, (count + 1) * period),
            states[-1][-1],
            method="LSODA",
            t_eval=np.minimum(count * period + grid, (count + 1) * period),
            rtol=1e-8,
            atol=1e-10,
        )
        times.append(solved.t)
        states.append(solved.y.T)
        if count and np.abs(states[-1][:, 0] - states[-2][:, 0]).max() < SETTLED:
            break
    else:
        raise AssertionError(f"the motion does not settle in {PERIODS} periods")
    state = np.concatenate(states)
    return LinkMotion(np.concatenate(times), state[:, :1], state[:, 1:], period)


def link_motion(row: FlexibleJoint, motor: FourierSeries, smoothing: float = SMOOTHING) -> LinkMotion:
    """Of one joint as eq. 10 has it, from its equilibrium without friction."""
    q = start = float(motor.at([0.0])[0][0, 0])
    for _ in range(50):
        q = start + (row.gravity_x * math.sin(q) - row.gravity_y * math.cos(q)) / row.stiffness
    return integrate(eq_10(row, motor, smoothing), [q, 0.0], motor.period, math.ceil(motor.period / 2.5e-4))


def arm_motion(urdf: str, springs: Springs, motor: FourierSeries, smoothing: float = ARM_SMOOTHING) -> LinkMotion:
    """Of a whole arm, by Pinocchio, from its equilibrium without friction."""
    pin = pytest.importorskip("pinocchio")
    model = pa10.pinocchio_model(urdf)
    data = model.createData()
    steps = math.ceil(motor.period / ARM_STEP)
    h = motor.period / steps
    followed = motor.at(h / (2 * ARM_PARTS) * np.arange(2 * ARM_PARTS * steps + 1))[0]
    q = followed[0]
    for _ in range(50):
        q = followed[0] - pin.computeGeneralizedGravity(model, data, q) / springs.stiffness
    positions, velocities = [q[None]], [np.zeros((1, len(q)))]
    for count in range(PERIODS):
        position, velocity = march(model, springs, followed, h, positions[-1][-1], velocities[-1][-1], smoothing)
        settled = count and np.abs(position - positions[-1]).max() < SETTLED
        positions.append(position)
        velocities.append(velocity)
        if settled:
            break
    else:
        raise AssertionError(f"the motion does not settle in {PERIODS} periods")
    position, velocity = np.concatenate(positions), np.concatenate(velocities)
    return LinkMotion(h * np.arange(len(position)), position, velocity, motor.period)


def march(
    model, springs: Springs, followed: NDArray, h: float, q: NDArray, qd: NDArray, smoothing: float = ARM_SMOOTHING
) -> tuple[NDArray, NDArray]:
    """Positions and velocities (K, n) after each of K steps of Runge and Kutta from q and qd (n,).

    Args:
        model: of Pinocchio.
        springs: as they are.
        followed: (2 `ARM_PARTS` K + 1, n) positions of the motors, so many to a step.
        h: a step, s; one in which the velocity of a joint changes its sign is made in `ARM_PARTS` parts.
        q: position at first.
        qd: velocity at first.
        smoothing: of Coulomb friction, rad/s.

    """
    pin = pytest.importorskip("pinocchio")
    data = model.createData()
    stiffness, coulomb, viscous = springs.stiffness, springs.coulomb, springs.viscous

    def acceleration(q: NDArray, qd: NDArray, q_m: NDArray) -> NDArray:
        torque = stiffness * (q_m - q) - coulomb * np.tanh(qd / smoothing) - viscous * qd
        return pin.aba(model, data, q, qd, torque).copy()

    def step(q: NDArray, qd: NDArray, a1: NDArray, h: float, middle: NDArray, end: NDArray) -> tuple:
        v2 = qd + h / 2 * a1
        a2 = acceleration(q + h / 2 * qd, v2, middle)
        v3 = qd + h / 2 * a2
        a3 = acceleration(q + h / 2 * v2, v3, middle)
        v4 = qd + h * a3
        a4 = acceleration(q + h * v3, v4, end)
        return q + h / 6 * (qd + 2 * v2 + 2 * v3 + v4), qd + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    parts, count = ARM_PARTS, (len(followed) - 1) // (2 * ARM_PARTS)
    positions, velocities = np.empty((2, count, len(q)))
    for k in range(count):
        motors = followed[2 * parts * k : 2 * parts * (k + 1) + 1]
        a1 = acceleration(q, qd, motors[0])
        if (np.abs(qd) < 1.5 * h * np.abs(a1) + 5 * smoothing).any():
            for i in range(0, 2 * parts, 2):
                a1 = acceleration(q, qd, motors[i])
                q, qd = step(q, qd, a1, h / parts, motors[i + 1], motors[i + 2])
        else:
            q, qd = step(q, qd, a1, h, motors[parts], motors[2 * parts])
        positions[k], velocities[k] = q, qd
    return positions, velocities


def single_joint_motion(
    joint: int, base_frequency: float = 1.0, harmonics: int | None = None, motion: int | None = None
) -> tuple[FourierSeries, LinkMotion]:
    """Of motor and link; see `single_joint`."""
    usual = MOTIONS[joint]
    return _single_joint_motion(
        joint, base_frequency, usual[0] if harmonics is None else harmonics, usual[1] if motion is None else motion
    )


@lru_cache(maxsize=32)
def _single_joint_motion(
    joint: int, base_frequency: float, harmonics: int, motion: int
) -> tuple[FourierSeries, LinkMotion]:
    series = motor_series((f"joint_{joint}",), np.array([SPEED]), base_frequency, harmonics, motion, np.array([0.3]))
    return series, link_motion(table_one(joint), series)


def six_joint_motion(
    base_frequency: float = 1.0, harmonics: int = 8, motion: int = 0
) -> tuple[FourierSeries, LinkMotion]:
    """Of motors and links; see `single_joint`."""
    return _six_joint_motion(base_frequency, harmonics, motion)


@lru_cache(maxsize=8)
def _six_joint_motion(base_frequency: float, harmonics: int, motion: int) -> tuple[FourierSeries, LinkMotion]:
    names = tuple(f"joint_{joint}" for joint in range(1, 7))
    series = motor_series(names, ARM_SPEEDS, base_frequency, harmonics, motion, ARM_POSE)
    return series, arm_motion(pa10.arm_urdf(), arm_springs(), series)


def arm_springs() -> Springs:
    """Table I's, of the six-joint arm."""
    return Springs.of([table_one(joint) for joint in range(1, 7)])


def single_joint(
    joint: int,
    repeat: int = 0,
    *,
    base_frequency: float = 1.0,
    harmonics: int | None = None,
    motion: int | None = None,
    settled: bool = True,
    noise: float = 1.0,
    clock_offset: float = CLOCK_OFFSET,
) -> Experiment:
    """Joint 1 to 6 of table I alone, the others held.

    Args:
        joint: 1 to 6.
        repeat: seed of the noise.
        base_frequency: of the motors' motion, Hz.
        harmonics: None: the joint's usual ones.
        motion: seed of the motors' motion; None: the joint's usual one.
        settled: the transient from rest has died out before the record starts.
        noise: times the usual.
        clock_offset: s.

    """
    series, links = single_joint_motion(joint, base_frequency, harmonics, motion)
    springs = Springs.of([table_one(joint)])
    rng = np.random.default_rng([joint, repeat])
    return _recorded(pa10.single_joint_robot(joint), springs, series, links, settled, noise, clock_offset, rng)


def six_joints(
    repeat: int = 0,
    *,
    base_frequency: float = 1.0,
    harmonics: int = 8,
    motion: int = 0,
    settled: bool = True,
    noise: float = 1.0,
    clock_offset: float = CLOCK_OFFSET,
) -> Experiment:
    """All joints of the arm at once; see `single_joint`."""
    series, links = six_joint_motion(base_frequency, harmonics, motion)
    rng = np.random.default_rng([6, repeat])
    return _recorded(pa10.arm_robot(), arm_springs(), series, links, settled, noise, clock_offset, rng)


def shortened(experiment: Experiment, seconds: float) -> Experiment:
    """The first seconds of it."""
    rows = slice(round(seconds * RATE))
    names = ("time", "motor", "torque", "link_encoder", "link_time", "link")
    exact = tuple(values[rows] for values in experiment.exact)
    return replace(experiment, exact=exact, **{name: getattr(experiment, name)[rows] for name in names})


def _recorded(
    robot: RobotModel,
    springs: Springs,
    series: FourierSeries,
    links: LinkMotion,
    settled: bool,
    noise: float,
    clock_offset: float,
    rng: np.random.Generator,
) -> Experiment:
    time = np.arange(round(DURATION * RATE)) / RATE
    motor, motor_velocity, motor_acceleration = series.at(time)
    encoder, link = links.at(time, settled), links.at(time + clock_offset, settled)
    torque = springs.stiffness * (motor - encoder)
    torque += springs.motor_inertia * motor_acceleration + springs.motor_viscous * motor_velocity
    torque_noise = TORQUE_NOISE * np.sqrt(np.mean(torque**2, axis=0))
    exact = (motor, torque, encoder, link)
    scales = (MOTOR_NOISE, torque_noise, LINK_NOISE, LINK_NOISE)
    measured = [
        values + noise * scale * rng.standard_normal(values.shape) for values, scale in zip(exact, scales, strict=True)
    ]
    # The camera's stamps tick on its own clock, which is behind.
    return Experiment(robot, springs, series, time, *measured[:3], time, measured[3], exact, clock_offset)
