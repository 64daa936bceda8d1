"""Link 2 of the Mitsubishi PA10-6CE behind a spring (Lightcap and Banks 2007, table I), as eqs 2 and 10 have it.

Link and motor are as unlike as can be: an even split of inertia and friction would hide what is not told apart.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from dynid_ros.information.flexible_prior import FlexibleJoints
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.fourier import FourierSeries

INERTIA, COULOMB, VISCOUS, STIFFNESS = 6.15, 9.28, 18.38, 1.19e4
GRAVITY_X, GRAVITY_Y = 111.64, -7.80  # m g l_x and m g l_y, N m
MOTOR_INERTIA, MOTOR_VISCOUS = 0.35 * INERTIA, 0.3 * VISCOUS
TRUTH = np.array([INERTIA, GRAVITY_X, GRAVITY_Y, COULOMB, VISCOUS, MOTOR_INERTIA, MOTOR_VISCOUS])
"""The parameters of eq. 6, in its order."""
RESONANCE = math.sqrt(STIFFNESS / INERTIA) / (2 * math.pi)
JOINTS = FlexibleJoints(STIFFNESS, MOTOR_INERTIA, MOTOR_VISCOUS, COULOMB, VISCOUS)
G, MASS = 9.80665, 20.0


def robot(velocity: float = 1.0, effort: float = 300.0) -> RobotModel:
    """The link; at q = 0 it stands upright, and falls towards positive q."""
    x, y = GRAVITY_X / (MASS * G), GRAVITY_Y / (MASS * G)
    inertia = INERTIA - MASS * (x * x + y * y)
    return RobotModel.from_urdf(
        '<robot name="link_2"><link name="base"/><joint name="s2" type="revolute"><parent link="base"/>'
        '<child link="link"/><axis xyz="0 -1 0"/>'
        f'<limit lower="-1.5" upper="1.5" velocity="{velocity}" effort="{effort}"/></joint>'
        f'<link name="link"><inertial><origin xyz="{y!r} 0 {x!r}"/><mass value="{MASS}"/>'
        f'<inertia ixx="{inertia!r}" iyy="{inertia!r}" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )


def steady_motion(
    motor: FourierSeries, time: NDArray, *, coulomb: float = COULOMB, smoothing: float = 0.005, settling: float = 14.0
) -> tuple[NDArray, NDArray]:
    """Position and velocity (N,) of the link at times (N,), by integration of eq. 10 until the transient has died."""
    rate = 2 * np.pi * motor.base_frequency * np.arange(1, motor.n_harmonics + 1)
    sine, cosine, offset = motor.sine[0] / rate, motor.cosine[0] / rate, motor.offset[0]

    def derivative(t: float, state: NDArray) -> tuple[float, float]:
        q, qd = state
        q_m = offset + np.sin(rate * t) @ sine - np.cos(rate * t) @ cosine
        torque = GRAVITY_X * math.sin(q) - GRAVITY_Y * math.cos(q) - coulomb * math.tanh(qd / smoothing)
        return qd, (torque - VISCOUS * qd - STIFFNESS * (q - q_m)) / INERTIA

    # One period is enough, looked at wherever in it a time falls.
    phase, which = np.unique(np.round(time % motor.period, 9), return_inverse=True)
    start = math.ceil(settling / motor.period) * motor.period
    state = [motor.at([0.0])[0][0, 0], 0.0]
    span = (0.0, start + motor.period + 1e-6)
    solved = solve_ivp(derivative, span, state, method="LSODA", t_eval=start + phase, rtol=1e-9, atol=1e-11)
    return solved.y[0, which], solved.y[1, which]


def motor_torque(motor: FourierSeries, time: NDArray, q: NDArray) -> NDArray:
    """(N,) from the second row of eq. 2."""
    q_m, qd_m, qdd_m = (array[:, 0] for array in motor.at(time))
    return STIFFNESS * (q_m - q) + MOTOR_INERTIA * qdd_m + MOTOR_VISCOUS * qd_m
