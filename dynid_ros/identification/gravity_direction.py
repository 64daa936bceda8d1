"""Direction of gravity: estimation together with other parameters, its confidence, and measurement by an IMU.

The torque is linear in gravity and in the parameters. Near a direction it is therefore linear in two small angles as
well, called turns, which are two more columns of the equations. A rotation of the base about the vertical is never
observable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identified.gravity_direction import DIRECTION_SOURCES, ESTIMATED, GIVEN, IMU, GravityDirection
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel, angle_between, mount_rotation, turn_axes, turned
from dynid_ros.recording import Recording
from dynid_ros.settings import setting
from dynid_ros.signals.spectra import COUNT_TOLERANCE

MAX_HALF_INTERVAL_RAD = np.radians(5.0)
"""Largest half 95 % interval of an estimated direction, rad: a configured direction is more certain than that."""
NEGLIGIBLE_EFFECT = 1e-9
"""Unexplained fraction of a turn's effect on torques below which the turn is undetermined."""
MAX_ITERATIONS = 30
CONVERGENCE_ANGLE_RAD = 1e-7
MAX_STEP_ANGLE_RAD = 0.5
"""Limits of the Gauss-Newton steps of the direction of gravity."""
N_TRIED_POSES = 200
MAX_TRIED_POSITION = np.pi
"""Number of random poses, and their largest position (rad or m), that tell which motion would reveal a turn."""


def direction_setting() -> Any:
    """Return the setting `gravity_direction`."""
    return setting(
        GIVEN,
        "direction of gravity: given, by gravity; estimated, along with the rest, whose intervals count it; imu, from "
        "sensor_msgs/Imu in the recordings",
        choices=DIRECTION_SOURCES,
    )


def turn_torques(robot: RobotModel, moments: NDArray, q: NDArray) -> NDArray:
    """Return the derivative (N, n, 2) of the torque with respect to a turn of gravity about each of its `turn_axes`.

    Args:
        robot: the arm.
        moments: (k,) moments of the gravity model.
        q: (N, n) poses, rad or m.
    """
    along = [np.cross(axis, robot.gravity) for axis in turn_axes(robot.gravity)]
    return np.stack([GravityModel(robot.with_gravity(g)).regressor(q) @ moments for g in along], axis=-1)


def turn_information(columns: NDArray, turns: NDArray) -> NDArray:
    """Return the information (2, 2) on two turns, after the other unknowns are eliminated.

    Args:
        columns: (m, k) columns of the other unknowns; rows have unit noise.
        turns: (m, 2) columns of the turns.
    """
    scale = np.linalg.norm(columns, axis=0)
    unit = columns[:, scale > 0] / scale[scale > 0]
    left = turns - unit @ np.linalg.lstsq(unit, turns, rcond=1e-9)[0]
    left[:, np.linalg.norm(left, axis=0) < NEGLIGIBLE_EFFECT * np.linalg.norm(turns, axis=0)] = 0.0
    return left.T @ left


def turn_covariance(problem: WeightedProblem, weights: NDArray, direction: GravityDirection) -> NDArray:
    """Return the covariance (k, k) of unknowns that the error of a given direction of gravity causes.

    Args:
        problem: equations of the unknowns; the turns are the last two.
        weights: (n,) divisors of the equations of each joint.
        direction: direction with the covariance of its turns.
    """
    matrix, _ = problem.stacked(weights)
    by_turns = np.linalg.lstsq(matrix[:, :-2], matrix[:, -2:], rcond=None)[0]
    return by_turns @ direction.covariance @ by_turns.T


def direction_of_fit(robot: RobotModel, solution: NDArray, covariance: NDArray, dof: NDArray) -> GravityDirection:
    """Return the direction after the turns of a solution (k,), which are its last two unknowns."""
    turn = solution[-2:] @ turn_axes(robot.gravity)
    estimated = robot.with_gravity(turned(robot.gravity, turn))
    return direction_found(ESTIMATED, estimated, robot.gravity, covariance[-2:, -2:], float(dof[-2:].min()))


def require_determined(
    information: NDArray,
    direction: GravityDirection,
    robot: RobotModel,
    links: NDArray,
    poses: NDArray,
    *,
    noise: NDArray,
) -> None:
    """Refuse a direction that the data do not determine.

    Args:
        information: (2, 2) information on the turns about `direction.axes`.
        direction: estimated direction.
        robot: the arm, with gravity along the direction.
        links: (10 n,) parameters of its links, or (k,) moments of its gravity model.
        poses: (M, n) poses of the data.
        noise: (n,) standard deviations of the joints' torques, N m (N).

    Raises:
        IdentificationError: the direction is uncertain; the message names the turn and a motion that would reveal it.
    """
    half, axis = next(iter(_turn_half_widths(information, direction.axes)))
    if direction.widest > half:
        half = direction.widest
        axis = direction.least_certain_axis
    if half <= MAX_HALF_INTERVAL_RAD:
        return
    moments = links if len(links) < robot.parameters.size else GravityModel(robot).project(links)
    way_out = _way_out(robot, moments, poses, noise, axis)
    raise IdentificationError(
        f"The direction of gravity is not determined: the base of '{robot.name}' may be turned by {_angle_text(half)} "
        f"degrees about {_axis_text(axis)} in the frame of '{robot.base}'; {way_out}; or give it: "
        "gravity_direction given (or imu)"
    )


