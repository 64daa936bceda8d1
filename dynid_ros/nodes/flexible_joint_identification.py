"""Node that turns a recording into springs, motors and links of an arm with flexible joints.

`~/identify` writes `~/result` and files, like all identification nodes. The positions of the links come from
`link_states_topic` of the bag, from another file, or from cameras.
"""

from functools import partial
from typing import Any

from dynid_ros.jobs.flexible_joints import choose_run, marker_links
from dynid_ros.jobs.run import IdentificationRun
from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run

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
        "topic of the link encoders in the bag (sensor_msgs/JointState), one of the recorder's extra_topics; "
        "empty: none, or in the .csv or .npz",
    ),
    NodeParameter(
        "markers",
        [""],
        "links of bodies or markers seen by cameras, such as /vrpn_mocap/upper_arm/pose=link_2 or /markers[4]=link_3; "
        'without =link it is searched; [""]: all poses, searched, if no link positions are recorded',
    ),
)


class FlexibleJointIdentificationNode(IdentificationNode):
    """Node that estimates springs, motors and links of an arm with flexible joints."""

    def __init__(self) -> None:
        super().__init__("flexible_joint_identification", "flexible", PARAMETERS)

    def _estimator(self) -> Any:
        markers = marker_links([marker for marker in self.settings.markers if marker])
        self.kind, estimator = choose_run(self.robot, self._values(), markers=markers)
        return estimator

    def _more_options(self, job: IdentificationRun) -> dict[str, Any]:
        """Return the cameras, which the node uses without an option where no link positions are recorded."""
        if not getattr(job.result, "cameras", ()):
            return {}
        return {"mocap": True, "markers": [marker for marker in self.settings.markers if marker]}


main = partial(run, FlexibleJointIdentificationNode)
