"""Steps 5 and 6: identification and compensation; further identifications; the page without ROS."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action, call, run, set_parameters
from dynid_ros.guide.answers import COMPENSATION_NODE, EXPERIMENTS, OFFERED_ROUTES
from dynid_ros.guide.context import Context, Step
from dynid_ros.guide.panel import Card, Text, TimePlot, plain_markdown

VALIDATION_BAG = "validation"
CARD_PURPOSES = {
    "links": "Masses, inertias and friction of all links, from a motion of all joints at once.",
    "load": "Mass and centre of the load that the arm carries. Identify gravity or links without the load first.",
    "flexible_joints": "Springs and motors of flexible joints; the bag needs positions of the links, too.",
    "torque_sensors": "Gains and offsets of joint torque sensors, from gravity.",
}
RECORDED_EXPERIMENTS = ("gravity", "links")
EXPORT_TARGETS = ("urdf", "mjcf", "c", "sdf", "isaac")
FIRST_SCALE = 0.2
FORWARD_CONTROLLER = "forward_effort_controller"
POSITION_CONTROLLER = "joint_trajectory_controller"
NO_MEMORY = "set_last_command_interface_value_as_state_on_activation"
SIMULATED_SWITCH = "simulator/activate_effort_controller"


class _IdentificationStep(Step):
    """Step with the tables of identification nodes."""

    def __init__(self, context: Context, text: str) -> None:
        super().__init__(context, text)
        self._tables: dict[str, Text] = {}

    def refresh(self) -> None:
        """Show the tables of the nodes."""
        for experiment, table in self._tables.items():
            table.show_lines(self._bench.texts[f"{EXPERIMENTS[experiment].node}/state"])

    def _add_identification(self, card: Card, experiment: str, label: str) -> None:
        """Add buttons for identification and report, and the table of the node."""

        def on_verdict(text: str) -> None:
            verdict, *warnings = text.split(" Warning: ")
            card.answer.show_list(f"**{plain_markdown(verdict)}**", warnings)

        hint = f"ros2 service call /{EXPERIMENTS[experiment].node}/identify"
        card.button(label, hint, lambda: self._context.identify(experiment), on_verdict, color="green")
        self._tables[experiment] = Text(card.gui)
        self._context.add_report_button(card, lambda: experiment)


class IdentifyStep(_IdentificationStep):
    """Step 5: gravity is identified from the recording, and validated on other poses."""

    def __init__(self, context: Context) -> None:
        super().__init__(
            context,
            "The identification reads the last recording. It says in one sentence whether the result is good enough.",
        )
        self._add_identification(self._card, "gravity", "Identify")
        text = "Does the model hold elsewhere? Record other poses, and validate the model on them."
        validation = Card(context.panel, text)

        def record() -> list[Action]:
            return [*context.design("gravity", "poses"), *context.record(VALIDATION_BAG)]

        def validate() -> list[Action]:
            bags = [context.bags.get(experiment, "") for experiment in ("gravity", VALIDATION_BAG)]
            return context.identify_files("gravity", bags)

        hint = "Design motion poses, move and record"
        validation.button("Record other poses", hint, record, "The poses are recorded. Now validate.", color="orange")
        validation.button("Validate", "dynid identify gravity --validate", validate)


class MoreCards(_IdentificationStep):
    """One card for each further experiment."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, "Each card designs a motion, records it and identifies.")
        for experiment, purpose in CARD_PURPOSES.items():
            with self._card.gui.add_folder(experiment.replace("_", " ").capitalize(), expand_by_default=False):
                self._add_card(experiment, purpose)

    def _add_card(self, experiment: str, purpose: str) -> None:
        context = self._context
        name = experiment.replace("_", " ")
        card = Card(context.panel, purpose)
        card.button(f"Design for {name}", "Nothing moves", lambda: context.design(experiment))
        hint = "Move and record; the last design is carried out"
        recorded = "The motion is recorded. Now identify."
        card.button(f"Record {name}", hint, lambda: context.record(experiment), recorded, color="orange")
        self._add_identification(card, experiment, f"Identify {name}")