MIN_TILT_RAD = np.radians(1.0)
"""Smallest tilt of a base that was assumed level for which a remark is due: it moves a moment by 1.7 % of its length,
about as much as the error of a torque gain."""


@dataclass(frozen=True, eq=False)
class TiltCheck:
    """Estimate of a tilt of gravity from its configured direction.

    Attributes:
        robot: the arm, with gravity as configured.
        information: (2, 2) information on the turns about the two `turn_axes`.
        turn: (2,) estimate of the turns, rad.
        covariance: (2, 2) covariance of the estimate, rad².
        dof: degrees of freedom of the covariance.
    """

    robot: RobotModel
    information: NDArray
    turn: NDArray
    covariance: NDArray
    dof: float

    def open_axes(self) -> list[tuple[NDArray, float]]:
        """Return the axes (3,) of tilts that the data do not reveal, each with its half 95 % interval, rad."""
        return [(axis, half) for half, axis in self._half_widths() if half > MIN_TILT_RAD]

    def tilts(self) -> list[tuple[NDArray, float, float]]:
        """Return the axes (3,) of the tilts of gravity, each with the angle and its half 95 % interval, rad."""
        angles = [
            (axis, float(axis @ (self.turn @ turn_axes(self.robot.gravity))), half)
            for half, axis in self._half_widths()
            if half <= MIN_TILT_RAD
        ]
        return [(axis, angle, half) for axis, angle, half in angles if abs(angle) > MIN_TILT_RAD + half]

    def _half_widths(self) -> Iterator[tuple[float, NDArray]]:
        axes = turn_axes(self.robot.gravity)
        for half, axis in _turn_half_widths(self.information, axes):
            along = axes @ axis
            spread = float(half_width(np.sqrt(max(along @ self.covariance @ along, 0.0)), self.dof))
            yield max(half, spread), axis

    def remarks(self, moments: NDArray, poses: NDArray, noise: NDArray, moved: str) -> tuple[str, ...]:
        """Return a sentence for each tilt that the data reveal, and for each that they would not reveal.

        Args:
            moments: (k,) moments of the gravity model.
            poses: (M, n) poses of the data, rad or m.
            noise: (n,) standard deviations of the joints' torques, N m.
            moved: effect of a tilt on the results, as the end of a sentence.
        """
        frame = f"in the frame of '{self.robot.base}'"
        sentences = [
            f"gravity is tilted by {np.degrees(angle):.1f} ± {np.degrees(half):.1f} degrees about {_axis_text(axis)} "
            f"{frame} from its configured direction: give it as measured (gravity), or set gravity_direction estimated"
            for axis, angle, half in self.tilts()
        ]
        sentences += [
            f"a tilt of the base by {_angle_text(half)} degrees about {_axis_text(axis)} {frame} would not show in "
            f"these samples, and the intervals hold for gravity as configured: {moved}; to see a tilt, "
            f"{_way_out(self.robot, moments, poses, noise, axis)}"
            for axis, half in self.open_axes()
        ]
        return tuple(sentences)


def _turn_half_widths(information: NDArray, axes: NDArray) -> Iterator[tuple[float, NDArray]]:
    """Yield the half 95 % interval, rad, about each principal axis (3,) of the information (2, 2), the widest first."""
    values, vectors = np.linalg.eigh(information)
    for value, vector in zip(values, vectors.T, strict=True):
        axis = vector @ axes
        axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
        yield np.inf if value <= NEGLIGIBLE_EFFECT * values[1] else float(half_width(value**-0.5)), axis


def _angle_text(half: float) -> str:
    if not np.isfinite(half):
        return "any number of"
    return f"± {np.degrees(half):.0f}" if half > MIN_TILT_RAD else f"± {np.degrees(half):.2g}"


def _axis_text(axis: NDArray) -> str:
    x, y, z = np.round(axis, 2) + 0.0
    return f"({x:g}, {y:g}, {z:g})"


