"""The launch file of the demo brings up all its nodes; the first act begins."""

import tempfile
import unittest

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

from launch_together import launched

FOLDER = tempfile.TemporaryDirectory()


@pytest.mark.launch_test
def generate_test_description():
    return launched({"demo": {"output": FOLDER.name}})


class TestDemo(unittest.TestCase):
    def test_first_act(self, proc_output):
        proc_output.assertWaitFor("1/", timeout=60.0, stream="stdout")