class CompensateStep(Step):
    """Step 6: the torque of gravity is compensated, with a low scale first; drift and effort are plotted."""

    def __init__(self, context: Context) -> None:
        self._scale = FIRST_SCALE
        self._origin: np.ndarray | None = None
        # degrees for revolute joints, mm for prismatic ones
        self._unit = np.where(np.array(context.robot.joint_types) == "prismatic", 1e3, 180.0 / np.pi)
        super().__init__(
            context,
            "Route `effort`: the compensation alone holds the arm. Let it hang, or tie it, before the first time. "
            "Then raise the scale in steps, and lift the arm by hand after each.",
        )
        gui = self._card.gui
        hint = "How torque comes to the arm, see docs/controllers.md"
        self._card.bind(gui.add_dropdown, "Route", context.answers, "route", OFFERED_ROUTES, hint=hint)
        self._state = Text(self._card.gui)
        self._card.button(
            "Prepare",
            "Start gravity_compensation with the identified model; it sends nothing yet",
            self._prepare,
            "The node runs. The line above names its controller, or what is missing.",
        )
        hint = "Factor on the gravity torque"
        self._card.bind(gui.add_slider, "Scale", self, "_scale", 0.0, 1.0, 0.05, hint=hint)
        self._card.button(
            "Set the scale",
            "ros2 param set /gravity_compensation scale",
            lambda: [set_parameters(COMPENSATION_NODE, {"scale": [round(self._scale, 3)]})],
            lambda _: self._card.answer.show(f"The scale is {self._scale:g}."),
        )
        enable = f"{COMPENSATION_NODE}/enable"
        self._card.button("Enable", "The torque ramps in", lambda: [call(enable, True)], color="green")
        hint = "Switch from the position controller to the torque"
        self._card.button("Let go", hint, lambda: self._switch(True), self._on_let_go, color="orange")
        hint = "Switch back to the position controller, which holds the present pose"
        self._card.button("Hold again", hint, lambda: self._switch(False), self._on_hold)
        self._card.button("Disable", "The torque ramps out", lambda: [call(enable, False)])
        self._drift = Text(self._card.gui)
        names = context.robot.joint_names
        self._drifts = TimePlot(gui, names, "drift since the arm was let go, degrees (mm)")
        self._efforts = TimePlot(gui, names, "effort, in the driver's unit")

    def refresh(self) -> None:
        """Show state and controller, and plot once the node runs."""
        state = self._bench.texts[f"{COMPENSATION_NODE}/state"]
        if not state:
            return
        lines = [f"State: **{plain_markdown(state)}**"]
        status = self._bench.status_of(COMPENSATION_NODE)
        if status is not None:
            values = {pair.key: pair.value for pair in status.values}
            lines.append(f"Controller: {plain_markdown(values.get('controller', ''))}")
            if status.level != status.OK and status.message != state:
                lines.append(plain_markdown(status.message))
        self._state.show("\n\n".join(lines))
        if self._bench.state is None or state in ("unconfigured", "inactive", "disabled"):
            return
        stamp, values = self._bench.state
        if "effort" in values:
            self._efforts.add(stamp, values["effort"])
        if self._origin is not None:
            drift = self._unit * (np.array(values["position"]) - self._origin)
            self._drifts.add(stamp, drift)
            self._drift.show(f"Largest drift since the arm was let go: **{np.abs(drift).max():.2f}** degrees (mm)")

    def _prepare(self) -> list[Action]:
        self._bench.require_driver()
        return [self._context.start(COMPENSATION_NODE)]

    def _on_let_go(self, _text: str) -> None:
        state = self._bench.state
        self._origin = None if state is None else np.array(state[1]["position"])
        self._drifts.clear()
        self._card.answer.show("The torque acts alone. Lift the arm by hand, joint by joint.")

    def _on_hold(self, _text: str) -> None:
        self._origin = None
        self._card.answer.show("The position controller holds the arm.")

    def _switch(self, to_torque: bool) -> Sequence[Action]:
        """Return the switch of controllers; the controller that holds the arm begins before the other ends."""
        context = self._context
        if to_torque and not context.bench.texts[f"{COMPENSATION_NODE}/state"].startswith(("active", "ramping in")):
            raise DynidError("the compensation is not active, and the arm would fall; enable it first")
        if context.answers.route == "trajectory":
            raise DynidError("on route trajectory the position controller passes the torque on; there is no switch")
        both = context.answers.route == "effort"
        if context.bench.has(SIMULATED_SWITCH):
            switches = [call(SIMULATED_SWITCH, to_torque)]
            switches += [call("simulator/activate_trajectory_controller", not to_torque)] if both else []
            return switches if to_torque else switches[::-1]
        # without the memory the position controller begins at the present pose, not at its last commanded one
        forget = [set_parameters(POSITION_CONTROLLER, {NO_MEMORY: False})] if both and not to_torque else []
        forward, position = ("--activate", "--deactivate") if to_torque else ("--deactivate", "--activate")
        manager = ("-c", f"{context.answers.namespace}/controller_manager")
        other = (position, POSITION_CONTROLLER) if both else ()
        return [*forget, run("ros2", "control", "switch_controllers", *manager, forward, FORWARD_CONTROLLER, *other)]


class OfflineStep(Step):
    """Widgets of a page without ROS for a recording of the arm."""

    def __init__(self, context: Context, recording: Path) -> None:
        self._experiment = RECORDED_EXPERIMENTS[0]
        self._target = EXPORT_TARGETS[0]
        super().__init__(context, f"**{context.robot.name}** and the recording `{recording}`. Nothing moves.")
        card = self._card
        context.add_effort_inputs(card)

        def check() -> list[Action]:
            return [run("dynid", "check", *context.answers.identify_options(str(recording)))]

        def identify() -> list[Action]:
            return context.identify_files(self._experiment, [str(recording)])

        card.button("Check", "dynid check: look for faults in the recording", check)
        hint = "gravity: joints that turn one by one"
        card.bind(card.gui.add_dropdown, "Identify what", self, "_experiment", RECORDED_EXPERIMENTS, hint=hint)
        card.button("Identify", "dynid identify", identify, color="green")
        context.add_report_button(card, lambda: self._experiment)
        card.bind(card.gui.add_dropdown, "Export to", self, "_target", EXPORT_TARGETS)
        card.button("Export", "dynid export: the identified arm for other programs", self._export)

    def _export(self) -> list[Action]:
        answers = self._context.answers
        words = ["--model", str(answers.model_file()), "--to", self._target, "--output", str(answers.output / "arm")]
        return [run("dynid", "export", *answers.identify_options(), *words)]
