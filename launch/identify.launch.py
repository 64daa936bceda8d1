"""Excitation, recorder and an identification beside a robot; their services start each step.

`/excitation/design`, `/recorder/start`, `/excitation/start`, `/recorder/stop`, then `/gravity_identification/identify`,
or with `identification:=links`, which lets all joints move at once, `/link_identification/identify`.
"""

from launch import LaunchDescription

from dynid_ros.nodes.launching import Choice, Option, describe_nodes


def generate_launch_description() -> LaunchDescription:
    identification = Choice(
        "identification",
        "what is identified: gravity, from joints that turn one by one; links, with friction, from Fourier motion",
        {
            "gravity": Option("gravity_identification"),
            "links": Option("link_identification", {"motion": "fourier"}),
        },
    )
    return describe_nodes("excitation", "recorder", choice=identification)
