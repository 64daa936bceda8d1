"""Simulate links behind springs by equations of motion that are independent of the package.

The motors follow a periodic motion exactly. Links follow eq. 10 of Lightcap and Banks 2007 (one joint, by LSODA) or
Pinocchio's articulated-body algorithm with springs (six joints, by fourth-order Runge-Kutta). Coulomb friction is
c tanh(qd / SMOOTHING). The integration starts at rest and ends when successive periods agree to 3e-6 rad; from there on
the motion is periodic.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pa10
import pytest
from flexible_link import eq_10
from numpy.typing import NDArray
from pa10 import FlexibleJoint
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline

from dynid_ros.trajectories.fourier import FourierSeries

SMOOTHING, ARM_SMOOTHING = 1e-4, 2e-3
"""rad/s"""
ARM_STEP, ARM_PARTS = 5e-4, 6
"""Step in s, and the number of its parts if a velocity changes its sign."""
SETTLED = 3e-6
"""rad"""
PERIODS = 60
"""Largest number of periods until the motion is periodic."""


@dataclass(frozen=True)
class Springs:
    """Parameters (n,) of the joints of an arm without those of its links."""

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
    """Motion of the links from rest until it is periodic.

    Attributes:
        time: (K,) in s, ending at a whole number of periods.
        position, velocity: (K, n).
        period: period in s.
    """

    time: NDArray
    position: NDArray
    velocity: NDArray
    period: float

    def at(self, time: NDArray, settled: bool) -> NDArray:
        """Return positions (M, n) from the start at rest, or of the periodic motion."""
        return self._spline(self._where(time, settled))

    def velocity_at(self, time: NDArray, settled: bool) -> NDArray:
        """Return velocities (M, n)."""
        return self._spline(self._where(time, settled), 1)

    def _where(self, time: NDArray, settled: bool) -> NDArray:
        last = self.time[-1]
        phase = last - self.period + np.mod(time, self.period)
        return phase if settled else np.where(time < last, time, phase)

    @cached_property
    def _spline(self) -> CubicHermiteSpline:
        return CubicHermiteSpline(self.time, self.position, self.velocity)


def motor_series(
    names: tuple[str, ...], speed: NDArray, base_frequency: float, harmonics: int, seed: int, offset: NDArray
) -> FourierSeries:
    """Return a motion with largest speeds (n,) and equal accelerations of all harmonics, at rest at time 0."""
    sine, cosine = np.random.default_rng(seed).standard_normal((2, len(names), harmonics)) / np.arange(1, harmonics + 1)
    series = FourierSeries.at_rest(names, base_frequency, sine, cosine)
    return series.scaled(speed / series.peaks()[2]).shifted(offset)


def integrate(
    derivative: Callable[[float, NDArray], tuple], start: list[float], period: float, samples: int
) -> LinkMotion:
    """Return the motion of one link with state (q, qd), with this number of samples per period."""
    times = [np.zeros(1)]
    states = [np.array([start])]
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
    """Return the motion of one joint by eq. 10, from its equilibrium without friction."""
    q = start = float(motor.at([0.0])[0][0, 0])
    for _ in range(50):
        q = start + (row.gravity_x * math.sin(q) - row.gravity_y * math.cos(q)) / row.stiffness
    return integrate(eq_10(row, motor, smoothing), [q, 0.0], motor.period, math.ceil(motor.period / 2.5e-4))


def arm_motion(urdf: str, springs: Springs, motor: FourierSeries, smoothing: float = ARM_SMOOTHING) -> LinkMotion:
    """Return the motion of an arm by Pinocchio, from its equilibrium without friction."""
    pin = pytest.importorskip("pinocchio")
    model = pa10.pinocchio_model(urdf)
    data = model.createData()
    steps = math.ceil(motor.period / ARM_STEP)
    h = motor.period / steps
    followed = motor.at(h / (2 * ARM_PARTS) * np.arange(2 * ARM_PARTS * steps + 1))[0]
    q = followed[0]
    for _ in range(50):
        q = followed[0] - pin.computeGeneralizedGravity(model, data, q) / springs.stiffness
    positions = [q[None]]
    velocities = [np.zeros((1, len(q)))]
    for count in range(PERIODS):
        position, velocity = march(model, springs, followed, h, positions[-1][-1], velocities[-1][-1], smoothing)
        settled = count and np.abs(position - positions[-1]).max() < SETTLED
        positions.append(position)
        velocities.append(velocity)
        if settled:
            break
    else:
        raise AssertionError(f"the motion does not settle in {PERIODS} periods")
    position = np.concatenate(positions)
    velocity = np.concatenate(velocities)
    return LinkMotion(h * np.arange(len(position)), position, velocity, motor.period)


def march(
    model, springs: Springs, followed: NDArray, h: float, q: NDArray, qd: NDArray, smoothing: float = ARM_SMOOTHING
) -> tuple[NDArray, NDArray]:
    """Return positions and velocities (K, n) after each of K Runge-Kutta steps from q and qd (n,).

    Args:
        model: model of Pinocchio.
        springs: springs, friction and motors.
        followed: (2 `ARM_PARTS` K + 1, n) positions of the motors, 2 `ARM_PARTS` per step.
        h: step in s; a step in which a velocity changes its sign is divided into `ARM_PARTS` parts.
        q: initial position.
        qd: initial velocity.
        smoothing: smoothing of Coulomb friction in rad/s.
    """
    pin = pytest.importorskip("pinocchio")
    data = model.createData()
    stiffness = springs.stiffness
    coulomb = springs.coulomb
    viscous = springs.viscous

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

    parts = ARM_PARTS
    count = (len(followed) - 1) // (2 * ARM_PARTS)
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
        positions[k] = q
        velocities[k] = qd
    return positions, velocities
