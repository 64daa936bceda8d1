"""Coordinator of the demo: has the nodes find an arm's gravity and let it float, then its links and friction."""

import sys

from lifecycle_msgs.msg import Transition

from dynid_ros.jobs.gravity_demonstration import write_demonstration
from dynid_ros.jobs.links_demonstration import write_link_demonstration
from dynid_ros.nodes.demo_stage import Stage, say
from dynid_ros.nodes.parameters import NodeParameter
from dynid_ros.nodes.robot_description import ROBOT_PARAMETERS
from dynid_ros.nodes.running import ros_process
from dynid_ros.simulation import tabled_arm

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("output", "demo_results", "folder that the identification writes into; the report goes there too"),
    NodeParameter("drop_pose", [0.3, 0.6, 0.9, 0.4, 0.5, 0.3], "pose from which the arm is let go, rad"),
    NodeParameter("drop_time", 5.0, "how long it is watched, s"),
    NodeParameter("command_topic", "/joint_trajectory_controller/joint_trajectory", "where the arm takes trajectories"),
)
SERVICES = (
    "/simulator/effort_mode",
    "/simulator/reset",
    "/excitation/design",
    "/excitation/start",
    "/recorder/start",
    "/recorder/stop",
    "/gravity_identification/identify",
    "/gravity_compensation/enable",
    "/link_identification/identify",
)
FITTED_SEED, UNSEEN_SEED = 1, 2
"""Of the Fourier motions."""
COMPENSATION = "/gravity_compensation"


class Demo(Stage):
    """Plays two acts; not a node to add to a robot, but all that it uses, except for the truth, a robot has as well."""

    def __init__(self) -> None:
        super().__init__("demo", PARAMETERS)

    def play(self) -> bool:
        """Both acts; True if the arm floats, and its links are found."""
        self.call.wait(*SERVICES)
        floats = self.gravity_act()
        return self.links_act() and floats

    def gravity_act(self) -> bool:
        """The arm sags, is excited joint by joint, identified and floats."""
        announce("1/8  Without compensation: the arm is let go.")
        self.move(self.settings.drop_pose)
        sagging = self.drop()
        self.call.trigger("/simulator/reset")
        announce("2/8  Excitation: each joint turns alone, in steps, from both sides.")
        self.excite({"motion": "static_rotation"})
        announce("3/8  Gravity, identified from the bag.")
        say(self.call.trigger("/gravity_identification/identify"))
        announce("4/8  With compensation: the arm is let go again.")
        self.move(self.settings.drop_pose)
        self.call.change_state(COMPENSATION, Transition.TRANSITION_CONFIGURE)
        self.call.change_state(COMPENSATION, Transition.TRANSITION_ACTIVATE)
        self.call.set("/gravity_compensation/enable", True)
        self.watch(3.0)
        floating = self.drop()
        self.call.set("/gravity_compensation/enable", False)
        self.call.change_state(COMPENSATION, Transition.TRANSITION_DEACTIVATE)
        announce("5/8  Report.")
        truth = tabled_arm(self.truth()).truth
        verdict = write_demonstration(self.robot, truth, self.output, sagging, floating)
        say(verdict.text())
        return verdict.passed

    def links_act(self) -> bool:
        """All joints move at once, as shows the links best; what one motion says of them is tried on another."""
        self.call.trigger("/simulator/reset")
        announce("6/8  Excitation: a motion of all joints is designed to show the links, and made; then another one.")
        # A joint at rest is held by stiction, which no model knows: the approach, in which joints rest, is left out.
        fitted, unseen = (
            self.excite({"motion": "fourier", "seed": seed}, record_from="running")
            for seed in (FITTED_SEED, UNSEEN_SEED)
        )
        announce("7/8  Links and friction, identified from the first bag, validated on the second.")
        self.call.set_parameters("/link_identification", {"recording": fitted, "validation_recording": unseen})
        answer = self.call.trigger("/link_identification/identify", timeout=300.0)
        # The report has all base parameters.
        say("".join(answer.partition("Validation on")[1:]))
        announce("8/8  Report.")
        verdict = write_link_demonstration(
            self.robot, self.truth(), self.output / "links", self.read(fitted), self.read(unseen)
        )
        say(verdict.text())
        return verdict.passed


def announce(text: str) -> None:
    """Say which step begins."""
    print(text, flush=True)


def main() -> None:
    """Run the demo; exit code 0 if both verdicts are good, 1 if not."""
    passed = False
    with ros_process():
        passed = Demo().play()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
