"""Node that turns a recording into springs, motors and links of an arm with flexible joints.

`~/identify` in, `~/result` and files out, as of all nodes that identify. Where the links are is told by
`link_states_topic` of the bag, by the link positions of another file, or by what cameras saw.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from dynid_ros.identification.flexible import FlexibleJointIdentification
from dynid_ros.identification.flexible.flexible_identification import AUTO
from dynid_ros.jobs.flexible_joints import FlexibleSettings, marker_links
from dynid_ros.jobs.identification import Job
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.shared.parameters import NodeParameter, parameters_of, setting_arguments
from dynid_ros.nodes.shared.process import run
from dynid_ros.recording import Recording
from dynid_ros.settings import settings_of

RUN, SETTINGS = settings_of(FlexibleSettings), settings_of(FlexibleJointIdentification)
PARAMETERS = (
    *RECORDING_PARAMETERS,
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
    *parameters_of((*RUN, *SETTINGS)),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
)


def flexible_job(robot: RobotModel, parameters: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe.

    Raises:
        DynidError: a setting that makes no sense.
    """
    values = setting_arguments(SETTINGS, parameters)
    spring = values.pop("spring")
    identification = FlexibleJointIdentification(robot, **values)
    if spring != AUTO:
        replace(identification, spring=spring)  # refuses what is no law
    markers = marker_links([marker for marker in parameters.markers if marker])
    job = FlexibleSettings(**setting_arguments(RUN, parameters))

    def identify(recordings: Sequence[Recording], output: str, validate: Sequence[Recording] = ()) -> Job:
        filmed = markers is not None or all(
            recording.link_position is None and recording.poses for recording in recordings
        )
        return job.identify(identification, recordings, output, validate, spring=spring, mocap=filmed, markers=markers)

    return identify


class FlexibleJointIdentificationNode(IdentificationNode):
    """Springs, motors and links of an arm with flexible joints."""

    def __init__(self) -> None:
        super().__init__("flexible_joint_identification", PARAMETERS, flexible_job)

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
