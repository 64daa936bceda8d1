"""The controllers of the simulated arm, as ros2_controllers would command a robot's hardware."""

import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.simulated_arm.trajectory_points import trajectory_points
from dynid_ros.simulation import SimulatedArm, TrajectoryController, TrajectoryPoints
from dynid_ros.simulation.commands import checked_effort

FRESH = 0.1  # s for which an effort command that came in position mode is valid after the switch
CONTROLLER_PARAMETERS = (
    NodeParameter(
        "controller",
        "effort",
        "effort: a position servo that knows the arm's model, or in effort mode forwarded torques alone; "
        "position_and_effort: a servo without model, forwarded torques added; "
        "trajectory_effort: the same, torques in the trajectories",
    ),
    NodeParameter("controller_joints", [""], 'joints of the controllers in their order; [""]: those of the model'),
    NodeParameter(
        "trajectory_topic",
        "joint_trajectory_controller/joint_trajectory",
        "trajectories for position mode",
        required=True,
    ),
    NodeParameter(
        "effort_topic",
        "forward_effort_controller/commands",
        "torques, in the controller's joint order",
        required=True,
    ),
    NodeParameter("path_tolerance", 0.0, "rad at which trajectory_effort aborts a trajectory; 0: never"),
    NodeParameter("command_timeout", 0.0, "s after the last point at which trajectory_effort aborts; 0: never"),
    NodeParameter("abort_keeps_effort", True, "an abort keeps the last effort, as after a goal; false: zero"),
)


