"""Second act of the demo: a hand leads the arm that floats, and leaves it somewhere else."""

import numpy as np

from dynid_ros.jobs.demonstration.guiding import LEAST_TIME, Guided, GuidingVerdict
from dynid_ros.nodes.demonstration.hand import Hand
from dynid_ros.nodes.demonstration.stage import Stage
from dynid_ros.report.demonstration.act import Act

WAYS = ([0.0, 0.2, 0.15], [-0.1, -0.15, 0.15])
"""By which the hand takes the wrist along, one after the other, in the base frame, m."""
HELD = "link_5"
"""Its origin is where the axes of the wrist meet: pushed there, the wrist's joints do not swing about."""
STORY = (
    "The arm floats, and a hand takes it by the wrist. No node knows of the hand: the motors apply the gravity "
    "torque of wherever the arm is, and the arm goes along. The hand has only friction and inertia to overcome.",
    "Where the hand lets go, the arm stays.",
)


def guiding_act(stage: Stage) -> None:
    """Play it; it is good if the arm goes along, and stays."""
    arm = stage.arm
    stage.announce("Hand guiding: a hand takes the floating arm along and lets go, twice.")
    stage.call.set_parameters("/simulator", {"push_link": HELD})
    with arm.compensation():
        arm.compensated()
        with arm.let_go():
            first, hand = len(arm.track) - 1, Hand(stage, arm, HELD)
            for way in WAYS:
                hand.lead(way)
                arm.wait(LEAST_TIME)
            track = arm.track[first:]
    time, position = (np.array(values) for values in zip(*track, strict=True))
    stamps, forces = (np.array(values) for values in zip(*hand.forces, strict=True))
    guided = Guided(
        HELD,
        time - time[0],
        position,
        np.interp(time, stamps, forces, left=0.0, right=0.0),
        [(float(start - time[0]), float(end - time[0])) for start, end in hand.led],
    )
    title = "Hand guiding: the arm is led, and stays where it is left"
    stage.later("hand_guiding", lambda: Act.of(title, STORY, GuidingVerdict(arm.robot, guided)))
