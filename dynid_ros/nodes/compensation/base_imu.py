"""What `gravity_compensation` hears of a base that tilts: an IMU on it."""

import math
import time
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import Imu

from dynid_ros.control import BaseGravity, BaseRules, LoadedGravity
from dynid_ros.errors import ControlError, ModelError
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.gravity_direction import mount_rotation
from dynid_ros.model.urdf import Origin, pose
from dynid_ros.nodes.compensation.inputs import QUEUE, Listener
from dynid_ros.nodes.shared.joint_states import nanoseconds, newest_states
from dynid_ros.nodes.shared.parameters import NodeParameter

BY_URDF = [math.nan] * 3
IMU = (
    NodeParameter("imu_topic", "", "sensor_msgs/Imu of an IMU on a base that tilts; empty: the base stands as gravity"),
    NodeParameter(
        "imu_mounting", BY_URDF, "roll, pitch, yaw of the IMU in the base link, rad; nan: by its frame's link"
    ),
    NodeParameter("imu_time_constant", 0.5, "s, of the low-pass of its accelerations", above=0.0),
    NodeParameter("imu_timeout", 0.2, "s, oldest message of it that is still acted on", above=0.0),
    NodeParameter("imu_max_rate", 0.5, "rad/s by which the direction of gravity is turned at most", above=0.0),
    NodeParameter(
        "imu_largest_tilt", 0.5, "rad between the parameter gravity and what it says, to be believed", above=0.0
    ),
)
ORIENTED = 0.01
"""By how much the length of a quaternion may differ from one."""


class CompensationImu(Listener):
    """Gravity in the frame of a base, by the IMU on it; without a topic, as it is configured.

    Unlike links and loads it is a condition: nobody knows which torque holds an arm whose base may be anywhere.
    """

    def __init__(self, node: LifecycleNode, settings: SimpleNamespace, model: GravityModel) -> None:
        super().__init__(node, Imu, settings.imu_topic, self._on_message, newest_states(QUEUE))
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
                f"gravity loaded {', '.join(idle)} in no pose when the arm was identified, and does as the base tilts: "
                "what they carry is taken from the links of model_file, or from the URDF"
            )

    def tilting(self, gravity: LoadedGravity) -> LoadedGravity:
        """The gravity torque on this base."""
        return gravity.tilting(lambda: self.base.down) if self.topic else gravity

    def follow(self, now: float, *, free: bool) -> None:
        """Turn gravity towards what the IMU says, `now`, s of the monotonic clock; `free`: no torque hangs on it."""
        if self.topic:
            self.base.follow(now, free=free)

    def doubt(self, now: float) -> str:
        """Why the direction of gravity is not known; empty: it is."""
        if not self.topic:
            return ""
        problem = self._unmounted or self.base.problem(now)
        return problem and f"the IMU on {self.topic} {problem}"

    def check(self) -> None:
        """Before the arm is held by it.

        Raises:
            ControlError: the direction of gravity is not known, or not yet.
        """
        if problem := self.doubt(now := time.monotonic()):
            raise ControlError(problem)
        if self.topic and self.base.unsettled(now):
            raise ControlError(
                f"the IMU on {self.topic} has spoken for too short a time; enable again in a few seconds"
            )

    @property
    def described(self) -> str:
        """Gravity in force and where it is from."""
        down = ", ".join(f"{value:.3f}" for value in self.base.down)
        return f"({down}) m/s^2 by {self.base.source if self.topic else 'the configuration'}"

    def _on_message(self, message: Imu) -> None:
        stamp = nanoseconds(message.header)
        if stamp and stamp == self._stamp:
            return  # the same one sent again is no news
        self._stamp = stamp
        if message.header.frame_id != self._frame:
            self._mount(message.header.frame_id)
        if self._unmounted:
            return
        felt = message.linear_acceleration
        self.base.add_sample(time.monotonic(), self._turned((felt.x, felt.y, felt.z)), self._oriented(message))
        if (source := self.base.source) != self._source:
            self._source = source
            self._node.get_logger().info(f"gravity follows the base by the IMU on {self.topic}: {source}")

    def _mount(self, frame: str) -> None:
        self._frame, self._unmounted = frame, ""
        try:
            if any(map(math.isnan, self._mounting)):
                self._to_base = mount_rotation(self._robot, frame, "it cannot be used")
            else:
                self._to_base = pose(Origin(rpy=list(self._mounting)), "imu_mounting")[:3, :3]
        except ModelError as error:
            self._unmounted = f"is mounted nobody knows how: {error}, or set imu_mounting"

    def _oriented(self, message: Imu) -> list[float] | None:
        """Gravity (3,) in the base frame by the orientation, of length one; None: it has none (REP 145)."""
        q = message.orientation
        length = math.hypot(q.x, q.y, q.z, q.w)
        if message.orientation_covariance[0] == -1.0 or not abs(length - 1.0) < ORIENTED:
            return None
        # The world's z axis in the sensor's frame, turned round.
        up = (2 * (q.x * q.z - q.w * q.y), 2 * (q.y * q.z + q.w * q.x), 1 - 2 * (q.x * q.x + q.y * q.y))
        return self._turned([-value for value in up])

    def _turned(self, vector: Sequence[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in self._to_base.tolist()]
