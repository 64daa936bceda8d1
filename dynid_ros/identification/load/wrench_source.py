"""Equations of a load from a wrist sensor, with the sensor's frame, sign, mounting, clock, gains and drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation
from scipy.special import fdtrc

from dynid_ros.checks.channels import require_sound
from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.load.load_fit import LoadProblem
from dynid_ros.identification.load.wrench_columns import Deflections, Gains, WrenchColumns, estimated_gains
from dynid_ros.identification.load.wrench_equations import (
    IntegralWrenchEquations,
    StaticWrenchEquations,
    WrenchEquations,
    WrenchTrack,
    lag_of,
    linear_readings,
    turn_of,
)
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.identification.wrench_faults import DRIFT_DEGREE, Drift, find_faults, refuse_unexplained
from dynid_ros.identification.wrench_frame import (
    MAX_REMAINDER_BY_OTHER,
    MAX_UNEXPLAINED_BY_FRAME,
    SENSOR_AXES,
    Convention,
    Frame,
    chosen_series,
    frame_of,
    require_choices,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import STATIC
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals

# Contradictions between the readings and the stated frame or sign.


MIN_SIGNIFICANCE_OF_SIGN = 5.0
"""Standard errors of white noise below zero from which a mass counts as negative."""


def refuse_contradiction(
    problem: WeightedProblem, frame: Frame, in_frame: Callable[[Frame], WeightedProblem], source: str
) -> None:
    """Refuse readings that another frame or the other sign explains much better.

    Args:
        problem: equations with the stated frame and sign.
        frame: stated frame.
        in_frame: function that returns the equations with the readings in another frame.
        source: name of the recordings, for messages.

    Raises:
        IdentificationError: names the setting to change.
    """
    given, mass, error = _left(problem)
    if given > MAX_UNEXPLAINED_BY_FRAME:
        (other,) = set(get_args(Frame)) - {frame}
        left, *_ = _left(in_frame(other))
        if left < MAX_REMAINDER_BY_OTHER * given:
            raise IdentificationError(
                f"{source}: wrench frame '{frame}' contradicts the data: {given:.0%} of the readings' change is left "
                f"unexplained, but {left:.0%} if they are in the frame of the {other}: set frame='{other}', or mend "
                "the frame_id"
            )
    if mass < -MIN_SIGNIFICANCE_OF_SIGN * error:
        raise IdentificationError(
            f"{source}: the load's mass would be {mass:.4g} kg: the wrenches have the other sign, or the sensor's axes "
            "are reversed; set the other convention ('load_on_sensor' or 'sensor_on_load'), or take the sensor's "
            "link as tip"
        )


def _left(problem: WeightedProblem) -> tuple[float, float, float]:
    """Return the unexplained fraction of the variation (mean of force and torque), the mass and its error, kg."""
    fit, noise = problem.weighted()
    columns = problem.factors.columns
    assert isinstance(columns, WrenchColumns)
    variation = bias_residual(problem)
    shares = [
        np.linalg.norm(noise[axes]) / max(np.linalg.norm(variation[axes]), 1e-12) for axes in (slice(3), slice(3, 6))
    ]
    return float(np.sqrt(np.prod(shares))), float(fit.solution[0]), float(np.sqrt(fit.covariance[0, 0]))


def bias_residual(problem: WeightedProblem) -> NDArray:
    """Return the RMS variation (6,) of the readings about a constant bias."""
    columns = problem.factors.columns
    assert isinstance(columns, WrenchColumns)
    bias = WeightedProblem(problem.factors, columns.own[["bias" in name for name in columns.names]])
    return bias.residual_rms(bias.ordinary().solution)


MAX_P_VALUE_OF_DRIFT = 1e-3
"""Largest p-value of a drift of one axis at rest."""
MIN_POSES_FOR_DRIFT = 8
"""Poses that show a drift in addition to the load and the bias."""


def drift_at_rest(plain: WeightedProblem, drifting: WeightedProblem) -> Drift | None:
    """Return the drift of the bias in the course of poses at rest, or None if an F-test detects no drift.

    Args:
        plain: equations of the load with a constant bias.
        drifting: equations with a bias that follows a polynomial of time.
    """
    columns = drifting.factors.columns
    assert isinstance(columns, WrenchColumns)
    fit, _ = drifting.weighted()
    count = drifting.count()
    added = (drifting.n_unknowns - plain.n_unknowns) / len(SENSOR_AXES)
    freedom = count - fit.rank / len(SENSOR_AXES)
    if count < MIN_POSES_FOR_DRIFT or fit.rank < drifting.n_unknowns or freedom <= 0:
        return None
    before = plain.residual_rms(plain.weighted()[0].solution) ** 2
    after = drifting.residual_rms(fit.solution) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (before - after) / added / (after / freedom)
    shown = fdtrc(added, freedom, ratio) < MAX_P_VALUE_OF_DRIFT
    if not shown.any():
        return None
    course = np.linspace(-1.0, 1.0)
    powers = course[:, None] ** np.arange(1, columns.drift + 1)
    is_drift = [name.startswith("drift") for name in columns.names]
    coefficients = fit.solution[is_drift].reshape(columns.recordings, columns.drift, len(SENSOR_AXES))
    sizes = np.ptp(powers @ coefficients, axis=1).max(axis=0)
    return Drift(np.where(shown, sizes, 0.0), float(np.max(sizes / np.maximum(bias_residual(plain), 1e-12))))


def _drift_text(drift: Drift) -> str:
    return (
        f"the sensor's bias drifts ({drift.text}); the fit corrects for it with a polynomial of time of degree "
        f"{DRIFT_DEGREE}: let the sensor warm up, and record again"
    )


WRENCH_EQUATIONS = {"filtered": WrenchEquations, "integral": IntegralWrenchEquations}
MIN_REPORTED_LAG_S = 0.002
"""Smallest lag that is reported, s."""
MIN_REPORTED_TURN_RAD = np.radians(1.0)
"""Smallest turn of the sensor that is reported, rad."""
MAX_DRIFT_DEGREE = 3


AnyEquations = TypeVar("AnyEquations", WrenchEquations, StaticWrenchEquations)


@dataclass
class WrenchSource:
    """Turns recordings with a wrist sensor into equations of the load.

    The sensor is the robot's tip link. Beside the load's parameters a bias is estimated for each recording and axis,
    and unless given otherwise the turn of the sensor's axes against the tip's, and the lag of its clock.

    Attributes:
        topic: of the wrenches; None: the only one.
        frame: of the wrenches; None: by their `frame_id`.
        convention: who exerts the wrench that is read.
        lag: by how much later than the joints' the sensor's clock is, s; None: estimated.
        sensor_turn: whether the sensor's axes may be turned against the tip's by a small angle.
        drift: degree of the polynomial of time that the bias follows.
        gain_error: standard deviation of the relative error of each axis' gain.
        joint_deflection: standard deviation over the joints of how far gravity twists them at most, rad.
        sensor_range: (6,) largest reading on either side, N and N m; None: saturation is seen by values that stick.
        equations: "filtered": readings and columns through the same low-pass; "integral": means over windows, which
            need no accelerations.
        cutoff, motion_cutoff: see `LinkSignals`; None: chosen from the motion.
    """

    topic: str | None = None
    frame: Frame | None = None
    convention: Convention = "load_on_sensor"
    lag: float | None = None
    sensor_turn: bool = True
    drift: int = 0
    gain_error: float = 0.005
    joint_deflection: float = 0.001
    sensor_range: ArrayLike | None = None
    equations: Literal["filtered", "integral"] = "filtered"
    cutoff: float | None = None
    motion_cutoff: float | None = None

    def __post_init__(self) -> None:
        require_choices(self.frame, self.convention)
        if self.equations not in WRENCH_EQUATIONS:
            raise IdentificationError(f"equations is '{self.equations}'; expected one of {', '.join(WRENCH_EQUATIONS)}")
        if self.drift not in range(MAX_DRIFT_DEGREE + 1):
            raise IdentificationError(f"drift is {self.drift!r}; expected a degree from 0 to {MAX_DRIFT_DEGREE}")
        for name in ("gain_error", "joint_deflection"):
            size = getattr(self, name)
            if not (isinstance(size, (int, float)) and np.isfinite(size) and size >= 0):
                raise IdentificationError(f"{name} is {size!r}; expected a number of 0 or more")
        if self.lag is not None and not (isinstance(self.lag, (int, float)) and np.isfinite(self.lag)):
            raise IdentificationError(f"lag is {self.lag!r}; expected seconds, or None to have it estimated")
        if self.sensor_range is not None:
            largest = np.asarray(self.sensor_range, dtype=float)
            if largest.shape != (6,) or not (largest > 0).all():
                raise IdentificationError(f"sensor_range is {self.sensor_range}; expected six positive numbers")

    def moving(self, robot: RobotModel, recordings: Sequence[Recording]) -> LoadProblem:
        """Make the problem of a motion: all ten parameters.

        Raises:
            RecordingError: a joint is missing, or readings of a broken sensor.
            IdentificationError: no wrenches, several topics, a frame that is neither tip nor base, no motion.
        """
        parts, tracks = self._read(robot, recordings)
        signals = LinkSignals.choose(parts, self.cutoff, self.motion_cutoff)
        lags = [0.0 if self.lag is None else float(self.lag)] * len(parts)
        remarks = [signals.reason]
        if self.lag is None:
            lags = [lag_of(robot, signals, *pair) for pair in zip(parts, tracks, strict=True)]
            remarks += [
                f"{part.source}: the sensor's clock is {'late' if lag > 0 else 'early'} by {1e3 * abs(lag):.1f} ms, "
                "which was made up for"
                for part, lag in zip(parts, lags, strict=True)
                if abs(lag) > MIN_REPORTED_LAG_S
            ]
        build = WRENCH_EQUATIONS[self.equations]

        def seen(frame: Frame, turn: NDArray) -> WrenchEquations:
            return build(robot, signals, parts, [replace(track, frame=frame, turn=turn) for track in tracks], lags)

        columns = WrenchColumns(robot, len(parts), turn=self.sensor_turn, lag=self.lag is None, drift=self.drift)
        found = self._problem(seen, columns, tracks, parts)
        return found._replace(remarks=(*remarks, *found.remarks))

    def resting(
        self, robot: RobotModel, recordings: Sequence[Recording], rules: SampleRules | None = None
    ) -> LoadProblem:
        """Make the problem of dwells: mass and mass moments.

        Raises:
            RecordingError, IdentificationError: as `moving`; no dwells.
        """
        parts, tracks = self._read(robot, recordings)

        def seen(frame: Frame, turn: NDArray) -> StaticWrenchEquations:
            turned = [replace(track, frame=frame, turn=turn) for track in tracks]
            return StaticWrenchEquations(robot, parts, turned, rules or SampleRules())

        columns = WrenchColumns(robot, len(parts), static=True, turn=self.sensor_turn, drift=self.drift)
        return self._problem(seen, columns, tracks, parts)

    def _problem(
        self,
        seen: Callable[[Frame, NDArray], AnyEquations],
        columns: WrenchColumns,
        tracks: Sequence[WrenchTrack],
        recordings: Sequence[Recording],
    ) -> LoadProblem:
        """Make the problem of wrenches in their frame, which do not contradict it."""
        frame = tracks[0].frame

        def problem(frame: Frame, turn: NDArray) -> WeightedProblem:
            return WeightedProblem(seen(frame, turn).factors(columns), columns.own)

        source = ", ".join(recording.source for recording in recordings)
        remarks: list[str] = []
        plain = WrenchColumns(columns.robot, len(recordings), static=columns.n_load == STATIC, turn=False, lag=False)
        readings = replace(linear_readings(seen(frame, np.eye(3)), plain), drift=self.drift)
        drift = find_faults(readings, source, self.gain_error)
        faults = []
        if drift is not None and not self.drift:
            columns = columns.with_drift(DRIFT_DEGREE)
            faults.append(_drift_text(drift))
        turn = turn_of(partial(problem, frame)) if self.sensor_turn else np.eye(3)
        equations = seen(frame, turn)
        found = WeightedProblem(equations.factors(columns), columns.own)
        refuse_contradiction(found, frame, lambda other: problem(other, np.eye(3)), source)
        if columns.n_load == STATIC and not columns.drift:
            drifting_columns = columns.with_drift(DRIFT_DEGREE)
            drifting = WeightedProblem(equations.factors(drifting_columns), drifting_columns.own)
            drift = drift_at_rest(found, drifting)
            if drift is not None:
                columns = drifting_columns
                found = drifting
                faults.append(_drift_text(drift))
        fit, _ = found.weighted()
        white = np.sqrt(np.mean([track.noise**2 for track in tracks], axis=0))
        refuse_unexplained(found.residual_rms(fit.solution), bias_residual(found), white, source)
        angle = Rotation.from_matrix(turn).magnitude()
        if angle > MIN_REPORTED_TURN_RAD:
            remarks.append(
                f"the sensor's axes are turned by {np.degrees(angle):.1f}° against those of '{columns.robot.tip}', "
                "which was made up for"
            )
        # The errors of the gains are estimated; their uncertainty is in `gains`.
        gains = Gains.exact(fit.solution[: columns.n_load])
        if not self.gain_error and not self.joint_deflection:
            return LoadProblem(equations, columns, SENSOR_AXES, None, 0.0, tuple(remarks), tuple(faults), turn)
        if self.joint_deflection:
            columns = columns.with_deflections(Deflections(columns.robot, gains.load))
            found = WeightedProblem(equations.factors(columns), columns.own)
        if self.gain_error:
            gains = estimated_gains(found, self.gain_error, columns.n_load, self.joint_deflection)
        columns = columns.with_gains(gains)
        if self.joint_deflection:
            gains = gains.with_deflections(columns.robot.n_joints, self.joint_deflection)
        return LoadProblem(equations, columns, SENSOR_AXES, gains, 0.0, tuple(remarks), tuple(faults), turn)

    def _read(self, robot: RobotModel, recordings: Sequence[Recording]) -> tuple[list[Recording], list[WrenchTrack]]:
        """Return recordings whose torques do not count, and the sensor's readings."""
        parts = []
        tracks = []
        for recording in recordings:
            selected = recording.select(robot.joint_names)
            selected = replace(selected, torque=np.zeros_like(selected.torque))
            topic, series = chosen_series(selected, self.topic)
            where = f"{recording.source}, {topic}"
            frame = frame_of(series, robot, self.frame, where)
            require_sound(series, selected, where, self.sensor_range)
            parts.append(selected)
            tracks.append(WrenchTrack.of(series, selected, frame, self.convention, where))
        return parts, tracks
