"""Step 6: the torque of gravity is compensated, with a low scale first; drift and torque are plotted."""

from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action, call, run, set_parameters
from dynid_ros.guide.answers import ROUTE_PARAMETERS
from dynid_ros.guide.context import Context, TimePlot
from dynid_ros.guide.panel import plain_markdown

FIRST_SCALE = 0.2
COMPENSATION_NODE = "gravity_compensation"
FORWARD_CONTROLLER = "forward_effort_controller"
POSITION_CONTROLLER = "joint_trajectory_controller"
NO_MEMORY = "set_last_command_interface_value_as_state_on_activation"
SIMULATED_SWITCH = "simulator/activate_effort_controller"


class CompensateStep:
    """Widgets of the step.

    Args:
        context: what the steps share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._scale = FIRST_SCALE
        self._origin: np.ndarray | None = None
        panel = context.panel
        gui = panel.server.gui
        panel.said(
            "Route `effort`: the compensation alone holds the arm. Let it hang, or tie it, before the first time. "
            "Then raise the scale in steps, and lift the arm by hand after each."
        )
        hint = "How torque comes to the arm, see docs/controllers.md"
        panel.bind(gui.add_dropdown, "Route", context.answers, "route", tuple(ROUTE_PARAMETERS), hint=hint)
        self._state = panel.said()
        said = panel.said()
        panel.button(
            "Prepare",
            self._prepare,
            said,
            hint="Start gravity_compensation with the identified model; it sends nothing yet",
            then=lambda _: said.show("The node runs. The line above names its controller, or what is missing."),
        )
        hint = "Factor on the gravity torque"
        panel.bind(gui.add_slider, "Scale", self, "_scale", 0.0, 1.0, 0.05, self._scale, hint=hint)
        panel.button(
            "Set the scale",
            lambda: [set_parameters(COMPENSATION_NODE, {"scale": [round(self._scale, 3)]})],
            said,
            hint="ros2 param set /gravity_compensation scale",
            then=lambda _: said.show(f"The scale is {self._scale:g}."),
        )
        panel.button(
            "Enable",
            lambda: [call(f"{COMPENSATION_NODE}/enable", True)],
            said,
            hint="The torque ramps in",
            color="green",
        )
        panel.button(
            "Let go",
            lambda: self._switch(True),
            said,
            hint="Switch from the position controller to the torque",
            color="orange",
            then=self._on_let_go,
        )
        panel.button(
            "Hold again",
            lambda: self._switch(False),
            said,
            hint="Switch back to the position controller, which holds the present pose",
            then=lambda _: said.show("The position controller holds the arm."),
        )
        panel.button("Disable", lambda: [call(f"{COMPENSATION_NODE}/enable", False)], said, hint="The torque ramps out")
        self._said = said
        self._drift = panel.said()
        names = context.robot.joint_names
        self._drifts = TimePlot(panel.server, names, "drift since the arm was let go, degrees (mm)")
        self._torques = TimePlot(panel.server, names, "effort, as the driver has it")

    def refresh(self) -> None:
        """Show state and controller, and plot once the node runs."""
        bench = self._context.bench
        state = bench.texts[f"{COMPENSATION_NODE}/state"]
        if not state:
            return
        status = self._status()
        lines = [f"State: **{plain_markdown(state)}**"]
        if status is not None:
            values = {pair.key: pair.value for pair in status.values}
            lines.append(f"Controller: {plain_markdown(values.get('controller', ''))}")
            if status.level != DiagnosticStatus.OK and status.message != state:
                lines.append(plain_markdown(status.message))
        self._state.show("\n\n".join(lines))
        if bench.state is None or state in ("unconfigured", "inactive", "disabled"):
            return
        stamp, values = bench.state
        if "effort" in values:
            self._torques.add(stamp, np.array(values["effort"]))
        if self._origin is not None:
            drift = np.array(values["position"]) - self._origin
            scale = np.where(np.array(self._context.robot.joint_types) == "prismatic", 1e3, 180.0 / np.pi)
            self._drifts.add(stamp, drift * scale)
            self._drift.show(
                f"Largest drift since the arm was let go: **{np.abs(drift * scale).max():.2f}** degrees (mm)"
            )

    def _status(self) -> DiagnosticStatus | None:
        name = f"{self._context.answers.namespace}/{COMPENSATION_NODE}".lstrip("/")
        statuses = self._context.bench.diagnostics
        return next((status for key, status in statuses.items() if name in key), None)

    def _prepare(self) -> list[Action]:
        self._context.bench.require_driver()
        return [self._context.start(COMPENSATION_NODE)]

    def _on_let_go(self, _text: str) -> None:
        state = self._context.bench.state
        self._origin = None if state is None else np.array(state[1]["position"])
        self._drifts.clear()
        self._said.show("The torque acts alone. Lift the arm by hand, joint by joint.")

    def _switch(self, torque: bool) -> Sequence[Action]:
        """Return the switch of controllers, first the one that begins."""
        context = self._context
        if torque and not context.bench.texts[f"{COMPENSATION_NODE}/state"].startswith(("active", "ramping in")):
            raise DynidError("the compensation is not active, and the arm would fall; enable it first")
        if context.bench.has(SIMULATED_SWITCH):
            forward = call(SIMULATED_SWITCH, torque)
            position = call("simulator/activate_trajectory_controller", not torque)
            return (forward, position) if torque else (position, forward)
        if context.answers.route == "trajectory":
            raise DynidError("on route trajectory the position controller passes the torque on; there is no switch")
        manager = ("-c", f"{context.answers.namespace}/controller_manager")
        switch = ("ros2", "control", "switch_controllers", *manager)
        both = context.answers.route == "effort"
        if torque:
            return [
                run(*switch, "--activate", FORWARD_CONTROLLER, *(("--deactivate", POSITION_CONTROLLER) if both else ()))
            ]
        if not both:
            return [run(*switch, "--deactivate", FORWARD_CONTROLLER)]
        # otherwise the position controller would jump to its last commanded pose
        return [
            set_parameters(POSITION_CONTROLLER, {NO_MEMORY: False}),
            run(*switch, "--activate", POSITION_CONTROLLER, "--deactivate", FORWARD_CONTROLLER),
        ]
