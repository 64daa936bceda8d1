"""Torque that something outside exerts on an arm, one joint state at a time, without a torque sensor for it.

The residual of the generalised momentum (De Luca and Mattone 2003, "Actuator failure detection and isolation using
generalized momenta"; Haddadin, De Luca and Albu-Schäffer 2017, "Robot collisions: a survey", section IV): no
acceleration is needed, and each joint's residual is its external torque through a low-pass of first order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ControlError
from dynid_ros.identified.links import KnownArm, LinkModel
from dynid_ros.model.friction import FrictionTerms
from dynid_ros.model.friction_terms import slid
from dynid_ros.model.generated_code import Lines, compiled, function_text, variable
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.one_sample_dynamics import momentum_lines
from dynid_ros.signals.driver_filter import DriverPassage

LONGEST_GAP = 0.1
"""s between two joint states, after which the observer begins anew: it does not know what was in between."""
STANDSTILL = 0.02
"""rad/s or m/s, of a joint that may have any part of its dry friction, where the model has no memory of its way."""
PLAY, PLAY_OF_LENGTH = 5e-5, 0.25
"""rad or m, and part of a sliding length, by half of which encoders' noise moves a joint that stands: friction that is
bent by its way does not take the smaller of both for motion."""
WIDEST = 1e6
"""rad/s, of the low-pass: beyond what any driver's rate shows."""
SETTLING = 5.0
"""Time constants after which a residual that began at zero is what it will be."""


