"""Test two arms in two namespaces, started by a launch file that includes those of this package."""

import os
import tempfile
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import launch_testing.actions
import launch_testing.asserts
from launch import LaunchDescription
from launch_client import LaunchClient
from launch_together import included_file
from std_srvs.srv import Trigger

FOLDER = tempfile.TemporaryDirectory()


@pytest.mark.launch_test
def generate_test_description():
    os.chdir(FOLDER.name)  # the folders of the arms are relative paths
    return LaunchDescription([included_file("two_arms"), launch_testing.actions.ReadyToTest()])


class TestTwoArms(LaunchClient):
    def test_each_arm_uses_its_own_namespace_and_folder(self):
        for arm in ("left", "right"):
            answer = self.call(Trigger, f"/{arm}/excitation/design")
            assert answer.success, answer.message
            answer = self.call(Trigger, f"/{arm}/recorder/start")
            assert answer.success, answer.message
            assert self.call(Trigger, f"/{arm}/recorder/stop").success
            assert len(list((Path(FOLDER.name) / arm / "recordings").iterdir())) == 1

    def test_no_node_is_outside_a_namespace(self):
        self.call(Trigger, "/left/simulator/reset")
        global_nodes = {name for name, space in self.node.get_node_names_and_namespaces() if space == "/"}
        assert global_nodes & {"simulator", "excitation", "recorder", "gravity_identification"} == set()


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
