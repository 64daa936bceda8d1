"""ROS's launch_testing asks for every module before pytest does; the tests are found all the same."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
GREEDY = """
import pytest

def pytest_pycollect_makemodule(module_path):
    pytest.skip(f"asked for {module_path.name}")
"""


def collect(tmp_path, *files):
    """Lines that pytest says of `files` beside a plugin that, like launch_testing's, lets out what a module raises."""
    (tmp_path / "greedy.py").write_text(GREEDY)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "greedy", *files],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()


def test_modules_of_one_name_are_collected(tmp_path):
    files = [f"test/identification/{kind}/test_document.py" for kind in ("flexible", "links")]
    lines = collect(tmp_path, *files)
    assert all(any(line.startswith(f"{file}::") for line in lines) for file in files), lines


def test_a_launch_test_that_skips_itself_skips_nothing_else(tmp_path):
    file = "test/test_processes.py"
    lines = collect(tmp_path, "test/launch", file)
    assert any(line.startswith(f"{file}::") for line in lines), lines