class MomentumObserver:
    """External torques by the momentum p = M q̇, whose derivative is τ + Cᵀ q̇ - g - friction + τ_ext.

    Between two samples p changes by what acted meanwhile; what is left over, through a low-pass of the bandwidth, is
    the residual. Momenta hold the rotors; friction is taken from the velocity, or the way, as the model has it. Where
    the model says that the driver low-passes or delays its torque, all but the torque passes the same first.

    Args:
        model: links and friction.
        bandwidth: of the low-pass, rad/s.

    Attributes:
        residual: (n,) external torque, N m (N), that acts on the arm in the positive direction of each joint.
        velocity: (n,) of the last sample, measured or differentiated.
        directions: (n,) -1 to 1, of the dry friction of each joint: where it is bent to, or by the velocity.
        robot: of the model.
    """

    def __init__(self, model: LinkModel, bandwidth: float = 25.0) -> None:
        if not 0.0 < bandwidth <= WIDEST:
            raise ControlError(f"bandwidth is {bandwidth:g}; expected above 0 and at most {WIDEST:g} rad/s")
        self.bandwidth, self.robot = bandwidth, model.robot
        self._model, self._n = model, model.robot.n_joints
        robot, n = model.robot, self._n
        lines, links = Lines(), model.parameters.reshape(-1, PARAMETERS_PER_LINK)
        load = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
        momentum, change = momentum_lines(lines, robot.chain, links, load)
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
        terms = FrictionTerms(model.friction, n)
        self._terms, self._friction = terms.of, _rows((terms.places @ model.coefficients).T)
        self._keys = model.friction.memory_keys(n)
        still = np.zeros((n, n))
        friction = (
            model.friction.regressor(still, acceleration, still, still, dict.fromkeys(self._keys, np.zeros(n)))
            @ model.coefficients
            for acceleration in (np.eye(n), still)
        )
        self._rotors = _rows(np.subtract(*friction).T)
        self._needs_load = model.friction.needs_load
        self.carry(None)
        self.restart()

    def carry(self, load: ArrayLike | None) -> None:
        """Count with a load from now on, ten parameters (10,) about the frame of the tip link; None: without."""
        robot = self._model.robot
        self._load = np.zeros(PARAMETERS_PER_LINK) if load is None else np.asarray(load, dtype=float)
        parameters = self._model.parameters.copy()
        parameters[robot.tip_columns] += transformed(self._load, robot.tip_offset)
        self._arguments = self._load.tolist()
        self._gravity = self._gravity_model.bind(self._gravity_model.project(parameters))
        self.restart()

    def restart(self) -> None:
        """Forget what was, also which way dry friction with a memory is bent."""
        self.residual = [0.0] * self._n
        self.velocity = [0.0] * self._n
        self._began = math.inf
        self._bent = [0.0] * len(self._keys)
        self._places: list[float] = []
        self._state: tuple[float, list[float], list[float], Sequence[float]] | None = None
        if self._driver is not None:
            self._driver.restart()
        self._last: tuple[float, Sequence[float], Sequence[float]] | None = None

    def update(
        self, time: float, q: Sequence[float], qd: Sequence[float] | None, torque: Sequence[float]
    ) -> list[float]:
        """Residual (n,) with one more sample; the first, and one after a gap, begin anew with zero.

        Args:
            time: s, later than before.
            q: (n,) positions.
            qd: (n,) velocities; None: they are differentiated, and are half a sample late.
            torque: (n,) of the drives, N m (N), friction included, as the model predicts it.

        Raises:
            ControlError: the time is not later, or the residual would not be finite; then it begins anew.
        """
        before = self._last
        if before is not None and not time > before[0]:
            raise ControlError(f"a sample of {time:.6f} s came after that of {before[0]:.6f} s; expected later ones")
        if before is not None and time - before[0] > LONGEST_GAP:
            self.restart()
            before = None
        self._last = (time, q, torque)
        if before is None:
            self._began = time
        self._bend(q)
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
            before_, momentum_, rate_, torque_ = self._state
            step = time - before_
            kept = math.exp(-self.bandwidth * step)
            needed: Sequence[float] = [
                (momentum[i] - momentum_[i]) / step - 0.5 * (rate[i] + rate_[i]) for i in range(self._n)
            ]
            if self._driver is not None:
                needed = self._driver.next(needed, step).tolist()
            for i in range(self._n):
                outside = needed[i] - 0.5 * (torque[i] + torque_[i])
                self.residual[i] = kept * self.residual[i] + (1.0 - kept) * outside
        if not all(map(math.isfinite, (*self.residual, *momentum, *rate))):
            self.restart()
            raise ControlError("external torque is not finite: a velocity, a torque or the load is beyond all that is")
        self._state = (time, momentum, rate, torque)
        return list(self.residual)

    def _bend(self, q: Sequence[float]) -> None:
        """Bend what dry friction has of memory, on the way to positions (n,)."""
        places = [sum(q[j] for j in joints) for joints, _ in self._keys]
        self._places = self._places or places
        for k, (place, (_, length)) in enumerate(zip(places, self._keys, strict=True)):
            way, play = place - self._places[k], min(PLAY, PLAY_OF_LENGTH * length)
            if abs(way) > play:
                way = math.copysign(abs(way) - play, way)
                self._places[k] += way
                self._bent[k] = float(slid(np.float64(self._bent[k]), np.sign(way), np.float64(abs(way)), length))

    def _momentum_and_rate(
        self, q: Sequence[float], qd: Sequence[float], torque: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """(n,) momentum, and what changes it but for the drives and what is outside."""
        n, still = self._n, [0.0] * self._n
        values = self._momentum(q, qd, self._arguments)
        load: Sequence[float] = torque
        if self._needs_load:
            # What the gears carry is what the drives give less what friction takes, which hardly depends on it.
            taken = _sums(self._friction, self._terms(q, qd, still, self._bent, torque))
            load = [given - lost for given, lost in zip(torque, taken, strict=True)]
        friction = _sums(self._friction, self._terms(q, qd, still, self._bent, load))
        gravity, rotors = self._gravity(q), _sums(self._rotors, qd)
        rate = [values[n + i] - gravity[i] - friction[i] for i in range(n)]
        return [values[i] + rotors[i] for i in range(n)], rate

    @property
    def directions(self) -> list[float]:
        """See above."""
        found = [math.copysign(1.0 - math.exp(-((v / STANDSTILL) ** 2)), v) for v in self.velocity]
        for (joints, _), bent in zip(self._keys, self._bent, strict=True):
            if len(joints) == 1:
                found[joints[0]] = bent
        return found

    @property
    def settled(self) -> bool:
        """Whether it has run for long enough that the residual is not that of its beginning."""
        return self._last is not None and (self._last[0] - self._began) * self.bandwidth > SETTLING


_Rows = list[list[tuple[int, float]]]


def _rows(matrix: NDArray) -> _Rows:
    """Place and value of what is not zero in each row."""
    return [[(k, value) for k, value in enumerate(row) if value] for row in matrix.tolist()]


def _sums(rows: _Rows, values: Sequence[float]) -> list[float]:
    return [sum([weight * values[k] for k, weight in row]) for row in rows]


class TorqueUncertainty:
    """How far the residual of an arm that nothing touches may be from zero, joint by joint.

    Its standard deviation holds what the residuals of the fit were (`rms`, taken to pass the low-pass whole), the
    covariance of base parameters and friction, in this pose, velocity and acceleration, and the error of the torque
    gains, as far as the model does not share it. Where a joint stands, or bends its friction over, dry friction may be
    anything up to its Coulomb level.

    Args:
        arm: model and its covariance.
        rms: (n,) of the residuals of the fit or of motion that was not fitted, N m (N).
        gain_error: standard deviation of the relative error of each joint's torque gain.

    Raises:
        ControlError: a gain error that is none.
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
            places = list(joints)
            if term.startswith(("coulomb", "stribeck", "coupling_coulomb")):
                # Of two directions with terms of their own the larger counts.
                side = term.endswith(("_positive", "_negative"))
                dry[places] = np.maximum(dry[places], abs(value)) if side else dry[places] + abs(value)
            elif term == "load":
                loaded[places] += abs(value)
        self._dry, self._loaded = dry, loaded

    def std(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, torque: ArrayLike) -> NDArray:
        """(N, n) N m (N) in motion (N, n) under torque (N, n)."""
        q, qd, qdd, torque = (np.atleast_2d(np.asarray(part, dtype=float)) for part in (q, qd, qdd, torque))
        variance = np.tile(self._variance, (len(torque), 1))
        shifts = self._gain_error * torque[:, :, None] * np.eye(torque.shape[1])
        if self._arm.covariance is not None:
            robot, friction = self._arm.model.robot, self._arm.model.friction
            # A sample alone has no memory: its direction is that of the velocity.
            memory = {key: np.sign(qd[:, key[0]].sum(axis=1)) for key in friction.memory_keys(torque.shape[1])}
            columns = np.concatenate(
                [robot.torque_regressor(q, qd, qdd), friction.of_motion(robot, q, qd, qdd, memory)], axis=2
            )[..., self._terms]
            variance += np.einsum("ijk,kl,ijl->ij", columns, self._arm.covariance, columns)
            if self._arm.gain_shifts is not None:
                shifts = shifts - self._gain_error * columns @ self._arm.gain_shifts.T
        return np.sqrt(variance + np.square(shifts).sum(axis=2))

    def dry(self, directions: Sequence[float], torque: Sequence[float]) -> NDArray:
        """(n,) N m (N) by which dry friction may differ from what its directions say; see `MomentumObserver`."""
        return (self._dry + self._loaded * np.abs(torque)) * (1.0 - np.square(directions))
