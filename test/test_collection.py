"""All tests are found: beside ROS's launch_testing, which asks for every module first, and without MuJoCo."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1]
OTHER = "test/files/test_bounded.py"
ASKED_FIRST = """
import pytest

def pytest_pycollect_makemodule(module_path):
    pytest.skip(f"asked for {module_path.name}")
"""
WITHOUT_MUJOCO = """
import sys

sys.modules["mujoco"] = None
"""


def collect(tmp_path, plugin, *files):
    """Lines that pytest says of `files` and OTHER."""
    (tmp_path / "plugin.py").write_text(plugin)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "plugin",
            "-p",
            "no:hypothesispytest",
            *files,
            OTHER,
        ],
        cwd=FOLDER,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()


def has(lines, file):
    return any(line.startswith(f"{file}::") for line in lines)


def test_modules_of_one_name_are_collected(tmp_path):
    files = [f"test/{folder}test_progress.py" for folder in ("", "jobs/")]
    lines = collect(tmp_path, ASKED_FIRST, *files)
    assert all(has(lines, file) for file in files), lines


def test_a_launch_test_that_skips_itself_skips_nothing_else(tmp_path):
    lines = collect(tmp_path, ASKED_FIRST, "test/launch")
    assert has(lines, OTHER), lines


def test_without_mujoco_what_needs_it_is_skipped_and_told(tmp_path):
    lines = collect(tmp_path, WITHOUT_MUJOCO, "test/simulation/test_plant.py", "test/simulation/test_truth.py")
    assert has(lines, OTHER), lines
    assert any(line.startswith("SKIPPED [2]") and "mujoco is not installed" in line for line in lines), lines
