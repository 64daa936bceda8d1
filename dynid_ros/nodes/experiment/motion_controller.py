"""The controller that carries out the motions of `excitation`: what it does besides, which no motion shows."""

from collections.abc import Callable
from types import SimpleNamespace

from rclpy.node import Node

from dynid_ros.nodes.shared.controller_query import INTERPOLATES, ControllerAnswer, ControllerQuery
from dynid_ros.nodes.shared.controller_watch import DEACTIVATED, INACTIVE, ControllerWatch


class MotionController:
    """Asks it where it begins a trajectory, and listens whether it is active.

    A `joint_trajectory_controller` begins each trajectory where the arm is measured, unless it interpolates from the
    desired state: the command jumps by what the arm sags and lags behind (ros2_controllers 4.42.1,
    joint_trajectory_controller.cpp, `update`; trajectory.cpp, `sample`).

    Args:
        node: asks and listens.
        settings: command_topic, whose namespace is the controller's name, and accept_jerk.
        interrupt: called with the reason when it is deactivated.

    Attributes:
        name: of the controller's node; empty: there is none that can be asked.

    """

    def __init__(self, node: Node, settings: SimpleNamespace, interrupt: Callable[[str], None]) -> None:
        self.name = settings.command_topic.rpartition("/")[0].strip("~")
        self._accept_jerk, self._interrupt = settings.accept_jerk, interrupt
        self._query = ControllerQuery(node, self.name, lambda _: None) if self.name else None
        self._watch = ControllerWatch(node, self.name, self._on_event) if self.name else None

    @property
    def is_answering(self) -> bool:
        """Whether it is there, and its first answer on the way."""
        return self._query is not None and self._query.latest is None and self._query.is_served

    @property
    def jerks(self) -> bool:
        """Whether it is known to begin a trajectory at the measured pose."""
        answer = self._answer
        return answer is not None and answer.follows_trajectories and not answer.interpolates_from_desired

    @property
    def refusal(self) -> str:
        """Why it is to carry out no motion; empty: it may, or nobody knows."""
        if self._watch is not None and self._watch.state == INACTIVE:
            return f"controller '{self.name}' is inactive; activate it (ros2 control list_controllers)"
        if self.jerks and not self._accept_jerk:
            return (
                f"controller '{self.name}' begins each trajectory, so each stop, at the measured pose: its command "
                f"jumps by what the arm sags and lags behind. Set {INTERPOLATES[0]} to true in its file and load it "
                "anew, or set parameter accept_jerk of this node"
            )
        return ""

    @property
    def _answer(self) -> ControllerAnswer | None:
        return self._query.latest if self._query is not None else None

    def _on_event(self, event: str) -> None:
        if event == DEACTIVATED:
            self._interrupt(f"controller '{self.name}' {event}")
