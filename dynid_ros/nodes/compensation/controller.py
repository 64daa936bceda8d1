"""The controller that takes the torque of `gravity_compensation`: what it is, and what it does at the moment."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace

from rclpy.node import Node

from dynid_ros.control import JointSettings, MeasuredEffort
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.output_watch import ControllerOutput
from dynid_ros.nodes.compensation.ros2_control import ROUTES, ActingTorque, ForwardedEffort
from dynid_ros.nodes.shared.controllers import (
    ACTIVATED,
    ACTIVE,
    DEACTIVATED,
    GOAL,
    INACTIVE,
    NOTHING,
    RESTORES,
    ControllerAnswer,
    ControllerQuery,
    ControllerWatch,
)
from dynid_ros.nodes.shared.topics import require_topic

MOVED = 0.1
"""rad (m) from the pose that was desired last, beyond which somebody has moved the arm."""


class CompensationController:
    """Asks the controller, listens to it, and refuses or interrupts where its answers are not those that are needed.

    `changed` is called when the controller answers something else, `interrupt` with the reason when an enabled
    compensation must end because its commands no longer act, `activated` when the controller begins to act on them.

    Attributes:
        name: of the controller's node; empty: there is none that can be asked.
        watch: of its lifecycle; None without a name.
        position: watch of the position controller beside it; None: there is none.
        output: what it puts out, where a loop is configured and the controller reports it.
    """

    def __init__(
        self,
        node: Node,
        settings: SimpleNamespace,
        changed: Callable[[], None],
        interrupt: Callable[[str], None],
        activated: Callable[[], None],
    ) -> None:
        self._node, self._settings = node, settings
        self._changed = changed
        self._interrupt = interrupt
        self._activated = activated
        self._route = ROUTES.get(settings.output, ForwardedEffort)
        self._used: ControllerAnswer | None = None
        self._order: tuple[str, ...] = ()
        self._left: list[float] | None = None  # desired pose of the last command, while nobody else may have commanded
        self.output: ControllerOutput | None = None
        self.acting: ActingTorque | None = None
        self.name = settings.controller or settings.command_topic.rpartition("/")[0].strip("~")
        if not (self.name or settings.command_topic):
            self.name = self._route.CONTROLLER
        other = settings.position_controller if self._route is ForwardedEffort else ""
        for parameter, name in (("controller", self.name), ("position_controller", other)):
            if name:
                require_topic(node, f"{name}/transition_event", f"Parameter '{parameter}' of node '{node.get_name()}'")
        self._query = ControllerQuery(node, self.name, lambda _: changed()) if self.name else None
        self.watch = ControllerWatch(node, self.name, self._on_event) if self.name else None
        self._position_query = ControllerQuery(node, other, self._warn_of_position) if other else None
        self.position = ControllerWatch(node, other, lambda _: None) if other else None

    @property
    def follows_trajectories(self) -> bool:
        """Whether the torque goes in trajectories."""
        return self._route is not ForwardedEffort

    @property
    def missing(self) -> str:
        """Why it cannot be configured for yet; empty: it can."""
        return "" if self._settings.unchecked_controller else self._problem

    @property
    def described(self) -> str:
        """Its name, or why it is not known."""
        return self._problem or self.name

    @property
    def inactive(self) -> str:
        """That it is inactive, in words; empty: it is active, or nobody knows."""
        inactive = self.watch is not None and self.watch.state == INACTIVE
        return f"controller '{self.name}' is inactive: the torque goes nowhere" * inactive

    @property
    def other_controller(self) -> str:
        """Whether it is no longer the one that was configured for; empty: it is."""
        latest = self._query.latest if self._query else None
        if latest is None or not self._order:
            return ""
        if self._used is None and latest.joints == self._order and not self._route.refusal(latest):
            self._used = latest  # answers at last, and is what it was taken for
        if self._used is not None and latest.claims == self._used.claims:
            return ""
        return f"controller '{self.name}' has other joints or interfaces now; configure anew"

    @property
    def commanded_joints(self) -> tuple[str, ...]:
        """Joints in the order of its last answer, where it takes the torque; else none."""
        latest = self._query.latest if self._query else None
        return () if latest is None or self._route.refusal(latest) else latest.joints

    @property
    def warning(self) -> str:
        """What is to be mended before it does harm; empty: nothing."""
        answer = self._position_query.latest if self._position_query else None
        return self._restores(answer) if answer and answer.restores_last_command else ""

    def answer(self) -> ControllerAnswer | None:
        """What it is; None: it could not be asked, and need not.

        Raises:
            ControlError: it did not answer.
        """
        if self._settings.unchecked_controller and self._problem:
            return None
        if self._query is None:
            raise ControlError(self._problem)
        try:
            return self._query.answer()
        except ControlError as error:
            raise ControlError(
                f"{error}; or, where it is none that answers, set unchecked_controller to true and controller_joints "
                "to its joints: a command of another size would deactivate it, and the arm falls"
            ) from error

    def use(self, answer: ControllerAnswer | None, order: Sequence[str], joints: JointSettings) -> None:
        """Be configured for this answer, and for the order of its joints."""
        self.release()
        self._used, self._order = answer, tuple(order)
        claimed = answer is not None and set(answer.interfaces) == {"position", "effort"}
        if self.follows_trajectories and claimed:
            self.output = ControllerOutput(self._node, self.name, joints, order)
        self.acting = ActingTorque(self._settings, self.watch, self.position, self.output, joints.names)

    def release(self) -> None:
        """Be configured for none."""
        if self.output is not None:
            self.output.destroy()
        self.output = self.acting = self._used = self._left = None
        self._order = ()

    def check(self) -> None:
        """Before it is commanded.

        Raises:
            ControlError: it is another than before, or what it keeps of others' commands would spoil these.
        """
        if other_controller := self.other_controller:
            raise ControlError(f"cannot enable: {other_controller}")
        latest = self._query.latest if self._query else None
        if self._used is not None and latest is not None and (refusal := self._route.refusal(latest)):
            raise ControlError(f"cannot enable: controller '{self.name}' {refusal}")
        if self.follows_trajectories and self.watch is not None and self.watch.busy:
            raise ControlError(f"cannot enable: controller '{self.name}' carries out an action goal; wait for its end")
        if self.follows_trajectories and self.watch is not None and self.watch.had_goal:
            raise ControlError(
                f"cannot enable: controller '{self.name}' has accepted an action goal, whose tolerances, and effort at "
                "its end, stay in force for these commands; configure it anew: ros2 control switch_controllers "
                f"--deactivate {self.name}, ros2 control unload_controller {self.name}, then its spawner again"
            )

    @property
    def unheeded(self) -> str:
        """How what it puts out differs from what it was sent; empty: it does not, or nobody knows."""
        problem = self.output.problem if self.output else ""
        return problem and f"controller '{self.name}' does not put out what it is sent, as after an abort: {problem}"

    def start(
        self, now: float, gravity: Sequence[float], measured: Callable[[], MeasuredEffort]
    ) -> tuple[list[float] | None, str]:
        """Find the torque at which a ramp begins, and say where that is; see `ActingTorque.start`."""
        assert self.acting is not None
        return self.acting.start(now, gravity, measured)

    def acts(self, now: float, measured: Callable[[], Sequence[float]]) -> Sequence[float]:
        """Torques (n,) that it puts out, N m (N), as far as it is active and that is known; else none."""
        if self.output is not None and (effort := self.output.effort(now)) is not None:
            return effort
        known = self.acting is not None and self.acting.is_measured and self.watch is not None
        if known and self.watch is not None and self.watch.state == ACTIVE:
            with suppress(DynidError):
                return measured()
        return ()

    def pose(self, now: float, position: Sequence[float]) -> tuple[list[float] | None, list[float] | None]:
        """Pose (n,) to begin at, and the one to go to slowly from there, rad (m); None: the measured one, and nowhere.

        On route trajectory the controller holds its reference, and the arm sags below it: to begin at the measured pose
        would sink by that at each time.
        """
        if not self.follows_trajectories:
            return None, None
        if self._left and any(abs(q - left) > MOVED for q, left in zip(position, self._left, strict=True)):
            self._left = None
        reference = self.output.positions(now) if self.output else None
        return (reference, self._left) if reference else (self._left, None)

    def sent(self, now: float, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Take note of a command."""
        self._left = list(desired)
        if self.acting is not None:
            self.acting.sent(now, torque)
        if self.output is not None:
            self.output.sent(now, torque)

    def look(self, *, commands: bool, others: bool) -> None:
        """Look from time to time who has a publisher: this node, or others while it has none."""
        if others and not commands:
            self._left = None
        if not commands and self.output is not None:
            self.output.rest()

    @property
    def _problem(self) -> str:
        if self._query:
            return self._query.problem
        return "no controller can be asked: set controller to its name, or unchecked_controller to true"

    def _on_event(self, event: str) -> None:
        if event != NOTHING:
            self._left = None
        if event == ACTIVATED:
            self._activated()
        if event == DEACTIVATED or (event == GOAL and self.follows_trajectories):
            self._interrupt(f"controller '{self.name}' {event}; see to it, then enable again")
        self._changed()

    @property
    def effort_is_torque(self) -> bool:
        """Whether effort in the joint states is the torque of drives that hold the arm by position."""
        return self._settings.effort_convention == "torque" and self.holds_by_position is not False

    @property
    def holds_by_position(self) -> bool | None:
        """Whether a position controller holds the arm; None: unknown."""
        if self.follows_trajectories:
            return True
        if self.position is None or self.position.state not in {ACTIVE, INACTIVE}:
            return None
        return self.position.state == ACTIVE

    def _warn_of_position(self, answer: ControllerAnswer) -> None:
        if answer.restores_last_command:
            self._node.get_logger().warning(self._restores(answer))

    def _restores(self, answer: ControllerAnswer) -> str:
        return (
            f"controller '{answer.name}' snaps back to the position that was commanded last when it is activated; "
            f"before that: ros2 param set {self._node.resolve_topic_name(answer.name)} {RESTORES} false"
        )
