"""Test that the demo never reaches a robot: it stays on this computer and on a ROS domain without drivers."""

import os
from contextlib import suppress
from types import SimpleNamespace

import pytest
import rclpy
from helpers.waiting import START_TIMEOUT_S, wait
from sensor_msgs.msg import JointState

from dynid_ros.demo.arm import require_simulation
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.process import alone, own_domain


@pytest.fixture(autouse=True)
def caller(monkeypatch):
    """Set the environment of a user who works with a robot."""
    environment = {"ROS_DOMAIN_ID": "7", "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "ROS_STATIC_PEERS": "127.0.0.1"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_domain_and_network_of_the_caller_are_ignored(tmp_path):
    with alone(tmp_path):
        assert os.environ["ROS_DOMAIN_ID"] not in ("", "0", "7")
        assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
        assert "ROS_STATIC_PEERS" not in os.environ


def test_used_domain_is_refused(tmp_path):
    with own_domain() as domain:
        pass
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=int(domain))
    node = rclpy.create_node("driver", context=context)
    try:
        with pytest.raises(DynidError, match=f"somebody is on ROS domain {domain}"), alone(tmp_path, domain):
            pass
    finally:
        node.destroy_node()
        context.shutdown()

    def is_free():
        """Return whether the domain is free again; discovery takes a moment, and another test may use it."""
        with suppress(DynidError), alone(tmp_path, domain):
            return os.environ["ROS_DOMAIN_ID"] == domain

    wait(is_free, START_TIMEOUT_S)


@pytest.mark.parametrize("domain", ["0", "101", "-3", "robot", "²"])
def test_invalid_domain_is_refused(tmp_path, domain):
    with pytest.raises(DynidError, match="expected a number from 1 to 100"), alone(tmp_path, domain):
        pass


def test_driver_besides_the_simulator_is_refused(domain):
    rclpy.init()
    simulator, driver = (rclpy.create_node(name) for name in ("simulator", "driver"))
    try:
        simulator.create_publisher(JointState, "joint_states", 1)
        require_simulation(simulator)
        publisher = driver.create_publisher(JointState, "joint_states", 1)
        wait(lambda: simulator.count_publishers("/joint_states") == 2)
        with pytest.raises(DynidError, match="driver publishes joint_states, too"):
            require_simulation(simulator)
        driver.destroy_publisher(publisher)
    finally:
        simulator.destroy_node()
        driver.destroy_node()


class SlowDiscovery:
    """ROS graph that knows the name of the publisher of joint states only in the third query."""

    def __init__(self, name):
        self.names = ["_NODE_NAME_UNKNOWN_", "_NODE_NAME_UNKNOWN_", name]

    def get_publishers_info_by_topic(self, topic):
        """Return the publisher."""
        name = self.names.pop(0) if len(self.names) > 1 else self.names[0]
        return [SimpleNamespace(node_name=name, node_namespace="/")]


def test_publisher_name_may_be_discovered_late():
    require_simulation(SlowDiscovery("simulator"))
    with pytest.raises(DynidError, match="driver publishes"):
        require_simulation(SlowDiscovery("driver"))