class EffortController:
    """A position servo, and beside it `forward_command_controller`, one active at a time: `~/effort_mode` switches.

    As that controller does it drops commands with numbers that are not finite, acts on none of another size, and holds
    the last one for ever.

    Args:
        node: listens and answers.
        arm: that is moved.
        settings: values of `CONTROLLER_PARAMETERS`.
        refused: told why a command is not acted on.
        stamp: of the arm's present state, ns of the node's clock.

    Raises:
        DynidError: `controller_joints` are not the arm's.

    """

    trajectory_interfaces: tuple[str, ...] = ("position",)

    def __init__(
        self,
        node: Node,
        arm: SimulatedArm,
        settings: SimpleNamespace,
        refused: Callable[[str], None],
        stamp: Callable[[], int],
    ) -> None:
        self._arm = arm
        self._refused = refused
        self._stamp = stamp
        self._commanded: tuple[float, np.ndarray] | None = None
        names = [name for name in settings.controller_joints if name] or list(arm.robot.joint_names)
        if sorted(names) != sorted(arm.robot.joint_names):
            raise DynidError(
                f"Parameter 'controller_joints' is {', '.join(names)}; expected the joints "
                f"{', '.join(arm.robot.joint_names)} in any order"
            )
        self._order = [names.index(name) for name in arm.robot.joint_names]
        self._names = names
        node.create_subscription(JointTrajectory, settings.trajectory_topic, self._on_trajectory, 10)
        tolerances = {f"constraints.{joint}.trajectory": settings.path_tolerance for joint in names}
        parameters = {"joints": names, "command_interfaces": self.trajectory_interfaces} | tolerances
        answer_parameters(node, settings.trajectory_topic, parameters | {"cmd_timeout": settings.command_timeout})
        self._take_effort(node, settings)
        node.create_service(SetBool, "~/effort_mode", self._on_effort_mode)

    @property
    def mode(self) -> str:
        """In words."""
        return "effort mode" if self._arm.effort_mode else "position mode"

    def update(self) -> None:
        """Command what is due now."""

    def reset(self) -> None:
        """Forget all commands; the arm has been reset."""
        self._commanded = None

    def _take_effort(self, node: Node, settings: SimpleNamespace) -> None:
        node.create_subscription(Float64MultiArray, settings.effort_topic, self._on_effort, 10)
        answer_parameters(node, settings.effort_topic, {"joints": self._names, "interface_name": "effort"})

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            points = trajectory_points(message)
            if points.effort is not None and "effort" not in self.trajectory_interfaces:
                raise DynidError("it has efforts, and this controller no effort interface")
            stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
            self._follow(points, (stamp - self._stamp()) * 1e-9 if stamp else 0.0)
        except DynidError as error:
            self._refused(f"trajectory refused: {error}")

    def _follow(self, points: TrajectoryPoints, delay: float) -> None:
        self._arm.follow(points, delay)

    def _on_effort(self, message: Float64MultiArray) -> None:
        try:
            torque = checked_effort(self._arm.robot, message.data)[self._order]
        except DynidError as error:
            self._refused(f"effort command refused: {error}")
            return
        self._commanded = time.monotonic(), torque
        self._command(torque)

    def _command(self, torque: np.ndarray) -> None:
        if self._arm.effort_mode:
            self._arm.command_effort(torque)

    def _on_effort_mode(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            response.success, response.message = True, self._switch(request.data)
        except DynidError as error:
            response.success, response.message = False, str(error)
        return response

    def _switch(self, to_effort: bool) -> str:
        arm = self._arm
        if to_effort == arm.effort_mode:
            return f"in {self.mode} already"
        if not to_effort:
            arm.hold()
            return "position mode, holding the present place"
        arm.release()
        if self._commanded is None or time.monotonic() - self._commanded[0] > FRESH:
            return "effort mode, no torque until the first command"
        arm.command_effort(self._commanded[1])
        return "effort mode, with the torque commanded last"


class PositionAndEffortController(EffortController):
    """A position servo that knows nothing of the arm, and torques that `forward_command_controller` adds to its own."""

    @property
    def mode(self) -> str:
        """In words."""
        return "position and effort"

    def _command(self, torque: np.ndarray) -> None:
        self._arm.add_effort(torque)

    def _switch(self, to_effort: bool) -> str:
        if not to_effort:
            return f"{self.mode}: the servo is on"
        raise DynidError("the servo and torques act together here; only controller 'effort' has an effort mode")


class TrajectoryEffortController(PositionAndEffortController):
    """The same servo, and torques from the points of trajectories; see `TrajectoryController`."""

    trajectory_interfaces = ("position", "effort")

    @property
    def mode(self) -> str:
        """In words."""
        aborts = self._trajectories.aborts
        return f"trajectories with effort{f', {aborts} aborted' if aborts else ''}"

    def update(self) -> None:
        """Command what is due now."""
        self._trajectories.update()

    def reset(self) -> None:
        """Forget all commands; the arm has been reset."""
        self._trajectories.reset()

    def _take_effort(self, _node: Node, settings: SimpleNamespace) -> None:
        self._trajectories = TrajectoryController(
            self._arm,
            tolerance=settings.path_tolerance,
            timeout=settings.command_timeout,
            keeps_effort=settings.abort_keeps_effort,
        )

    def _follow(self, points: TrajectoryPoints, delay: float) -> None:
        self._trajectories.follow(points, delay)


CONTROLLERS: dict[str, type[EffortController]] = {
    "effort": EffortController,
    "position_and_effort": PositionAndEffortController,
    "trajectory_effort": TrajectoryEffortController,
}


def checked_controller(name: str) -> str:
    """One of `CONTROLLERS`.

    Raises:
        DynidError: another name.

    """
    if name not in CONTROLLERS:
        raise DynidError(f"Parameter 'controller' is '{name}'; expected {', '.join(CONTROLLERS)}")
    return name


def answer_parameters(node: Node, topic: str, values: Mapping[str, object]) -> None:
    """Answer for the controller of a topic `<controller>/...`, as its node would, what its parameters are."""
    controller = topic.rpartition("/")[0]

    def callback(request: GetParameters.Request, response: GetParameters.Response) -> GetParameters.Response:
        named = [Parameter(name, value=values.get(name)) for name in request.names]
        response.values = [parameter.to_parameter_msg().value for parameter in named]
        return response

    if controller:
        node.create_service(GetParameters, f"{controller}/get_parameters", callback)
