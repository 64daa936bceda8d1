"""Node that turns a recording into springs, motors and links of an arm with flexible joints.

`~/identify` in, `~/result` and files out, as of all nodes that identify. Where the links are is told by
`link_states_topic` of the bag, by the link positions of another file, or by what cameras saw.
"""

from pathlib import Path
from typing import Any

from dynid_ros.jobs.flexible_joints import choose_run, marker_links
from dynid_ros.nodes.identification.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run
from dynid_ros.recording import Recording

PARAMETERS = parameters_of_kind(
    "flexible",
    NodeParameter(
        "joint_states_topic",
        "",
        "topic of the bag with the motors' joint states; empty: /joint_states, or the only one",
    ),
    NodeParameter(
        "link_states_topic",
        "",
        "of the links' positions in the bag, by encoders of their own (sensor_msgs/JointState); the recorder takes it "
        "as one of its extra_topics; empty: none, or in the .csv or .npz",
    ),
    NodeParameter(
        "markers",
        [""],
        "which link carries a body or marker that cameras saw, such as /vrpn_mocap/upper_arm/pose=link_2 or "
        '/markers[4]=link_3; without =link it is found; [""]: all poses, found, where no link positions are recorded',
    ),
)


class FlexibleJointIdentificationNode(IdentificationNode):
    """Springs, motors and links of an arm with flexible joints."""

    def __init__(self) -> None:
        super().__init__("flexible_joint_identification", "flexible", PARAMETERS)

    def _estimator(self) -> Any:
        markers = marker_links([marker for marker in self.settings.markers if marker])
        self.kind, estimator = choose_run(self.robot, self._values(), markers=markers)
        return estimator

    def _read(self, path: str) -> Recording:
        return Recording.read(
            Path(path),
            joint_names=self.robot.joint_names,
            joint_states_topic=self.settings.joint_states_topic or None,
            torque_topic=self.settings.torque_topic or None,
            effort_convention=self.convention,
            link_states_topic=self.settings.link_states_topic or None,
        )


def main() -> None:
    """Run the node."""
    run(FlexibleJointIdentificationNode)


if __name__ == "__main__":
    main()
