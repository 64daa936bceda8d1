"""Test that pytest collects all tests despite ROS's launch_testing, which collects first, and without MuJoCo."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1]
PLUGIN = """
import sys

import pytest

sys.modules["mujoco"] = None

def pytest_pycollect_makemodule(module_path):
    pytest.skip(f"asked for {module_path.name}")
"""


def test_modules_are_collected_and_missing_tools_reported(tmp_path):
    (tmp_path / "plugin.py").write_text(PLUGIN)
    of_one_name = [f"test/{folder}/test_low_pass.py" for folder in ("checks", "signals")]
    with_mujoco = ["test/simulation/test_plant.py", "test/simulation/test_truth.py"]
    last = "test/files/test_bounded.py"
    files = [*of_one_name, "test/launch", *with_mujoco, last]
    options = ["--collect-only", "-q", "-p", "plugin", "-p", "no:hypothesispytest"]
    lines = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=FOLDER,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    for file in (*of_one_name, last):
        assert any(line.startswith(f"{file}::") for line in lines), lines
    skipped = [line for line in lines if line.startswith("SKIPPED") and "mujoco is not installed" in line]
    assert sum(int(line.split("[")[1].split("]")[0]) for line in skipped) == len(with_mujoco), lines
