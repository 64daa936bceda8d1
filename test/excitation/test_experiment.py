"""Test the settings that all designed experiments share."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.collision import Bodies
from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import experiment as module
from dynid_ros.excitation.experiment import Experiment
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf
from dynid_ros.trajectories import MotionLimits, Workspace

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 8.0)
WORKSPACE = Workspace(ROBOT, 0.1, 0.1)


def test_refuses_limits_that_almost_prevent_motion():
    for changed in ({"acceleration": np.array([8.0, 1e-9, 8.0])}, {"velocity": np.array([2.0, 1e-6, 2.0])}):
        with pytest.raises(TrajectoryError, match=r"joint 'joint_2' takes .* s for a tenth of its range"):
            Experiment(ROBOT, replace(LIMITS, **changed), WORKSPACE)


def test_guards_narrow_the_limits_of_a_plan():
    guards = {"position_margin": 0.2, "speed_fraction": 0.6, "travel_speed_fraction": 0.3, "torque_fraction": 0.5}
    experiment = Experiment(ROBOT, LIMITS, WORKSPACE, **guards)
    for limits, speed in ((experiment.design_limits, 0.6), (experiment.transit_limits, 0.3)):
        np.testing.assert_allclose(limits.velocity, speed * LIMITS.velocity)
        np.testing.assert_allclose(limits.acceleration, 0.8 * LIMITS.acceleration)
    np.testing.assert_allclose(experiment.design_limits.lower, LIMITS.lower + 0.2)
    np.testing.assert_allclose(experiment.design_limits.upper, LIMITS.upper - 0.2)
    np.testing.assert_allclose(experiment.design_limits.torque, 0.5 * LIMITS.torque)


def test_hint_lists_all_link_pairs_that_are_often_too_near(monkeypatch):
    monkeypatch.setattr(module, "MAX_PAIRS_IN_HINT", 1)
    robot = RobotModel.from_urdf(demo_arm_urdf())
    workspace = Workspace(robot, clearance=0.3, bodies=Bodies.of(robot))
    (hint,) = Experiment(robot, MotionLimits.of(robot, 8.0), workspace).hints()
    assert f"and {len(workspace.close_pairs) - 1} more" in hint
    assert all(f"{a}:{b}" in hint for a, b in workspace.close_pairs)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"position_margin": -0.1}, "position_margin is -0.1; it must be zero or more"),
        ({"position_margin": 2.6}, "joint 'joint_1' has no room left between its limits, less position_margin"),
        *(
            ({name: value}, f"{name} is {value}; it must be above 0 and at most 1")
            for name in ("speed_fraction", "travel_speed_fraction", "torque_fraction")
            for value in (0.0, 1.01)
        ),
    ],
)
def test_refuses_invalid_guards(setting, message):
    with pytest.raises(TrajectoryError, match=message):
        Experiment(ROBOT, LIMITS, WORKSPACE, **setting)
