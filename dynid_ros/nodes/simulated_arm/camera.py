"""Simulated motion capture: its parameters, and its topics with the positions of markers and poses of links."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, PoseArray, PoseStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from scipy.spatial.transform import Rotation

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.topics import require_topic
from dynid_ros.simulation import Camera, CameraView, SimulatedArm, scattered_markers
from dynid_ros.simulation.camera import FRAME, body_pose, body_topics

CAMERA_PARAMETERS = (
    NodeParameter("markers_topic", "", "geometry_msgs/PoseArray of all markers; empty: none"),
    NodeParameter("mocap_prefix", "", "links as geometry_msgs/PoseStamped on <mocap_prefix>/<link>/pose; empty: none"),
    NodeParameter("markers_per_link", 3, "number of markers on each moving link, 3 or more"),
    NodeParameter("marker_radius", 0.15, "distance of the markers from their link's origin, m"),
    NodeParameter("marker_noise", 3e-4, "standard deviation of a marker's position along each axis, m"),
    NodeParameter("marker_occlusion", 0.0, "fraction of the time for which a marker is hidden"),
    NodeParameter("marker_burst", 0.0, "mean duration of an occlusion, s; 0: one frame"),
    NodeParameter("marker_swaps", 0.0, "pairs of markers per second that swap their places in the list for a while"),
    NodeParameter("marker_ghosts", 0.0, "fraction of the frames with a reflection, after the markers"),
    NodeParameter("camera_rate", 100.0, "frames per second"),
    NodeParameter("camera_latency", 0.0, "delay of the frames and of their stamps, s"),
    NodeParameter("camera_clock_offset", 0.0, "difference of the robot's clock from the camera's at the start, s"),
    NodeParameter("camera_clock_drift", 0.0, "growth of that difference, s/s"),
    NodeParameter("base_in_camera", [0.0] * 6, "x, y, z (m), roll, pitch, yaw (rad) of the base in the camera's frame"),
)
NO_ROTATION = np.array([0.0, 0.0, 0.0, 1.0])
# The reliability of vrpn_mocap, with a deeper queue, because the simulator may catch up several frames at once.
SENSOR_DATA = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)


class SimulatorCamera:
    """Publisher of the markers and link poses that a camera sees, with the camera's rate and clock.

    Raises:
        DynidError: a parameter is invalid.
    """

    def __init__(self, node: Node, settings: SimpleNamespace, arm: SimulatedArm) -> None:
        self._camera = camera_of(settings)
        self._arm = arm
        rng = np.random.default_rng((settings.seed, 4))
        self._markers = scattered_markers(arm.robot, settings.markers_per_link, settings.marker_radius, rng)
        self._view = CameraView(self._camera, rng)
        self._array: Publisher | None = None
        if settings.markers_topic:
            self._array = node.create_publisher(PoseArray, settings.markers_topic, SENSOR_DATA)
        topics = body_topics(self._markers, arm.robot, settings.mocap_prefix) if settings.mocap_prefix else {}
        for topic in topics:
            require_topic(node, topic, "a link's topic by parameter 'mocap_prefix'")
        self._bodies = [(node.create_publisher(PoseStamped, topic, SENSOR_DATA), on) for topic, on in topics.items()]
        self._start: int | None = None
        self._frames = 0
        self._before = (0.0, arm.link_position)  # time, s, and link positions of the last call
        self._delayed: deque[tuple[float, np.ndarray]] = deque()

    def truth(self) -> dict[str, Any]:
        """Return the camera's settings and the markers' places as plain mappings, for the table of true values."""
        camera = {name: np.asarray(value).tolist() for name, value in vars(self._camera).items()}
        links = [self._arm.robot.link_names[link] for link in self._markers.links]
        rows = zip(self._markers.names, links, self._markers.places.tolist(), strict=True)
        return {"camera": camera, "markers": {name: {"link": link, "place": place} for name, link, place in rows}}

    def look(self, stamp: int) -> None:
        """Take the frames up to the arm's present state, of stamp `stamp`, ns, and publish those that are due."""
        if self._start is None:
            self._start = stamp
            self._before = (0.0, self._arm.link_position)
        now = (stamp - self._start) * 1e-9
        then, before = self._before
        links = self._arm.link_position
        period = (1.0 + self._camera.clock_drift) / self._camera.rate
        while (exposure := self._frames * period) <= now:
            fraction = (exposure - then) / (now - then) if now > then else 1.0
            place = before + np.clip(fraction, 0.0, 1.0) * (links - before)
            self._delayed.append(
                (exposure, self._view.frame(self._arm.truth.marker_positions(place, self._markers)[0]))
            )
            self._frames += 1
        self._before = (now, links)
        while self._delayed and self._delayed[0][0] + self._camera.latency <= now:
            self._publish(self._start, *self._delayed.popleft())

    def _publish(self, start: int, exposure: float, seen: np.ndarray) -> None:
        seconds = float(self._camera.camera_time(exposure, 0.0)) + self._camera.latency
        array = PoseArray()
        array.header.frame_id = FRAME
        array.header.stamp.sec, array.header.stamp.nanosec = divmod(start + round(seconds * 1e9), 10**9)
        if self._array is not None:
            array.poses = [_pose(position, NO_ROTATION) for position in seen]
            self._array.publish(array)
        for publisher, on in self._bodies:
            position, quaternion = body_pose(seen[np.newaxis, on], self._markers.places[on])
            if np.isfinite(position).all():  # a tracker does not publish a body that it has lost
                publisher.publish(PoseStamped(header=array.header, pose=_pose(position[0], quaternion[0])))


def camera_of(settings: SimpleNamespace) -> Camera:
    """Return the camera of `CAMERA_PARAMETERS`.

    Raises:
        DynidError: a parameter is invalid.
    """
    if len(settings.base_in_camera) != 6 or not np.isfinite(settings.base_in_camera).all():
        raise DynidError(f"Parameter 'base_in_camera' is {list(settings.base_in_camera)}; expected 6 finite numbers")
    base = np.eye(4)
    base[:3, 3] = settings.base_in_camera[:3]
    base[:3, :3] = Rotation.from_euler("xyz", settings.base_in_camera[3:]).as_matrix()
    return Camera(
        rate=settings.camera_rate,
        base=base,
        noise=settings.marker_noise,
        clock_offset=settings.camera_clock_offset,
        clock_drift=settings.camera_clock_drift,
        occlusion=settings.marker_occlusion,
        burst=settings.marker_burst,
        swaps=settings.marker_swaps,
        ghosts=settings.marker_ghosts,
        latency=settings.camera_latency,
    )


def _pose(position: np.ndarray, quaternion: np.ndarray) -> Pose:
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = position.tolist()
    orientation = pose.orientation
    orientation.x, orientation.y, orientation.z, orientation.w = quaternion.tolist()
    return pose
