import pendulum as pendulum_model
import pytest

from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel


@pytest.fixture
def pendulum():
    """Return a pendulum that is horizontal at zero and falls towards positive angles."""
    return RobotModel.from_urdf(pendulum_model.urdf())


@pytest.fixture
def turntable():
    """Return the pendulum with a vertical axis, which gravity does not load."""
    return RobotModel.from_urdf(pendulum_model.urdf(axis="0 0 1"))


@pytest.fixture(scope="session")
def demo_robot():
    return RobotModel.from_urdf(share_path("config/demo_arm.urdf"))
