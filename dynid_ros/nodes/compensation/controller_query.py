"""What a running controller of ros2_control says of itself through its parameter service."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.task import Future

from dynid_ros.errors import ControlError

ASK_PERIOD = 0.25
ANSWER_TIMEOUT = 2.0
ASKED = ("joints", "interface_name", "command_interfaces", "cmd_timeout")


@dataclass(frozen=True)
class ControllerAnswer:
    """What a controller is.

    Attributes:
        name: of its node.
        joints: in its order.
        interfaces: that it commands.
        follows_trajectories: as `joint_trajectory_controller` does; false: forwards commands.
        tolerant: it gives up no trajectory on its way, however far the arm is.
        command_timeout: s after which it drops a command that is not repeated; 0: never.

    """

    name: str
    joints: tuple[str, ...]
    interfaces: tuple[str, ...]
    follows_trajectories: bool
    tolerant: bool = True
    command_timeout: float = 0.0

    @property
    def commands(self) -> str:
        """Its interfaces in words."""
        return " and ".join(self.interfaces) or "nothing"


class ControllerQuery:
    """Asks a controller for its joints and interfaces, and goes on asking, for it may be loaded anew with others.

    Nothing waits: what asks is a timer, and `answer` gives the last answer.

    Args:
        node: asks.
        controller: name of the controller's node, such as `forward_effort_controller`.
        changed: called after an answer that differs from the one before.

    Attributes:
        controller: as given.

    """

    def __init__(self, node: Node, controller: str, changed: Callable[[ControllerAnswer], None]) -> None:
        self.controller = controller
        self._changed = changed
        self._service = f"{controller}/get_parameters"
        self._client = node.create_client(GetParameters, self._service)
        self._answer: ControllerAnswer | None = None
        self._problem = f"controller '{controller}' has not answered yet"
        self._asked = self._answered = time.monotonic()
        self._pending: dict[str, Future] = {}
        self._joints: tuple[str, ...] = ()
        # simulated time may stand still
        node.create_timer(ASK_PERIOD, self._ask, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def problem(self) -> str:
        """Why there is no answer; empty if there is."""
        return self._problem

    @property
    def latest(self) -> ControllerAnswer | None:
        """What the controller said last, though it may be gone; None: nothing yet."""
        return self._answer

    def answer(self) -> ControllerAnswer:
        """What the controller says.

        Raises:
            ControlError: it is not there, does not answer, or is a controller of another kind.

        """
        if self._answer is None or self._problem:
            raise ControlError(
                f"{self._problem}; start it (ros2 control list_controllers), then configure again, or give "
                "controller_joints and it is not asked"
            )
        return self._answer

    def _ask(self) -> None:
        now = time.monotonic()
        if self._pending and now - self._asked < ANSWER_TIMEOUT:
            return
        for future in self._pending.values():
            self._client.remove_pending_request(future)
        self._pending = {}
        if not self._client.service_is_ready():
            self._problem = f"there is no controller '{self.controller}' (no service {self._service})"
            return
        if now - self._answered > ANSWER_TIMEOUT:
            self._problem = f"controller '{self.controller}' does not answer on {self._service}"
        self._asked = now
        # One by one: rclcpp answers nothing at all where one of several names is not declared.
        names = (*ASKED, *map(_tolerance, self._joints))
        self._pending = {name: self._client.call_async(GetParameters.Request(names=[name])) for name in names}
        for future in self._pending.values():
            future.add_done_callback(self._on_answer)

    def _on_answer(self, _future: Future) -> None:
        if not self._pending or not all(future.done() for future in self._pending.values()):
            return
        values = {name: _value(future.result()) for name, future in self._pending.items()}
        self._pending = {}
        self._answered = time.monotonic()
        joints = tuple(values["joints"] or ())
        if not joints:
            self._problem = f"'{self.controller}' has no parameter joints, so it is no controller that can be used here"
            return
        if joints != self._joints:
            self._joints = joints  # whose tolerances are still to be asked for
            return
        several = tuple(values["command_interfaces"] or ())
        answer, before = (
            ControllerAnswer(
                self.controller,
                joints,
                several or tuple(filter(None, [values["interface_name"]])),
                follows_trajectories=bool(several),
                tolerant=not any(values[_tolerance(joint)] for joint in joints),
                command_timeout=values["cmd_timeout"] or 0.0,
            ),
            self._answer,
        )
        self._problem, self._answer = "", answer
        if answer != before:
            self._changed(answer)


def _tolerance(joint: str) -> str:
    return f"constraints.{joint}.trajectory"


def _value(response: GetParameters.Response | None) -> Any:
    """Of the one parameter asked for; None if it is not declared or not set."""
    return parameter_value_to_python(response.values[0]) if response is not None and response.values else None
