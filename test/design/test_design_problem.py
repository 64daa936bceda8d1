"""Gradient of the criterion and of the excess against differences."""

import numpy as np
import planar_arm
from numerical_gradient import numerical_gradient

from dynid_ros.excitation.fourier_problem import DesignProblem, FourierBasis, MotionRoom
from dynid_ros.information.criteria import CRITERIA
from dynid_ros.information.torque_information import TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace


def test_gradient_is_that_of_what_is_minimised():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    basis = FourierBasis(limits, 0.2, 2, 24)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    room = MotionRoom(limits, Workspace(robot, floor_height=0.1))
    problem = DesignProblem(basis, source, CRITERIA["condition"], room)
    rng = np.random.default_rng(0)
    vector = rng.standard_normal(basis.size)
    _, excess = problem.evaluate(vector, 4.0)
    weights = rng.standard_normal(excess.shape)

    def value(at):
        objective, excess = problem.evaluate(at, 4.0)
        return objective + float(np.sum(weights * excess))

    expected = numerical_gradient(value, vector)
    problem.evaluate(vector, 4.0)
    np.testing.assert_allclose(problem.gradient(weights), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
