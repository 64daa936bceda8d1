"""External torque of an arm, estimated from each joint state by an observer of the generalised momentum.

The residual of the generalised momentum (De Luca and Mattone 2003, "Actuator failure detection and isolation using
generalized momenta"; Haddadin, De Luca and Albu-Schäffer 2017, "Robot collisions: a survey", section IV) needs no
acceleration. The residual of each joint is its external torque behind a first-order low-pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ControlError
from dynid_ros.identified.links import KnownArm, LinkModel
from dynid_ros.model.friction import OneSampleFriction
from dynid_ros.model.friction_terms import dahl_step
from dynid_ros.model.generated_code import Lines, compiled, function_text, variable
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.recursion import body_terms, momentum_lines
from dynid_ros.signals.driver_filter import DriverPassage

MAX_GAP_S = 0.1
"""Longest time between two joint states, s; after a longer gap the observer restarts."""
STANDSTILL_SPEED = 0.02
"""Speed below which dry friction may have any value, for friction without a sliding length, rad/s (m/s)."""
MAX_PLAY = 5e-5
"""Largest displacement that is attributed to encoder noise, rad (m); the Dahl friction state ignores it."""
MAX_PLAY_FRACTION = 0.25
"""Largest displacement that is attributed to encoder noise, as a fraction of the sliding length."""
MAX_BANDWIDTH_RAD_S = 1e6
"""Largest bandwidth of the low-pass, rad/s, far above the rate of any driver."""
SETTLING_TIME_CONSTANTS = 5.0
"""Time constants of the low-pass after which the initial value of the residual has decayed."""


class MomentumObserver:
    """External torques by the momentum p = M q̇, whose derivative is τ + Cᵀ q̇ - g - friction + τ_ext.

    The residual is the change of p between two samples minus the modelled part of its derivative, behind a low-pass.
    The momentum includes the rotors. Friction is evaluated from the velocity, or from the displacement if the model
    has a sliding length. If the driver filters or delays its torque, the modelled part passes the same filter.

    Args:
        bandwidth: bandwidth of the low-pass, rad/s.

    Attributes:
        residual: (n,) external torque in the positive direction of each joint, N m (N).
        velocity: (n,) velocity of the last sample, measured or differentiated, rad/s (m/s).
    """

    def __init__(self, model: LinkModel, bandwidth: float = 25.0) -> None:
        if not 0.0 < bandwidth <= MAX_BANDWIDTH_RAD_S:
            raise ControlError(
                f"bandwidth is {bandwidth:g}; expected above 0 and at most {MAX_BANDWIDTH_RAD_S:g} rad/s"
            )
        robot = model.robot
        n = robot.n_joints
        self.bandwidth = bandwidth
        self.robot = robot
        self._model = model
        self._n = n
        lines = Lines()
        links = model.parameters.reshape(-1, PARAMETERS_PER_LINK)
        load = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
        momentum, change = momentum_lines(lines, robot.chain, body_terms(lines, robot.chain, links, load))
        source = function_text(
            "momentum",
            {"q": "q", "v": "qd", "l": "load"},
            lines,
            momentum + change,
            n,
            given="",
            sizes={"l": PARAMETERS_PER_LINK},
        )
        self._momentum: Callable[..., tuple[float, ...]] = compiled(source, "momentum", tuple)
        self._gravity_model = GravityModel(robot)
        self._driver = None if model.signals.driver is None else DriverPassage(model.signals.driver)
        terms = OneSampleFriction(model.friction, n)
        self._terms = terms.evaluate
        self._friction = _sparse_rows((terms.places @ model.coefficients).T)
        self._keys = model.friction.memory_keys(n)
        still = np.zeros((n, n))
        friction = (
            model.friction.regressor(still, acceleration, still, still, dict.fromkeys(self._keys, np.zeros(n)))
            @ model.coefficients
            for acceleration in (np.eye(n), still)
        )
        self._rotors = _sparse_rows(np.subtract(*friction).T)
        self._needs_load = model.friction.needs_load
        self.carry(None)
        self.restart()

    def carry(self, load: ArrayLike | None) -> None:
        """Include a load in the model and restart.

        Args:
            load: (10,) inertial parameters in the frame of the tip link; None without a load.
        """
        robot = self._model.robot
        self._load = np.zeros(PARAMETERS_PER_LINK) if load is None else np.asarray(load, dtype=float)
        parameters = self._model.parameters.copy()
        parameters[robot.tip_columns] += transformed(self._load, robot.tip_offset)
        self._arguments = self._load.tolist()
        self._gravity = self._gravity_model.bind(self._gravity_model.project(parameters))
        self.restart()

    def restart(self) -> None:
        """Forget all samples, and the state of dry friction with a sliding length."""
        self.residual = [0.0] * self._n
        self.velocity = [0.0] * self._n
        self._start_time = math.inf
        self._friction_state = [0.0] * len(self._keys)
        self._friction_positions: list[float] = []
        self._state: tuple[float, list[float], list[float], Sequence[float]] | None = None
        if self._driver is not None:
            self._driver.restart()
        self._last: tuple[float, Sequence[float], Sequence[float]] | None = None

    def update(
        self, time: float, q: Sequence[float], qd: Sequence[float] | None, torque: Sequence[float]
    ) -> list[float]:
        """Return the residual (n,) after one more sample, N m (N); zero after the first one, and after a gap.

        Args:
            time: s, later than before.
            q: (n,) positions, rad (m).
            qd: (n,) velocities, rad/s (m/s); None: positions are differentiated, which delays them by half a sample.
            torque: (n,) torques of the drives, friction included, N m (N).

        Raises:
            ControlError: the time is not later than before, or the residual would not be finite; then the observer
                restarts.
        """
        before = self._last
        if before is not None and not time > before[0]:
            raise ControlError(f"a sample of {time:.6f} s came after that of {before[0]:.6f} s; expected later ones")
        if before is not None and time - before[0] > MAX_GAP_S:
            self.restart()
            before = None
        self._last = (time, q, torque)
        if before is None:
            self._start_time = time
        self._update_friction_state(q)
        if qd is None:
            if before is None:
                return list(self.residual)
            step = time - before[0]
            qd = [(new - old) / step for new, old in zip(q, before[1], strict=True)]
            time -= 0.5 * step
            q, torque = (
                [0.5 * (new + old) for new, old in zip(*pair, strict=True)]
                for pair in ((q, before[1]), (torque, before[2]))
            )
        self.velocity = list(qd)
        momentum, rate = self._momentum_and_rate(q, qd, torque)
        if self._state is not None:
            last_time, last_momentum, last_rate, last_torque = self._state
            step = time - last_time
            kept = math.exp(-self.bandwidth * step)
            needed: Sequence[float] = [
                (momentum[i] - last_momentum[i]) / step - 0.5 * (rate[i] + last_rate[i]) for i in range(self._n)
            ]
            if self._driver is not None:
                needed = self._driver.next(needed, step).tolist()
            for i in range(self._n):
                external = needed[i] - 0.5 * (torque[i] + last_torque[i])
                self.residual[i] = kept * self.residual[i] + (1.0 - kept) * external
        if not all(map(math.isfinite, (*self.residual, *momentum, *rate))):
            self.restart()
            raise ControlError("external torque is not finite: a velocity, a torque or the load is beyond all that is")
        self._state = (time, momentum, rate, torque)
        return list(self.residual)

    def _update_friction_state(self, q: Sequence[float]) -> None:
        """Integrate the Dahl states of dry friction over the displacement to positions (n,)."""
        positions = [sum(q[j] for j in joints) for joints, _ in self._keys]
        self._friction_positions = self._friction_positions or positions
        for k, (position, (_, length)) in enumerate(zip(positions, self._keys, strict=True)):
            displacement = position - self._friction_positions[k]
            play = min(MAX_PLAY, MAX_PLAY_FRACTION * length)
            if abs(displacement) > play:
                displacement = math.copysign(abs(displacement) - play, displacement)
                self._friction_positions[k] += displacement
                state = np.float64(self._friction_state[k])
                self._friction_state[k] = float(
                    dahl_step(state, np.sign(displacement), np.float64(abs(displacement)), length)
                )

    def _momentum_and_rate(
        self, q: Sequence[float], qd: Sequence[float], torque: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """Return the momentum (n,) and the modelled part of its derivative (n,) without drive and external torque."""
        n = self._n
        rest = [0.0] * n
        values = self._momentum(q, qd, self._arguments)
        load: Sequence[float] = torque
        if self._needs_load:
            # Torque in the gears: drive torque minus friction, which is nearly independent of the load.
            losses = _row_sums(self._friction, self._terms(q, qd, rest, self._friction_state, torque))
            load = [drive - loss for drive, loss in zip(torque, losses, strict=True)]
        friction = _row_sums(self._friction, self._terms(q, qd, rest, self._friction_state, load))
        gravity = self._gravity(q)
        rotors = _row_sums(self._rotors, qd)
        rate = [values[n + i] - gravity[i] - friction[i] for i in range(n)]
        return [values[i] + rotors[i] for i in range(n)], rate

    @property
    def directions(self) -> list[float]:
        """Directions (n,) of dry friction, -1 to 1: the Dahl state of the joint, or by its velocity without one."""
        directions = [math.copysign(1.0 - math.exp(-((v / STANDSTILL_SPEED) ** 2)), v) for v in self.velocity]
        for (joints, _), state in zip(self._keys, self._friction_state, strict=True):
            if len(joints) == 1:
                directions[joints[0]] = state
        return directions

    @property
    def settled(self) -> bool:
        """Whether the initial value of the residual has decayed."""
        if self._last is None:
            return False
        return (self._last[0] - self._start_time) * self.bandwidth > SETTLING_TIME_CONSTANTS


_SparseRows = list[list[tuple[int, float]]]


def _sparse_rows(matrix: NDArray) -> _SparseRows:
    """Return column and value of the nonzero elements of each row."""
    return [[(k, value) for k, value in enumerate(row) if value] for row in matrix.tolist()]


def _row_sums(rows: _SparseRows, values: Sequence[float]) -> list[float]:
    return [sum([weight * values[k] for k, weight in row]) for row in rows]


class TorqueUncertainty:
    """Standard deviation of the residual of an arm without contact, by joint.

    The standard deviation combines three sources: the residuals of the fit (`rms`, assumed to pass the low-pass
    unchanged), the covariance of base parameters and friction at this motion, and the error of the torque gains as far
    as the model does not share it. At standstill and after a reversal, dry friction adds up to its Coulomb level.

    Args:
        rms: (n,) root mean square of the residuals of the fit or of a validation, N m (N).
        gain_error: standard deviation of the relative error of each joint's torque gain.
    """

    def __init__(self, arm: KnownArm, rms: ArrayLike, gain_error: float = 0.01) -> None:
        if not (math.isfinite(gain_error) and gain_error >= 0.0):
            raise ControlError(f"torque_gain_error is {gain_error}; expected a number of at least 0")
        model = arm.model
        self._arm, self._gain_error = arm, gain_error
        self._terms = None if arm.covariance is None else arm.terms
        self._variance = np.square(np.asarray(rms, dtype=float))
        dry, loaded = np.zeros((2, model.robot.n_joints))
        for (term, joints), value in zip(model.friction.keys(model.robot.n_joints), model.coefficients, strict=True):
            columns = list(joints)
            if term.startswith(("coulomb", "stribeck", "coupling_coulomb")):
                # Terms of a single direction do not add up: the larger one counts.
                is_one_sided = term.endswith(("_positive", "_negative"))
                dry[columns] = np.maximum(dry[columns], abs(value)) if is_one_sided else dry[columns] + abs(value)
            elif term == "load":
                loaded[columns] += abs(value)
        self._dry = dry
        self._loaded = loaded

    def std(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, torque: ArrayLike) -> NDArray:
        """Return the standard deviations (N, n), N m (N), at positions, velocities, accelerations, torques (N, n)."""
        q, qd, qdd, torque = (np.atleast_2d(np.asarray(part, dtype=float)) for part in (q, qd, qdd, torque))
        variance = np.tile(self._variance, (len(torque), 1))
        shifts = self._gain_error * torque[:, :, None] * np.eye(torque.shape[1])
        if self._arm.covariance is not None:
            robot = self._arm.model.robot
            friction = self._arm.model.friction
            # A single sample has no displacement: the direction of friction is the sign of the velocity.
            memory = {key: np.sign(qd[:, key[0]].sum(axis=1)) for key in friction.memory_keys(torque.shape[1])}
            columns = np.concatenate(
                [robot.torque_regressor(q, qd, qdd), friction.of_motion(robot, q, qd, qdd, memory)], axis=2
            )[..., self._terms]
            variance += np.einsum("ijk,kl,ijl->ij", columns, self._arm.covariance, columns)
            if self._arm.gain_shifts is not None:
                shifts = shifts - self._gain_error * columns @ self._arm.gain_shifts.T
        return np.sqrt(variance + np.square(shifts).sum(axis=2))

    def dry(self, directions: Sequence[float], torque: Sequence[float]) -> NDArray:
        """Return the largest error (n,) of dry friction, N m (N).

        Args:
            directions: (n,) directions of dry friction, -1 to 1; see `MomentumObserver.directions`.
            torque: (n,) torques of the drives, N m (N).
        """
        return (self._dry + self._loaded * np.abs(torque)) * (1.0 - np.square(directions))
