import pendulum as pendulum_model
import pytest

from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel


@pytest.fixture
def pendulum():
    """At zero it hangs out horizontally; it falls towards positive angles."""
    return RobotModel.from_urdf(pendulum_model.urdf())


@pytest.fixture
def turntable():
    """The pendulum with its axis upright: gravity does not act on it."""
    return RobotModel.from_urdf(pendulum_model.urdf(axis="0 0 1"))


@pytest.fixture(scope="session")
def demo_robot():
    return RobotModel.from_urdf(share_path("config/demo_arm.urdf"))
