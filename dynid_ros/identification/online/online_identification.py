"""Identification while the arm moves: of a load that it carries, or of all its links (Khosla and Kanade 1987)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.recursive_least_squares import EstimateWalk, SquareRootInformation
from dynid_ros.identification.online.load_change import LoadChange, LoadChangeDetector
from dynid_ros.identification.online.online_equations import (
    CHANGING_FRICTION,
    CausalMotion,
    LinkRows,
    LoadRows,
    RowFilter,
)
from dynid_ros.identification.online.online_estimate import KindSums, OnlineEstimate, online_estimate, systematic_errors
from dynid_ros.identification.presliding import looseness
from dynid_ros.identified.links import Identified, KnownArm, LinkModel, as_known
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.signals.steady_samples import SteadySamples

CUTOFF_HZ = 5.0
"""Cutoff frequency, Hz: above the motion of an arm, below the noise of accelerations and the resonance of elastic
joints."""

NOISE_OF_EFFORT = 0.005
"""Default noise of the torque, as a fraction of the effort limit of the joint."""

LINK_FRICTION_KEYS = JointFriction(offset=True, rotor_inertia=True)
"""Default terms of each joint that are estimated with the links, besides Coulomb and viscous friction."""

BLOCK_SAMPLES = 16
"""Number of samples after which the filter is evaluated in any case, so that no evaluation takes long."""

REFRESH_SAMPLES = 64
"""Number of equations after which the correlation of innovations is evaluated again."""

MAX_GAP_TIME_CONSTANTS = 10.0
"""Longest gap between samples of `update`, in time constants of the filter; after a longer gap the filter restarts."""


class OnlineIdentification:
    """Recursive least squares on the torques of an arm, one sample at a time.

    Every column of the equations and the torque pass the same causal low-pass, and its output after every two time
    constants is an equation. Equations are exact despite its lag, and noise of accelerations cannot bias the estimate.

    A sample that is not finite counts as lost. `sample` bridges short gaps (`SteadySamples`). A longer gap restarts
    derivatives and filter; the estimate is kept.

    Args:
        robot: the arm; the load is fixed to its tip, and the load's parameters are in the tip's frame.
        target: "load", or "links" for all base parameters of the arm and its friction.
        arm: links and friction without load, for "load" only. The load's torque is the measured torque minus that of
            the arm. Standard errors include the uncertainty of the arm, if its identification gives it (`KnownArm`).
        noise: (n,) standard deviation of each torque about the model, N m. It weights the joints relative to each
            other; the size of all errors is estimated. None: 0.5 % of the effort limits.
        friction: terms to estimate. None: for a load the terms that may differ from `arm`, Coulomb and viscous friction
            and offset of each joint; for links the same terms and rotor inertia.
        forgetting: time constant of forgetting, s; None: nothing is forgotten. See `SquareRootInformation`.
        cutoff: cutoff frequency of the low-pass, Hz; None: no low-pass, every sample is an equation.
        period: time between samples, s, for `sample`; None: from the time stamps.
        max_rate: largest rate of samples that are used, Hz; `sample` averages faster samples. None: no limit.
        watch: whether to detect changes of the load and to restart its estimate; for "load" only.
        torque_gain_error: standard deviation of the relative error of each joint's torque gain; innovations do not
            reveal such an error.

    Attributes:
        noise: (n,) standard deviation of each torque, N m.
        n_equations: number of equations of each joint since the start or the last change of the load.
        skipped: number of samples that were not finite.
        changes: detected changes of the load.

    Raises:
        IdentificationError: a setting is invalid, or `arm` does not fit the target or the robot.
    """

    def __init__(
        self,
        robot: RobotModel,
        target: Literal["load", "links"] = "load",
        arm: LinkModel | KnownArm | Identified | None = None,
        *,
        noise: ArrayLike | None = None,
        friction: FrictionModel | None = None,
        forgetting: float | None = None,
        cutoff: float | None = CUTOFF_HZ,
        period: float | None = None,
        max_rate: float | None = None,
        watch: bool = True,
        torque_gain_error: float = 0.01,
    ):
        settings = {"forgetting": forgetting, "cutoff": cutoff, "period": period, "max_rate": max_rate}
        for name, value in settings.items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise IdentificationError(f"{name} is {value}; expected a number above 0, or None")
        if not (math.isfinite(torque_gain_error) and torque_gain_error >= 0):
            raise IdentificationError(f"torque_gain_error is {torque_gain_error}; expected a number of 0 or more")
        self.robot = robot
        self.target = target
        self.noise = _noise(robot, noise)
        self._rows = _rows(robot, target, None if arm is None else as_known(arm), friction, self.noise)
        self._forgetting = forgetting
        self._given: list[NDArray] = []
        self._filter = RowFilter(cutoff) if cutoff else None
        self._clock = SteadySamples(period, max_rate)
        self._motion = CausalMotion()
        self._gain_error = torque_gain_error
        self._systematic_errors = systematic_errors(self._rows, torque_gain_error)
        n = robot.n_joints
        size = len(self._rows.names)
        self._state = SquareRootInformation(size, considered=self._rows.n_known + n)
        # Without a known arm, the only systematic errors are those of the gains, which residuals do not show.
        others = self._rows.n_known + n if target == "load" else 0
        self._kinds = KindSums(n, size, others)
        self._moved = np.zeros(2 * n)
        self._walk = EstimateWalk(size)
        self._detector = (
            LoadChangeDetector(n, self._filter.spacing, stiction=self._rows.stiction / self.noise)
            if watch and target == "load" and self._filter
            else None
        )
        self._inflation = 1.0
        self._rests = np.zeros(n)
        self._last = -math.inf
        self._used = math.nan
        self.n_equations = 0
        self.skipped = 0
        self.changes: list[LoadChange] = []
        self._squares = np.zeros((2, robot.n_joints))

    @property
    def names(self) -> tuple[str, ...]:
        """Names (k,) of the parameters."""
        return self._rows.names

    @property
    def missing(self) -> int:
        """Number of samples that are missing at the constant rate of `sample`."""
        return self._clock.missing

    def sample(self, time: float, q: ArrayLike, torque: ArrayLike) -> LoadChange | None:
        """Add positions and torques (n,), sampled at a constant rate, and differentiate the positions.

        Derivatives are four samples late, and positions and torques are delayed alike.

        Returns:
            Change of the load if this sample revealed one; otherwise None.

        Raises:
            IdentificationError: arrays of another shape, or a time that is not later than the one before.
        """
        checked = self._checked(time, ("q", "torque"), (q, torque))
        change = None
        for steady in [] if checked is None else self._clock.add(time, checked):
            if steady.starts:
                self._motion.reset()
                self._restart()
            instant = self._motion.add(steady.time, steady.values, self._clock.spacing)
            noticed = None if instant is None else self._take(instant)
            change = noticed or change
        return change

    def update(self, time: float, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, torque: ArrayLike) -> LoadChange | None:
        """Add motion and torque (n,) of one instant; the spacing of instants may be uneven.

        Returns:
            Change of the load if this sample revealed one; otherwise None.

        Raises:
            IdentificationError: arrays of another shape, or a time that is not later than the one before.
        """
        before = self._last
        checked = self._checked(time, ("q", "qd", "qdd", "torque"), (q, qd, qdd, torque))
        if self._filter and time - before > MAX_GAP_TIME_CONSTANTS * self._filter.time_constant:
            self._restart()
        if checked is None:
            return None
        self._given.append(checked[:, None])
        return self._take(time)

    def estimate(self) -> OnlineEstimate:
        """Return the present estimate.

        Raises:
            IdentificationError: there are no equations yet.
        """
        if not self.n_equations:
            raise IdentificationError("no sample was taken up yet; feed some motion first")
        return online_estimate(
            self.robot,
            self._rows,
            self._state,
            self._kinds,
            gain_error=self._gain_error,
            time=self._used,
            n_equations=self.n_equations,
            residual_rms=np.sqrt(self._squares[0] / self.n_equations) * self.noise,
            signal_rms=np.sqrt(self._squares[1] / self.n_equations) * self.noise,
        )

    def new_load(self) -> None:
        """Forget the load, as it has changed, but keep the estimates of offsets and friction."""
        self._kinds.forget(self._rows.n_inertial, *self._state.factor, self._state.considered)
        self._state.forget(self._rows.n_inertial)
        self._walk = EstimateWalk(len(self._rows.names))
        self._squares[:] = 0.0
        self.n_equations = 0
        self._rests[:] = 0.0
        self._restart()

    def _restart(self) -> None:
        """Discard samples that wait for derivatives or for the filter."""
        self._given = []
        self._motion.take()
        self._rows.restart()
        if self._filter:
            self._filter.reset()
        if self._detector:
            self._detector.restart()

    def _take(self, time: float) -> LoadChange | None:
        """Filter the samples up to a time, and use the output if an equation is due."""
        if self._filter is None:
            rows = self._sums(np.ones((1, 1)))[0]
            due = True
        else:
            due = self._filter.add(time)
            if not due and self._filter.waiting < BLOCK_SAMPLES:
                return None
            rows = self._filter.output(self._sums)
        return self._use(time, rows) if due else None

    def _sums(self, weights: NDArray) -> NDArray:
        parts = [*self._given, *self._motion.take()]
        self._given = []
        samples = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        # The output of the low-pass lags behind the newest sample, so its kind of motion is that of the mean state.
        self._moved = samples[:2].mean(axis=1).ravel()
        return self._rows.sums(samples, weights)

    def _use(self, time: float, sums: NDArray) -> LoadChange | None:
        """Update the estimate with filtered equations, and test their innovations for a change of the load."""
        size = len(self._rows.names)
        rows = sums[:, : size + 1]
        considered = self._rows.considered(sums)
        unknown = sums[:, -2]
        resting = sums[:, -1]
        # Friction of a joint at rest, or after a short displacement, may have any value up to its stiction.
        loose, self._rests = looseness(unknown, self._rests, self._rows.stiction / self.noise)
        still = self._rests > 0.0
        weights = 1.0 / (self.noise * loose)
        rows = rows * weights[:, None]
        elapsed = max(time - self._used, 0.0) if self.n_equations else 0.0
        keep = math.exp(-elapsed / self._forgetting) if self._forgetting else 1.0
        considered = considered * weights[:, None]
        innovation = self._state.update(rows, keep, considered)
        self._kinds.add(self._moved, rows, loose**-2, keep, considered if self._rows.known else None)
        self._used = time
        self.n_equations += 1
        self._squares[0] += innovation.error**2 / (1.0 + innovation.spread)
        self._squares[1] += rows[:, -1] ** 2
        if self._detector is None:
            return None
        # Innovations at rest are weighted by possible stiction; they say nothing about innovations in motion.
        self._walk.add(innovation._replace(spread=np.where(still, np.inf, innovation.spread)))
        moving = bool(resting.min() < 0.5)
        if self.n_equations % REFRESH_SAMPLES == 0:
            self._inflation = self._walk.overall
        spread = innovation.spread * self._inflation
        change = self._detector.add(
            time,
            rows,
            innovation.error,
            spread,
            systematic=np.sum((innovation.considered @ self._systematic_errors) ** 2, axis=1),
            looseness=loose,
            moving=moving,
            position=self._moved[: self.robot.n_joints],
        )
        if change is not None:
            self.changes.append(change)
            self.new_load()
        return change

    def _checked(self, time: float, names: Sequence[str], arrays: Sequence[ArrayLike]) -> NDArray | None:
        """Return the arrays of a sample stacked, (len(arrays), n); None if a value is not finite."""
        n = self.robot.n_joints
        try:
            values = np.array(arrays, dtype=float)
        except ValueError:
            values = np.zeros(0)
        if values.shape != (len(arrays), n):
            shapes = ", ".join(f"{name} {np.shape(array)}" for name, array in zip(names, arrays, strict=True))
            raise IdentificationError(
                f"sample at {time} s: {shapes}; expected ({n},) for each, one number per joint "
                f"({', '.join(self.robot.joint_names)})"
            )
        if not time > self._last:
            raise IdentificationError(
                f"sample at {time} s comes after one at {self._last} s; time must increase: sort the samples, and make "
                f"a new OnlineIdentification when a clock was set back"
            )
        self._last = time
        if math.isfinite(np.add.reduce(values, axis=None)):
            return values
        self.skipped += 1
        return None


def _noise(robot: RobotModel, noise: ArrayLike | None) -> NDArray:
    limits = robot.limits.effort
    if noise is None:
        noise = np.where(np.isfinite(limits) & (limits > 0), NOISE_OF_EFFORT * limits, 1.0)
    values = np.array(noise, dtype=float)
    if values.shape != (robot.n_joints,) or not (np.isfinite(values) & (values > 0)).all():
        raise IdentificationError(
            f"noise is {values.tolist()}; expected {robot.n_joints} numbers above 0, one in N m for each joint"
        )
    return values


def _rows(
    robot: RobotModel, target: str, known: KnownArm | None, friction: FrictionModel | None, noise: NDArray
) -> LoadRows | LinkRows:
    if target == "load":
        if known is None:
            raise IdentificationError("a load is identified from torque minus the arm's: give the identified `arm`")
        return LoadRows(robot, known, friction or FrictionModel(CHANGING_FRICTION))
    if target == "links":
        return LinkRows(robot, friction or FrictionModel(LINK_FRICTION_KEYS), noise)
    raise IdentificationError(f"target is {target!r}; expected 'load' or 'links'")
