"""Test that no two running processes get the same ROS domain."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared import process as domains
from dynid_ros.nodes.shared.process import claim, own_domain

OTHER = """
from dynid_ros.nodes.shared.process import own_domain
with own_domain() as domain:
    print(domain, flush=True)
    input()
"""


@pytest.fixture
def three_domains(monkeypatch):
    """Restrict the choice to three domains that nothing else uses."""
    monkeypatch.setattr(domains, "DOMAINS", range(221, 224))


def start_claiming_process():
    return subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform != "linux", reason="claims are Linux's")
def test_processes_have_separate_domains_until_they_end():
    processes = [start_claiming_process() for _ in range(3)]
    domains_of_processes = [process.stdout.readline().strip() for process in processes]
    assert len({*domains_of_processes, os.environ["ROS_DOMAIN_ID"]}) == 4
    for domain in domains_of_processes:
        with claim(f"domain {domain}") as is_free:
            assert not is_free
    for process in processes:
        process.kill()
        process.communicate()
    for domain in domains_of_processes:
        with claim(f"domain {domain}") as is_free:
            assert is_free


@pytest.mark.skipif(sys.platform != "linux", reason="claims are Linux's")
def test_used_domains_are_not_given(three_domains):
    with own_domain() as first, own_domain() as second:
        (third,) = {"221", "222", "223"} - {first, second}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
            participant.bind(("", 7400 + 250 * int(third) + 10))
            with pytest.raises(DynidError, match="all ROS domains from 221 to 223 are in use"), own_domain():
                pass
        with own_domain() as domain:
            assert domain == third


def test_ros_participant_marks_its_domain_as_used():
    """Participants of one process count through all its domains."""
    rclpy = pytest.importorskip("rclpy")
    with ExitStack() as stack:
        for name in "abcde":
            domain = int(stack.enter_context(own_domain()))
            context = rclpy.Context()
            rclpy.init(context=context, domain_id=domain)
            stack.callback(context.shutdown)
            node = rclpy.create_node(name, context=context)
            stack.callback(node.destroy_node)
            assert domains.in_use(domain)
