"""Contact detection from external torques, at a chosen rate of false alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.control.external_torque import MAX_GAP_S, MomentumObserver, TorqueUncertainty
from dynid_ros.control.gravity_feedforward import CarriedLoad, LoadFrames, robot_of_file
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.links import known_arm, residual_rms
from dynid_ros.model.inertia import transformed
from dynid_ros.model.robot import STANDARD_GRAVITY

ALARM_HOLD_S = 0.5
"""Time for which an alarm lasts after the last sample above its threshold, s; exceedances within it are one alarm."""
MIN_FALSE_ALARMS_PER_HOUR = 1e-6
"""Lowest rate of false alarms; a lower one exceeds the life of any arm."""
MAX_FALSE_ALARMS_PER_HOUR = 3600.0
"""Highest rate of false alarms; at a higher one, alarms of `ALARM_HOLD_S` would merge."""
UNCERTAINTY_PERIOD_S = 0.05
"""Time between two computations of the model's uncertainty, s."""
MIN_PEAKS = 40
"""Smallest number of peaks of a recording without contact needed to estimate the tail of the residuals."""


@dataclass(frozen=True)
class ExternalTorque:
    """External torque of one joint state, and the contacts that it indicates.

    Attributes:
        torque: (n,) external torque in the positive direction of each joint, N m (N).
        threshold: (n,) magnitude of the external torque that indicates contact, N m (N); infinite while the observer
            settles.
        contact: names of the joints whose torque exceeds its threshold, or exceeded it within `ALARM_HOLD_S`.
    """

    torque: list[float]
    threshold: list[float]
    contact: tuple[str, ...]


