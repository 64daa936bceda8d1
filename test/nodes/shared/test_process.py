"""The end of a process whose node has a thread of its own."""

import signal
import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

PROGRAM = """
import time
from rclpy.node import Node
from dynid_ros.nodes.shared import process, steady_thread

steady_thread.PATIENCE = 0.2


class Working(Node):
    def __init__(self):
        super().__init__("working")
        self.steady = steady_thread.SteadyThread(self, self.work, 0.01)

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
def test_a_node_is_not_destroyed_under_a_thread_that_does_not_end(seconds, destroyed):
    program = PROGRAM.format(seconds=seconds)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "works\n"
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30.0)
        finally:
            process.kill()
    assert (process.returncode, "destroyed" in output) == (0, destroyed)
