"""Sensors of a simulated arm, and a motion-capture system that tracks markers on it, with their errors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from dynid_ros.errors import DynidError
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import MAX_MAGNITUDE, per_joint
from dynid_ros.recording import Recording
from dynid_ros.recording.series import PoseSeries
from dynid_ros.simulation.truth import ArmTruth

N_WRENCH_AXES = 6
MAX_DURATION_S = 1e8
"""Largest offset between clocks, s; time stamps of ROS cannot represent much larger times."""
GHOST_RANGE = 0.3
"""Standard deviation of the position of a ghost about the centre of the markers, m."""
FRAME = "camera"
MIN_BODY_MARKERS = 3
DIRECTION_DRAWS = 100
"""Number of random sets of directions of which the best separated one is taken."""


@dataclass(frozen=True)
class WrenchSensor:
    """Errors of a sensor of force x, y, z (N) and torque x, y, z (N m).

    The reading is wrench + bias + noise, saturated at the range. Noise is normal, white and independent between axes.

    Attributes:
        bias: (6,) N and N m.
        noise: (6,) standard deviation, N and N m.
        range: (6,) largest absolute reading, N and N m.
    """

    bias: np.ndarray
    noise: np.ndarray
    range: np.ndarray

    @classmethod
    def ideal(cls) -> WrenchSensor:
        """Return a sensor without errors."""
        return cls(np.zeros(N_WRENCH_AXES), np.zeros(N_WRENCH_AXES), np.full(N_WRENCH_AXES, np.inf))

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        bias: ArrayLike = (5.0, 0.3),
        noise: ArrayLike = (0.1, 0.003),
        range: ArrayLike = np.inf,  # noqa: A002 - the sensor maker's word
    ) -> WrenchSensor:
        """Return a sensor whose bias has the given absolute values and random signs.

        Args:
            rng: generator of the signs.
            bias: absolute bias: one for all axes, one for force (N) and one for torque (N m), or one per axis.
            noise: standard deviation, likewise.
            range: largest absolute reading, likewise; infinite: no limit.

        Raises:
            DynidError: the number of values is wrong, or one is negative or not a number.
        """
        signs = rng.choice([-1.0, 1.0], size=N_WRENCH_AXES)
        return cls(signs * _per_axis("bias", bias), _per_axis("noise", noise), _per_axis("range", range, finite=False))

    def measure(self, wrench: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return readings of true wrenches (6,) or (N, 6)."""
        reading = wrench + self.bias + self.noise * rng.standard_normal(wrench.shape)
        return np.clip(reading, -self.range, self.range)


def _per_axis(name: str, values: ArrayLike, finite: bool = True) -> np.ndarray:
    array = np.array(values, dtype=float)
    is_valid = np.all((array >= 0.0) & ((array <= MAX_MAGNITUDE) | (not finite)))
    if array.shape not in {(), (1,), (2,), (N_WRENCH_AXES,)} or not is_valid:
        raise DynidError(
            f"{name} of the wrench sensor is {array.tolist()}; expected numbers of 0 to {MAX_MAGNITUDE:g}: one, one "
            f"for force and one for torque, or one per axis"
        )
    return np.repeat(array, 3) if array.shape == (2,) else np.zeros(N_WRENCH_AXES) + array


