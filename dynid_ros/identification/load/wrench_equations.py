"""Equations of a load from a wrist force/torque sensor (Atkeson, An and Hollerbach 1986, eqs. 8 and 25 to 27)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import EquationBlock, Equations, LinkEquations
from dynid_ros.identification.integral_equations import MIN_WINDOW_STEPS, WINDOW_PERIODS, window_weights
from dynid_ros.identification.load.wrench_columns import OF_FORCE, WrenchColumns
from dynid_ros.identification.static_samples import SampleRules, dwells
from dynid_ros.identification.wrench_faults import LinearReadings
from dynid_ros.identification.wrench_frame import (
    SENSOR_AXES,
    TURN,
    Convention,
    Frame,
    sensor_wrench,
    tip_rotations,
    turned,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks
from dynid_ros.model.dynamics import regressor_of_features, tip_motion, wrench_features
from dynid_ros.model.friction_terms import Memory
from dynid_ros.model.inertia import STATIC
from dynid_ros.recording import Recording
from dynid_ros.recording.series import WrenchSeries
from dynid_ros.recording.uniform_motion import LinkSegment, LinkSignals, row_times
from dynid_ros.signals import LowPass, Segment, central_differences, resample, sample_times, stale_rows, time_lag
from dynid_ros.signals.low_pass import Motion

# Readings of a wrist sensor at the times of the joints' samples.


MIN_RATE_RATIO = 1.2
"""Ratio of the sensor's rate to that of the joints above which the sensor is low-passed before it is resampled."""
CUTOFF_OF_JOINT_RATE = 0.4
"""Cut-off of that low-pass in parts of the joints' rate."""


@dataclass(frozen=True, eq=False)
class WrenchTrack:
    """Stretches of readings without a gap, on a uniform grid.

    Attributes:
        segments: values (M, 6) in the frame and with the sign that were recorded.
        frame: of the wrenches.
        convention: who exerts them.
        turn: (3, 3) axes of the sensor in the tip's, as columns.
        noise: (6,) standard deviation of the noise of a reading.
    """

    segments: tuple[Segment, ...]
    frame: Frame
    convention: Convention
    turn: NDArray = field(default_factory=lambda: np.eye(3))
    noise: NDArray = field(default_factory=lambda: np.zeros(len(SENSOR_AXES)))

    @classmethod
    def of(
        cls, series: WrenchSeries, recording: Recording, frame: Frame, convention: Convention, where: str
    ) -> WrenchTrack:
        """Return the readings of a series that passed `require_sound`.

        Raises:
            IdentificationError: no stretch without a gap.
        """
        values = np.hstack([series.force, series.torque])
        fresh = ~stale_rows(values) & np.isfinite(values).all(axis=1)
        values = values[fresh]
        try:
            uniform = resample(sample_times(series.time[fresh], values).time, values)
        except RecordingError as error:
            raise IdentificationError(f"{where}: {error}") from error
        rate = 1 / float(np.median(np.diff(recording.time)))
        segments = uniform.segments
        if uniform.rate > MIN_RATE_RATIO * rate and CUTOFF_OF_JOINT_RATE * rate < uniform.rate / 2:
            low_pass = LowPass(CUTOFF_OF_JOINT_RATE * rate, uniform.rate)
            segments = tuple(Segment(part.time, low_pass.filter(part.values)) for part in segments)
        # The third difference of white noise has a variance of 1 + 9 + 9 + 1; motion hardly shows in it.
        thirds = np.concatenate([np.diff(part.values, 3, axis=0) for part in uniform.segments])
        noise = np.sqrt(np.mean(thirds**2, axis=0) / 20.0) if len(thirds) else np.zeros(len(SENSOR_AXES))
        return cls(segments, frame, convention, noise=noise)

    def at(self, time: NDArray) -> NDArray:
        """Return the readings (N, 6) at times (N,), s, on the sensor's clock; NaN in gaps."""
        found = np.full((len(time), len(SENSOR_AXES)), np.nan)
        for part in self.segments:
            inside = (time >= part.time[0]) & (time <= part.time[-1])
            found[inside] = CubicSpline(part.time, part.values)(time[inside])
        return found

    def on_load(self, robot: RobotModel, q: NDArray, wrench: NDArray) -> NDArray:
        """Return readings (N, 6) at positions (N, n) as wrenches on the load in the axes of the tip."""
        sensed = sensor_wrench(wrench, tip_rotations(robot, q), self.frame)
        on_load = -sensed if self.convention == "load_on_sensor" else sensed
        return turned(on_load, np.broadcast_to(self.turn, (len(q), 3, 3)))


