"""Provide a ROS domain, an initialized ROS 2 and closing of benches to the tests of nodes."""

import gc
from contextlib import ExitStack, closing

import planar_arm
import pytest

from dynid_ros.nodes.shared.process import own_domain


@pytest.fixture
def domain():
    """Give the test a ROS domain of its own.

    Nodes of an earlier test exist until Python collects them. On a shared domain, tests waited without end for
    services of these nodes.
    """
    rclpy = pytest.importorskip("rclpy")
    with own_domain() as number, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", number)
        yield
        rclpy.try_shutdown()
        gc.collect()
        gc.freeze()  # only modules outlive a test: exclude them from collections


@pytest.fixture
def ros(domain):
    """Initialize ROS 2."""
    pytest.importorskip("rclpy").init()


@pytest.fixture
def keep(domain):
    """Return a function that registers an object to be closed after the test, and returns the object."""
    with ExitStack() as stack:
        yield lambda bench: stack.enter_context(closing(bench))


@pytest.fixture
def urdf_file(tmp_path):
    """Write the URDF of the planar arm and return its path."""
    path = tmp_path / "planar.urdf"
    path.write_text(planar_arm.urdf())
    return path


@pytest.fixture
def model_file(tmp_path):
    """Write `identified.yaml` of the planar arm and return its path."""
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
