"""Planned motion of a position controller, as an input of `gravity_compensation`."""

import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from dynid_ros.control import JointSettings
from dynid_ros.control.planned_motion import PlannedMotion
from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.controllers import message_type
from dynid_ros.nodes.shared.joint_states import nanoseconds

NEWEST_ONLY = QoSProfile(depth=1)


class ControllerPlan:
    """Reference of a position controller, from `<controller>/controller_state`.

    `joint_trajectory_controller` publishes the desired state of each of its cycles (ros2_controllers 4.42.1,
    joint_trajectory_controller.cpp, `publish_state`). The topic is subscribed to only while its motion is added. Where
    the desired pose of this node moves the arm, that pose is the plan.

    Args:
        node: node that subscribes.
        controller: name of the position controller; empty: there is none.
        plan: receives the reference.
    """

    def __init__(self, node: Node, controller: str, plan: PlannedMotion) -> None:
        self._node = node
        self._topic = f"{controller}/controller_state" if controller else ""
        self._plan = plan
        self._subscription: Any = None

    def use(self, joints: JointSettings, *, follows_setpoint: bool) -> None:
        """Begin or end to follow the controller.

        Args:
            joints: settings, whose `planned_scale` is zero if no motion is added.
            follows_setpoint: whether the desired pose of this node moves the arm.

        Raises:
            ControlError: there is no source of a plan.
        """
        is_needed = any(joints.planned_scale) and not follows_setpoint
        if is_needed and self._subscription is None:
            self._subscribe()
        elif not is_needed:
            self.destroy()
        self._plan.is_setpoint = follows_setpoint

    def on_state(self, message: Any) -> None:
        """Process a message `control_msgs/JointTrajectoryControllerState`."""
        names = list(message.joint_names)
        reference = message.reference
        motion: dict[str, list[float]] = {}
        for field in ("positions", "velocities", "accelerations"):
            values = list(getattr(reference, field))
            by_name = dict(zip(names, values, strict=False)) if len(values) == len(names) else {}
            missing = [name for name in self._plan.joints.names if name not in by_name]
            if missing and field != "accelerations":
                self._plan.refuse(f"{self._topic} has no {field} of {', '.join(missing)} in its reference")
                return
            if not missing:
                motion[field] = [by_name[name] for name in self._plan.joints.names]
        stamp = 1e-9 * nanoseconds(message.header) or None
        acceleration = motion.get("accelerations")
        self._plan.report(time.monotonic(), motion["positions"], motion["velocities"], acceleration, stamp)

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
        self._subscription = None

    def _subscribe(self) -> None:
        kind = message_type("control_msgs", "JointTrajectoryControllerState")
        if not self._topic:
            raise ControlError("motion_scale needs a plan: set position_controller, or stiffness for set-points")
        if kind is None:
            raise ControlError(
                "motion_scale follows the controller_state of the position controller, for which control_msgs is not "
                "installed; install ros-$ROS_DISTRO-control-msgs, or set motion_scale to 0"
            )
        self._subscription = self._node.create_subscription(kind, self._topic, self.on_state, NEWEST_ONLY)