@dataclass(frozen=True)
class Sensors:
    """Errors of the sensors of n joints. A torque reading is (1 + gain error) torque + offset + noise.

    Noise is normal, white and independent between joints.

    Attributes:
        torque_offset: (n,) N m.
        torque_gain_error: (n,) relative error of the gain.
        torque_noise: (n,) standard deviation, N m.
        position_noise: (n,) standard deviation, rad.
        velocity_noise: (n,) standard deviation, rad/s.
    """

    torque_offset: np.ndarray
    torque_gain_error: np.ndarray
    torque_noise: np.ndarray
    position_noise: np.ndarray
    velocity_noise: np.ndarray

    @classmethod
    def ideal(cls, n_joints: int) -> Sensors:
        """Return sensors without errors."""
        return cls(*np.zeros((5, n_joints)))

    @classmethod
    def draw(
        cls,
        torque_range: ArrayLike,
        rng: np.random.Generator,
        *,
        torque_offset: ArrayLike = 0.02,
        torque_gain_error: ArrayLike = 0.0,
        torque_noise: ArrayLike = 0.005,
        position_noise: ArrayLike = 0.0,
        velocity_noise: ArrayLike = 0.0,
    ) -> Sensors:
        """Return sensors whose offsets and gain errors have the given absolute values and random signs.

        Args:
            torque_range: (n,) full scale of each torque sensor, N m.
            rng: generator of the signs.
            torque_offset: absolute offset as a fraction of the range, one for all joints or (n,).
            torque_gain_error: absolute relative error, likewise.
            torque_noise: standard deviation as a fraction of the range, likewise.
            position_noise: standard deviation, rad, likewise.
            velocity_noise: standard deviation, rad/s, likewise.

        Raises:
            DynidError: a value is negative or not finite, or the number of values is wrong.
        """
        n = np.size(torque_range)

        def sized(value: ArrayLike, what: str) -> np.ndarray:
            return per_joint(value, range(1, n + 1), what, error=DynidError, least=0.0)

        full_scale = sized(torque_range, "torque_range")
        offset_sign, gain_sign = rng.choice([-1.0, 1.0], size=(2, n))
        return cls(
            offset_sign * sized(torque_offset, "torque_offset") * full_scale,
            gain_sign * sized(torque_gain_error, "torque_gain_error"),
            sized(torque_noise, "torque_noise") * full_scale,
            sized(position_noise, "position_noise"),
            sized(velocity_noise, "velocity_noise"),
        )

    def measure(
        self, position: np.ndarray, velocity: np.ndarray, torque: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return readings of position, velocity and torque for the true ones, each (n,) or (N, n)."""
        noise = rng.standard_normal((3, *position.shape))
        return (
            position + self.position_noise * noise[0],
            velocity + self.velocity_noise * noise[1],
            (1.0 + self.torque_gain_error) * torque + self.torque_offset + self.torque_noise * noise[2],
        )

    def measure_links(self, position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return readings of the links' positions, (n,) or (N, n), with the same noise as those of the motors."""
        return position + self.position_noise * rng.standard_normal(position.shape)


@dataclass(frozen=True, eq=False)
class Camera:
    """Errors of a camera system with robot_time = camera_time + clock_offset + clock_drift (camera_time - t_m).

    The time t_m is the middle of the recording on the camera's clock.

    Attributes:
        rate: frames per second.
        base: (4, 4) pose of the robot's base in the camera's frame.
        noise: standard deviation of a marker's position, m; one for all axes or (3,) along the axes of the camera.
        clock_offset: robot time minus camera time in the middle, s.
        clock_drift: relative difference of the clock rates.
        occlusion: fraction of the time for which a marker is hidden.
        burst: mean duration of an occlusion, s; 0: one frame.
        swaps: number of pairs of markers per second that exchange their names for the duration `burst`.
        ghosts: fraction of the frames that contain a reflection, after the markers.
        latency: delay of the stamps after the exposure, s.

    Raises:
        DynidError: a setting is invalid.
    """

    rate: float = 100.0
    base: NDArray = field(default_factory=lambda: np.eye(4))
    noise: ArrayLike = 3e-4
    clock_offset: float = 0.0
    clock_drift: float = 0.0
    occlusion: float = 0.0
    burst: float = 0.0
    swaps: float = 0.0
    ghosts: float = 0.0
    latency: float = 0.0

    def __post_init__(self) -> None:
        noise = np.asarray(self.noise, dtype=float)
        validity = {
            "rate": 1e-3 <= self.rate <= 1e4,
            "base": np.shape(self.base) == (4, 4) and np.allclose(self.base[:3, :3] @ self.base[:3, :3].T, np.eye(3)),
            "noise": noise.shape in {(), (1,), (3,)} and bool(np.all((noise >= 0.0) & (noise <= 1e3))),
            "clock_offset": abs(self.clock_offset) <= MAX_DURATION_S,
            "clock_drift": abs(self.clock_drift) <= 0.1,
            "occlusion": 0.0 <= self.occlusion < 1.0,
            "burst": 0.0 <= self.burst < np.inf,
            "swaps": 0.0 <= self.swaps < np.inf,
            "ghosts": 0.0 <= self.ghosts <= 1.0,
            "latency": 0.0 <= self.latency <= 60.0,
        }
        for setting in [setting for setting, is_valid in validity.items() if not is_valid]:
            raise DynidError(f"{setting} of the camera is {getattr(self, setting)}; see the attributes of `Camera`")

    def camera_time(self, robot_time: ArrayLike, middle: float) -> NDArray:
        """Return the time on the camera's clock, s; at robot time `middle` the clocks differ by the offset only."""
        return middle - self.clock_offset + (np.asarray(robot_time) - middle) / (1.0 + self.clock_drift)

    def robot_time(self, camera_time: ArrayLike, middle: float) -> NDArray:
        """Return the time on the robot's clock, s; the inverse of `camera_time`."""
        return middle + (1.0 + self.clock_drift) * (np.asarray(camera_time) - middle + self.clock_offset)

    def film(
        self, true: Recording, truth: ArmTruth, markers: MarkerSet, rng: np.random.Generator
    ) -> tuple[NDArray, NDArray]:
        """Return the camera's recording of a motion.

        Args:
            true: motion with the links' positions, without noise; sampled well above the motion's highest frequency.
            truth: true kinematics of the arm.
            markers: markers on its links.
            rng: generator of all errors.

        Returns:
            Stamps (M,) on the camera's clock, s, and positions (M, P, 3), or (M, P + 1, 3) with ghosts, m, in the
            camera's frame; NaN for hidden markers.

        Raises:
            DynidError: the recording lacks the links' positions.
        """
        if true.link_position is None:
            raise DynidError(f"{true.source} has no positions of the links; simulate with link_encoders=True")
        start, end = true.time[[0, -1]]
        middle = 0.5 * (start + end)
        first, last = self.camera_time([start, end], middle)
        exposure = first + np.arange(int((last - first) * self.rate + 1e-6) + 1) / self.rate
        links = CubicSpline(true.time, true.link_position)(np.clip(self.robot_time(exposure, middle), start, end))
        view = CameraView(self, rng)
        seen = [view.frame(positions) for positions in truth.marker_positions(links, markers)]
        return exposure + self.latency, np.array(seen)


class CameraView:
    """Sequence of frames of a camera, in which occlusions and exchanged names persist over several frames."""

    def __init__(self, camera: Camera, rng: np.random.Generator) -> None:
        self._camera = camera
        self._rng = rng
        self._hidden = np.zeros(0, dtype=bool)
        self._swapped: list[tuple[int, int]] = []
        # Probabilities per frame: a state that ends with probability p lasts 1 / p frames on average.
        self._ending = 1.0 / max(camera.burst * camera.rate, 1.0)
        self._hiding = min(self._ending * camera.occlusion / (1.0 - camera.occlusion), 1.0)

    def frame(self, positions: NDArray) -> NDArray:
        """Return measured marker positions (P, 3), or (P + 1, 3) with ghosts, m, in the camera's frame.

        Args:
            positions: (P, 3) true positions in the frame of the base, m.
        """
        camera = self._camera
        rng = self._rng
        seen = positions @ camera.base[:3, :3].T + camera.base[:3, 3]
        middle = seen.mean(axis=0)
        seen += np.asarray(camera.noise) * rng.standard_normal(seen.shape)
        seen[self._hide(len(seen))] = np.nan
        for pair in self._swap(len(seen)):
            seen[list(pair)] = seen[list(pair[::-1])]
        if camera.ghosts:
            ghost = middle + GHOST_RANGE * rng.standard_normal(3)
            seen = np.vstack([seen, ghost if rng.random() < camera.ghosts else np.full(3, np.nan)])
        return seen

    def _hide(self, number: int) -> NDArray:
        """Return a mask (number,) of the markers that are hidden in this frame."""
        chance = self._rng.random(number)
        if len(self._hidden) != number:  # the first frame
            self._hidden = chance < self._camera.occlusion
        else:
            self._hidden = np.where(self._hidden, chance >= self._ending, chance < self._hiding)
        return self._hidden

    def _swap(self, number: int) -> list[tuple[int, int]]:
        """Return the pairs of markers that have exchanged their names in this frame."""
        self._swapped = [pair for pair in self._swapped if self._rng.random() >= self._ending]
        if self._rng.random() < self._camera.swaps / self._camera.rate and number > 1:
            first, second = self._rng.choice(number, 2, replace=False).tolist()
            self._swapped.append((first, second))
        return self._swapped


def body_pose(seen: NDArray, places: NDArray) -> tuple[NDArray, NDArray]:
    """Return the pose of a rigid body in each frame, fitted to its markers by least squares (Kabsch 1976).

    Args:
        seen: (M, P, 3) measured marker positions, m; NaN where hidden.
        places: (P, 3) marker positions in the body's frame, m.

    Returns:
        Positions (M, 3), m, and quaternions (M, 4), x, y, z, w; NaN for frames with fewer than three visible markers.
    """
    is_visible = np.isfinite(seen).all(axis=2)
    is_sufficient = is_visible.sum(axis=1) >= MIN_BODY_MARKERS
    weights = np.where(is_sufficient[:, np.newaxis], is_visible, True)[..., np.newaxis]
    weights = weights / weights.sum(axis=1, keepdims=True)
    seen = np.where(is_visible[..., np.newaxis], seen, 0.0)
    seen_centre = (weights * seen).sum(axis=1)
    body_centre = (weights * places).sum(axis=1)
    moment = np.swapaxes(weights * (seen - seen_centre[:, np.newaxis]), 1, 2) @ (places - body_centre[:, np.newaxis])
    left, _, right = np.linalg.svd(moment)
    left[..., -1] *= np.sign(np.linalg.det(left @ right))[:, np.newaxis]
    rotation = left @ right
    position = seen_centre - (rotation @ body_centre[..., np.newaxis])[..., 0]
    quaternion = Rotation.from_matrix(rotation).as_quat()
    is_sufficient = is_sufficient[:, np.newaxis]
    return np.where(is_sufficient, position, np.nan), np.where(is_sufficient, quaternion, np.nan)


def marker_poses(stamps: NDArray, seen: NDArray, topic: str) -> dict[str, PoseSeries]:
    """Return marker positions (M, P, 3) as the pose series that a recording of a PoseArray topic has."""
    quaternion = np.where(np.isfinite(seen[..., :1]), [0.0, 0.0, 0.0, 1.0], np.nan)
    return {f"{topic}[{i}]": PoseSeries(stamps, seen[:, i], quaternion[:, i], FRAME) for i in range(seen.shape[1])}


def body_poses(
    stamps: NDArray, seen: NDArray, markers: MarkerSet, robot: RobotModel, prefix: str
) -> dict[str, PoseSeries]:
    """Return the poses of the frames of all links with three or more markers, as from PoseStamped topics."""
    poses = {}
    for topic, on in body_topics(markers, robot, prefix).items():
        poses[topic] = PoseSeries(stamps, *body_pose(seen[:, on], markers.places[on]), FRAME)
    return poses


def body_topics(markers: MarkerSet, robot: RobotModel, prefix: str) -> dict[str, NDArray]:
    """Return the topic "<prefix>/<link>/pose" of each link with at least three markers, and their indices."""
    topics = {}
    for index in np.unique(markers.links):
        on = np.flatnonzero(markers.links == index)
        if len(on) >= MIN_BODY_MARKERS:
            topics[f"{prefix}/{(*robot.link_names, robot.base)[index]}/pose"] = on
    return topics


def scattered_markers(robot: RobotModel, per_link: int, radius: float, rng: np.random.Generator) -> MarkerSet:
    """Place markers on each moving link, at `radius` (m) from its origin, in well separated random directions.

    Their names are "<link> <number>", in the order of the links.

    Raises:
        DynidError: fewer than three markers per link, which do not determine a rotation, or a radius that is not
            positive.
    """
    if per_link < 3 or not 0.0 < radius < np.inf:
        raise DynidError(
            f"{per_link} markers per link at {radius:g} m; expected three or more, for fewer do not show how a link is "
            "turned, at a finite distance above 0"
        )
    links = [link for link in robot.link_names for _ in range(per_link)]
    places = np.concatenate([radius * _directions(per_link, rng) for _ in robot.link_names])
    names = [f"{link} {i % per_link}" for i, link in enumerate(links)]
    return MarkerSet.on_links(robot, links, places, names)


def _directions(number: int, rng: np.random.Generator) -> np.ndarray:
    """Return well separated unit vectors (number, 3); opposite vectors count as close, because they are collinear."""

    def largest_cosine(directions: np.ndarray) -> float:
        return float(np.abs(directions @ directions.T - np.eye(number)).max())

    draws = rng.standard_normal((DIRECTION_DRAWS, number, 3))
    return min(draws / np.linalg.norm(draws, axis=2, keepdims=True), key=largest_cosine)