class ContactMonitor:
    """External torques of an arm, and detection of contact.

    A residual of more than `levels` standard deviations is a contact. The standard deviation combines the uncertainty
    of the model (`TorqueUncertainty`) with the unknown dry friction of a joint at standstill or after a reversal. By
    default the levels are those of normal noise behind the observer's low-pass. `calibrate` takes them from the
    residuals of a recording without contact instead.

    Args:
        uncertainty: uncertainty of the same model.
        false_alarms_per_hour: rate of false alarms of all joints together.

    Attributes:
        load: load included in the model; None without a load.
        levels: (n,) thresholds in standard deviations.
        calibrated: whether the levels are from a recording.
    """

    def __init__(
        self, observer: MomentumObserver, uncertainty: TorqueUncertainty, false_alarms_per_hour: float = 1.0
    ) -> None:
        if not MIN_FALSE_ALARMS_PER_HOUR <= false_alarms_per_hour <= MAX_FALSE_ALARMS_PER_HOUR:
            raise ControlError(
                f"false_alarms_per_hour is {false_alarms_per_hour:g}; expected {MIN_FALSE_ALARMS_PER_HOUR:g} to "
                f"{MAX_FALSE_ALARMS_PER_HOUR:g}"
            )
        self.observer = observer
        self.robot = observer.robot
        self._uncertainty = uncertainty
        self._rate = false_alarms_per_hour / 3600.0
        self.joint_names = self.robot.joint_names
        n = len(self.joint_names)
        self.levels = np.full(n, normal_level(self._rate / n, observer.bandwidth))
        self.calibrated = False
        self.load: CarriedLoad | None = None
        self._frames: LoadFrames | None = None
        self.restart()

    def carry(self, load: CarriedLoad | None) -> None:
        """Include a load in the model and restart the observer.

        Args:
            load: the load; None without a load.

        Raises:
            ControlError: the frame of the load is not fixed to the arm's last link.
        """
        if load is None:
            self.observer.carry(None)
        else:
            self._frames = self._frames or LoadFrames(self.robot)
            last = self._frames.parameters(load)[self.robot.tip_columns]
            self.observer.carry(transformed(last, np.linalg.inv(self.robot.tip_offset)))
        self.load = load
        self.restart()

    def restart(self) -> None:
        """Forget all samples."""
        self.observer.restart()
        self._until = [-math.inf] * len(self.joint_names)
        self._dry = np.zeros(len(self.joint_names))
        self._std = self._dry
        self._std_time = -math.inf
        self._last_time = -math.inf
        self._velocity = self._dry

    def update(
        self, time: float, q: Sequence[float], qd: Sequence[float] | None, torque: Sequence[float]
    ) -> ExternalTorque:
        """Return the external torque after one more sample; see `MomentumObserver.update` for arguments and errors."""
        residual = self.observer.update(time, q, qd, torque)
        std = self._std_at(time, q, torque)
        if not self.observer.settled:
            return ExternalTorque(residual, [math.inf] * len(residual), ())
        threshold = (self.levels * std).tolist()
        for i, (value, bound) in enumerate(zip(residual, threshold, strict=True)):
            if abs(value) > bound:
                self._until[i] = time + ALARM_HOLD_S
        touched = [name for name, until in zip(self.joint_names, self._until, strict=True) if time <= until]
        return ExternalTorque(residual, threshold, tuple(touched))

    def _std_at(self, time: float, q: Sequence[float], torque: Sequence[float]) -> NDArray:
        """Return the standard deviations (n,) of the residual; the model's part is up to one period old."""
        qd = self.observer.velocity
        step = time - self._last_time
        self._last_time = time
        if not step <= MAX_GAP_S:  # a gap, or the first sample
            self._dry = np.zeros(len(q))
            self._std_time = -math.inf
            step = math.inf
        if not time - self._std_time < UNCERTAINTY_PERIOD_S:
            velocity = np.asarray(qd)
            # The low-pass averages the residual over about one period; so does this mean acceleration.
            acceleration = np.zeros(len(q))
            if math.isfinite(self._std_time):
                acceleration = (velocity - self._velocity) / (time - self._std_time)
            self._std = self._uncertainty.std(q, qd, acceleration, torque)[0]
            self._std_time = time
            self._velocity = velocity
        kept = math.exp(-self.observer.bandwidth * step)
        self._dry = kept * self._dry + (1.0 - kept) * self._uncertainty.dry(self.observer.directions, torque)
        return np.hypot(self._std, self._dry)

    def residuals(self, time: NDArray, q: NDArray, qd: NDArray | None, torque: NDArray) -> tuple[NDArray, NDArray]:
        """Return the external torques of a recording and their standard deviations.

        Args:
            time: (N,) s.
            q: (N, n) positions, rad (m).
            qd: (N, n) velocities, rad/s (m/s); None: positions are differentiated.
            torque: (N, n) torques of the drives, N m (N).

        Returns:
            External torques (N, n) and standard deviations (N, n), N m (N); the latter are infinite while the observer
            settles.
        """
        self.restart()
        residuals = np.zeros(q.shape)
        stds = np.full(q.shape, np.inf)
        velocities = [None] * len(time) if qd is None else qd.tolist()
        rows = zip(time.tolist(), q.tolist(), velocities, torque.tolist(), strict=True)
        for k, (now, position, velocity, drive_torque) in enumerate(rows):
            residuals[k] = self.observer.update(now, position, velocity, drive_torque)
            std = self._std_at(now, position, drive_torque)
            if self.observer.settled:
                stds[k] = std
        self.restart()
        return residuals, stds

    def calibrate(self, time: NDArray, q: NDArray, qd: NDArray | None, torque: NDArray) -> None:
        """Estimate the levels from a recording of the arm's work without contact; see `residuals` for the arguments.

        Raises:
            ControlError: the recording is too short for the rate of false alarms.
        """
        residual, std = self.residuals(time, q, qd, torque)
        self.levels = tail_levels(time, np.abs(residual) / std, self._rate)
        self.calibrated = True


