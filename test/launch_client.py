"""Provide a test case that calls services of launched nodes."""

import unittest

import rclpy


class LaunchClient(unittest.TestCase):
    """Test case with a ROS node for each test."""

    def setUp(self):
        rclpy.init()
        self.node = rclpy.create_node("launch_client")

    def tearDown(self):
        self.node.destroy_node()
        rclpy.shutdown()

    def call(self, kind, name):
        client = self.node.create_client(kind, name)
        assert client.wait_for_service(timeout_sec=90.0), f"{name} did not come up"
        future = client.call_async(kind.Request())
        rclpy.spin_until_future_complete(self.node, future, timeout_sec=60.0)
        return future.result()
