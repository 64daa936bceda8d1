"""Second act of the demo: all joints move at once, as shows the links best."""

from dynid_ros.jobs.links_demonstration import write_link_demonstration
from dynid_ros.nodes.demo_stage import Stage, say

FITTED_SEED, UNSEEN_SEED = 1, 2
"""Of the motions."""


def links_act(stage: Stage) -> bool:
    """Play it; what one motion says of links and friction is tried on another. True if they are found."""
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: a motion of all joints is designed to show the links, and made; then another one.")
    # A joint at rest is held by stiction, which no model knows: the approach, in which joints rest, is left out.
    fitted, unseen = (
        stage.excite({"motion": "fourier", "seed": seed}, record_from="running") for seed in (FITTED_SEED, UNSEEN_SEED)
    )
    stage.announce("Links and friction, identified from the first bag, validated on the second.")
    stage.call.set_parameters("/link_identification", {"recording": fitted, "validation_recording": unseen})
    answer = stage.call.trigger("/link_identification/identify", timeout=300.0)
    # The report has all base parameters.
    say("".join(answer.partition("Validation on")[1:]))
    stage.announce("Report.")
    verdict = write_link_demonstration(
        stage.robot, stage.truth(), stage.output / "links", stage.read(fitted), stage.read(unseen)
    )
    say(verdict.text())
    return verdict.passed
