import planar_arm
import pytest

from dynid_ros.model import RobotModel


@pytest.fixture(scope="session")
def robot():
    """Return the model of the planar arm."""
    return RobotModel.from_urdf(planar_arm.urdf())
