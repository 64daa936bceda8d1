"""Contact or not, from external torques: at the rate of false alarms that was asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.control.external_torque import LONGEST_GAP, MomentumObserver, TorqueUncertainty
from dynid_ros.control.gravity_feedforward import CarriedLoad, LoadFrames, robot_of_file
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.links import known_arm, residual_rms
from dynid_ros.model.inertia import transformed
from dynid_ros.model.robot import STANDARD_GRAVITY

HOLD = 0.5
"""s for which an alarm lasts after the last sample above its threshold; what comes meanwhile is the same alarm."""
RATES = (1e-6, 3600.0)
"""False alarms an hour: less no arm lives to see, and alarms that last `HOLD` each would be one."""
UNCERTAINTY_PERIOD = 0.05
"""s after which the model's uncertainty is worked out for another pose, velocity and acceleration."""
LEAST_PEAKS = 40
"""Alarms that a recording without contact must have had at a lower threshold, for its tail to be known."""


@dataclass(frozen=True)
class ExternalTorque:
    """What one joint state says.

    Attributes:
        torque: (n,) N m (N) from outside, in the positive direction of each joint.
        threshold: (n,) N m (N) that its size exceeds at contact; infinite while the observer settles.
        contact: names of the joints at which it does, or did up to `HOLD` ago.
    """

    torque: list[float]
    threshold: list[float]
    contact: tuple[str, ...]


class ContactMonitor:
    """External torques of an arm, and whether something touches it.

    Contact is a residual of more than `levels` standard deviations. These are those of the model (`TorqueUncertainty`),
    and what of dry friction is not sure while a joint stands, or bends its friction over. Without a recording of work
    that nothing touched levels are those of normal noise that passed the observer's low-pass; with one they are what
    its residuals reached as often as alarms are allowed, see `calibrate`.

    Args:
        observer: of the arm.
        uncertainty: of the same model.
        false_alarms_per_hour: of all joints together.

    Attributes:
        robot: the arm.
        joint_names: n names.
        load: that is counted with; None: none.
        levels: (n,) in standard deviations.
        calibrated: whether from a recording.
    """

    def __init__(
        self, observer: MomentumObserver, uncertainty: TorqueUncertainty, false_alarms_per_hour: float = 1.0
    ) -> None:
        if not RATES[0] <= false_alarms_per_hour <= RATES[1]:
            low, high = RATES
            raise ControlError(f"false_alarms_per_hour is {false_alarms_per_hour:g}; expected {low:g} to {high:g}")
        self.observer, self._uncertainty, self.robot = observer, uncertainty, observer.robot
        self._rate = false_alarms_per_hour / 3600.0
        self.joint_names = self.robot.joint_names
        n = len(self.joint_names)
        self.levels = np.full(n, normal_level(self._rate / n, observer.bandwidth))
        self.calibrated = False
        self.load: CarriedLoad | None = None
        self._frames: LoadFrames | None = None
        self.restart()

    def carry(self, load: CarriedLoad | None) -> None:
        """Count with a load from now on; the observer begins anew.

        Raises:
            ControlError: its frame is not fixed to the arm's last link.
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
        """Forget the samples."""
        self.observer.restart()
        self._until = [-math.inf] * len(self.joint_names)
        self._dry = np.zeros(len(self.joint_names))
        self._std = self._dry
        self._at = -math.inf
        self._last = -math.inf
        self._speed = self._dry

    def update(
        self, time: float, q: Sequence[float], qd: Sequence[float] | None, torque: Sequence[float]
    ) -> ExternalTorque:
        """External torque with one more sample; arguments and errors as of `MomentumObserver.update`."""
        residual = self.observer.update(time, q, qd, torque)
        std = self._std_at(time, q, torque)
        if not self.observer.settled:
            return ExternalTorque(residual, [math.inf] * len(residual), ())
        threshold = (self.levels * std).tolist()
        for i, (value, bound) in enumerate(zip(residual, threshold, strict=True)):
            if abs(value) > bound:
                self._until[i] = time + HOLD
        touched = [name for name, until in zip(self.joint_names, self._until, strict=True) if time <= until]
        return ExternalTorque(residual, threshold, tuple(touched))

    def _std_at(self, time: float, q: Sequence[float], torque: Sequence[float]) -> NDArray:
        """(n,) standard deviations of the residual; the model's are those of some time ago."""
        qd = self.observer.velocity
        step, self._last = time - self._last, time
        if not step <= LONGEST_GAP:  # or the first
            self._dry, self._at = np.zeros(len(q)), -math.inf
            step = math.inf
        if not time - self._at < UNCERTAINTY_PERIOD:
            speed = np.asarray(qd)
            # The residual is of the last of its time constants too: accelerations are means over that time.
            mean = (speed - self._speed) / (time - self._at) if math.isfinite(self._at) else np.zeros(len(q))
            self._std = self._uncertainty.std(q, qd, mean, torque)[0]
            self._at, self._speed = time, speed
        kept = math.exp(-self.observer.bandwidth * step)
        self._dry = kept * self._dry + (1.0 - kept) * self._uncertainty.dry(self.observer.directions, torque)
        return np.hypot(self._std, self._dry)

    def residuals(self, time: NDArray, q: NDArray, qd: NDArray | None, torque: NDArray) -> tuple[NDArray, NDArray]:
        """External torques and their standard deviations, N m (N), (N, n) each, of a recording of times (N,).

        Args:
            time: (N,) s.
            q: (N, n) positions.
            qd: (N, n) velocities; None: differentiated.
            torque: (N, n) N m (N).

        Returns:
            Both; while the observer settles the standard deviations are infinite.
        """
        self.restart()
        found, stds = np.zeros(q.shape), np.full(q.shape, np.inf)
        velocities = [None] * len(time) if qd is None else qd.tolist()
        rows = zip(time.tolist(), q.tolist(), velocities, torque.tolist(), strict=True)
        for k, (now, place, speed, drive) in enumerate(rows):
            found[k] = self.observer.update(now, place, speed, drive)
            std = self._std_at(now, place, drive)
            if self.observer.settled:
                stds[k] = std
        self.restart()
        return found, stds

    def calibrate(self, time: NDArray, q: NDArray, qd: NDArray | None, torque: NDArray) -> None:
        """Take the levels from a recording (N, n) of the arm's work, of times (N,), in which nothing touched it.

        Raises:
            ControlError: too short a recording for the rate to be known.
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
    """The monitor of an identified arm, with the load of the file, where it has one.

    Args:
        model_file: `identified.yaml` of a link identification.
        urdf: path or text.
        base: first link of the chain; None: that of the file.
        tip: last link of the chain; None: that of the file.
        gravity: in the base link's frame, m/s^2; the default gives way to what was found, where the file's was.
        held: positions of joints that do not move, rad or m; None or empty: those of the file.
        use_load: False: the arm alone, whatever the file says of a load.
        bandwidth: of the external torques, rad/s.
        false_alarms_per_hour: of all joints together.
        gain_error: standard deviation of the relative error of each joint's torque gain.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, without links, or says nothing of their residuals.
        ControlError: a bandwidth or a rate that is none.
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
            monitor.carry(CarriedLoad.of_section(document["load"]))
        except ControlError as error:
            raise IdentifiedFileError(
                f"{model_file}: the load in it cannot be used: {error}. Identify it again, or set use_load to false"
            ) from error
    return monitor


