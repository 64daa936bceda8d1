"""Excitation, recorder and an identification for a robot; their services start each step.

`/excitation/design`, `/excitation/start`, then, when its state is done, `/gravity_identification/identify`, or with
`identification:=links`, which lets all joints move at once, `/link_identification/identify`. The recorder records each
motion by itself; `/recorder/start` and `/recorder/stop` record anything else.
`identification:=flexible_joints` finds springs, motors and links from joint states and cameras.
`identification:=torque_sensors` calibrates joint torque sensors by gravity, or by a mass.
`identification:=load model_file:=<identified.yaml of the arm>` weighs what the arm carries, `live_load` as it moves.
Other parameters of the nodes than the arguments here are given in `params_file` (docs/parameters.md).
"""

from launch import LaunchDescription

from dynid_ros.nodes.shared.launch_description import Choice, describe_nodes
from dynid_ros.nodes.shared.parameters import IDENTIFICATIONS


def generate_launch_description() -> LaunchDescription:
    identification = Choice(
        "identification",
        "what is identified: gravity, from joints that turn one by one; links, with friction, flexible_joints, "
        "torque_sensors, from joints that turn one by one, or a load, from motion, recorded or live",
        IDENTIFICATIONS,
    )
    slow = ("speed_fraction", "travel_speed_fraction")
    return describe_nodes(
        "excitation", "recorder", choice=identification, also=slow, motion_state_topic="excitation/state"
    )
