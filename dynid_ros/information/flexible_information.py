"""Information of a motion of the motors on an arm with flexible joints (Lightcap and Banks 2007, eqs 3, 6 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.steady_state import FlexibleJoints, LinkPrediction
from dynid_ros.information.torque_information import SMOOTHING_FRACTION, MotionWithJerk, Rows, checked_noise
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters, parameter_names, random_motion
from dynid_ros.model.regressor import DifferentiableRegressor
from dynid_ros.trajectories.limits import per_joint

LINK_TERMS = ("coulomb", "viscous")
MOTOR_TERMS = ("motor_inertia", "motor_viscous")
VELOCITY_TOLERANCE = 1e-6
"""Largest difference of velocities from the derivative of the periodic positions, relative to the highest velocity."""


class _Term(NamedTuple):
    """A column of one joint, with the indices and signs of its rows."""

    name: str
    joint: int
    rows: tuple[tuple[int, float], ...]


class FlexibleInformation:
    """Information that motor torques and motions of motors and links contain on links, friction and motors.

    The design determines the motion of the motors, and `LinkPrediction` predicts the motion of the links. Both motions
    and the motors' torques u are measured. Each moving joint gives the row of eq. 6,

        links(q, qd, qdd) + c sign(qd) + v qd + J qdd_m + b qd_m = u,

    divided by the torque's noise. With `stiffness` it gives the two rows of eq. 3 instead: the first contains
    k (q - q_m) and sums to zero, the second contains k (q_m - q) and the motor's terms.

    Brakes hold the motors of the other joints. Their springs still deflect, which the prediction includes. Their torque
    is unknown, so they give no rows, and parameters that only they would determine are left out.

    Args:
        robot: the arm; its nominal parameters are the prior of the links.
        joints: prior of springs, motors and friction.
        speeds: (n,) speed limits, which scale the smoothing of Coulomb friction.
        base_frequency: frequency of the first harmonic, Hz.
        held: positions of the motors that brakes hold, by joint.
        stiffness: whether to estimate the stiffness too.
        noise: standard deviation of the torques, one value or (n,), N m or N.
        columns: link parameters that represent the base parameters, ascending; None: as `BaseParameters` chooses.

    Attributes:
        names: (p,) parameters: of links, then per joint "coulomb", "viscous", "motor_inertia", "motor_viscous" and
            "stiffness".
    """

    def __init__(
        self,
        robot: RobotModel,
        joints: FlexibleJoints,
        speeds: ArrayLike,
        *,
        base_frequency: float,
        harmonics: int,
        held: dict[str, float] | None = None,
        stiffness: bool = False,
        noise: ArrayLike = 1.0,
        columns: Sequence[int] | None = None,
    ) -> None:
        unknown = sorted(set(held or ()) - set(robot.joint_names))
        if unknown:
            raise TrajectoryError(f"held: no joint {', '.join(unknown)}; the joints: {', '.join(robot.joint_names)}")
        self._moving = [i for i, name in enumerate(robot.joint_names) if name not in (held or ())]
        if not self._moving:
            raise TrajectoryError("held: all joints are; one at least must move")
        deviations = checked_noise(robot, noise)[self._moving]
        self._base_frequency = base_frequency
        self._smoothing = SMOOTHING_FRACTION * per_joint(speeds, robot.joint_names, "speeds")
        self._prediction = LinkPrediction(
            robot, joints, base_frequency=base_frequency, harmonics=harmonics, smoothing=self._smoothing
        )
        self._stiffness, self._inertia, self._viscous, *_ = joints.of(robot)
        chosen = _link_columns(robot, held or {}, self._moving) if columns is None else np.sort(np.asarray(columns))
        self._links = DifferentiableRegressor(robot.chain, robot.gravity, chosen)
        self._n_links = len(chosen)
        self._terms = _terms(self._moving, stiffness=stiffness)
        self._weight = 1.0 / np.tile(deviations, 2 if stiffness else 1)
        names = parameter_names(robot)
        self.names = (
            *(names[column] for column in chosen),
            *(f"{term.name} {robot.joint_names[term.joint]}" for term in self._terms),
        )

    def rows(self, motion: MotionWithJerk) -> Rows:
        """Compute the equations of a motion of the motors, and keep them for `gradient`.

        Raises:
            TrajectoryError: the links' motion cannot be predicted, or the motion is of another base frequency.
        """
        q, qd, qdd = self._predicted(motion)
        regressor = np.zeros((len(self.names), len(self._weight), len(q)))
        links = self._links.matrix(q, qd, qdd)[self._moving]
        regressor[: self._n_links, : len(self._moving)] = links.transpose(1, 0, 2)
        values = self._values(motion, q, qd)
        for column, term in zip(regressor[self._n_links :], self._terms, strict=True):
            for row, sign in term.rows:
                column[row] = sign * values[term.name][:, term.joint]
        self._direction = values["coulomb"]
        return Rows(regressor * self._weight[:, None], self._motor_torque(motion, q))

    def gradient(self, by: Rows) -> MotionWithJerk:
        """Return the gradient by the motion of the motors of the last rows, for gradients by the rows."""
        by_regressor = by.regressor * self._weight[:, None]
        n_samples, n = self._direction.shape
        weights = np.zeros((n, self._n_links, n_samples))
        weights[self._moving] = by_regressor[: self._n_links, : len(self._moving)].transpose(1, 0, 2)
        by_position, by_velocity, by_acceleration = self._links.gradient(weights)
        by_values = {name: np.zeros((n_samples, n)) for name in (*LINK_TERMS, *MOTOR_TERMS, "stiffness")}
        for by_column, term in zip(by_regressor[self._n_links :], self._terms, strict=True):
            for row, sign in term.rows:
                by_values[term.name][:, term.joint] += sign * by_column[row]
        by_torque = np.zeros((n_samples, n))
        by_torque[:, self._moving] = by.torque[:, self._moving]
        by_deflection = by_values["stiffness"] + self._stiffness * by_torque
        slope = (1.0 - self._direction**2) / self._smoothing
        by_velocity = by_velocity + by_values["viscous"] + slope * by_values["coulomb"]
        by_motor = self._prediction.gradient(by_position - by_deflection, by_velocity, by_acceleration)
        return MotionWithJerk(
            by_motor + by_deflection,
            by_values["motor_viscous"] + self._viscous * by_torque,
            by_values["motor_inertia"] + self._inertia * by_torque,
            np.zeros((n_samples, n)),
        )

    def torque(self, motion: MotionWithJerk) -> NDArray:
        """Predict the torques (N, n) of the motors; motors that brakes hold have torque zero.

        Raises:
            TrajectoryError: as `rows`.
        """
        return self._motor_torque(motion, self._predicted(motion)[0])

    def over_time(self, time: NDArray, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:  # noqa: ARG002
        """Refuse a recorded motion, because it does not contain the links' motion and is not steady."""
        raise TrajectoryError("recordings cannot be added to a design for flexible joints; leave them out")

    def _predicted(self, motion: MotionWithJerk) -> tuple[NDArray, NDArray, NDArray]:
        spectrum = np.fft.rfft(motion.position, axis=0)
        rate = 2 * np.pi * self._base_frequency * np.arange(len(spectrum))
        velocity = np.fft.irfft(1j * rate[:, None] * spectrum, len(motion.position), axis=0)
        if np.abs(velocity - motion.velocity).max() > VELOCITY_TOLERANCE * max(np.abs(motion.velocity).max(), 1e-6):
            raise TrajectoryError(f"the motion is no period of {1 / self._base_frequency:g} s, which was predicted")
        return self._prediction.motion(motion.position)

    def _motor_torque(self, motion: MotionWithJerk, q: NDArray) -> NDArray:
        """Return the torques (N, n) of the motors, from the second row of eq. 1."""
        spring = self._stiffness * (motion.position - q)
        torque = np.zeros_like(q)
        driven = spring + self._inertia * motion.acceleration + self._viscous * motion.velocity
        torque[:, self._moving] = driven[:, self._moving]
        return torque

    def _values(self, motion: MotionWithJerk, q: NDArray, qd: NDArray) -> dict[str, NDArray]:
        """Return the values (N, n) of each term of the joints."""
        return {
            "coulomb": np.tanh(qd / self._smoothing),
            "viscous": qd,
            "motor_inertia": motion.acceleration,
            "motor_viscous": motion.velocity,
            "stiffness": motion.position - q,
        }


def _terms(moving: list[int], *, stiffness: bool) -> list[_Term]:
    """Return the columns of the moving joints, in the rows of eq. 6, or first and then second rows of eq. 3."""
    second = len(moving) if stiffness else 0
    terms = []
    for row, joint in enumerate(moving):
        terms += [_Term(name, joint, ((row, 1.0),)) for name in LINK_TERMS]
        terms += [_Term(name, joint, ((second + row, 1.0),)) for name in MOTOR_TERMS]
        if stiffness:
            terms.append(_Term("stiffness", joint, ((row, -1.0), (second + row, 1.0))))
    return terms


def _link_columns(robot: RobotModel, held: dict[str, float], moving: list[int]) -> NDArray:
    """Return the base parameters of the links that the torques of the moving joints determine."""
    q, qd, qdd = random_motion(robot)
    for name, position in held.items():
        joint = robot.joint_names.index(name)
        q[:, joint] = position
        qd[:, joint] = 0.0
        qdd[:, joint] = 0.0
    regressor = robot.structure.torque_regressor(q, qd, qdd)[:, moving]
    return BaseParameters(regressor, parameter_names(robot)).columns
