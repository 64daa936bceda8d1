"""No two processes that run at once get the same ROS domain."""

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
def few(monkeypatch):
    """Three domains that nothing else uses."""
    monkeypatch.setattr(domains, "DOMAINS", range(221, 224))


def other():
    return subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform != "linux", reason="claims are Linux's")
def test_processes_have_domains_of_their_own_and_leave_them_when_they_end():
    processes = [other() for _ in range(3)]
    theirs = [process.stdout.readline().strip() for process in processes]
    assert len({*theirs, os.environ["ROS_DOMAIN_ID"]}) == 4
    for domain in theirs:
        with claim(f"domain {domain}") as ours:
            assert not ours
    for process in processes:
        process.kill()
        process.communicate()
    for domain in theirs:
        with claim(f"domain {domain}") as ours:
            assert ours


@pytest.mark.skipif(sys.platform != "linux", reason="claims are Linux's")
def test_none_is_given_twice_and_none_on_which_somebody_is(few):
    with own_domain() as first, own_domain() as second:
        (third,) = {"221", "222", "223"} - {first, second}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
            participant.bind(("", 7400 + 250 * int(third) + 10))
            with pytest.raises(DynidError, match="all ROS domains from 221 to 223 are in use"), own_domain():
                pass
        with own_domain() as domain:
            assert domain == third


def test_a_participant_of_ros_is_seen():
    """Also that of a process that is on other domains too, which counts through all of them."""
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
