"""What tests of nodes share."""

import planar_arm
import pytest


@pytest.fixture
def ros():
    """ROS 2, on the domain that the tests have of their own."""
    rclpy = pytest.importorskip("rclpy")
    rclpy.init()
    yield
    rclpy.shutdown()


@pytest.fixture
def model_file(tmp_path):
    """`identified.yaml` of the planar arm."""
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
