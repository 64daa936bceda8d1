"""Node that replaces a robot's driver and controllers by a simulated arm in real time."""

import time
from functools import partial
from types import SimpleNamespace

import yaml
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.diagnostics import OK, WARN, Diagnostics, Status
from dynid_ros.nodes.shared.parameters import declare
from dynid_ros.nodes.shared.process import answer, run, steady_timer
from dynid_ros.nodes.shared.robot_description import robot_description
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.nodes.simulated_arm.controllers import STATES_TOPIC, Controllers, HardwareTopics
from dynid_ros.nodes.simulated_arm.parameters import (
    PARAMETERS,
    SENSOR_PARAMETERS,
    SimulatorCamera,
    load_parameters,
    make_arm,
    make_sensors,
    published_description,
)
from dynid_ros.simulation import demo_arm_urdf, truth_table

MAX_CATCH_UP_S = 0.1
"""Simulated time that is caught up before commands are processed again; at least two cycles."""
MAX_BACKLOG_S = 0.5
"""Longest delay of the simulation that is caught up; a longer one is lost and reported."""


class SimulatorNode(Node):
    """Node that advances a `SimulatedArm` with the node's clock; stamps of joint states are exact sampling times."""

    def __init__(self) -> None:
        super().__init__("simulator")
        settings = self.settings = declare(self, PARAMETERS, self._adjust)
        description = settings.robot_description
        self.arm = make_arm(settings, robot_description(self, description) if description else demo_arm_urdf())
        self._samples = 0
        self._refused = 0
        self._lost = 0.0
        self._refusal = ""
        self._status_time = time.monotonic()
        self._status_samples = 0
        self._status_lost = 0.0

        with_ros2_control = settings.controller == "ros2_control"
        self._joint_states = self.create_publisher(
            JointState, STATES_TOPIC if with_ros2_control else "joint_states", 1000
        )
        self._wrench: Publisher | None = None
        self._links: Publisher | None = None
        self._camera: SimulatorCamera | None = None
        if settings.wrench_topic:
            self._wrench = self.create_publisher(WrenchStamped, settings.wrench_topic, 1000)
        if settings.link_states_topic:
            self._links = self.create_publisher(JointState, settings.link_states_topic, 1000)
        if settings.markers_topic or settings.mocap_prefix:
            self._camera = SimulatorCamera(self, settings, self.arm)
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=published_description(settings, self.arm.robot)))
        self._truth = self.create_publisher(String, "~/true_parameters", LATCHED)
        self._publish_truth()
        self.create_subscription(WrenchStamped, "~/push", self._on_push, 10)
        self.create_service(SetBool, "~/pick_up", answer(self, self.pick_up, self.drop))
        self.create_service(Trigger, "~/reset", answer(self, self.reset))
        Diagnostics(self, self.status, hardware=self.arm.robot.name)

        self._period = round(1e9 / settings.rate)
        self._stamp = self.get_clock().now().nanoseconds
        self._controller: HardwareTopics | Controllers
        if with_ros2_control:
            topics = (settings.trajectory_topic, settings.effort_topic)
            self._controller = HardwareTopics(self, self.arm, self._refuse, *topics)
        else:
            self._controller = Controllers(
                self, self.arm, settings, refused=self._refuse, report=self._report, stamp=lambda: self._stamp
            )
        # Not a timer of the node's clock, which may be set back.
        steady_timer(self, 1.0 / settings.rate, self._catch_up)

    def reset(self) -> str:
        """Put the arm at rest in its start pose, in position mode, and start the controllers again; keep the load."""
        self.arm.reset()
        self._controller.reset()
        return "The arm rests in the start pose, in position mode."

    def pick_up(self) -> str:
        """Fix the load of the parameters to the tip link, in place of the present one."""
        load = load_parameters(self.settings)
        self.arm.attach_load(load)
        self._publish_truth()
        return f"The arm carries {load[0]:g} kg."

    def drop(self) -> str:
        """Remove the load."""
        self.arm.detach_load()
        self._publish_truth()
        return "The arm carries nothing."

    def status(self) -> Status:
        """Return the mode of the controllers, and the real-time factor since the last status."""
        now = time.monotonic()
        factor = (self._samples - self._status_samples) / self.settings.rate / max(now - self._status_time, 1e-9)
        lost = self._lost - self._status_lost
        self._status_time = now
        self._status_samples = self._samples
        self._status_lost = self._lost
        refusal = self._refusal
        self._refusal = ""
        mode = self._controller.mode
        values: dict[str, object] = {
            "real_time_factor": f"{factor:.3f}",
            "lost_time": f"{self._lost:.3f}",
            "rate": self.settings.rate,
            "timestep": self.arm.timestep,
            "refused_commands": self._refused,
            "load": f"{self.arm.truth.load[0]:g}",
        }
        slow = f"too slow for real time, {lost:.3f} s lost; lower the rate" if lost > 0.0 else ""
        warnings = "; ".join(filter(None, (refusal, slow)))
        return (WARN, f"{mode}; {warnings}", values) if warnings else (OK, mode, values)

    def _catch_up(self) -> None:
        now = self.get_clock().now().nanoseconds
        backlog = now - self._stamp
        if not 0 <= backlog < MAX_BACKLOG_S * 1e9:
            self._lost += abs(backlog) / 1e9
            self.get_logger().warning(f"The simulation is {backlog / 1e9:.3f} s late and continues from now.")
            self._stamp = now - self._period
        for _ in range(max(2, round(MAX_CATCH_UP_S * self.settings.rate))):
            if self._stamp + self._period > now:
                break
            try:
                self._controller.update(1.0 / self.settings.rate)
                self.arm.step(1.0 / self.settings.rate)
            except DynidError as error:
                self._refuse(f"{error}; {self.reset()}")
            self._stamp += self._period
            self._samples += 1
            self._publish()
            if self._camera is not None:
                self._camera.look(self._stamp)

    def _publish(self) -> None:
        position, velocity, torque = self.arm.measure()
        message = JointState(name=list(self.arm.robot.joint_names))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self._stamp, 1_000_000_000)
        message.position = position.tolist()
        message.velocity = velocity.tolist()
        message.effort = torque.tolist()
        self._joint_states.publish(message)
        if self._links is not None:
            links = JointState(header=message.header, name=message.name, position=self.arm.measure_links().tolist())
            self._links.publish(links)
        if self._wrench is not None:
            wrench = WrenchStamped(header=message.header)
            wrench.header.frame_id = self.arm.robot.tip
            force, torque = self.arm.measure_wrench()
            wrench.wrench.force.x, wrench.wrench.force.y, wrench.wrench.force.z = force.tolist()
            wrench.wrench.torque.x, wrench.wrench.torque.y, wrench.wrench.torque.z = torque.tolist()
            self._wrench.publish(wrench)

    def _publish_truth(self) -> None:
        table = truth_table(self.arm) | ({} if self._camera is None else self._camera.truth())
        self._truth.publish(String(data=yaml.safe_dump(table, sort_keys=False)))

    def _adjust(self, settings: SimpleNamespace) -> None:
        """Change the errors of the torque sensors; see `declare`."""
        names = [parameter.name for parameter in SENSOR_PARAMETERS]
        if any(getattr(settings, name) != getattr(self.settings, name) for name in names):
            self.arm.sensors = make_sensors(settings, self.arm.robot)
            self._publish_truth()

    def _on_push(self, message: WrenchStamped) -> None:
        """Push a link; `frame_id` names the axes (empty: those of the base)."""
        vectors = (message.wrench.force, message.wrench.torque)
        wrench = [component for vector in vectors for component in (vector.x, vector.y, vector.z)]
        axes = message.header.frame_id.lstrip("/")
        try:
            self.arm.push(wrench, self.settings.push_link or None, axes or None, self.settings.push_duration)
        except DynidError as error:
            self._refuse(f"push refused: {error}")

    def _refuse(self, reason: str) -> None:
        self._refused += 1
        self._report(reason)

    def _report(self, reason: str) -> None:
        self._refusal = reason
        self.get_logger().warning(reason, throttle_duration_sec=1.0)


main = partial(run, SimulatorNode)
