"""Third act of the demo: all joints move at once, as shows the links best."""

from dynid_ros.jobs.demonstration.links import write_link_demonstration
from dynid_ros.nodes.demonstration.stage import Stage, say
from dynid_ros.report.demonstration.act import Act

SHAPE = {"motion": "fourier", "target": "links", "base_frequency": 0.125, "harmonics": 10}
MOTIONS = (
    {**SHAPE, "seed": 1, "periods": 2, "design_time": 8.0},
    # what is tried on it need not show the links best
    {**SHAPE, "seed": 2, "periods": 1, "design_time": 0.0},
)
STORY = (
    "Gravity is not all: a moving arm has inertia and friction. A motion of all joints at once is designed to "
    "show them best within the arm's limits, clear of the floor and of the arm itself; it is made and recorded. "
    "Masses, mass moments, inertias and friction of all links are identified from it, each with an interval "
    "that says how well it is known.",
    "Then the arm makes another motion, and the identified model is to say which torques that one needed.",
)


def links_act(stage: Stage) -> None:
    """Play it; what one motion says of links and friction is tried on another. It is good if they are found."""
    arm, folder = stage.arm, stage.output / "links"
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: a motion of all joints, designed to show the links, is made; then another one.")
    # A joint at rest is held by stiction, which no model knows: the approach, in which joints rest, is left out.
    fitted, unseen = (stage.excitation.record("running") for _ in MOTIONS)
    stage.announce("Links and friction are identified from the first bag, and validated on the second, meanwhile.")
    stage.call.set_parameters("/link_identification", {"recording": fitted, "validation_recording": unseen})
    stage.begin("links", "/link_identification/identify")
    truth = stage.truth()

    def judge() -> Act:
        say_links(stage)
        verdict = write_link_demonstration(arm.robot, truth, folder, arm.read(fitted), arm.read(unseen))
        title = "Links: masses, inertias and friction"
        return Act.of(title, STORY, verdict, [("the identification's report", "links/report.html")])

    stage.later("links", judge)


def say_links(stage: Stage) -> None:
    """Wait until the links are identified, and tell of it once."""
    if answer := stage.answer("links"):
        # The report has all base parameters.
        say("".join(answer.partition("Validation on")[1:]))
