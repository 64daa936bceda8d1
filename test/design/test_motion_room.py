"""Excess over limits, each kind by hand; gradient against differences."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest
from numerical_gradient import numerical_gradient

from dynid_ros.excitation.fourier_problem import DISTANCE, MotionRoom
from dynid_ros.information.torque_information import MotionWithJerk
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = replace(MotionLimits.of(ROBOT, [4.0, 6.0, 8.0], jerk_limits=100.0), torque=np.array([np.inf, 40.0, 20.0]))
WORKSPACE = Workspace(ROBOT, floor_height=0.1, clearance=0.05)


def still():
    return MotionWithJerk(*np.zeros((4, 1, 3))), np.zeros((1, 3))


@pytest.mark.parametrize(
    ("field", "joint", "value", "expected"),
    [
        ("position", 1, 2.6, 0.1 / 2.5),
        ("position", 1, -2.6, 0.1 / 2.5),
        ("velocity", 2, -3.3, 0.1),
        ("acceleration", 0, 5.0, 0.25),
        ("jerk", 1, 120.0, 0.2),
    ],
)
def test_excess_is_a_part_of_the_limit(field, joint, value, expected):
    room = MotionRoom(LIMITS, Workspace(ROBOT))
    motion, torque = still()
    assert room.excess(motion, torque).max() <= 0
    getattr(motion, field)[0, joint] = value
    excess = room.excess(motion, torque)[0]
    assert excess.max() == pytest.approx(expected)
    assert room.names[int(np.argmax(excess))] == f"{field} of joint 'joint_{joint + 1}'"


def test_torque_and_distance():
    room = MotionRoom(LIMITS, WORKSPACE, margin=0.1, clearance=0.02)
    motion, torque = still()
    torque[0] = [1e6, 44.0, 0.0]  # the first joint's is not limited
    excess = room.excess(motion, torque)[0]
    assert excess[: 5 * 3].max() == pytest.approx(44.0 / 40.0 - 0.9)
    distances = WORKSPACE.distances(motion.position).room
    np.testing.assert_allclose(excess[5 * 3 :], (0.02 - distances[0]) / DISTANCE)
    assert len(room.names) == len(excess)


def test_gradient():
    room = MotionRoom(LIMITS, WORKSPACE, margin=0.05, clearance=0.01)
    rng = np.random.default_rng(0)
    motion, torque = MotionWithJerk(*rng.uniform(-2.0, 2.0, (4, 5, 3))), rng.uniform(-50.0, 50.0, (5, 3))
    weights = rng.standard_normal(room.excess(motion, torque).shape)
    by_motion, by_torque = room.gradient(weights)

    def value(*arrays):
        return float(np.sum(room.excess(MotionWithJerk(*arrays[:4]), arrays[4]) * weights))

    arrays = [*motion, torque]
    for k, found in enumerate([*by_motion, by_torque]):
        expected = numerical_gradient(lambda array, k=k: value(*arrays[:k], array, *arrays[k + 1 :]), arrays[k])
        np.testing.assert_allclose(found, expected, atol=1e-6)