def load_contact_monitor(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    *,
    held: Mapping[str, float] | None = None,
    use_load: bool = True,
    bandwidth: float = 25.0,
    false_alarms_per_hour: float = 1.0,
    gain_error: float = 0.01,
) -> ContactMonitor:
    """Return the contact monitor of an identified arm, with the load of the file, if any.

    Args:
        model_file: `identified.yaml` of a link identification.
        urdf: path or text.
        base: first link of the chain; None: from the file.
        tip: last link of the chain; None: from the file.
        gravity: (3,) gravity in the base link's frame, m/s^2; the default is replaced by an estimate in the file.
        held: positions of locked joints by name, rad or m; None or empty: from the file.
        use_load: whether to include the load of the file.
        bandwidth: bandwidth of the external torques, rad/s.
        false_alarms_per_hour: rate of false alarms of all joints together.
        gain_error: standard deviation of the relative error of each joint's torque gain.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or lacks links or their residuals.
        ControlError: the bandwidth or the rate of false alarms is out of range.
        ModelError: the URDF does not describe such a chain.
    """
    document, robot = robot_of_file(model_file, urdf, base, tip, gravity=gravity, held=held)
    arm = known_arm(document, robot)
    monitor = ContactMonitor(
        MomentumObserver(arm.model, bandwidth),
        TorqueUncertainty(arm, residual_rms(document, robot.joint_names), gain_error),
        false_alarms_per_hour,
    )
    if use_load and document.get("load") is not None:
        try:
            monitor.carry(CarriedLoad.from_section(document["load"]))
        except ControlError as error:
            raise IdentifiedFileError(
                f"{model_file}: the load in it cannot be used: {error}. Identify it again, or set use_load to false"
            ) from error
    return monitor


def normal_level(rate: float, bandwidth: float) -> float:
    """Return the level that low-passed normal noise exceeds `rate` times a second, in standard deviations.

    Clumps of exceedances of either sign of a level b occur at the rate bandwidth · b · φ(b) (Aldous 1989, "Probability
    approximations via the Poisson clumping heuristic", D8: the Ornstein-Uhlenbeck process).

    Args:
        rate: exceedances per second.
        bandwidth: bandwidth of the first-order low-pass, rad/s.
    """
    b = 1.0
    for _ in range(100):
        b = math.sqrt(2.0 * max(math.log(2.0 * bandwidth * b / (math.sqrt(2.0 * math.pi) * rate)), 0.5))
    return b


def tail_levels(time: NDArray, ratios: NDArray, rate: float) -> NDArray:
    """Return the levels (n,) that the ratios of all joints together exceed `rate` times a second.

    Each joint has the same share of the false alarms. Simultaneous alarms of several joints are one alarm, so all
    levels are then scaled to the rate. Exceedances are counted as alarms are, which accounts for the autocorrelation
    of the residuals.

    Args:
        time: (N,) s.
        ratios: (N, n) magnitudes of the residuals over their standard deviations.
        rate: alarms per second.

    Raises:
        ControlError: less than `MIN_PEAKS` peaks.
    """
    levels = np.array([tail_level(time, ratio, rate / ratios.shape[1]) for ratio in ratios.T])
    return levels * tail_level(time, (ratios / levels).max(axis=1), rate)


def tail_level(time: NDArray, ratio: NDArray, rate: float) -> float:
    """Return the level that a ratio exceeds `rate` times a second; exceedances within `ALARM_HOLD_S` count as one.

    Peaks above a threshold have an exponential tail (generalised Pareto distribution of shape zero, Pickands 1975). It
    extrapolates to events that are rarer than the recording is long.

    Args:
        time: (N,) s.
        ratio: (N,) magnitude of the residual over its standard deviation.
        rate: exceedances per second.
    """
    expected = rate * (time[-1] - time[0])
    count = max(MIN_PEAKS, math.ceil(2.0 * expected))
    peaks = _peaks(time, ratio, count + 1)
    if len(peaks) <= count:
        raise ControlError(
            f"the recording without contact is {time[-1] - time[0]:.0f} s long, in which thresholds are exceeded at "
            f"most {len(peaks)} times; expected at least {count}: make it longer, or ask for less false alarms"
        )
    least = peaks[-1]
    return float(least + (peaks[:-1].mean() - least) * math.log(count / expected))


def _peaks(time: NDArray, ratio: NDArray, count: int) -> NDArray:
    """Return up to `count` of the highest peaks in falling order, farther than `ALARM_HOLD_S` from higher ones."""
    remaining = ratio.copy()
    peaks: list[float] = []
    while len(peaks) < count:
        k = int(np.argmax(remaining))
        if not remaining[k] > 0.0:
            break
        peaks.append(ratio[k])
        first = np.searchsorted(time, time[k] - ALARM_HOLD_S)
        end = np.searchsorted(time, time[k] + ALARM_HOLD_S, side="right")
        remaining[first:end] = 0.0
    return np.array(peaks)
