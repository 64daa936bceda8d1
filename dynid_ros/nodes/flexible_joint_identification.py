"""Node that turns a recording into springs, motors and links of an arm with flexible joints.

`~/identify` in, `~/result` (latched YAML) and files out, as of all nodes that identify. Where the links are is told by
`link_states_topic` of the bag, by the link positions of another file, or by what cameras saw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

from dynid_ros.identification.flexible import FlexibleJointIdentification
from dynid_ros.jobs.flexible_joints import AUTO, FlexibleJob, identify_flexible, marker_links
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode
from dynid_ros.nodes.shared.parameters import NodeParameter, given, parameters_of
from dynid_ros.nodes.shared.process import run
from dynid_ros.recording import Recording
from dynid_ros.settings import settings_of

SETTINGS = settings_of(FlexibleJointIdentification)
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
    *parameters_of(SETTINGS),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
)


@dataclass(frozen=True)
class _Identify:
    """A job with its settings."""

    identification: FlexibleJointIdentification
    spring: str
    markers: dict[str, str | None] | None

    def __call__(self, recordings: Sequence[Recording], output: str, validate: Sequence[Recording] = ()) -> FlexibleJob:
        filmed = self.markers is not None or all(
            recording.link_position is None and recording.poses for recording in recordings
        )
        return identify_flexible(
            self.identification,
            recordings,
            output,
            validate,
            spring=self.spring,
            mocap=filmed,
            markers=self.markers,
        )


def flexible_job(robot: RobotModel, settings: SimpleNamespace) -> _Identify:
    """The job that the values of `PARAMETERS` describe.

    Raises:
        DynidError: a setting that makes no sense.

    """
    values = given(SETTINGS, settings)
    spring = values.pop("spring")
    identification = FlexibleJointIdentification(robot, **values)
    if spring != AUTO:
        replace(identification, spring=spring)  # refuses what is no law
    markers = marker_links([marker for marker in settings.markers if marker])
    return _Identify(identification, spring, markers)


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
