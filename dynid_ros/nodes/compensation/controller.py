"""Controller that receives the torque of `gravity_compensation`: its interfaces, its state and its output."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace

from rclpy.node import Node

from dynid_ros.control import JointSettings, MeasuredEffort
from dynid_ros.control.model_change import acting_scale
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.controller_state import ROUTES, ControllerOutput, ForwardedEffort, TrajectoryEffort
from dynid_ros.nodes.shared.controllers import (
    ACCEPTED_GOAL,
    ACTIVATED,
    DEACTIVATED,
    RESTORES,
    STATE_LEARNT,
    UNKNOWN,
    ControllerAnswer,
    ControllerView,
)
from dynid_ros.nodes.shared.topics import require_topic

FULL_GRAVITY_SCALE = 0.98
"""Fraction of the gravity torque that is reported as the whole gravity torque."""
MAX_POSE_CHANGE = 0.1
"""Largest distance from the last desired pose at which the arm counts as unmoved, rad (m)."""


class CompensationController:
    """Client of the controller, which refuses or interrupts the compensation if the controller cannot take the torque.

    A controller may still apply the last torque of an earlier process that was killed. `forward_command_controller`
    writes nothing when it is activated or deactivated: its effort interface keeps the last torque.
    `joint_trajectory_controller` writes zero when it is deactivated, and begins with the effort of its hold message,
    which is zero except after action goals (ros2_controllers 4.42.1, forward_controllers_base.cpp and
    joint_trajectory_controller.cpp, `on_activate`, `on_deactivate`).

    Args:
        settings: parameters of `gravity_compensation`.
        changed: called when the answer of the controller changes.
        interrupt: called with the reason when an enabled compensation must end, because its commands have no effect.
        activated: called when the controller becomes active.

    Attributes:
        name: name of the controller's node; empty without a controller that can be queried.
        follows_trajectories: whether the torque is sent in trajectories.
        holds_pose: whether the commands contain a desired pose, which the controller holds.
        view: view of the controller; without a name if it cannot be queried.
        position: view of a parallel position controller; without a name if there is none.
        output: watch of the output that the controller reports; None if it does not report it, or before `use`.
    """

    def __init__(
        self,
        node: Node,
        settings: SimpleNamespace,
        changed: Callable[[], None],
        interrupt: Callable[[str], None],
        activated: Callable[[], None],
    ) -> None:
        self._node = node
        self._settings = settings
        self._changed = changed
        self._interrupt = interrupt
        self._activated = activated
        self._route = ROUTES[settings.output]
        self.follows_trajectories = self._route is TrajectoryEffort
        self.holds_pose = self._route is not ForwardedEffort
        self._configured_answer: ControllerAnswer | None = None
        self._controller_joints: tuple[str, ...] = ()
        self._last_desired: list[float] | None = None  # pose of the last command, if no other command can have followed
        self.output: ControllerOutput | None = None
        self._joints: tuple[str, ...] = ()
        self._last_command: tuple[float, bool] | None = None  # time of the last command, and whether it was zero
        controller = settings.controller or settings.command_topic.rpartition("/")[0].strip("~")
        if not (controller or settings.command_topic):
            controller = self._route.CONTROLLER
        other = settings.position_controller if self._route is ForwardedEffort else ""
        for parameter, name in (("controller", controller), ("position_controller", other)):
            if name:
                require_topic(node, f"{name}/transition_event", f"Parameter '{parameter}' of node '{node.get_name()}'")
        self.name = controller
        self.view = ControllerView(node, controller, on_event=self._on_event, on_answer=lambda _: changed())
        self.position = ControllerView(node, other, on_answer=self._warn_of_position)

    @property
    def missing(self) -> str:
        """Reason why a loop cannot be configured yet; empty if it can."""
        return "" if self._settings.unchecked_controller else self._problem

    @property
    def described(self) -> str:
        """Name of the controller, or why it is unknown."""
        return self._problem or self.name

    @property
    def inactive(self) -> str:
        """Message that the controller is inactive; empty if it is active or its state is unknown."""
        return f"controller '{self.name}' is inactive: the torque goes nowhere" if self.view.is_inactive else ""

    @property
    def other_controller(self) -> str:
        """Message that the controller differs from the configured one; empty if it does not."""
        latest = self.view.answer
        if latest is None or not self._controller_joints:
            return ""
        if (
            self._configured_answer is None
            and latest.joints == self._controller_joints
            and not self._route.refusal(latest)
        ):
            self._configured_answer = latest  # the first answer confirms the configuration
        if self._configured_answer is not None and latest.claims == self._configured_answer.claims:
            return ""
        return f"controller '{self.name}' has other joints or interfaces now; configure anew"

    @property
    def commanded_joints(self) -> tuple[str, ...]:
        """Joints in the order of the controller's last answer; empty if it does not take the torque."""
        latest = self.view.answer
        return () if latest is None or self._route.refusal(latest) else latest.joints

    @property
    def warning(self) -> str:
        """Warning about the position controller; empty without one."""
        answer = self.position.answer
        return self._restores(answer) if answer and answer.restores_last_command else ""

    def answer(self) -> ControllerAnswer | None:
        """Return the answer of the controller; None if it cannot be queried and `unchecked_controller` allows that."""
        if self._settings.unchecked_controller and self._problem:
            return None
        if not self.name:
            raise ControlError(self._problem)
        try:
            return self.view.require_answer()
        except ControlError as error:
            raise ControlError(
                f"{error}; or, where it is none that answers, set unchecked_controller to true and controller_joints "
                "to its joints: a command of another size would deactivate it, and the arm would fall"
            ) from error

    def use(self, answer: ControllerAnswer | None, order: Sequence[str], joints: JointSettings) -> None:
        """Prepare for a loop with this controller.

        Args:
            answer: answer of the controller; None if it could not be queried.
            order: names of its joints.
            joints: limits and gains of the model's joints.
        """
        self.release()
        self._configured_answer = answer
        self._controller_joints = tuple(order)
        # With effort alone the controller adds its PID, so that its output differs from the commands.
        forwards_effort = answer is not None and set(answer.interfaces) == {"position", "effort"}
        if self.follows_trajectories and forwards_effort:
            self.output = ControllerOutput(self._node, self.name, joints, order)
        self._joints = joints.names

    def release(self) -> None:
        """Forget the controller of the last loop."""
        if self.output is not None:
            self.output.destroy()
        self.output = None
        self._last_command = None
        self._configured_answer = None
        self._last_desired = None
        self._controller_joints = ()

    def check(self) -> None:
        """Check the controller before commands are sent."""
        if other_controller := self.other_controller:
            raise ControlError(f"cannot enable: {other_controller}")
        latest = self.view.answer
        if self._configured_answer is not None and latest is not None and (refusal := self._route.refusal(latest)):
            raise ControlError(f"cannot enable: controller '{self.name}' {refusal}")
        if self.follows_trajectories and self.view.busy:
            raise ControlError(f"cannot enable: controller '{self.name}' carries out an action goal; wait for its end")
        if self.follows_trajectories and self.view.had_goal:
            raise ControlError(
                f"cannot enable: controller '{self.name}' has accepted an action goal, whose tolerances, and effort at "
                "its end, stay in force for these commands; configure it anew: ros2 control switch_controllers "
                f"--deactivate {self.name}, ros2 control unload_controller {self.name}, then its spawner again"
            )

    @property
    def unheeded(self) -> str:
        """Message that the controller's output differs from the commands; empty if it agrees or is unknown."""
        problem = self.output.problem if self.output else ""
        return problem and f"controller '{self.name}' does not put out what it is sent, as after an abort: {problem}"

    def start(
        self, now: float, gravity: Sequence[float], measured: Callable[[], MeasuredEffort]
    ) -> tuple[list[float] | None, str]:
        """Determine the torque at which a ramp begins.

        Args:
            now: s of the monotonic clock.
            gravity: (n,) gravity torque of the model in this pose, N m (N).
            measured: returns the efforts of the newest joint state, and may raise `DynidError`.

        Returns:
            Torque (n,), N m (N), None for zero; and a description of that torque.
        """
        if self.output is not None and (effort := self.output.effort(now)) is not None:
            return effort, "from the torque that the controller reports"
        if self._is_zero():
            return None, "from zero, as the controller holds no torque"
        if self._settings.assume_no_effort:
            return None, "from zero, as assume_no_effort says that nothing acts"
        if not self._is_measured:
            if self.follows_trajectories and not self.view.is_active:
                return None, "from zero, although the torque of the controller is unknown"
            raise ControlError(self._unknown_torque())
        try:
            held = measured()
        except DynidError as error:
            raise ControlError(
                f"cannot enable: {error}. Measured effort would show which torque acts now; without it set "
                "assume_no_effort to true, if certainly no torque acts"
            ) from error
        scale = acting_scale(self._joints, gravity, held.effort, held.error)
        if scale == 0.0:
            return None, "from zero, as no torque is measured"
        part = "the gravity torque" if scale > FULL_GRAVITY_SCALE else f"{scale:.0%} of the gravity torque"
        return [scale * value for value in gravity], f"from {part}, with which measured effort agrees"

    def acts(self, now: float, measured: Callable[[], Sequence[float]]) -> Sequence[float]:
        """Return the torques (n,) that an active controller applies, N m (N); empty if unknown.

        Args:
            now: s of the monotonic clock.
            measured: returns the measured efforts (n,), and may raise `DynidError`.
        """
        if self.output is not None and (effort := self.output.effort(now)) is not None:
            return effort
        if self._is_measured and self.view.is_active:
            with suppress(DynidError):
                return measured()
        return ()

    def pose(self, now: float, position: Sequence[float]) -> tuple[list[float] | None, list[float] | None]:
        """Return the first desired pose (n,) and the pose (n,) to approach afterwards, rad (m).

        With output trajectory, the controller holds a reference, below which the arm sags. If the first desired pose
        were the measured one, the arm would sink by its sag at each enable.

        Returns:
            First pose, None for the measured one; and the pose to approach, None to stay.
        """
        if not self.holds_pose:
            return None, None
        if self._last_desired and any(
            abs(q - desired) > MAX_POSE_CHANGE for q, desired in zip(position, self._last_desired, strict=True)
        ):
            self._last_desired = None
        reference = self.output.positions(now) if self.output else None
        return (reference, self._last_desired) if reference else (self._last_desired, None)

    def sent(self, now: float, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Record a command."""
        self._last_desired = list(desired)
        self._last_command = (now, not any(torque))
        if self.output is not None:
            self.output.sent(now, torque)

    def look(self, *, commands: bool, others: bool) -> None:
        """Forget commands that no longer act; called periodically.

        Args:
            commands: whether this node has a publisher of commands.
            others: whether another node may have sent commands.
        """
        if others and not commands:
            self._last_desired = None
        if not commands and self.output is not None:
            self.output.rest()

    @property
    def _is_measured(self) -> bool:
        """Whether joint_states report torque, and no other controller of the arm adds to it."""
        is_alone = self._route is ForwardedEffort and not self.position.is_active
        return bool(self._controller_joints) and self._settings.effort_convention == "torque" and is_alone

    def _is_zero(self) -> bool:
        """Return whether the controller certainly applies no torque."""
        if self.view.is_inactive:
            return True
        since = self.view.transitioned
        if (
            self._last_command is not None
            and self._last_command[1]
            and (since is None or since < self._last_command[0])
        ):
            return True  # the last command was zero, and the controller was active then
        activated = self.view.activated
        return (
            self.follows_trajectories
            and activated is not None
            and (self._last_command is None or self._last_command[0] < activated)
        )

    def _unknown_torque(self) -> str:
        """Return the error that the torque of the controller is unknown, and what to do."""
        state = "is active" if self.view.is_active else "may be active"
        unknown = (
            f"cannot enable: controller '{self.name}' {state}, and it is not known which torque it holds, as of a "
            "process that was killed; "
        )
        if self.follows_trajectories:
            return (
                f"{unknown}deactivate and activate it (ros2 control switch_controllers --deactivate {self.name}, then "
                f"--activate {self.name}), after which it holds no torque, or install control_msgs, with which it "
                "reports its torque"
            )
        return (
            f"{unknown}set effort_convention to torque if joint_states report torque, or assume_no_effort to true if "
            f"{self.name or 'the controller'} has held no torque since the hardware was started"
        )

    @property
    def _problem(self) -> str:
        """Reason why the controller cannot be queried; empty if it answers."""
        if self.name:
            return self.view.problem
        return "there is no controller to query: set controller to its name, or unchecked_controller to true"

    def _on_event(self, event: str) -> None:
        if event != STATE_LEARNT:
            self._last_desired = None
        if event == ACTIVATED:
            self._activated()
        if event == DEACTIVATED or (event == ACCEPTED_GOAL and self.follows_trajectories):
            self._interrupt(f"controller '{self.name}' {event}; resolve that, then enable again")
        self._changed()

    @property
    def effort_is_torque(self) -> bool:
        """Whether the effort in joint states is the torque of drives that may hold the arm by position."""
        return self._settings.effort_convention == "torque" and self.holds_by_position is not False

    @property
    def holds_by_position(self) -> bool | None:
        """Whether a position controller holds the arm; None: unknown."""
        if self.holds_pose:
            return True
        return None if self.position.state == UNKNOWN else self.position.is_active

    def _warn_of_position(self, answer: ControllerAnswer) -> None:
        if answer.restores_last_command:
            self._node.get_logger().warning(self._restores(answer))

    def _restores(self, answer: ControllerAnswer) -> str:
        return (
            f"controller '{answer.name}' snaps back to the position that was commanded last when it is activated; "
            f"before that: ros2 param set {self._node.resolve_topic_name(answer.name)} {RESTORES} false"
        )
