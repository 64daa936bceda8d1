"""What tests of nodes share."""

import gc
from contextlib import ExitStack, closing

import planar_arm
import pytest

from dynid_ros.nodes.shared.process import own_domain


@pytest.fixture
def domain():
    """A ROS domain of the test's own.

    What the test before has left behind, until Python collects it, is still there for others on its domain; they were
    seen to wait for ever for services of the same name.
    """
    rclpy = pytest.importorskip("rclpy")
    with own_domain() as number, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", number)
        yield
        rclpy.try_shutdown()
        gc.collect()
        gc.freeze()  # what outlives a test is modules: the collector need not look through them after each


@pytest.fixture
def ros(domain):
    """ROS 2."""
    pytest.importorskip("rclpy").init()


@pytest.fixture
def keep(domain):
    """Function that takes something to `close` when the test has ended, and returns it."""
    with ExitStack() as stack:
        yield lambda made: stack.enter_context(closing(made))


@pytest.fixture
def model_file(tmp_path):
    """`identified.yaml` of the planar arm."""
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
