"""Nodes beside an rclpy whose modules have the names of ROS 2 Lyrical."""

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

PROGRAM = """
import sys
import rclpy, rclpy.node
from rclpy.parameter import Parameter
sys.modules["rclpy.endpoint_info"] = sys.modules.pop("rclpy.topic_endpoint_info")
sys.modules["rclpy.topic_endpoint_info"] = None
del rclpy.topic_endpoint_info
import planar_arm
from dynid_ros.nodes import NAMES, import_nodes
import_nodes(NAMES, "this test")
from dynid_ros.nodes.excitation import ExcitationNode
from dynid_ros.nodes.recorder import Recorder
rclpy.init()
values = {{"robot_description": planar_arm.urdf(), "acceleration_limits": [2.0], "link_shapes": "none"}}
excitation = ExcitationNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
recorder = Recorder(parameter_overrides=[Parameter("output_folder", value={folder!r})])
recorder.start()
for _ in range(20):
    rclpy.spin_once(recorder, timeout_sec=0.05)
print(excitation.arm.doubt)
excitation.destroy_node()
recorder.destroy_node()
"""


@pytest.mark.usefixtures("domain")
def test_nodes_start_where_endpoint_info_is_the_name(tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    program = PROGRAM.format(folder=str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no usable joint_states" in done.stdout
