"""Robot, nodes, widgets and answers that the steps share, and the actions that several steps use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynid_ros.guide.actions import LONG_CALL_TIMEOUT_S, Action, call, move, run, set_parameters, start_node
from dynid_ros.guide.answers import EFFORT_CONVENTIONS, EXPERIMENTS, Answers
from dynid_ros.guide.gate import FILES_PATH
from dynid_ros.guide.panel import Card, Panel
from dynid_ros.guide.scene import Scene
from dynid_ros.model import RobotModel

DEFAULT_MOTION = {"motion": "static_rotation", "target": ""}


@dataclass
class Context:
    """Robot, nodes, widgets and answers, with the last recording of each experiment."""

    panel: Panel
    answers: Answers
    bench: Any
    robot: RobotModel
    scene: Scene
    bags: dict[str, str] = field(default_factory=dict)

    def start(self, node: str) -> Action:
        """Return the start of a node with the present answers."""
        return start_node(node, self.answers.parameters(node), self.answers.files, self.answers.namespace)

    def design(self, experiment: str, motion: str = "", speed: float = 0.0, **more: object) -> list[Action]:
        """Return the design of a motion; empty and 0: the usual motion and the node's own speed."""
        self.bench.require_driver()
        values: dict[str, object] = {**DEFAULT_MOTION, **EXPERIMENTS[experiment].defaults}
        values |= {"motion": motion} if motion else {}
        values |= {"speed_fraction": speed, "travel_speed_fraction": speed} if speed else {}
        values |= {**more, "trajectory_file": str(self.answers.motion_file)}
        return [
            self.start("excitation"),
            self.start("recorder"),
            set_parameters("excitation", values),
            call("excitation/design", timeout=LONG_CALL_TIMEOUT_S),
        ]

    def record(self, experiment: str) -> list[Action]:
        """Return the designed motion, recorded for an experiment."""
        self.bench.require_driver()

        def keep_bag(bench: Any) -> str:
            self.bags[experiment] = bench.texts["recorder/bag"]
            return self.bags[experiment]

        return [move(recorded=True), Action((), keep_bag)]

    def identify(self, experiment: str) -> list[Action]:
        """Return the identification from the last recording of an experiment."""
        node = EXPERIMENTS[experiment].node
        return [
            self.start(node),
            set_parameters(node, {"recording": self.bags.get(experiment, "")}),
            call(f"{node}/identify", timeout=LONG_CALL_TIMEOUT_S),
        ]

    def identify_files(self, experiment: str, recordings: Sequence[str]) -> list[Action]:
        """Return the identification by `dynid`, from a recording and, if there is a second one, validated on it."""
        output = ["--output", str(self.answers.output / experiment)]
        return [run("dynid", "identify", experiment, *self.answers.identify_options(*recordings), *output)]

    def add_effort_inputs(self, card: Card) -> None:
        """Add the inputs for the meaning of effort."""
        answers = self.answers
        hint = "Meaning of effort in joint_states"
        card.bind(card.gui.add_dropdown, "Effort is", answers, "effort_convention", EFFORT_CONVENTIONS, hint=hint)
        hint = "N m per unit of effort, with commas; empty: none"
        card.bind(card.gui.add_text, "Motor gains", answers, "motor_gains", hint=hint)

    def add_report_button(self, card: Card, chosen: Callable[[], str]) -> None:
        """Add a button that shows the report of the chosen experiment."""

        def show(_event: Any) -> None:
            experiment = chosen()
            address = f"{FILES_PATH}{experiment}/report.html"
            if not (self.answers.output / experiment / "report.html").is_file():
                card.answer.show("There is no report yet; identify first.")
                return
            with card.gui.add_modal(f"Report: {experiment.replace('_', ' ')}") as modal:
                card.gui.add_html(
                    f'<iframe src="{address}" style="width:100%;height:70vh;border:1px solid #ccc"></iframe>'
                    f'<a href="{address}" target="_blank">Open it in a page of its own</a>'
                )
                card.gui.add_button("Close").on_click(lambda _: modal.close())

        card.gui.add_button("Report", hint="Show the report of the identification").on_click(show)


class Step:
    """Widgets of one step of the page, below a text in Markdown."""

    def __init__(self, context: Context, text: str) -> None:
        self._context = context
        self._bench = context.bench
        self._card = Card(context.panel, text)

    def refresh(self) -> None:
        """Show the present state; called some times per second for a page that is shown."""
