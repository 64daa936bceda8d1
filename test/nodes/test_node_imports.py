"""Test that nodes for long use on a robot's computer load no estimators and no large parts of scipy."""

import subprocess
import sys

import pytest

HEAVY = ("dynid_ros.identification", "matplotlib", "mujoco", "scipy.optimize", "scipy.signal", "scipy.stats")
PROGRAM = """
import pathlib, re, sys, {node}
print(int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024)
print(*(n for n, module in sys.modules.items() if not (n.startswith("dynid") and hasattr(module, "__path__"))))
"""


@pytest.mark.parametrize(("node", "max_modules"), [("gravity_compensation", 75), ("recorder", 30)])
def test_node_loads_no_heavy_modules(node, max_modules):
    program = PROGRAM.format(node=f"dynid_ros.nodes.{node}")
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    megabytes, modules = process.stdout.splitlines()
    loaded = modules.split()
    assert not [name for name in loaded if name.startswith(HEAVY)]
    assert len([name for name in loaded if name.startswith("dynid_ros.")]) <= max_modules
    assert int(megabytes) <= 75


RENAMED_PROGRAM = """
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
def test_nodes_start_with_the_renamed_endpoint_info_module(tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    program = RENAMED_PROGRAM.format(folder=str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "no usable joint_states" in process.stdout
