"""Step 5: gravity is identified from the recording, and validated on other poses."""

from dynid_ros.guide.actions import Action, move, run
from dynid_ros.guide.answers import EXPERIMENT_NODES
from dynid_ros.guide.context import Context, Refresh
from dynid_ros.guide.panel import plain_markdown

VALIDATION_BAG = "validation"


def add_identify_step(context: Context) -> Refresh:
    """Add the widgets of the step and return what refreshes them."""
    panel = context.panel
    panel.said(
        "The identification reads the last recording. It says in one sentence whether the result is good enough."
    )
    said = panel.said()

    def on_verdict(text: str) -> None:
        verdict, *warnings = text.split(" Warning: ")
        lines = [f"- {plain_markdown(warning)}" for warning in warnings]
        said.show("\n".join([f"**{plain_markdown(verdict)}**", "", *lines]))

    panel.button(
        "Identify",
        lambda: context.identify("gravity"),
        said,
        hint="ros2 service call /gravity_identification/identify",
        color="green",
        then=on_verdict,
    )
    state = panel.said()
    context.report_button(lambda: "gravity", said)
    panel.said("Does the model hold elsewhere? Record other poses, and validate the model on them.")
    checked = panel.said()

    def record_other() -> list[Action]:
        return [*context.design("gravity", "poses"), move(recorded=True)]

    def on_recorded(text: str) -> None:
        context.keep_bag(VALIDATION_BAG)
        checked.show(f"{plain_markdown(text)}. Now validate.")

    panel.button(
        "Record other poses",
        record_other,
        checked,
        hint="Design motion poses, move and record",
        color="orange",
        then=on_recorded,
    )

    def validate() -> list[Action]:
        answers = context.answers
        recordings = [
            "--recording",
            context.bags.get("gravity", ""),
            "--validate",
            context.bags.get(VALIDATION_BAG, ""),
        ]
        options = [*answers.robot_options(), *recordings, *answers.effort_options()]
        return [run("dynid", "identify", "gravity", *options, "--output", str(answers.folder("gravity")))]

    panel.button("Validate", validate, checked, hint="dynid identify gravity --validate")

    def refresh() -> None:
        node = EXPERIMENT_NODES["gravity"][0]
        state.show_lines(context.bench.texts[f"{node}/state"])

    return refresh