def normal_level(rate: float, bandwidth: float) -> float:
    """Standard deviations that normal noise, through a low-pass of first order (rad/s), leaves `rate` times a second.

    Clumps of either sign come at bandwidth · b · φ(b) each (Aldous 1989, "Probability approximations via the Poisson
    clumping heuristic", D8: the Ornstein-Uhlenbeck process).
    """
    b = 1.0
    for _ in range(100):
        b = math.sqrt(2.0 * max(math.log(2.0 * bandwidth * b / (math.sqrt(2.0 * math.pi) * rate)), 0.5))
    return b


def tail_levels(time: NDArray, ratios: NDArray, rate: float) -> NDArray:
    """Levels (n,) that `ratios` (N, n) of times (N,) exceed `rate` times a second, all together.

    Each joint has the same share of the false alarms; as alarms of several joints may be one, all levels are then
    scaled to the rate that was asked for. How often they are exceeded is counted as alarms are, so whatever correlates
    residuals in time is in it.

    Raises:
        ControlError: too few peaks.
    """
    own = np.array([tail_level(time, ratio, rate / ratios.shape[1]) for ratio in ratios.T])
    return own * tail_level(time, (ratios / own).max(axis=1), rate)


def tail_level(time: NDArray, ratio: NDArray, rate: float) -> float:
    """Level that `ratio` (N,) of times (N,) exceeds `rate` times a second, exceedances within `HOLD` counted as one.

    Peaks above a threshold have an exponential tail (Pickands 1975, of shape zero), which says what is rarer than the
    recording is long.

    Raises:
        ControlError: less than `LEAST_PEAKS` peaks.
    """
    expected = rate * (time[-1] - time[0])
    count = max(LEAST_PEAKS, math.ceil(2.0 * expected))
    peaks = _peaks(time, ratio, count + 1)
    if len(peaks) <= count:
        raise ControlError(
            f"the recording without contact is {time[-1] - time[0]:.0f} s long, in which thresholds are exceeded at "
            f"most {len(peaks)} times; expected at least {count}: make it longer, or ask for less false alarms"
        )
    least = peaks[-1]
    return float(least + (peaks[:-1].mean() - least) * math.log(count / expected))


def _peaks(time: NDArray, ratio: NDArray, count: int) -> NDArray:
    """The highest `count` values, or less, that are further than `HOLD` from higher ones; falling."""
    left, found = ratio.copy(), list[float]()
    while len(found) < count:
        k = int(np.argmax(left))
        if not left[k] > 0.0:
            break
        found.append(ratio[k])
        left[np.searchsorted(time, time[k] - HOLD) : np.searchsorted(time, time[k] + HOLD, side="right")] = 0.0
    return np.array(found)
