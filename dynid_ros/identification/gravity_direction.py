"""Direction of gravity: estimate with other parameters, confidence, and measurement by an IMU.

The torque is linear in gravity and in the parameters. Near a direction it is therefore linear in two small angles as
well, which are two more columns of the equations with a common covariance. A turn of the base about the vertical is
never observable.
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
"""Largest half 95 % interval of a direction that is found, rad: a configured one is better known."""
NEGLIGIBLE_EFFECT = 1e-9
"""Unexplained fraction of a turn's effect on torques below which the turn is undetermined."""
MAX_ITERATIONS = 30
CONVERGENCE_ANGLE_RAD = 1e-7
MAX_STEP_ANGLE_RAD = 0.5
"""Limits of the Gauss-Newton steps of the direction of gravity."""
N_TRIED_POSES = 200
MAX_TRIED_POSITION = np.pi
"""Random poses, within this position in rad or m, in which a turn of gravity is looked for."""


def direction_setting() -> Any:
    """Return the setting."""
    return setting(
        GIVEN,
        "direction of gravity: given, by gravity; estimated, along with the rest, whose intervals count it; imu, from "
        "sensor_msgs/Imu in the recordings",
        choices=DIRECTION_SOURCES,
    )


def turn_torques(robot: RobotModel, moments: NDArray, q: NDArray) -> NDArray:
    """Return the torque (N, n, 2) per turn of gravity about each of its `turn_axes`.

    Args:
        robot: the arm.
        moments: (k,) moments of the gravity model.
        q: (N, n) poses, rad or m.
    """
    along = [np.cross(axis, robot.gravity) for axis in turn_axes(robot.gravity)]
    return np.stack([GravityModel(robot.with_gravity(g)).regressor(q) @ moments for g in along], axis=-1)


def turn_information(columns: NDArray, turns: NDArray) -> NDArray:
    """Return the information (2, 2) on two turns (m, 2) beyond the other unknowns (m, k); rows have unit noise."""
    scale = np.linalg.norm(columns, axis=0)
    unit = columns[:, scale > 0] / scale[scale > 0]
    left = turns - unit @ np.linalg.lstsq(unit, turns, rcond=1e-9)[0]
    left[:, np.linalg.norm(left, axis=0) < NEGLIGIBLE_EFFECT * np.linalg.norm(turns, axis=0)] = 0.0
    return left.T @ left


def turn_covariance(problem: WeightedProblem, weights: NDArray, direction: GravityDirection) -> NDArray:
    """Return the covariance (k, k) of unknowns that the error of a given direction of gravity causes.

    Args:
        problem: equations of the unknowns and, last, the turns.
        weights: (n,) divisors of the equations of each joint.
        direction: direction with the covariance of its turns.
    """
    matrix, _ = problem.stacked(weights)
    moved = np.linalg.lstsq(matrix[:, :-2], matrix[:, -2:], rcond=None)[0]
    return moved @ direction.covariance @ moved.T


def direction_of_fit(robot: RobotModel, solution: NDArray, covariance: NDArray, dof: NDArray) -> GravityDirection:
    """Return the direction after the turns of a solution (k,), which are its last two unknowns."""
    turn = solution[-2:] @ turn_axes(robot.gravity)
    there = robot.with_gravity(turned(robot.gravity, turn))
    return direction_found(ESTIMATED, there, robot.gravity, covariance[-2:, -2:], float(dof[-2:].min()))


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
        IdentificationError: names the undetermined turn of the base, and the motion that would show it.
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
        covariance: (2, 2) of the estimate.
        dof: degrees of freedom of the covariance.
    """

    robot: RobotModel
    information: NDArray
    turn: NDArray
    covariance: NDArray
    dof: float

    def open_axes(self) -> list[tuple[NDArray, float]]:
        """Return the axes (3,) of tilts that the data do not show, each with its half 95 % interval, rad."""
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
        """Return a sentence for each tilt that shows or would not show.

        Args:
            moments: (k,) of the gravity model.
            poses: (M, n) of the data.
            noise: (n,) of the joints' torques, N m.
            moved: effect of a tilt on the results, the end of a sentence.
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
    """Name the joints whose larger motion would show a turn about an axis."""
    rng = np.random.default_rng(0)
    limits = robot.limits
    some = poses[rng.integers(len(poses), size=N_TRIED_POSES)]
    wide = rng.uniform(
        np.maximum(limits.lower, -MAX_TRIED_POSITION), np.minimum(limits.upper, MAX_TRIED_POSITION), some.shape
    )

    def half(moving: NDArray) -> float:
        q = np.where(moving, wide, some)
        offsets = np.tile(np.eye(robot.n_joints), (N_TRIED_POSES, 1))
        columns = np.hstack([GravityModel(robot).regressor(q).reshape(len(offsets), -1), offsets])
        turns = (turn_torques(robot, moments, q) @ (turn_axes(robot.gravity) @ axis)).ravel()
        weight = 1.0 / np.tile(np.maximum(noise, 1e-9), N_TRIED_POSES)
        value = turn_information(columns * weight[:, None], np.stack([turns * weight] * 2, axis=1))[0, 0]
        return float(half_width(value**-0.5)) if value > 0.0 else np.inf

    singly = {joint: half(own > 0) for joint, own in zip(robot.joint_names, np.eye(robot.n_joints), strict=True)}
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
"""Smallest correlation between torques and weights of the URDF that decides their sign."""
MAX_REVERSED_ALIGNMENT = -0.5
"""Largest correlation at which a direction from another source contradicts the torques."""


