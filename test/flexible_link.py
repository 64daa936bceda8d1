"""Model link 2 of the Mitsubishi PA10-6CE behind a spring (Lightcap and Banks 2007, table I, eqs 2 and 10)."""

import cmath
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pa10 import FlexibleJoint, table_one
from scipy.integrate import solve_ivp

from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.fourier import FourierSeries

LINK_2 = table_one(2)
INERTIA = LINK_2.inertia
COULOMB = LINK_2.coulomb
VISCOUS = LINK_2.viscous
STIFFNESS = LINK_2.stiffness
GRAVITY_X = LINK_2.gravity_x
GRAVITY_Y = LINK_2.gravity_y
MOTOR_INERTIA = LINK_2.motor_inertia
MOTOR_VISCOUS = LINK_2.motor_viscous
TRUTH = np.array([INERTIA, GRAVITY_X, GRAVITY_Y, COULOMB, VISCOUS, MOTOR_INERTIA, MOTOR_VISCOUS])
"""Parameters of eq. 6, in its order."""
RESONANCE = math.sqrt(STIFFNESS / INERTIA) / (2 * math.pi)
JOINTS = FlexibleJoints(STIFFNESS, MOTOR_INERTIA, MOTOR_VISCOUS, COULOMB, VISCOUS)
G = 9.80665
MASS = 20.0
SETTLING_S = 14.0


def robot(velocity: float = 1.0, effort: float = 300.0) -> RobotModel:
    """Return the link, which is upright at q = 0 and falls towards positive q."""
    x = GRAVITY_X / (MASS * G)
    y = GRAVITY_Y / (MASS * G)
    inertia = INERTIA - MASS * (x * x + y * y)
    return RobotModel.from_urdf(
        '<robot name="link_2"><link name="base"/><joint name="s2" type="revolute"><parent link="base"/>'
        '<child link="link"/><axis xyz="0 -1 0"/>'
        f'<limit lower="-1.5" upper="1.5" velocity="{velocity}" effort="{effort}"/></joint>'
        f'<link name="link"><inertial><origin xyz="{y!r} 0 {x!r}"/><mass value="{MASS}"/>'
        f'<inertia ixx="{inertia!r}" iyy="{inertia!r}" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )


def eq_10(
    joint: FlexibleJoint, motor: FourierSeries, smoothing: float, spring: Callable[[float], float] | None = None
) -> Callable[[float, NDArray], tuple]:
    """Return the time derivative of a link's position and velocity while its motor follows a series.

    The spring is linear unless its torque by the deflection is given.
    """
    spring = spring or (lambda deflection: joint.stiffness * deflection)
    rate = 2 * math.pi * motor.base_frequency
    order = np.arange(motor.n_harmonics, 0, -1)
    weights = ((motor.cosine[0] + 1j * motor.sine[0])[::-1] / (order * rate)).tolist()
    offset = float(motor.offset[0])

    def derivative(t: float, state: NDArray) -> tuple[float, float]:
        q, qd = state
        turn = cmath.exp(1j * rate * t)
        total = 0j
        for weight in weights:
            total = (total + weight) * turn
        torque = joint.gravity_x * math.sin(q) - joint.gravity_y * math.cos(q)
        torque -= joint.coulomb * math.tanh(qd / smoothing) + joint.viscous * qd
        return qd, (torque + spring(offset - total.real - q)) / joint.inertia

    return derivative


def steady_motion(
    motor: FourierSeries, time: NDArray, *, coulomb: float = COULOMB, smoothing: float = 0.005
) -> tuple[NDArray, NDArray]:
    """Return position and velocity (N,) of the link at times (N,) after the transient, by integration of eq. 10."""
    derivative = eq_10(replace(LINK_2, coulomb=coulomb), motor, smoothing)
    # one period, evaluated at the phase of each time
    phase, which = np.unique(np.round(time % motor.period, 9), return_inverse=True)
    start = math.ceil(SETTLING_S / motor.period) * motor.period
    state = [motor.at([0.0])[0][0, 0], 0.0]
    span = (0.0, start + motor.period + 1e-6)
    solved = solve_ivp(derivative, span, state, method="LSODA", t_eval=start + phase, rtol=1e-9, atol=1e-11)
    return solved.y[0, which], solved.y[1, which]


def motor_torque(motor: FourierSeries, time: NDArray, q: NDArray) -> NDArray:
    """Return the torque (N,) of the second row of eq. 2."""
    q_m, qd_m, qdd_m = (array[:, 0] for array in motor.at(time))
    return STIFFNESS * (q_m - q) + MOTOR_INERTIA * qdd_m + MOTOR_VISCOUS * qd_m
