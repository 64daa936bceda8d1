"""IMU on a tilting base as an input of `gravity_compensation`."""

import math
import time
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import Imu

from dynid_ros.control import BaseGravity, BaseRules, LoadedGravity
from dynid_ros.errors import ControlError, ModelError
from dynid_ros.model.gravity import GravityModel, mount_rotation
from dynid_ros.model.urdf import Origin, pose
from dynid_ros.nodes.compensation.inputs import QUEUE_DEPTH
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import Listener, nanoseconds, newest_states

MOUNTING_BY_URDF = [math.nan] * 3
IMU_PARAMETERS = (
    NodeParameter("imu_topic", "", "topic of an IMU on a tilting base, sensor_msgs/Imu; empty: gravity is constant"),
    NodeParameter(
        "imu_mounting",
        MOUNTING_BY_URDF,
        "roll, pitch, yaw of the IMU in the base link, rad; nan: from the link of its frame",
    ),
    NodeParameter("imu_time_constant", 0.5, "time constant of the low-pass of the accelerations, s", above=0.0),
    NodeParameter("imu_timeout", 0.2, "largest age of an IMU message that the torque may follow, s", above=0.0),
    NodeParameter("imu_max_rate", 0.5, "fastest turn of the direction of gravity, rad/s", above=0.0),
    NodeParameter(
        "imu_largest_tilt",
        0.5,
        "largest plausible angle between parameter gravity and measured gravity, rad",
        above=0.0,
    ),
)
MAX_QUATERNION_NORM_ERROR = 0.01
"""Largest difference between the norm of an orientation quaternion and one."""


class CompensationImu(Listener):
    """Gravity in the frame of the base, measured by an IMU; without a topic, the configured gravity.

    Without valid messages the compensation ends, because the torque depends on the orientation of the base.
    """

    def __init__(self, node: LifecycleNode, settings: SimpleNamespace, model: GravityModel) -> None:
        super().__init__(node, Imu, settings.imu_topic, self._on_message, newest_states(QUEUE_DEPTH))
        self.topic = settings.imu_topic
        self._robot = model.robot
        self._mounting = settings.imu_mounting
        self._frame: str | None = None
        self._to_base = np.eye(3)
        self._unmounted = ""
        self._source = ""
        self._stamp = 0
        self.base = BaseGravity(
            model.robot.gravity.tolist(),
            BaseRules(
                settings.imu_time_constant, settings.imu_largest_tilt, settings.imu_max_rate, settings.imu_timeout
            ),
        )
        idle = [name for name, free in zip(model.robot.joint_names, model.unobservable_axes(), strict=True) if free]
        if self.topic and idle:
            node.get_logger().warning(
                f"Gravity did not load {', '.join(idle)} when the arm was identified, but does when the base tilts: "
                "their torque follows from the links of model_file, or from the URDF."
            )

    def tilting(self, gravity: LoadedGravity) -> LoadedGravity:
        """Return the gravity torque on this base."""
        return gravity.tilting(lambda: self.base.down) if self.topic else gravity

    def follow(self, now: float, *, free: bool) -> None:
        """Turn gravity towards the direction measured by the IMU.

        Args:
            now: s of the monotonic clock.
            free: whether no torque depends on gravity, so that it may turn at once.
        """
        if self.topic:
            self.base.follow(now, free=free)

    def doubt(self, now: float) -> str:
        """Return why the direction of gravity is unknown; empty if it is known."""
        if not self.topic:
            return ""
        problem = self._unmounted or self.base.problem(now)
        return problem and f"the IMU on {self.topic} {problem}"

    def check(self) -> None:
        """Check that the direction of gravity is known before the compensation begins."""
        if problem := self.doubt(now := time.monotonic()):
            raise ControlError(problem)
        if self.topic and self.base.unsettled(now):
            raise ControlError(
                f"the IMU on {self.topic} has spoken for too short a time; enable again in a few seconds"
            )

    @property
    def described(self) -> str:
        """Gravity in force and its source, for display."""
        down = ", ".join(f"{value:.3f}" for value in self.base.down)
        return f"({down}) m/s^2 by {self.base.source if self.topic else 'the configuration'}"

    def _on_message(self, message: Imu) -> None:
        stamp = nanoseconds(message.header)
        if stamp and stamp == self._stamp:
            return  # a repeated message
        self._stamp = stamp
        if message.header.frame_id != self._frame:
            self._mount(message.header.frame_id)
        if self._unmounted:
            return
        measured = message.linear_acceleration
        acceleration = self._in_base_frame((measured.x, measured.y, measured.z))
        self.base.add_sample(time.monotonic(), acceleration, self._gravity_by_orientation(message))
        if (source := self.base.source) != self._source:
            self._source = source
            self._node.get_logger().info(f"Gravity follows the base by the IMU on {self.topic}: {source}.")

    def _mount(self, frame: str) -> None:
        self._frame = frame
        self._unmounted = ""
        try:
            if any(map(math.isnan, self._mounting)):
                self._to_base = mount_rotation(self._robot, frame, "it cannot be used")
            else:
                self._to_base = pose(Origin(rpy=list(self._mounting)), "imu_mounting")[:3, :3]
        except ModelError as error:
            self._unmounted = f"is mounted nobody knows how: {error}, or set imu_mounting"

    def _gravity_by_orientation(self, message: Imu) -> list[float] | None:
        """Return the unit vector (3,) of gravity in the base frame; None without an orientation (REP 145)."""
        q = message.orientation
        length = math.hypot(q.x, q.y, q.z, q.w)
        if message.orientation_covariance[0] == -1.0 or not abs(length - 1.0) < MAX_QUATERNION_NORM_ERROR:
            return None
        # The z axis of the world in the frame of the sensor; gravity has the opposite direction.
        up = (2 * (q.x * q.z - q.w * q.y), 2 * (q.y * q.z + q.w * q.x), 1 - 2 * (q.x * q.x + q.y * q.y))
        return self._in_base_frame([-value for value in up])

    def _in_base_frame(self, vector: Sequence[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in self._to_base.tolist()]