def weight_alignment(robot: RobotModel, position: NDArray, torque: NDArray) -> float:
    """Return the correlation between the gravity torques of the URDF and measured torques, over all joints.

    Torques at rest do not change if gravity and all weights are reversed, so only the sign of the weights distinguishes
    up from down. Constant torques, such as sensor offsets, do not count, and each joint counts in units of its own
    torque.

    Args:
        robot: the arm, with gravity along the direction in question.
        position: (M, n).
        torque: (M, n); rows that are not finite do not count.

    Returns:
        Correlation between -1 and 1; 0 if the URDF has no weights, or nothing moves.
    """
    known = np.isfinite(torque).all(axis=1) & np.isfinite(position).all(axis=1)
    if not known.any():
        return 0.0
    measured = torque[known] - torque[known].mean(axis=0)
    weights = robot.gravity_torque(position[known])
    weights = weights - weights.mean(axis=0)
    size = np.linalg.norm(measured, axis=0)
    measured, weights = (values / np.where(size > 0.0, size, 1.0) for values in (measured, weights))
    product = float(np.linalg.norm(measured) * np.linalg.norm(weights))
    return float(np.sum(measured * weights)) / product if product > 0.0 else 0.0


def downward(robot: RobotModel, configured: NDArray, position: NDArray, torque: NDArray) -> RobotModel:
    """Return the arm with gravity or its opposite: the one with positive weights, else the one nearer to configured.

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


# The direction as an IMU on the base has it.


IMU_BLOCK_S = 1.0
"""Accelerations are averaged over so long, s: the arm that moves shakes its base."""
MIN_IMU_BLOCKS = 5
"""Smallest number of blocks whose scatter gives the error of the mean."""
MAX_BASE_ROTATION_RAD = np.radians(1.0)
"""Turn of a base that counts as a movement, rad."""
MAX_GRAVITY_DIFFERENCE_M_S2 = 0.5
"""Largest difference between the mean acceleration and gravity, m/s²."""


def imu_topic_setting() -> Any:
    """Return the setting."""
    return setting("", "topic of the IMU, for gravity_direction imu; default: the only one", symbol="TOPIC")


def imu_direction(robot: RobotModel, recordings: Sequence[Recording], topic: str) -> GravityDirection:
    """Return the direction of gravity by the mean acceleration of an IMU that is fixed to the base.

    Its interval is that of the mean; the sensor's bias and its mounting in the URDF count as exact.

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
            f"{source}: the IMU feels {np.linalg.norm(mean):.2f} m/s^2 in the mean, gravity is {size:.2f}; a sensor in "
            "other units, or one that leaves gravity out, has no direction of it"
        )
    moved = max(angle_between(mean, block) for block in means)
    if moved > MAX_BASE_ROTATION_RAD:
        raise IdentificationError(
            f"{source}: the base turned by {np.degrees(moved):.1f} degrees while it was recorded, by its IMU; record "
            "with the base at rest"
        )
    found = robot.with_gravity(-size * mean / np.linalg.norm(mean))
    chosen = [recording.select(robot.joint_names) for recording in recordings]
    position, torque = (np.concatenate([getattr(part, name) for part in chosen]) for name in ("position", "torque"))
    if weight_alignment(found, position, torque) < MAX_REVERSED_ALIGNMENT:
        raise IdentificationError(
            f"{source}: by the IMU gravity pulls upwards on the links, for their torques have the opposite sign: the "
            "sensor is mounted upside down, or says which way gravity pulls instead of what holds against it; correct "
            "its mounting in the URDF, or the sign of the recorded torques"
        )
    # A turn w moves the mean by w × mean.
    turns = (means / np.linalg.norm(mean)) @ np.cross(turn_axes(found.gravity), mean / np.linalg.norm(mean)).T
    covariance = np.cov(turns.T) / len(means)
    return direction_found(IMU, found, robot.gravity, covariance, float(len(means) - 1))


def _block_means(robot: RobotModel, recording: Recording, topic: str) -> NDArray:
    """Return mean accelerations (B, 3) in the base frame."""
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
    felt = series.acceleration[np.isfinite(series.acceleration).all(axis=1)]
    count = int((series.time[-1] - series.time[0]) / IMU_BLOCK_S + COUNT_TOLERANCE) if len(felt) else 0
    if count < MIN_IMU_BLOCKS or len(felt) < 2 * count:
        raise IdentificationError(
            f"{recording.source}: {chosen} has {len(felt)} accelerations in {count} s; at least "
            f"{MIN_IMU_BLOCKS} s are needed"
        )
    means = np.array([block.mean(axis=0) for block in np.array_split(felt, count)])
    return means @ mount_rotation(robot, series.frame_id, f"{recording.source}: {chosen}").T
