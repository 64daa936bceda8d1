"""Node that turns a recording into springs, motors and links of an arm with flexible joints.

`~/identify` in, `~/result` (latched YAML) and files out, as of all nodes that identify. Where the links are is told by
`link_states_topic` of the bag, by the link positions of another file, or by what cameras saw.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

from dynid_ros.identification.flexible import FlexibleJointIdentification
from dynid_ros.jobs.flexible_joints import AUTO, FlexibleJob, identify_flexible, marker_links
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run
from dynid_ros.recording import Recording

PARAMETERS = (
    *RECORDING_PARAMETERS,
    NodeParameter("joint_states_topic", "", "of the motors in the bag; empty: /joint_states, or the only one"),
    NodeParameter("link_states_topic", "", "sensor_msgs/JointState with the links' positions in the bag; empty: none"),
    NodeParameter(
        "markers",
        [""],
        "which link carries a body or marker of the recording, each <topic>=<link>, <topic>[<index>]=<link> or, to be "
        'found, <topic>; [""]: all poses, found, where no link positions are recorded',
    ),
    NodeParameter("spring", "linear", "law of all springs: linear, cubic, dead_zone; auto: chosen for each joint"),
    NodeParameter(
        "motor_terms",
        ["motor_inertia", "motor_viscous"],
        "of the motors' torques; motor_coulomb and torque_offset besides",
    ),
    NodeParameter("clock", "auto", "of the links' sensor: own, its offset is estimated; same, as the motors'; auto"),
    NodeParameter("drift", False, "estimate a drift of that clock too"),
    NodeParameter("band", math.nan, "highest frequency that is compared, Hz; nan: chosen from the motion"),
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
    identification = FlexibleJointIdentification(
        robot,
        motor_terms=[term for term in settings.motor_terms if term],
        clock=settings.clock,
        drift=settings.drift,
        band=None if math.isnan(settings.band) else settings.band,
    )
    if settings.spring != AUTO:
        replace(identification, spring=settings.spring)  # refuses what is no law
    markers = marker_links([marker for marker in settings.markers if marker])
    return _Identify(identification, settings.spring, markers)


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
