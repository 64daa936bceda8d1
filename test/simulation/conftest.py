import numpy as np
import pendulum as pendulum_model
import pytest

from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import Trajectory


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


@pytest.fixture
def trajectory(demo_robot):
    """Return a motion of the demo arm to a goal and back in 3 s."""
    start = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
    goal = start + np.array([0.4, -0.3, 0.5, -0.6, 0.5, 0.7])
    zeros = np.zeros((3, 6))
    return Trajectory(demo_robot.joint_names, [0.0, 1.5, 3.0], np.array([start, goal, start]), zeros, zeros)
