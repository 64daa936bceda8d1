"""Compute the Cramér-Rao bound of a flexible-joint experiment, a lower bound of the errors of unbiased estimates.

The sensitivities of the links' motion solve the variational equations of the dynamics, linearized by Pinocchio along
the integrated motion and solved by the trapezoidal rule with periodic boundary conditions.

Nuisance parameters are the Fourier coefficients of the motors and, optionally, a constant of each link's angle and the
clock offset. The smoothing of Coulomb friction must be wider than the steps.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pa10
import pytest
from flexible_experiments import (
    DURATION,
    LINK_NOISE,
    MOTOR_NOISE,
    RATE,
    TORQUE_NOISE,
    arm_springs,
    single_joint_motion,
    six_joint_motion,
)
from flexible_motion import LinkMotion, Springs, arm_motion, link_motion
from numpy.typing import NDArray
from pinocchio_arm import REGRESSOR_ORDER
from scipy.linalg import qr

from dynid_ros.trajectories.fourier import FourierSeries

SMOOTHING = 1e-2
"""Smoothing of Coulomb friction in rad/s."""
KINDS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
TERMS = ("coulomb", "viscous", "stiffness", "motor_inertia", "motor_viscous")


@dataclass(frozen=True)
class Bound:
    """Smallest standard deviations of unbiased estimates.

    Attributes:
        names: names of the links' base parameters such as "Iyy1", then "coulomb 1" and so on, without nuisances.
        truth: true values, NaN if not given.
        deviations: standard deviations in the parameters' units.
        clock: standard deviation of the clock offset in s, NaN if it is known.
    """

    names: tuple[str, ...]
    truth: NDArray
    deviations: NDArray
    clock: float

    def deviation(self, name: str) -> float:
        return float(self.deviations[self.names.index(name)])

    def percent(self, name: str) -> float:
        """Return the standard deviation in percent of the true value."""
        return 100 * self.deviation(name) / abs(float(self.truth[self.names.index(name)]))


class Sensitivities(NamedTuple):
    """Derivatives (K, n, P) of measurements with respect to parameters and nuisances on a grid of times.

    The first columns are the parameters of `names`, the others 1 + 2 H coefficients for each motor.
    `velocity` (K, n) is the links' velocity, `exact_torque` (K, n) the motors' torque.
    """

    names: tuple[str, ...]
    step: float
    motor: NDArray
    link: NDArray
    torque: NDArray
    velocity: NDArray
    exact_torque: NDArray


def sensitivities(
    urdf: str,
    springs: Springs,
    motor: FourierSeries,
    links: LinkMotion,
    smoothing: float,
    *,
    columns: list[int] | None = None,
    step: float = 1e-4,
) -> Sensitivities:
    """Return sensitivities over one period of the periodic motion; see `cramer_rao`."""
    pin = pytest.importorskip("pinocchio")
    model = pa10.pinocchio_model(urdf)
    data = model.createData()
    n = model.nv
    count = math.ceil(motor.period / step)
    step = motor.period / count
    time = step * np.arange(count + 1)
    q = links.at(time, settled=True)
    qd = links.velocity_at(time, settled=True)
    q_m, qd_m, qdd_m = motor.at(time)
    direction = np.tanh(qd / smoothing)
    damping = springs.viscous + springs.coulomb * (1 - direction**2) / smoothing
    spring = springs.stiffness * (q_m - q)
    through = spring - springs.coulomb * direction - springs.viscous * qd

    along = np.empty((count + 1, n, 2 * n))
    inverse = np.empty((count + 1, n, n))
    columns = _independent_columns(pin, model) if columns is None else columns
    regressor = np.empty((count + 1, n, len(columns)))
    for i in range(count + 1):
        by_q, by_qd, inverse[i] = pin.computeABADerivatives(model, data, q[i], qd[i], through[i])
        along[i, :, :n] = by_q - inverse[i] * springs.stiffness
        along[i, :, n:] = by_qd - inverse[i] * damping[i]
        regressor[i] = _regressor(pin, model, data, q[i], qd[i], data.ddq)[:, columns]

    position, velocity, acceleration = _coefficients(motor, time)
    size = position.shape[-1]
    own = np.eye(n)

    def each(values: NDArray) -> NDArray:
        """Return columns (K, n, n size) for coefficients (K, n, size) that each act on one joint."""
        return np.einsum("kif,ij->kijf", values, own).reshape(count + 1, n, n * size)

    none = np.zeros((count + 1, n, n))
    by_coefficients = each(springs.stiffness[:, None] * position[:, None])
    forces = [-regressor, -own * direction[:, :, None], -own * qd[:, :, None], own * (q_m - q)[:, :, None]]
    forces = np.concatenate([*forces, none, none, by_coefficients], axis=2)
    link = _solved(along, np.einsum("kij,kjp->kip", inverse, forces), step)

    direct = [np.zeros((count + 1, n, len(columns) + 2 * n)), own * (q_m - q)[:, :, None]]
    direct += [own * qdd_m[:, :, None], own * qd_m[:, :, None]]
    of_motor = springs.stiffness[:, None] * position[:, None] + springs.motor_inertia[:, None] * acceleration[:, None]
    direct.append(each(of_motor + springs.motor_viscous[:, None] * velocity[:, None]))
    torque = -springs.stiffness[:, None] * link
    torque[:, :, : forces.shape[-1]] += np.concatenate(direct, axis=2)
    motors = np.zeros_like(link)
    parameters = len(columns) + 5 * n
    motors[:, :, parameters : parameters + n * size] = each(np.broadcast_to(position[:, None], (count + 1, n, size)))
    names = [f"{KINDS[column % 10]}{column // 10 + 1}" for column in columns]
    names += [f"{term} {i + 1}" for term in TERMS for i in range(n)]
    exact = spring + springs.motor_inertia * qdd_m + springs.motor_viscous * qd_m
    return Sensitivities(tuple(names), step, motors, link, torque, qd, exact)


def cramer_rao(
    urdf: str,
    springs: Springs,
    motor: FourierSeries,
    links: LinkMotion,
    smoothing: float,
    *,
    columns: list[int] | None = None,
    base_truth: NDArray | None = None,
    link_offset: bool = False,
    clock: bool = False,
    step: float = 1e-4,
) -> Bound:
    """Return the bound for motor and link angles and motor torques with known white noise, at `RATE` for `DURATION`.

    Args:
        urdf: URDF of the true arm.
        springs: true springs, friction and motors.
        motor: motion of the motors.
        links: motion of the links with this smoothing of Coulomb friction.
        smoothing: smoothing of Coulomb friction in rad/s.
        columns: link parameters that represent the base parameters; None: chosen by QR.
        base_truth: values of the base parameters.
        link_offset: whether each link's angle has an unknown offset.
        clock: whether the offset between the links' and the motors' clocks is unknown.
        step: step of the grid in s.
    """
    result = sensitivities(urdf, springs, motor, links, smoothing, columns=columns, step=step)
    time = np.arange(round(DURATION * RATE)) / RATE
    at = np.round(np.mod(time, motor.period) / result.step).astype(int)
    noise = TORQUE_NOISE * np.sqrt(np.mean(result.exact_torque[at] ** 2, axis=0))
    n = len(noise)
    more = [np.broadcast_to(np.eye(n), (len(at), n, n))] * link_offset + [result.velocity[at][:, :, None]] * clock
    link = np.concatenate([result.link[at], *more], axis=2) / LINK_NOISE
    motor_rows = np.concatenate([result.motor[at] / MOTOR_NOISE, result.torque[at] / noise[:, None]])
    motor_rows = np.concatenate(
        [motor_rows, np.zeros((*motor_rows.shape[:2], link.shape[2] - motor_rows.shape[2]))], axis=2
    )
    jacobian = np.concatenate([link, motor_rows]).reshape(-1, link.shape[2])
    scale = np.linalg.norm(jacobian, axis=0)
    upper = qr(jacobian / scale, mode="r", check_finite=False)[0][: len(scale)]
    assert np.linalg.cond(upper) < 1e7, "the motion does not determine all parameters"
    deviations = np.linalg.norm(np.linalg.inv(upper), axis=1) / scale
    terms = np.concatenate([getattr(springs, term) for term in TERMS])
    base = np.full(len(result.names) - len(terms), np.nan) if base_truth is None else base_truth
    offset = float(deviations[-1]) if clock else float("nan")
    return Bound(result.names, np.concatenate([base, terms]), deviations[: len(result.names)], offset)


@lru_cache(maxsize=64)
def single_joint_bound(
    joint: int, *, base_frequency: float = 1.0, link_offset: bool = True, clock: bool = True, step: float = 1e-4
) -> Bound:
    """Return the bound of experiment `single_joint`; mcx1, mcz1, Iyy1 are gravity_y / g, gravity_x / g, inertia."""
    row = pa10.table_one(joint)
    motor, _ = single_joint_motion(joint, base_frequency)
    links = link_motion(row, motor, SMOOTHING)
    truth = np.array([row.gravity_y / pa10.G, row.gravity_x / pa10.G, row.inertia])
    return cramer_rao(
        pa10.single_joint_urdf(joint),
        Springs.of([row]),
        motor,
        links,
        SMOOTHING,
        columns=[1, 3, 7],
        base_truth=truth,
        link_offset=link_offset,
        clock=clock,
        step=step,
    )


@lru_cache(maxsize=4)
def six_joint_bound(columns: tuple[int, ...]) -> Bound:
    """Return the bound of experiment `six_joints`; `columns` represent the base parameters."""
    motor, _ = six_joint_motion()
    springs = arm_springs()
    urdf = pa10.arm_urdf()
    links = arm_motion(urdf, springs, motor, SMOOTHING)
    return cramer_rao(
        urdf, springs, motor, links, SMOOTHING, columns=list(columns), link_offset=True, clock=True, step=2.5e-4
    )


def _regressor(pin, model, data, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
    """Return the regressor (n, 10 n) with columns in the order of RobotModel."""
    rows = pin.computeJointTorqueRegressor(model, data, q, qd, qdd)
    return rows.reshape(model.nv, model.nv, 10)[:, :, REGRESSOR_ORDER].reshape(model.nv, -1)


def _independent_columns(pin, model) -> list[int]:
    """Return base columns of the torque regressor by QR with pivoting on random motions."""
    data = model.createData()
    rng = np.random.default_rng(0)
    rows = [_regressor(pin, model, data, *rng.uniform(-2.0, 2.0, (3, model.nv))) for _ in range(100)]
    _, upper, pivots = qr(np.concatenate(rows), mode="economic", pivoting=True)
    size = np.abs(np.diag(upper))
    return sorted(int(column) for column in pivots[: int((size > 1e-9 * size[0]).sum())])


def _coefficients(motor: FourierSeries, time: NDArray) -> NDArray:
    """Return position, velocity, acceleration (3, K, 1 + 2 H) for units of offset, cosines and sines."""
    rate = 2 * np.pi * motor.base_frequency * np.arange(1, motor.n_harmonics + 1)
    sin = np.sin(np.outer(time, rate))
    cos = np.cos(np.outer(time, rate))
    one = np.ones((len(time), 1))
    none = np.zeros((len(time), 1))
    return np.stack(
        [
            np.hstack([one, cos, sin]),
            np.hstack([none, -sin * rate, cos * rate]),
            np.hstack([none, -cos * rate**2, -sin * rate**2]),
        ]
    )


def _solved(along: NDArray, forced: NDArray, step: float) -> NDArray:
    """Return periodic positions (K, n, P) of qdd = along (q, qd) + forced."""
    count, n, p = forced.shape
    identity = np.eye(2 * n)
    matrix = np.zeros((count, 2 * n, 2 * n))
    matrix[:, :n, n:] = np.eye(n)
    matrix[:, n:] = along
    implicit = identity - step / 2 * matrix[1:]
    forward = np.linalg.solve(implicit, identity + step / 2 * matrix[:-1])
    added = np.zeros((count - 1, 2 * n, p))
    added[:, n:] = step / 2 * (forced[1:] + forced[:-1])
    added = np.linalg.solve(implicit, added)
    state = np.empty((count, 2 * n, p + 2 * n))
    state[0] = np.hstack([np.zeros((2 * n, p)), identity])
    for k in range(count - 1):
        state[k + 1] = forward[k] @ state[k]
        state[k + 1, :, :p] += added[k]
    start = np.linalg.solve(identity - state[-1, :, p:], state[-1, :, :p])
    return state[:, :n, :p] + state[:, :n, p:] @ start
