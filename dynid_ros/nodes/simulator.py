"""Node that stands in for a robot's driver and controllers: a simulated arm in real time."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import yaml
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.diagnostics import OK, WARN, Diagnostics, Status
from dynid_ros.nodes.shared.parameters import declare, read_values
from dynid_ros.nodes.shared.process import answer, run
from dynid_ros.nodes.shared.robot_description import robot_description
from dynid_ros.nodes.shared.steady_thread import steady_timer
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.nodes.simulated_arm.camera import SimulatorCamera
from dynid_ros.nodes.simulated_arm.controllers import Controllers
from dynid_ros.nodes.simulated_arm.hardware import (
    LOAD_PARAMETERS,
    PARAMETERS,
    PUSH_PARAMETERS,
    SENSOR_PARAMETERS,
    STATES,
    HardwareTopics,
    load_of,
    make_arm,
    make_sensors,
    published_description,
)
from dynid_ros.simulation import SimulatedArm, demo_arm_urdf, truth_table

# The hand that pushes the simulated arm: a topic, and what its messages mean.


class SimulatorPush:
    """Lets `geometry_msgs/WrenchStamped` on `~/push` act on an arm; `frame_id` names the axes (empty: the base's)."""

    def __init__(self, node: Node, arm: SimulatedArm, refused: Callable[[str], None]) -> None:
        self._node = node
        self._arm = arm
        self._refused = refused
        node.create_subscription(WrenchStamped, "~/push", self._on_push, 10)

    def _on_push(self, message: WrenchStamped) -> None:
        settings = read_values(self._node, PUSH_PARAMETERS)
        vectors = (message.wrench.force, message.wrench.torque)
        wrench = [component for vector in vectors for component in (vector.x, vector.y, vector.z)]
        axes = message.header.frame_id.lstrip("/")
        try:
            self._arm.push(wrench, settings.push_link or None, axes or None, settings.push_duration)
        except DynidError as error:
            self._refused(f"push refused: {error}")


TURN = 0.1  # s of simulation, two cycles at least, that are caught up before commands are heard again
LARGEST_BACKLOG = 0.5  # s of simulation that are caught up; what is beyond is lost and reported


class SimulatorNode(Node):
    """Paces a `SimulatedArm` by the node's clock; every joint state has the time at which its sample was due."""

    def __init__(self) -> None:
        super().__init__("simulator")
        self.settings = declare(self, PARAMETERS)
        if not 1.0 <= self.settings.rate <= 1000.0:
            raise DynidError(f"Parameter 'rate' is {self.settings.rate:g} Hz; expected 1 to 1000")
        given = self.settings.robot_description
        self.arm = make_arm(self.settings, robot_description(self, given) if given else demo_arm_urdf())
        self._samples = self._refused = 0
        self._lost = 0.0
        self._refusal = ""
        self._status_time, self._status_samples, self._status_lost = time.monotonic(), 0, 0.0

        joint_states = STATES if self.settings.controller == "ros2_control" else "joint_states"
        self._joint_states = self.create_publisher(JointState, joint_states, 1000)
        wrench, links = self.settings.wrench_topic, self.settings.link_states_topic
        self._wrench = self.create_publisher(WrenchStamped, wrench, 1000) if wrench else None
        self._links = self.create_publisher(JointState, links, 1000) if links else None
        filmed = self.settings.markers_topic or self.settings.mocap_prefix
        self._camera = SimulatorCamera(self, self.settings, self.arm) if filmed else None
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=published_description(self.settings, self.arm.robot)))
        self._truth = self.create_publisher(String, "~/true_parameters", LATCHED)
        self._publish_truth()
        self.add_on_set_parameters_callback(self._on_parameters)
        SimulatorPush(self, self.arm, self._refuse)
        self.create_service(SetBool, "~/pick_up", self._on_pick_up)
        self.create_service(Trigger, "~/reset", answer(self, self.reset))
        Diagnostics(self, self.status, hardware=self.arm.robot.name)

        self._period = round(1e9 / self.settings.rate)
        self._stamp = self.get_clock().now().nanoseconds
        self._controller: HardwareTopics | Controllers
        if self.settings.controller == "ros2_control":
            topics = self.settings.trajectory_topic, self.settings.effort_topic
            self._controller = HardwareTopics(self, self.arm, self._refuse, *topics)
        else:
            self._controller = Controllers(
                self, self.arm, self.settings, refused=self._refuse, report=self._tell, stamp=lambda: self._stamp
            )
        # the node's clock may be set back, and would keep a timer of its own waiting
        steady_timer(self, 1.0 / self.settings.rate, self._catch_up)

    def reset(self) -> str:
        """Back to the start pose, at rest, in position mode, with controllers that begin anew; a load stays."""
        self.arm.reset()
        self._controller.reset()
        return "at rest in the start pose, position mode"

    def pick_up(self) -> str:
        """Fix the load that the parameters describe to the tip link, in place of the one before."""
        load = load_of(read_values(self, LOAD_PARAMETERS))
        self.arm.attach_load(load)
        self._publish_truth()
        return f"carries {load[0]:g} kg"

    def drop(self) -> str:
        """Let go of the load."""
        self.arm.detach_load()
        self._publish_truth()
        return "carries nothing"

    def status(self) -> Status:
        """Mode, and how well the simulation keeps pace since the last status."""
        now = time.monotonic()
        factor = (self._samples - self._status_samples) / self.settings.rate / max(now - self._status_time, 1e-9)
        lost = self._lost - self._status_lost
        self._status_time, self._status_samples, self._status_lost = now, self._samples, self._lost
        refused, self._refusal = self._refusal, ""
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
        warnings = "; ".join(filter(None, (refused, slow)))
        return (WARN, f"{mode}; {warnings}", values) if warnings else (OK, mode, values)

    def _catch_up(self) -> None:
        now = self.get_clock().now().nanoseconds
        backlog = now - self._stamp
        if not 0 <= backlog < LARGEST_BACKLOG * 1e9:
            self._lost += abs(backlog) / 1e9
            self.get_logger().warning(f"{backlog / 1e9:.3f} s behind the clock; the simulation goes on from now")
            self._stamp = now - self._period
        for _ in range(max(2, round(TURN * self.settings.rate))):
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
        message.position, message.velocity, message.effort = position.tolist(), velocity.tolist(), torque.tolist()
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

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        given = {parameter.name: parameter.value for parameter in parameters}
        if given.keys().isdisjoint(parameter.name for parameter in SENSOR_PARAMETERS):
            return SetParametersResult(successful=True)
        settings = SimpleNamespace(**vars(self.settings) | vars(read_values(self, SENSOR_PARAMETERS)) | given)
        try:
            self.arm.sensors = make_sensors(settings, self.arm.robot)
        except DynidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._publish_truth()
        return SetParametersResult(successful=True)

    def _refuse(self, what: str) -> None:
        self._refused += 1
        self._tell(what)

    def _tell(self, what: str) -> None:
        self._refusal = what
        self.get_logger().warning(what, throttle_duration_sec=1.0)

    def _on_pick_up(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        return answer(self, self.pick_up if request.data else self.drop)(request, response)


def main() -> None:
    """Entry point of `ros2 run dynid_ros simulator`."""
    run(SimulatorNode)


if __name__ == "__main__":
    main()
