"""First act of the demo: the arm sags, is excited joint by joint, identified and floats."""

from dynid_ros.jobs.gravity_demonstration import write_demonstration
from dynid_ros.nodes.demo_stage import Stage, say
from dynid_ros.simulation import tabled_arm


def gravity_act(stage: Stage) -> bool:
    """Play it; True if the arm floats."""
    stage.announce("Without compensation: the arm is let go.")
    stage.move(stage.settings.drop_pose)
    sagging = stage.drop(stage.settings.drop_time)
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: each joint turns alone, in steps, from both sides.")
    stage.excite({"motion": "static_rotation"})
    stage.announce("Gravity, identified from the bag.")
    say(stage.call.trigger("/gravity_identification/identify"))
    stage.announce("With compensation: the arm is let go again.")
    with stage.compensation():
        stage.move(stage.settings.drop_pose)
        floating = stage.drop(stage.settings.drop_time)
    stage.announce("Report.")
    truth = tabled_arm(stage.truth()).truth
    verdict = write_demonstration(stage.robot, truth, stage.output, sagging, floating)
    say(verdict.text())
    return verdict.passed
