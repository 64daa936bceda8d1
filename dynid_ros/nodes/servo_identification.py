"""Node that identifies position servos without torque sensing from recorded commands and positions.

`~/identify` starts an identification, which publishes `~/result` and writes files. The commanded positions come from
`command_topic` of the bag. With `reference_mass`, give a recording of the same motion with the mass attached as
`recording_with_mass`: it adds the gain of each joint that the mass loads, and so all quantities in N m.
"""

from functools import partial

from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run

PARAMETERS = parameters_of_kind(
    "servos",
    NodeParameter(
        "command_topic",
        "",
        "topic of the commanded positions in the bag: sensor_msgs/JointState, trajectory_msgs/JointTrajectory, "
        "std_msgs/Float64MultiArray or control_msgs/JointTrajectoryControllerState; empty: commands of a table",
    ),
)
ServoIdentificationNode = partial(IdentificationNode, "servo_identification", "servos", PARAMETERS)
main = partial(run, ServoIdentificationNode)
