"""First act of the demo: the arm sags, is excited pose by pose, identified and floats."""

from dynid_ros.jobs.demonstration.gravity import write_gravity_demonstration
from dynid_ros.nodes.demonstration.stage import COMPUTING_TIMEOUT, Stage, say
from dynid_ros.report.demonstration.act import Act
from dynid_ros.simulation import tabled_arm

MOTION = {"motion": "poses", "target": "gravity", "count": 8, "dwell": 0.8, "approach": [0.03]}
STORY = (
    "The arm is let go, its motors off: it falls. Then it goes to a few poses, to each from below and from "
    "above, and rests there. The torque that the motors need at rest is gravity; friction has the other sign "
    "from the other side, and cancels. From that the arm's mass moments follow.",
    "The arm is let go again. Now its motors apply the gravity torque that the identified model computes from "
    "the joint angles, and nothing else: it floats.",
)


def gravity_act(stage: Stage) -> None:
    """Play it; it is good if the arm floats."""
    arm, settings, folder = stage.arm, stage.settings, stage.output / "gravity"
    stage.announce("Without compensation: the arm is let go.")
    arm.move(settings.drop_pose)
    sagging = arm.drop(settings.drop_time)
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: the arm goes to a few poses, to each from both sides.")
    stage.excitation.record()
    stage.announce("Gravity, identified from the bag.")
    say(stage.call.trigger("/gravity_identification/identify", timeout=COMPUTING_TIMEOUT))
    stage.announce("With compensation: the arm is let go again.")
    with arm.compensation():
        arm.move(settings.drop_pose)
        floating = arm.drop(settings.drop_time)
    truth = tabled_arm(stage.truth()).truth

    def judge() -> Act:
        verdict = write_gravity_demonstration(arm.robot, truth, folder, sagging, floating)
        return Act.of(
            "Gravity: the arm floats", STORY, verdict, [("the identification's report", "gravity/report.html")]
        )

    stage.later("gravity", judge)
