"""Node that stands in for a robot's driver and controllers: a simulated arm in real time."""

import math
import time

import numpy as np
import yaml
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.diagnostics import OK, WARN, Diagnostics
from dynid_ros.nodes.parameters import NodeParameter, declare
from dynid_ros.nodes.robot_description import LATCHED, ROBOT_PARAMETERS, robot_description
from dynid_ros.nodes.running import answer, run
from dynid_ros.nodes.trajectory_points import trajectory_points
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf, misjudged_urdf, truth_table
from dynid_ros.simulation.per_joint import per_joint

LARGEST_BACKLOG = 0.5  # s of simulation that are caught up at once; what is beyond is lost and reported
FRESH = 0.1  # s for which an effort command that came in position mode is valid after the switch

EACH = "; one value for all joints, or one per joint"
PARAMETERS = (
    NodeParameter("robot_description", "", "URDF as text, or a path to it; empty: the demo arm"),
    *(parameter for parameter in ROBOT_PARAMETERS if parameter.name != "robot_description"),
    NodeParameter("rate", 250.0, "joint states per second, 1 to 1000"),
    NodeParameter("timestep", 0.001, "largest timestep of the physics, s"),
    NodeParameter("seed", 0, "of all random numbers: signs of the sensor errors, noise"),
    NodeParameter(
        "description_error",
        0.0,
        "of the links in the robot_description that is published: relative, of masses and extents; 0: the truth",
    ),
    NodeParameter("start_position", [math.nan], f"rad (m); nan: zero, or the limit nearest to it{EACH}"),
    NodeParameter("coulomb_friction", [math.nan], f"N m; nan: <dynamics friction> of the URDF{EACH}"),
    NodeParameter("viscous_friction", [math.nan], f"N m s/rad; nan: <dynamics damping> of the URDF{EACH}"),
    NodeParameter("rotor_inertia", [0.0], f"kg m^2, seen at the joint{EACH}"),
    NodeParameter(
        "torque_range", [math.nan], f"full scale of the torque sensors, N m; nan: the URDF's effort limits{EACH}"
    ),
    NodeParameter("torque_offset", [0.02], f"fraction of the range, its sign drawn{EACH}"),
    NodeParameter("torque_gain_error", [0.0], f"relative, its sign drawn{EACH}"),
    NodeParameter("torque_noise", [0.005], f"standard deviation of a sample, fraction of the range{EACH}"),
    NodeParameter("position_noise", [2e-5], f"standard deviation of a sample, rad{EACH}"),
    NodeParameter("velocity_noise", [1e-3], f"standard deviation of a sample, rad/s{EACH}"),
    NodeParameter(
        "trajectory_topic", "/joint_trajectory_controller/joint_trajectory", "trajectories for position mode"
    ),
    NodeParameter(
        "effort_topic", "/forward_effort_controller/commands", "torques for effort mode, in the model's joint order"
    ),
)


