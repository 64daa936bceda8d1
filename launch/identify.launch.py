"""Excitation, recorder and an identification beside a robot; their services start each step.

`/excitation/design`, `/recorder/start`, `/excitation/start`, `/recorder/stop`, then `/gravity_identification/identify`,
or with `identification:=links`, which lets all joints move at once, `/link_identification/identify`.
`identification:=flexible_joints` tells springs, motors and links from joint states and cameras (`pose_topics`).
`identification:=load model_file:=<identified.yaml of the arm>` weighs what the arm carries, `live:=true` as it moves.
"""

from launch import LaunchDescription

from dynid_ros.nodes.launching import Choice, Option, describe_nodes


def generate_launch_description() -> LaunchDescription:
    identification = Choice(
        "identification",
        "what is identified: gravity, from joints that turn one by one; links, with friction, flexible_joints, "
        "or a load, from motion",
        {
            "gravity": Option("gravity_identification"),
            "links": Option("link_identification", {"motion": "fourier"}),
            "flexible_joints": Option("flexible_joint_identification", {"motion": "fourier"}),
            "load": Option("load_identification", {"motion": "fourier", "target": "load"}),
        },
    )
    return describe_nodes("excitation", "recorder", choice=identification)
