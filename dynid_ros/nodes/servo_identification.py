"""Node that turns recorded commands and positions into models of servos without torque sensing.

`~/identify` in, `~/result` and files out. Commands are those of `command_topic` in the bag. With `reference_mass`,
`recording_with_mass` is the motion with it.
"""

from pathlib import Path

from dynid_ros.nodes.identification.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run
from dynid_ros.recording import Recording

PARAMETERS = parameters_of_kind(
    "servos",
    NodeParameter(
        "command_topic",
        "",
        "topic of the commanded positions in the bag: sensor_msgs/JointState, trajectory_msgs/JointTrajectory, "
        "std_msgs/Float64MultiArray or control_msgs/JointTrajectoryControllerState; empty: those of a table",
    ),
)


class ServoIdentificationNode(IdentificationNode):
    """Servos of all joints that moved."""

    def __init__(self) -> None:
        super().__init__("servo_identification", "servos", PARAMETERS)

    def _read(self, path: str) -> Recording:
        return Recording.read(
            Path(path), joint_names=self.robot.joint_names, command_topic=self.settings.command_topic or None
        )


def main() -> None:
    """Run the node."""
    run(ServoIdentificationNode)


if __name__ == "__main__":
    main()