class SimulatorNode(Node):
    """Paces a `SimulatedArm` by the node's clock; every joint state has the time at which its sample was due."""

    def __init__(self) -> None:
        super().__init__("simulator")
        self.settings = declare(self, PARAMETERS)
        if not 1.0 <= self.settings.rate <= 1000.0:
            raise DynidError(f"Parameter 'rate' is {self.settings.rate:g} Hz; expected 1 to 1000")
        self.arm = self._make_arm()
        self._effort: tuple[float, np.ndarray] | None = None
        self._samples = self._refused = 0
        self._lost = 0.0
        self._status_time, self._status_samples, self._status_lost = time.monotonic(), 0, 0.0

        self._joint_states = self.create_publisher(JointState, "joint_states", 1000)
        self._latched = [
            self.create_publisher(String, "robot_description", LATCHED),
            self.create_publisher(String, "~/true_parameters", LATCHED),
        ]
        truth = yaml.safe_dump(truth_table(self.arm), sort_keys=False)
        for publisher, text in zip(self._latched, (self._description(), truth), strict=True):
            publisher.publish(String(data=text))
        self.create_subscription(JointTrajectory, self.settings.trajectory_topic, self._on_trajectory, 10)
        self.create_subscription(Float64MultiArray, self.settings.effort_topic, self._on_effort, 10)
        self.create_service(SetBool, "~/effort_mode", self._on_effort_mode)
        self.create_service(Trigger, "~/reset", answer(self, self.reset))
        Diagnostics(self, self.status)

        self._period = round(1e9 / self.settings.rate)
        self._stamp = self.get_clock().now().nanoseconds
        self.create_timer(1.0 / self.settings.rate, self._catch_up)

    def reset(self) -> str:
        """Back to the start pose, at rest, in position mode."""
        self.arm.reset()
        self._effort = None
        return "at rest in the start pose, position mode"

    def status(self) -> tuple[bytes, str, dict[str, object]]:
        """Mode, and how well the simulation keeps pace since the last status."""
        now = time.monotonic()
        factor = (self._samples - self._status_samples) / self.settings.rate / max(now - self._status_time, 1e-9)
        lost = self._lost - self._status_lost
        self._status_time, self._status_samples, self._status_lost = now, self._samples, self._lost
        mode = self._mode()
        values: dict[str, object] = {
            "real_time_factor": f"{factor:.3f}",
            "lost_time": f"{self._lost:.3f}",
            "rate": self.settings.rate,
            "timestep": self.arm.timestep,
            "refused_commands": self._refused,
        }
        if lost > 0.0:
            return WARN, f"{mode}; too slow for real time, {lost:.3f} s lost; lower the rate", values
        return OK, mode, values

    def _make_arm(self) -> SimulatedArm:
        settings = self.settings
        text = robot_description(self, settings.robot_description) if settings.robot_description else demo_arm_urdf()
        robot = RobotModel.from_urdf(text, settings.tip_link, settings.base_link, settings.gravity)
        period = 1.0 / settings.rate
        if not settings.timestep > 0.0:
            raise DynidError(f"Parameter 'timestep' is {settings.timestep:g} s; expected more than 0")
        if _unset(settings.torque_range) and not np.all(np.isfinite(robot.limits.effort)):
            raise DynidError("The URDF has joints without effort limit; set parameter 'torque_range'")
        torque_range = robot.limits.effort if _unset(settings.torque_range) else settings.torque_range
        sensors = Sensors.draw(
            per_joint("torque_range", torque_range, robot.n_joints, minimum=0.0),
            np.random.default_rng((settings.seed, 1)),
            torque_offset=settings.torque_offset,
            torque_gain_error=settings.torque_gain_error,
            torque_noise=settings.torque_noise,
            position_noise=settings.position_noise,
            velocity_noise=settings.velocity_noise,
        )
        drives = Drives(
            None if _unset(settings.coulomb_friction) else settings.coulomb_friction,
            None if _unset(settings.viscous_friction) else settings.viscous_friction,
            settings.rotor_inertia,
        )
        return SimulatedArm(
            robot,
            drives=drives,
            sensors=sensors,
            start=None if _unset(settings.start_position) else settings.start_position,
            timestep=period / math.ceil(period / settings.timestep - 1e-9),
            seed=settings.seed,
        )

    def _description(self) -> str | None:
        error, robot = self.settings.description_error, self.arm.robot
        if not 0.0 <= error < 1.0:
            raise DynidError(f"Parameter 'description_error' is {error:g}; expected 0 or more, below 1")
        rng = np.random.default_rng((self.settings.seed, 2))
        return misjudged_urdf(robot, error, rng) if error else robot.urdf

    def _catch_up(self) -> None:
        now = self.get_clock().now().nanoseconds
        backlog = now - self._stamp
        if not 0 <= backlog < LARGEST_BACKLOG * 1e9:
            self._lost += abs(backlog) / 1e9
            self.get_logger().warning(f"{backlog / 1e9:.3f} s behind the clock; the simulation goes on from now")
            self._stamp = now - self._period
        while self._stamp + self._period <= now:
            self.arm.step(1.0 / self.settings.rate)
            self._stamp += self._period
            self._samples += 1
            self._publish()

    def _publish(self) -> None:
        position, velocity, torque = self.arm.measure()
        message = JointState(name=list(self.arm.robot.joint_names))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self._stamp, 1_000_000_000)
        message.position, message.velocity, message.effort = position.tolist(), velocity.tolist(), torque.tolist()
        self._joint_states.publish(message)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            stamp = Time.from_msg(message.header.stamp).nanoseconds
            self.arm.follow(trajectory_points(message), delay=(stamp - self._stamp) * 1e-9 if stamp else 0.0)
        except DynidError as error:
            self._refused += 1
            self.get_logger().warning(f"trajectory refused: {error}")

    def _on_effort(self, message: Float64MultiArray) -> None:
        try:
            torque = self.arm.checked_effort(message.data)
        except DynidError as error:
            self._refused += 1
            self.get_logger().warning(f"effort command refused: {error}", throttle_duration_sec=1.0)
            return
        self._effort = time.monotonic(), torque
        if self.arm.effort_mode:
            self.arm.command_effort(torque)

    def _on_effort_mode(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        response.success = True
        if request.data == self.arm.effort_mode:
            response.message = f"in {self._mode()} already"
        elif not request.data:
            self.arm.hold()
            response.message = "position mode, holding the present place"
        else:
            self.arm.release()
            response.message = "effort mode, no torque until the first command"
            if self._effort is not None and time.monotonic() - self._effort[0] < FRESH:
                self.arm.command_effort(self._effort[1])
                response.message = "effort mode, with the torque commanded last"
        return response

    def _mode(self) -> str:
        return "effort mode" if self.arm.effort_mode else "position mode"


def _unset(values: list[float]) -> bool:
    return len(values) == 1 and math.isnan(values[0])


def main() -> None:
    """Entry point of `ros2 run dynid_ros simulator`."""
    run(SimulatorNode)


if __name__ == "__main__":
    main()
