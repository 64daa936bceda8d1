"""Random motions are as wide as limits allow."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.excitation.fourier_problem import MotionRoom
from dynid_ros.excitation.fourier_search import PART, RandomFourier
from dynid_ros.information.torque_information import TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace


@pytest.mark.parametrize("base_frequency", [0.01, 0.2])
def test_with_nothing_in_the_way_each_joint_uses_one_of_its_limits_up(base_frequency):
    """A slow one its range, wherever the pose is that it is drawn about, a quick one its speed or acceleration."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0, torque_limits=np.inf)
    room = MotionRoom(limits, Workspace(robot))
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    random = RandomFourier(robot, limits, room, source, base_frequency=base_frequency, harmonics=3)
    for seed in range(8):
        series = random.draw(np.random.default_rng(seed))
        low, high, speed, acceleration = series.largest()
        assert np.all((limits.lower <= low) & (high <= limits.upper))
        used = (high - low) / (limits.upper - limits.lower), speed / limits.velocity, acceleration / limits.acceleration
        np.testing.assert_allclose(np.max(used, axis=0), PART)
