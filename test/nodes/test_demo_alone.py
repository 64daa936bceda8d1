"""The demo never reaches a robot: it is on this machine, on a domain of its own, and refuses where a driver is."""

import os
from contextlib import suppress
from types import SimpleNamespace

import pytest
import rclpy
from helpers.waiting import START_TIME, wait
from sensor_msgs.msg import JointState

from dynid_ros.demo.arm import require_simulation
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.process import alone, own_domain


@pytest.fixture(autouse=True)
def caller(monkeypatch):
    """Environment of somebody who works with a robot."""
    found = {"ROS_DOMAIN_ID": "7", "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "ROS_STATIC_PEERS": "127.0.0.1"}
    for name, value in found.items():
        monkeypatch.setenv(name, value)


def test_the_callers_domain_and_network_count_for_nothing(tmp_path):
    with alone(tmp_path):
        assert os.environ["ROS_DOMAIN_ID"] not in ("", "0", "7")
        assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
        assert "ROS_STATIC_PEERS" not in os.environ


def test_a_domain_on_which_somebody_is_is_refused(tmp_path):
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

    def admitted():
        """Whether it is free again: the middleware takes a moment, another test may have it meanwhile."""
        with suppress(DynidError), alone(tmp_path, domain):
            return os.environ["ROS_DOMAIN_ID"] == domain

    wait(admitted, START_TIME)


@pytest.mark.parametrize("domain", ["0", "101", "-3", "robot", "²"])
def test_a_domain_that_is_none_is_refused(tmp_path, domain):
    with pytest.raises(DynidError, match="expected a number from 1 to 100"), alone(tmp_path, domain):
        pass


def test_a_driver_beside_the_simulator_is_refused(domain):
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
    """Graph in which the name of the publisher of joint states is known from the third look on."""

    def __init__(self, name):
        self.names = ["_NODE_NAME_UNKNOWN_", "_NODE_NAME_UNKNOWN_", name]

    def get_publishers_info_by_topic(self, topic):
        """Return the publisher."""
        name = self.names.pop(0) if len(self.names) > 1 else self.names[0]
        return [SimpleNamespace(node_name=name, node_namespace="/")]


def test_the_name_of_a_publisher_may_arrive_late():
    require_simulation(SlowDiscovery("simulator"))
    with pytest.raises(DynidError, match="driver publishes"):
        require_simulation(SlowDiscovery("driver"))
