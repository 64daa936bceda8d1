"""What tests of nodes share."""

from contextlib import ExitStack, closing

import planar_arm
import pytest


@pytest.fixture
def ros():
    """ROS 2, on the domain that the tests have of their own."""
    rclpy = pytest.importorskip("rclpy")
    rclpy.init()
    yield
    rclpy.try_shutdown()


@pytest.fixture
def keep():
    """Function that takes something to `close` when the test has ended, and returns it."""
    with ExitStack() as stack:
        yield lambda made: stack.enter_context(closing(made))


@pytest.fixture
def model_file(tmp_path):
    """`identified.yaml` of the planar arm."""
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
