"""Cards of further identifications: links, loads, flexible joints, torque sensors."""

from dynid_ros.guide.answers import EXPERIMENT_NODES
from dynid_ros.guide.context import Context, Refresh
from dynid_ros.guide.panel import plain_markdown

CARD_PURPOSES = {
    "links": "Masses, inertias and friction of all links, from a motion of all joints at once.",
    "load": "Mass and centre of what the arm carries. Identify gravity or links without the load first.",
    "flexible joints": "Springs and motors of flexible joints; the bag needs positions of the links, too.",
    "torque sensors": "Gains and offsets of joint torque sensors, from gravity.",
}


def add_more_cards(context: Context) -> Refresh:
    """Add one card for each experiment and return what refreshes them."""
    refreshes = [_add_card(context, experiment, purpose) for experiment, purpose in CARD_PURPOSES.items()]

    def refresh() -> None:
        for one in refreshes:
            one()

    return refresh


def _add_card(context: Context, experiment: str, purpose: str) -> Refresh:
    panel = context.panel
    node = EXPERIMENT_NODES[experiment][0]
    with panel.folder(experiment.capitalize(), expand=False):
        panel.said(purpose)
        said = panel.said()

        def on_recorded(text: str) -> None:
            context.keep_bag(experiment)
            said.show(plain_markdown(text))

        panel.button(f"Design for {experiment}", lambda: context.design(experiment), said, hint="Nothing moves")
        panel.button(
            f"Record {experiment}",
            context.record,
            said,
            hint="Move and record; the last design is carried out",
            color="orange",
            then=on_recorded,
        )
        panel.button(f"Identify {experiment}", lambda: context.identify(experiment), said, hint=f"Node {node}")
        state = panel.said()
        context.report_button(lambda: experiment, said)

    def refresh() -> None:
        state.show_lines(context.bench.texts[f"{node}/state"])

    return refresh