class WrenchEquations(LinkEquations[WrenchColumns]):
    """Wrenches that the tip exerts on the load, and every column, through the same low-pass.

    Args:
        robot: its tip link is the sensor.
        signals: cut-offs.
        recordings: with the robot's joints in its order; their torques are not used.
        tracks: readings of the sensor, one per recording.
        lags: by how much later than the joints' the sensor's clock is, s, one per recording.
    """

    def __init__(
        self,
        robot: RobotModel,
        signals: LinkSignals,
        recordings: Sequence[Recording],
        tracks: Sequence[WrenchTrack],
        lags: Sequence[float],
    ):
        self.robot = robot
        self._tracks = tracks
        self._lags = lags
        super().__init__(signals, recordings)

    def _segments(self, number: int, recording: Recording) -> list[LinkSegment]:
        track = self._tracks[number]
        time = row_times(recording)[0] + self._lags[number]
        parts = []
        for part in self.signals.segments_with(recording, track.at(time)):
            # Wrenches on the load in the tip's axes and their time derivatives (M, 12).
            wrench = track.on_load(self.robot, part.motion.position, part.torque)
            slope, _ = central_differences(wrench, 1 / part.rate)
            parts.append(replace(part, torque=np.hstack([wrench, slope])))
        return parts

    def _block(
        self,
        columns: WrenchColumns,
        recording: int,
        part: LinkSegment,
        low_pass: LowPass,
        kept: NDArray,
        *,
        memory: Memory,
    ) -> EquationBlock:
        block = super()._block(columns, recording, part, low_pass, kept, memory=memory)
        deflected = self._deflected(columns, part)
        if deflected is not None:
            deflected = low_pass.filter(deflected.reshape(len(part.time), -1))[kept].reshape(-1, *deflected.shape[1:])
        return self._complete(columns, block, deflected)

    def _deflected(self, columns: WrenchColumns, part: LinkSegment) -> NDArray | None:
        """Return the columns of deflections (N, 6, n) of a segment."""
        if columns.deflections is None:
            return None
        return columns.deflections.columns(part.motion, 1 / part.rate)

    def _complete(self, columns: WrenchColumns, block: EquationBlock, deflected: NDArray | None) -> EquationBlock:
        """Return the block with the columns of the sensor after those of the load."""
        wrench, slope = np.hsplit(block.torque, 2)
        start, end = self.spans[block.recording]
        course = 2 * (block.time - start) / (end - start) - 1
        rows, torque = columns.with_sensor(block.rows, wrench, slope, course, block.recording, deflected=deflected)
        return replace(block, rows=rows, torque=torque)