def _way_out(robot: RobotModel, moments: NDArray, poses: NDArray, noise: NDArray, axis: NDArray) -> str:
    """Name the joints whose larger motion would reveal a turn about an axis (3,)."""
    rng = np.random.default_rng(0)
    limits = robot.limits
    some = poses[rng.integers(len(poses), size=N_TRIED_POSES)]
    wide = rng.uniform(
        np.maximum(limits.lower, -MAX_TRIED_POSITION), np.minimum(limits.upper, MAX_TRIED_POSITION), some.shape
    )

    def half(moving: NDArray) -> float:
        """Return the half 95 % interval of the turn if the joints in a mask (n,) move widely."""
        q = np.where(moving, wide, some)
        offsets = np.tile(np.eye(robot.n_joints), (N_TRIED_POSES, 1))
        columns = np.hstack([GravityModel(robot).regressor(q).reshape(len(offsets), -1), offsets])
        turns = (turn_torques(robot, moments, q) @ (turn_axes(robot.gravity) @ axis)).ravel()
        weight = 1.0 / np.tile(np.maximum(noise, 1e-9), N_TRIED_POSES)
        value = turn_information(columns * weight[:, None], np.stack([turns * weight] * 2, axis=1))[0, 0]
        return float(half_width(value**-0.5)) if value > 0.0 else np.inf

    singly = {joint: half(unit > 0) for joint, unit in zip(robot.joint_names, np.eye(robot.n_joints), strict=True)}
    best = min(singly, key=lambda joint: singly[joint])
    if singly[best] <= MAX_HALF_INTERVAL_RAD:
        return f"turn '{best}' as far as it goes, in steps, with weight on the joints beyond it"
    if half(np.ones(robot.n_joints, bool)) <= MAX_HALF_INTERVAL_RAD:
        return "move all joints far, in as many poses"
    return "no motion of this arm shows that turn, which looks like other zeros of its joint angles"


def starting_directions(robot: RobotModel) -> list[RobotModel]:
    """Return the arm with gravity as configured, and turned by 45 and 90 degrees about either axis.

    Torques at rest do not change if gravity and all weights are reversed, so these directions suffice.
    """
    axes = turn_axes(robot.gravity)
    turns = [sign * angle * axis for axis in axes for sign in (1, -1) for angle in (np.pi / 4, np.pi / 2)]
    return [robot, *(robot.with_gravity(turned(robot.gravity, turn)) for turn in turns)]


MIN_ALIGNMENT = 0.2
"""Smallest absolute correlation between torques and weights of the URDF that decides the sign of gravity."""
MAX_REVERSED_ALIGNMENT = -0.5
"""Correlation below which a direction from an IMU contradicts the torques."""


def weight_alignment(robot: RobotModel, position: NDArray, torque: NDArray) -> float:
    """Return the correlation between the gravity torques of the URDF and measured torques, over all joints.

    Torques at rest do not change if gravity and all weights are reversed, so only the sign of the weights distinguishes
    up from down. Constant torques, such as sensor offsets, do not count, and each joint counts in units of its own
    torque.

    Args:
        robot: the arm, with gravity along the direction in question.
        position: (M, n) positions, rad or m.
        torque: (M, n) torques, N m or N; rows that are not finite are left out.

    Returns:
        Correlation between -1 and 1; 0 if the URDF has no weights, or no joint moves.
    """
    is_finite = np.isfinite(torque).all(axis=1) & np.isfinite(position).all(axis=1)
    if not is_finite.any():
        return 0.0
    measured = torque[is_finite] - torque[is_finite].mean(axis=0)
    weights = robot.gravity_torque(position[is_finite])
    weights = weights - weights.mean(axis=0)
    size = np.linalg.norm(measured, axis=0)
    measured, weights = (values / np.where(size > 0.0, size, 1.0) for values in (measured, weights))
    product = float(np.linalg.norm(measured) * np.linalg.norm(weights))
    return float(np.sum(measured * weights)) / product if product > 0.0 else 0.0


def downward(robot: RobotModel, configured: NDArray, position: NDArray, torque: NDArray) -> RobotModel:
    """Return the arm with gravity of the sign that makes weights positive, or if unclear, agrees with configuration.

    Args:
        robot: the arm, with gravity along a line of unknown sign.
        configured: (3,) configured gravity.
        position: (M, n) positions of the data.
        torque: (M, n) torques of the data.
    """
    alignment = weight_alignment(robot, position, torque)
    upright = alignment > 0.0 if abs(alignment) > MIN_ALIGNMENT else float(robot.gravity @ configured) > 0.0
    return robot if upright else robot.with_gravity(-robot.gravity)


def direction_found(
    source: str, robot: RobotModel, given: NDArray, covariance: NDArray, dof: float
) -> GravityDirection:
    """Return the direction of gravity of `robot`, with the covariance (2, 2) of its two turns."""
    axes = turn_axes(robot.gravity)
    return GravityDirection(source, robot.gravity, np.asarray(given), axes, covariance, dof, robot.base)


