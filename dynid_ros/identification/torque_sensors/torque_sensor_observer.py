"""Gravity-torque observer of Ma and Hollerbach (1996, section 7), which monitors torque sensors while the arm works."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import solve
from dynid_ros.estimation.recursive_least_squares import UNKNOWN_DEVIATION, SquareRootInformation
from dynid_ros.identification.static_samples import (
    SampleRules,
    Samples,
    slow_samples,
    spaced,
    static_samples,
)
from dynid_ros.identification.torque_sensors.sensor_drift import N_COLUMNS, WINDOW_SAMPLES, DriftAlarm, DriftWindows
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording import Recording

# Noise of readings, learned from the first samples of each joint.


class NoiseLearner:
    """Estimator of each joint's noise, the standard deviation of its first readings about a linear model.

    Args:
        n_joints: number n of joints.
        needed: number of samples of a joint from which its noise is estimated.

    Attributes:
        noise: (n,) noise in units of the reading; infinite until it is estimated.
    """

    def __init__(self, n_joints: int, needed: int) -> None:
        self._needed = needed
        self._seen: list[list[NDArray]] = [[] for _ in range(n_joints)]
        self.noise = np.full(n_joints, np.inf)

    def add(self, rows: NDArray, error: NDArray) -> None:
        """Add a sample with rows (n, k) and errors (n,); a row of zeros has no information."""
        for joint in np.flatnonzero(np.isinf(self.noise) & rows.any(axis=1)):
            seen = self._seen[joint]
            seen.append(np.append(rows[joint], error[joint]))
            if len(seen) == self._needed:
                equations = np.array(seen)
                fit = solve(equations[:, :-1], equations[:, -1])
                floor = 1e-9 * max(float(np.abs(equations).max()), 1e-9)
                self.noise[joint] = max(np.sqrt(fit.residual @ fit.residual / (len(seen) - fit.rank)), floor)
                seen.clear()


# Rests and slow motion of an arm at work, extracted from the stream of its joint states.


MAX_REST_S = 30.0
"""Duration after which a lasting rest gives a sample and starts anew, s."""
MAX_MOTION_S = 60.0
"""Duration after which motion without a rest is evaluated, s."""
MIN_SPACING_S = 1.0
"""Time between blocks of slow motion that are used, s: friction varies with position, so neighbours are correlated."""


class SampleStream:
    """Stream of samples: each rest once, when it is over, and slow motion.

    Args:
        joint_names: names of the n joints.
        rules: criteria for rests and slow motion.
        slow: whether slow motion gives samples too.
    """

    def __init__(self, joint_names: Sequence[str], rules: SampleRules, slow: bool = False) -> None:
        self.joint_names = tuple(joint_names)
        self.rules = rules
        self.slow = slow
        self._states: deque[tuple[float, ArrayLike, ArrayLike]] = deque()

    def add(self, time: float, position: ArrayLike, reading: ArrayLike) -> None:
        """Add a joint state: time (s), positions and readings, (n,) each; a state that arrives too late is ignored."""
        if not self._states or time > self._states[-1][0]:
            self._states.append((time, position, reading))

    def take(self) -> Samples | None:
        """Return the samples that were completed since the last call, or None."""
        if len(self._states) < 10:
            return None
        time, position, reading = (np.array(values) for values in zip(*self._states, strict=True))
        recording = Recording(
            self.joint_names, time, position, np.full_like(position, np.nan), reading, source="joint states"
        )
        static = static_samples(recording, self.rules)
        ends = [self._end(recording, static, m) for m in range(len(static))]
        finished = [m for m, end in enumerate(ends) if end]
        if finished:
            last = ends[finished[-1]]
        elif recording.duration > (MAX_REST_S if len(static) else MAX_MOTION_S):
            finished = list(range(len(static)))
            last = recording.n_samples
        else:
            return None
        parts = [static.take(finished)]
        if self.slow:
            parts.append(spaced(slow_samples(recording.slice(slice(max(last, 10))), self.rules), MIN_SPACING_S))
        for _ in range(last):
            self._states.popleft()
        samples = Samples.join(parts)
        return samples if len(samples) else None

    def _end(self, recording: Recording, samples: Samples, m: int) -> int:
        """Return the first row in which the arm has left the position of sample m; 0 if it has not left."""
        after = recording.time > samples.time[m]
        away = np.abs(recording.position - samples.position[m]).max(axis=1) > self.rules.minimum_approach
        return int(np.argmax(after & away))


SAMPLE_KINDS = ("static", "slow")
REFIT_SAMPLES = 32
"""Number of samples after an alarm with which its estimates are refined."""


class TorqueSensorObserver:
    """Observer of torque sensors, which compares readings with the torque of known gravity, sample by sample.

    Each joint's sensitivity, offset and friction are estimated recursively, with directional forgetting, and tested
    against the reference. A joint that has drifted is reported once, until `accept` is called. Its estimates then start
    again, and the numbers of the alarm are refined with the next samples.

    Args:
        robot: kinematics and gravity.
        gravity: moments of the arm, with their uncertainty.
        sensors: reference calibration; None: readings are torques.
        reference_std: (n, 2) standard errors of the reference gain and offset; None: the reference is exact.
        learning: number of samples of each kind from which noise is estimated.
        memory: number of samples after which old information has faded to 1/e.
        false_alarm_rate: largest probability that any joint gives a false alarm at one sample.
        rules: criteria for rests and slow motion; None: the defaults.

    Attributes:
        gravity: gravity model of the robot.
        sensors: present reference calibration.

    Raises:
        IdentificationError: an impossible setting, or moments of another robot.
    """

    def __init__(
        self,
        robot: RobotModel,
        gravity: KnownGravity,
        sensors: TorqueSensors | None = None,
        *,
        reference_std: ArrayLike | None = None,
        learning: int = 30,
        memory: float = 200.0,
        false_alarm_rate: float = 1e-4,
        rules: SampleRules | None = None,
    ) -> None:
        self.robot = robot
        self.gravity = GravityModel(robot)
        n = robot.n_joints
        if gravity.moments.shape != (len(self.gravity.names),):
            raise IdentificationError(
                f"gravity: {gravity.moments.size} moments; robot '{robot.name}' has {len(self.gravity.names)}"
            )
        for name, value, valid, expected in (
            ("learning", learning, learning >= 10, "at least 10"),
            ("memory", memory, N_COLUMNS < memory < np.inf, f"more than {N_COLUMNS}, and finite"),
            ("false_alarm_rate", false_alarm_rate, 0 < false_alarm_rate < 1, "between 0 and 1"),
        ):
            if not valid:
                raise IdentificationError(f"{name} is {value}; expected {expected}")
        self.rules = rules or SampleRules()
        self.memory = memory
        self.false_alarm_rate = false_alarm_rate
        self._moments = gravity.moments
        variances, axes = np.linalg.eigh(gravity.covariance)
        is_uncertain = variances > 0
        self._moment_errors = axes[:, is_uncertain] * np.sqrt(variances[is_uncertain])
        self._weighed = ~self.gravity.unobservable_axes()
        self._learners = {kind: NoiseLearner(n, learning) for kind in SAMPLE_KINDS}
        self._dof = learning - N_COLUMNS
        self._set_reference(sensors or TorqueSensors.ideal(robot.joint_names), reference_std)

    @property
    def gain(self) -> NDArray:
        """Present gains (n,), N m per unit of the reading; NaN until the standard error is below 10 %."""
        value, std = self._estimates()
        return np.where(std[:, 0] < 0.1 * np.abs(value[:, 0]), 1 / value[:, 0], np.nan)

    @property
    def offset(self) -> NDArray:
        """Present offsets (n,), in units of the reading."""
        return self._estimates()[0][:, 1]

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (n, 2) of gain and offset, from the noise of the readings alone."""
        value, std = self._estimates()
        return np.stack([std[:, 0] / value[:, 0] ** 2, std[:, 1]], axis=1)

    @property
    def learned(self) -> bool:
        """Whether the noise of any joint is estimated, so that its drift can be detected."""
        return any(np.isfinite(learner.noise).any() for learner in self._learners.values())

    @property
    def alarms(self) -> tuple[DriftAlarm, ...]:
        """Alarms of all joints that have drifted from the reference."""
        return tuple(self._alarms.values())

    def update(self, samples: Samples) -> list[DriftAlarm]:
        """Add samples, with readings as torque, in the order of time, and return the new alarms."""
        angles = self.sensors.position_gain * samples.position + self.sensors.position_offset
        regressor = self.gravity.regressor(angles) * self._weighed[:, None]
        raised = []
        for m in np.argsort(samples.time, kind="stable"):
            raised += self._take(samples, m, regressor[m])
        return raised

    def accept(self) -> TorqueSensors:
        """Make the determined present estimates the reference, end all alarms, and return the estimates.

        Raises:
            IdentificationError: no estimate is determined.
        """
        std = self.standard_errors
        is_determined = np.stack([np.isfinite(self.gain), std[:, 1] < UNKNOWN_DEVIATION / 2], axis=1)
        if not is_determined.any():
            raise IdentificationError(
                "there is nothing to accept: no gain and no offset is known yet from what was watched; let the arm "
                "visit poses that load its joints, then accept"
            )
        sensors = replace(
            self.sensors,
            gain=np.where(is_determined[:, 0], self.gain, self.sensors.gain),
            offset=np.where(is_determined[:, 1], self.offset, self.sensors.offset),
        )
        self._set_reference(sensors, np.where(is_determined, std, self._reference_std))
        return sensors

    def _set_reference(self, sensors: TorqueSensors, std: ArrayLike | None) -> None:
        """Set the reference with the standard errors (n, 2) of gain and offset, and restart all estimates."""
        n = self.robot.n_joints
        self.sensors = sensors
        self._reference_std = np.zeros((n, 2)) if std is None else np.asarray(std, dtype=float)
        self._sensitivity = 1 / sensors.gain
        self._alarms: dict[str, DriftAlarm] = {}
        self._refined: dict[str, int] = {}
        self._exceeding = np.zeros(n, int)
        self._estimators = [SquareRootInformation(N_COLUMNS) for _ in range(n)]
        covariance = np.zeros((n, 2, 2))
        covariance[:, 0, 0] = (self._reference_std[:, 0] * self._sensitivity**2) ** 2
        covariance[:, 1, 1] = self._reference_std[:, 1] ** 2
        errors = self._moment_errors.shape[1]
        self._windows = DriftWindows(covariance, errors, self.false_alarm_rate, self._dof)
        self._times: deque[float] = deque(maxlen=WINDOW_SAMPLES[-1])

    def _take(self, samples: Samples, m: int, regressor: NDArray) -> list[DriftAlarm]:
        """Add sample m, whose gravity regressor is (n, k), and return the new alarms."""
        torque = regressor @ self._moments
        time = float(samples.time[m])
        # Without the direction of friction, a reading contains no usable information.
        has_direction = samples.direction[m] != 0
        columns = [torque, np.ones_like(torque), samples.direction[m], samples.velocity[m]]
        rows = np.stack(columns, axis=1) * has_direction[:, None]
        error = (samples.torque[m] - self._sensitivity * torque - self.sensors.offset) * has_direction
        learner = self._learners["static" if samples.static[m] else "slow"]
        has_noise = np.isfinite(learner.noise)
        if not has_noise.all():
            learner.add(rows, error)
        if not has_noise.any():
            return []
        rows = rows / learner.noise[:, None]
        error = error / learner.noise
        moments = (self._sensitivity / learner.noise)[:, None] * (regressor @ self._moment_errors)
        self._estimate(rows, error)
        statistic = self._windows.add(rows, error, moments * has_direction[:, None])
        self._times.append(time)
        names = self.robot.joint_names
        for name, alarm in self._alarms.items():
            if self._refined[name] < REFIT_SAMPLES:
                self._refined[name] += 1
                self._alarms[name] = self._alarm(names.index(name), alarm.time)
        self._exceeding = np.where(statistic > self._windows.threshold, self._exceeding + 1, 0)
        lasting = [int(j) for j in np.flatnonzero(self._exceeding >= WINDOW_SAMPLES[0]) if names[j] not in self._alarms]
        # After a sudden change of friction, the samples since then are fitted alone, and their statistic is small.
        drifted = [j for j in lasting if self._windows.drift(j).statistic > self._windows.threshold]
        raised = [self._alarm(joint, time) for joint in drifted]
        for alarm in raised:
            self._alarms[alarm.joint] = alarm
            self._refined[alarm.joint] = 0
            self._estimators[names.index(alarm.joint)] = SquareRootInformation(N_COLUMNS)
        return raised

    def _estimate(self, rows: NDArray, error: NDArray) -> None:
        keep = float(np.exp(-1 / self.memory))
        for estimator, row, e in zip(self._estimators, rows, error, strict=True):
            if row.any():
                estimator.update(np.append(row, e)[None], keep)

    def _estimates(self) -> tuple[NDArray, NDArray]:
        """Return sensitivity and offset (n, 2) and standard errors, which are infinite before the first information."""
        value = np.stack([self._sensitivity, self.sensors.offset], axis=1)
        std = np.full_like(value, np.inf)
        for joint, estimator in enumerate(self._estimators):
            factor, _ = estimator.factor
            inverse = np.linalg.inv(factor)
            value[joint] += estimator.solution[:2]
            std[joint] = np.linalg.norm(inverse[:2], axis=1)
        return value, std

    def _alarm(self, joint: int, time: float) -> DriftAlarm:
        """Return the alarm for the present drift of a joint's sensor."""
        drift = self._windows.drift(joint)
        reference = float(self.sensors.gain[joint]), float(self.sensors.offset[joint])
        return DriftAlarm.of(self.robot.joint_names[joint], reference, drift, self._times[-drift.samples], time)
