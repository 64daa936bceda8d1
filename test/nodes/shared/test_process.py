"""Test how a process ends while its node or its middleware still runs."""

import signal
import subprocess
import sys

import pytest

from dynid_ros.nodes.shared.process import ros_process

PROGRAM = """
import time
from rclpy.node import Node
from dynid_ros.nodes.shared import process

process.THREAD_END_TIMEOUT_S = 0.2


class Working(Node):
    def __init__(self):
        super().__init__("working")
        self.steady = process.SteadyThread(self, self.work, 0.01)

    def work(self):
        print("works", flush=True)
        time.sleep({seconds})

    def end(self):
        self.steady.end()

    def destroy_node(self):
        self.end()
        print("destroyed", flush=True)
        super().destroy_node()


process.run_undisturbed(Working)
"""


@pytest.mark.parametrize(("seconds", "destroyed"), [(0.01, True), (60.0, False)])
def test_node_is_destroyed_only_after_its_thread_ends(seconds, destroyed):
    program = PROGRAM.format(seconds=seconds)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "works\n"
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30.0)
        finally:
            process.kill()
    assert (process.returncode, "destroyed" in output) == (0, destroyed)


STUCK = """
import ctypes

import dynid_ros.nodes.shared.process as process
from rclpy.node import Node


class Stuck(Node):
    def __init__(self):
        super().__init__("stuck")
        self.steady = process.SteadyThread(self, lambda: None, 0.01)
        self.create_timer(0.1, lambda: print("spins", flush=True))

    def end(self):
        self.steady.end()

    def destroy_node(self):
        self.end()
        ctypes.PyDLL(None).pause()  # unlike CDLL, PyDLL keeps the interpreter lock


process.DESTROY_TIMEOUT = 1
process.{run}(Stuck)
"""


@pytest.mark.parametrize("run", ["run", "run_undisturbed"])
def test_process_ends_despite_a_stuck_middleware(run):
    with subprocess.Popen([sys.executable, "-c", STUCK.format(run=run)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "spins\n"
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30.0)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGALRM


def test_unreadable_parameter_file_gives_one_error_line(tmp_path, capfd):
    mixed = tmp_path / "mixed.yaml"
    mixed.write_text("/**:\n  ros__parameters:\n    scale: [1, 2.5]\n")
    for path, reason in (
        (mixed, "Sequence should be of same type"),
        (tmp_path / "none.yaml", "Error opening YAML file"),
    ):
        with pytest.raises(SystemExit) as ended, ros_process(["--ros-args", "--params-file", str(path)]):
            pass
        assert ended.value.code == 2
        (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
        assert str(path) in line
        assert reason in line