class IntegralWrenchEquations(WrenchEquations):
    """Means over Hann windows in place of the low-pass: they need no acceleration."""

    def blocks(self, columns: WrenchColumns) -> Iterator[EquationBlock]:
        """Yield all equations, in flat memory."""
        for owner, part in zip(self._owner, self.segments, strict=True):
            # Simpson's rule is best for even numbers.
            length = max(2 * round(WINDOW_PERIODS * part.rate / self.signals.cutoff / 2), MIN_WINDOW_STEPS)
            if length + 1 > len(part.time):
                continue
            of_twist, of_rest, hop = window_weights(length + 1, 1 / part.rate)
            scale = length / part.rate / 2
            starts = np.arange(0, len(part.time) - length, hop)
            deflected = self._deflected(columns, part)
            for group in blocks(len(starts)):
                first = starts[group][0]
                inside = starts[group][:, None] - first + np.arange(length + 1)
                rows = slice(first, first + inside[-1, -1] + 1)
                q = part.motion.position[rows]
                qd = part.motion.velocity[rows]
                moved = tip_motion(self.robot.chain, self.robot.gravity, q, qd, np.zeros_like(qd))
                twist = moved.velocity
                rest = wrench_features(twist, moved.weight)
                features = np.einsum("l,fwl->fw", of_rest, rest[:, inside])
                features[:6] += np.einsum("l,fwl->fw", of_twist, twist[:, inside])
                impulse = np.einsum("l,wlc->wc", of_rest, part.torque[rows][inside])
                middle = starts[group] + length // 2
                block = EquationBlock(
                    int(owner),
                    part.time[middle],
                    self._speed(part, middle),
                    self._kinds.of(*self._state(part, middle)),
                    columns.of_wrench(regressor_of_features(features / scale)),
                    impulse / scale,
                )
                yield self._complete(columns, block, None if deflected is None else deflected[middle])


class StaticWrenchEquations(Equations[WrenchColumns]):
    """Mean wrenches of dwells.

    Raises:
        IdentificationError: no joint rests long enough.
    """

    def __init__(
        self, robot: RobotModel, recordings: Sequence[Recording], tracks: Sequence[WrenchTrack], rules: SampleRules
    ):
        self.robot = robot
        self.spans = [(float(part.time[0]), float(part.time[-1])) for part in recordings]
        self._rests = [_rests(robot, part, track, rules) for part, track in zip(recordings, tracks, strict=True)]
        self.sizes = [len(time) for time, *_ in self._rests]
        if not any(self.sizes):
            raise IdentificationError(
                f"{', '.join(part.source for part in recordings)}: no rest of at least {rules.minimum_dwell:g} s with "
                "wrenches in it; record poses with dwells, or identify from motion"
            )

    def blocks(self, columns: WrenchColumns) -> Iterator[EquationBlock]:
        """Yield all equations."""
        for recording, (time, position, wrench) in enumerate(self._rests):
            if not len(time):
                continue
            still = np.zeros_like(position)
            start, end = self.spans[recording]
            course = 2 * (time - start) / (end - start) - 1
            load = columns.rows(position, still, still)
            slope = np.zeros_like(wrench)
            elastic = columns.deflections
            deflected = None if elastic is None else elastic.columns(Motion(position, still, still))
            rows, torque = columns.with_sensor(load, wrench, slope, course, recording, deflected=deflected)
            yield EquationBlock(recording, time, np.zeros(len(time)), None, rows, torque)


def _rests(
    robot: RobotModel, recording: Recording, track: WrenchTrack, rules: SampleRules
) -> tuple[NDArray, NDArray, NDArray]:
    """Return time (M,), position (M, n) and wrench on the load (M, 6) of each rest."""
    wrenches = track.at(recording.time)
    found = []
    for rows in dwells(recording, rules):
        known = np.isfinite(wrenches[rows]).all(axis=1)
        if known.any():
            found.append([x[rows][known].mean(axis=0) for x in (recording.time, recording.position, wrenches)])
    if not found:
        return np.empty(0), np.empty((0, robot.n_joints)), np.empty((0, len(SENSOR_AXES)))
    time, q, wrench = (np.array(values) for values in zip(*found, strict=True))
    return time, q, track.on_load(robot, q, wrench)


def linear_readings(equations: WrenchEquations | StaticWrenchEquations, columns: WrenchColumns) -> LinearReadings:
    """Return what `find_faults` looks at.

    Args:
        equations: of readings that nothing was made up for.
        columns: of the load alone and a bias: without turn, lag, and drift.
    """
    blocks = list(equations.blocks(columns))
    wrench = np.concatenate([block.torque for block in blocks])
    size = columns.n_load
    force, torque = (
        np.stack([np.concatenate([block.rows[axis] for block in blocks]) for axis in axes], axis=1)
        for axes in (range(3), range(3, 6))
    )
    # Columns of force are m and three moments of mass, of torque these three and, in motion, six of inertia.
    other = force[:, :, 1 : OF_FORCE.stop], torque[:, :, STATIC - 1 : size - 1]
    angular = [columns.reshape(len(wrench), -1) if size > STATIC else np.empty((len(wrench), 0)) for columns in other]
    return LinearReadings(
        time=np.concatenate([block.time for block in blocks]),
        recording=np.concatenate([np.full(len(block.time), block.recording) for block in blocks]),
        acceleration=force[:, :, 0],
        other=(angular[0], angular[1]),
        wrench=wrench,
    )


