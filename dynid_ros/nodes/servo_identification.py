"""Node that turns recorded commands and positions into what servos without torque do: `~/identify` in, files out.

Commands are those of `command_topic` in the bag. With `reference_mass`, `recording_with_mass` is the motion with it.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from dynid_ros.identification import ServoIdentification
from dynid_ros.jobs.identification import Job, identify_servos
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import IdentificationNode, Identify, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter, setting_arguments
from dynid_ros.nodes.shared.process import run
from dynid_ros.recording import EffortConvention, Recording
from dynid_ros.settings import made, settings_of

PARAMETERS = (
    *(
        parameter
        for parameter in parameters_of_kind("servos")
        if parameter.name not in ("torque_topic", "effort_convention", "motor_gains")
    ),
    NodeParameter(
        "command_topic",
        "",
        "positions told, in the bag: sensor_msgs/JointState, trajectory_msgs/JointTrajectory, "
        "std_msgs/Float64MultiArray or control_msgs/JointTrajectoryControllerState; empty: those of a table",
    ),
    NodeParameter(
        "recording_with_mass", "", "the same motion with the reference mass attached; empty: none", adjustable=True
    ),
)


class ServoIdentificationNode(IdentificationNode):
    """Servos of all joints that moved."""

    def __init__(self) -> None:
        super().__init__("servo_identification", PARAMETERS, self._make)

    def _convention(self) -> EffortConvention:
        return EffortConvention("torque")  # which is not looked at

    def _read(self, path: str) -> Recording:
        return Recording.read(
            Path(path), joint_names=self.robot.joint_names, command_topic=self.settings.command_topic or None
        )

    def _make(self, robot: RobotModel, parameters: SimpleNamespace) -> Identify:
        identification = made(
            ServoIdentification, setting_arguments(settings_of(ServoIdentification), parameters), robot
        )
        return partial(self._identify_servos, identification)

    def _identify_servos(
        self,
        identification: ServoIdentification,
        recordings: Sequence[Recording],
        output: str,
        others: Sequence[Recording],
    ) -> Job:
        path = self.chosen().recording_with_mass
        return identify_servos(identification, recordings, output, [self._read(path)] if path else [], others)


def main() -> None:
    """Run the node."""
    run(ServoIdentificationNode)


if __name__ == "__main__":
    main()
