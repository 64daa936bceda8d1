"""Which torque acts before the first command, so that the first command is no step."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.controller_output import ControllerOutput
from dynid_ros.nodes.shared.controller_watch import ACTIVE, INACTIVE, ControllerWatch

CONVENTIONS = ("", "torque")


class ActingTorque:
    """Knows what a controller holds from commands of others, or of a process that was killed.

    `forward_command_controller` writes nothing when it is activated or deactivated: its effort interface keeps the last
    torque. `joint_trajectory_controller` writes zero when it is deactivated, and begins with the effort of its hold
    message, which is zero but after action goals (ros2_controllers 4.42.1, forward_controllers_base.cpp and
    joint_trajectory_controller.cpp, `on_activate`, `on_deactivate`).

    Args:
        settings: `output`, `controller`, `effort_convention` and `assume_no_effort`.
        watch: of the controller; None: nobody knows its state.
        position: of the position controller that may hold the arm beside it; None: there is none.
        output: what the controller puts out; None: it does not tell.

    Raises:
        ControlError: an effort convention that is none of `CONVENTIONS`.

    """

    def __init__(
        self,
        settings: SimpleNamespace,
        watch: ControllerWatch | None,
        position: ControllerWatch | None,
        output: ControllerOutput | None,
    ) -> None:
        if settings.effort_convention not in CONVENTIONS:
            raise ControlError(
                f"parameter effort_convention is '{settings.effort_convention}'; expected torque, or nothing where "
                "effort in joint_states is not the torque that the controller puts out"
            )
        self._settings = settings
        self._watch, self._position, self._output = watch, position, output
        self._sent: tuple[float, bool] | None = None  # when the last command went out, and whether it was zero
        self.remark = ""

    def sent(self, now: float, torque: Sequence[float]) -> None:
        """Take note of a command."""
        self._sent = now, not any(torque)

    def start(self, now: float, measured: Callable[[], Sequence[float]]) -> list[float] | None:
        """Torque (n,) to begin at, N m (N); None: zero.

        `remark` then says whether that is not certain.

        Args:
            now: s of the monotonic clock.
            measured: efforts (n,) of the newest joint state; may raise.

        Raises:
            ControlError: the controller is active, and nobody knows what it holds.

        """
        self.remark = ""
        if self._output is not None and (effort := self._output.effort(now)) is not None:
            return effort
        if self._is_zero() or self._settings.assume_no_effort:
            return None
        if self.is_measured:
            return self._checked(measured)
        if self._watch is not None and self._watch.state == ACTIVE:
            raise ControlError(self._refusal())
        self.remark = "it is not known whether the controller is active, nor what it holds; the ramp begins at zero"
        return None

    @property
    def is_measured(self) -> bool:
        """Whether effort in joint_states is the torque that this controller puts out, and no other beside it."""
        beside = self._position is not None and self._position.state == ACTIVE
        return self._settings.effort_convention == "torque" and self._settings.output == "effort" and not beside

    def _is_zero(self) -> bool:
        """Whether it is known to hold no torque, or to let none out."""
        if self._watch is not None and self._watch.state == INACTIVE:
            return True
        since = self._watch.transitioned if self._watch is not None else None
        if self._sent is not None and self._sent[1] and (since is None or since < self._sent[0]):
            return True  # zero was the last command, and it was active then
        activated = self._watch.activated if self._watch is not None else None
        return (
            self._settings.output == "trajectory"
            and activated is not None
            and (self._sent is None or self._sent[0] < activated)
        )

    def _checked(self, measured: Callable[[], Sequence[float]]) -> list[float]:
        try:
            return list(measured())
        except DynidError as error:
            raise ControlError(
                f"cannot enable: {error}. It would say which torque acts now; without it set assume_no_effort to true, "
                "where that is sure to be none"
            ) from error

    def _refusal(self) -> str:
        name = self._watch.controller if self._watch else ""
        known = (
            f"cannot enable: controller '{name}' is active, and it is not known which torque it holds, as of a process "
            "that was killed; "
        )
        other = self._settings.position_controller or "<position controller>"
        if self._settings.output == "trajectory":
            return (
                f"{known}deactivate and activate it (ros2 control switch_controllers --deactivate {name}, then "
                f"--activate {name}), after which it holds none, or install control_msgs, by which it tells"
            )
        return (
            f"{known}let the position controller hold the arm and enable while this one is inactive (ros2 control "
            f"switch_controllers --deactivate {name} --activate {other}), or set effort_convention to torque, where "
            "joint_states tell it, or assume_no_effort to true, where it has held none since the hardware was started"
        )
