"""A node that runs on a robot's computer for days loads what it uses: no estimators, no large parts of scipy."""

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

HEAVY = ("dynid_ros.identification", "matplotlib", "mujoco", "scipy.optimize", "scipy.signal", "scipy.stats")
PROGRAM = """
import pathlib, re, sys, {node}
print(int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024)
print(*(n for n, module in sys.modules.items() if not (n.startswith("dynid") and hasattr(module, "__path__"))))
"""


@pytest.mark.parametrize(("node", "most"), [("gravity_compensation", 64), ("recorder", 30)])
def test_a_node_loads_what_it_uses(node, most):
    program = PROGRAM.format(node=f"dynid_ros.nodes.{node}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    megabytes, modules = done.stdout.splitlines()
    loaded = modules.split()
    assert not [name for name in loaded if name.startswith(HEAVY)]
    assert len([name for name in loaded if name.startswith("dynid_ros.")]) <= most
    assert int(megabytes) <= 75