# Where a wrist sensor's axes and clock are against those of the joints.


MAX_LAG_S = 0.1
"""Largest lag between sensor and joints that is looked for, s."""
MAX_LAG_ITERATIONS = 4
LAG_TOLERANCE_S = 5e-5
"""Change of the lag at which the search ends, s; the fit of the load estimates the rest."""
MAX_TURN_ITERATIONS = 10
SMALL_TURN_RAD = 0.002
"""Turn, rad, whose cosine counts as one; the fit of the load estimates the rest."""
MIN_SIGNIFICANCE_OF_MASS = 10.0
"""Significance of the mass, in standard errors of white noise, that an estimate of the sensor's turn needs."""


def turn_of(problem: Callable[[NDArray], WeightedProblem]) -> NDArray:
    """Return the axes (3, 3) of the sensor in the tip's, as columns.

    Columns of a turn hold for small angles, so the readings are turned by each estimate, and the rest is estimated
    again.

    Args:
        problem: function that returns the equations of readings multiplied by a matrix (3, 3).
    """
    turn = np.eye(3)
    for _ in range(MAX_TURN_ITERATIONS):
        found = problem(turn)
        columns = found.factors.columns
        assert isinstance(columns, WrenchColumns)
        fit, _ = found.weighted()
        change = fit.solution[[columns.names.index(name) for name in TURN]]
        size = np.linalg.norm(change)
        if size < SMALL_TURN_RAD or not abs(fit.solution[0]) > MIN_SIGNIFICANCE_OF_MASS * np.sqrt(fit.covariance[0, 0]):
            break
        turn = Rotation.from_rotvec(change * min(1.0, 1.0 / size)).as_matrix() @ turn
    return turn


def lag_of(robot: RobotModel, signals: LinkSignals, recording: Recording, track: WrenchTrack) -> float:
    """Return the delay of the sensor's clock relative to that of the joints, s.

    The first estimate is the correlation with the wrench that a fit without lag predicts. The next ones are estimated
    with the load: a lag of τ leaves the residual τ dw/dt.
    """
    lag = 0.0
    columns = WrenchColumns(robot)
    for number in range(MAX_LAG_ITERATIONS):
        equations = WrenchEquations(robot, signals, [recording], [track], [lag])
        problem = WeightedProblem(equations.factors(columns), columns.own)
        fit, _ = problem.weighted()
        change = float(fit.solution[columns.names.index("lag")])
        if number == 0:
            change = _correlated(equations, columns, fit.solution, change)
        lag = float(np.clip(lag + change, -MAX_LAG_S, MAX_LAG_S))
        if abs(change) < LAG_TOLERANCE_S:
            break
    return lag


def _correlated(equations: WrenchEquations, columns: WrenchColumns, solution: NDArray, otherwise: float) -> float:
    """Return the lag by correlation, s, or `otherwise` if there is no clear maximum."""
    part = max(equations.segments, key=lambda segment: len(segment.time))
    load = [name in ("m", "mcx", "mcy", "mcz") or name.startswith("I") for name in columns.names]
    parameters = np.where(load, solution, 0.0)[: np.sum(load)]
    predicted = equations.robot.wrench_regressor(*part.motion) @ parameters
    low_pass = LowPass(equations.signals.cutoff, part.rate)
    try:
        return time_lag(low_pass.filter(predicted), low_pass.filter(part.torque[:, :6]), part.rate, MAX_LAG_S).lag
    except RecordingError:
        return otherwise