# The direction of gravity from an IMU on the base.


IMU_BLOCK_S = 1.0
"""Length of the blocks over which accelerations are averaged, s: a moving arm shakes its base."""
MIN_IMU_BLOCKS = 5
"""Smallest number of blocks whose scatter gives the error of the mean."""
MAX_BASE_ROTATION_RAD = np.radians(1.0)
"""Rotation of the base during a recording above which the base counts as moving, rad."""
MAX_GRAVITY_DIFFERENCE_M_S2 = 0.5
"""Largest difference between the mean acceleration and gravity, m/s²."""


def imu_topic_setting() -> Any:
    """Return the setting `imu_topic`."""
    return setting("", "topic of the IMU, for gravity_direction imu; default: the only one", symbol="TOPIC")


def imu_direction(robot: RobotModel, recordings: Sequence[Recording], topic: str) -> GravityDirection:
    """Return the direction of gravity, opposite to the mean acceleration of an IMU that is fixed to the base.

    Its covariance is that of the mean; the sensor's bias and its mounting in the URDF are taken as exact.

    Raises:
        IdentificationError: a recording lacks the topic, has several, or has too few samples; the sensor does not
            measure gravity, or the base moved.
        ModelError: the sensor is not fixed to the base in the URDF.
    """
    means = np.concatenate([_block_means(robot, recording, topic) for recording in recordings])
    mean = means.mean(axis=0)
    size = float(np.linalg.norm(robot.gravity))
    source = ", ".join(recording.source for recording in recordings)
    if abs(np.linalg.norm(mean) - size) > MAX_GRAVITY_DIFFERENCE_M_S2:
        raise IdentificationError(
            f"{source}: the IMU feels {np.linalg.norm(mean):.2f} m/s^2 in the mean, gravity is {size:.2f}; is the "
            "sensor in other units, or does its driver subtract gravity?"
        )
    moved = max(angle_between(mean, block) for block in means)
    if moved > MAX_BASE_ROTATION_RAD:
        raise IdentificationError(
            f"{source}: the base turned by {np.degrees(moved):.1f} degrees while it was recorded, by its IMU; record "
            "with the base at rest"
        )
    measured = robot.with_gravity(-size * mean / np.linalg.norm(mean))
    chosen = [recording.select(robot.joint_names) for recording in recordings]
    position, torque = (np.concatenate([getattr(part, name) for part in chosen]) for name in ("position", "torque"))
    if weight_alignment(measured, position, torque) < MAX_REVERSED_ALIGNMENT:
        raise IdentificationError(
            f"{source}: by the IMU gravity pulls upwards on the links, for their torques have the opposite sign: the "
            "sensor is mounted upside down, or reports gravity instead of the reaction to it; correct its mounting in "
            "the URDF, or the sign of the recorded torques"
        )
    # A small turn w changes the mean by w × mean.
    turns = (means / np.linalg.norm(mean)) @ np.cross(turn_axes(measured.gravity), mean / np.linalg.norm(mean)).T
    covariance = np.cov(turns.T) / len(means)
    return direction_found(IMU, measured, robot.gravity, covariance, float(len(means) - 1))


def _block_means(robot: RobotModel, recording: Recording, topic: str) -> NDArray:
    """Return the mean accelerations (B, 3) of blocks of time in the base frame, m/s²."""
    topics = list(recording.imus)
    name = topic if topic.startswith("/") or not topic else f"/{topic}"
    chosen = name or (topics[0] if len(topics) == 1 else "")
    if chosen not in topics:
        what = f"no sensor_msgs/Imu on {name}" if name else f"{len(topics)} topics of sensor_msgs/Imu, not one"
        raise IdentificationError(
            f"{recording.source}: {what}; it has {', '.join(topics) or 'none'}: record the IMU's topic, or name it by "
            "imu_topic"
        )
    series = recording.imus[chosen]
    acceleration = series.acceleration[np.isfinite(series.acceleration).all(axis=1)]
    count = int((series.time[-1] - series.time[0]) / IMU_BLOCK_S + COUNT_TOLERANCE) if len(acceleration) else 0
    if count < MIN_IMU_BLOCKS or len(acceleration) < 2 * count:
        raise IdentificationError(
            f"{recording.source}: {chosen} has {len(acceleration)} accelerations in {count} s; at least "
            f"{MIN_IMU_BLOCKS} s are needed"
        )
    means = np.array([block.mean(axis=0) for block in np.array_split(acceleration, count)])
    return means @ mount_rotation(robot, series.frame_id, f"{recording.source}: {chosen}").T
