"""Page without ROS: a bag and a URDF are checked, identified, reported and exported."""

import time
from collections.abc import Sequence
from pathlib import Path

from dynid_ros.guide.actions import Action, run, run_program
from dynid_ros.guide.context import Context, Refresh

KINDS_OF_BAGS = ("gravity", "links")
EXPORT_TARGETS = ("urdf", "mjcf", "c", "sdf", "isaac")


class OfflineBench:
    """Bench without nodes: it runs commands alone.

    Attributes:
        state: None; there are no joint states.
        problem: what the page cannot show; empty: nothing.
    """

    state = None
    problem = ""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def run(self, arguments: Sequence[str]) -> str:
        """Run a command."""
        return run_program(arguments)

    def stop(self) -> str:
        """Return that nothing moves."""
        return "nothing moves: this page has no robot"

    def look(self, is_watched: bool) -> None:
        """Do nothing."""

    def take_state(self) -> None:
        """Do nothing."""

    def work(self, period: float) -> None:
        """Wait, s."""
        time.sleep(period)

    def end(self) -> None:
        """Do nothing."""


def add_offline_steps(context: Context, recording: Path) -> list[Refresh]:
    """Add the steps of a page without ROS and return what refreshes them."""
    panel = context.panel
    answers = context.answers
    gui = panel.server.gui
    panel.said(f"**{context.robot.name}** and the recording `{recording}`. Nothing moves.")
    chosen = {"kind": KINDS_OF_BAGS[0], "target": EXPORT_TARGETS[0]}
    context.add_effort_inputs()
    said = panel.said()
    options = [*answers.robot_options(), "--recording", str(recording)]

    def check() -> list[Action]:
        return [run("dynid", "check", *options, *answers.effort_options())]

    panel.button("Check", check, said, hint="dynid check: look for faults in the recording")
    panel.field(
        gui.add_dropdown("Identify what", KINDS_OF_BAGS, hint="gravity: joints that turn one by one"),
        lambda value: chosen.update(kind=value),
    )

    def identify() -> list[Action]:
        output = ("--output", str(answers.folder(chosen["kind"])))
        return [run("dynid", "identify", chosen["kind"], *options, *answers.effort_options(), *output)]

    panel.button("Identify", identify, said, hint="dynid identify", color="green")
    context.report_button(lambda: chosen["kind"], said)
    panel.field(gui.add_dropdown("Export to", EXPORT_TARGETS), lambda value: chosen.update(target=value))

    def export() -> list[Action]:
        words = [
            "--model",
            str(answers.model_file()),
            "--to",
            chosen["target"],
            "--output",
            str(answers.output / "arm"),
        ]
        return [run("dynid", "export", *answers.robot_options(), *words)]

    panel.button("Export", export, said, hint="dynid export: the identified arm for other programs")
    return []
