from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import FourierExcitation, StaticRotation
from dynid_ros.excitation.experiment import GuardedExperiment, repeated
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 8.0)
WORKSPACE = Workspace(ROBOT, 0.1, 0.1)


def test_a_motion_that_ends_elsewhere_goes_back_by_a_safe_way():
    experiment = StaticRotation(ROBOT, LIMITS, WORKSPACE, steps=3, dwell=0.1, sweep=1.0)
    once = experiment.plan()
    assert np.abs(once.trajectory.position[-1] - once.trajectory.position[0]).max() > 0.1
    plan = repeated(once, experiment, 3)
    check_limits(plan.trajectory, LIMITS)
    WORKSPACE.check(plan.trajectory)
    assert plan.duration > 3 * once.duration
    assert len(plan.starts) == 3
    time = np.linspace(0.0, once.duration, 500)
    for start in plan.starts:
        for value, first in zip(plan.trajectory.at(start + time), once.trajectory.at(time), strict=True):
            np.testing.assert_allclose(value, first, atol=1e-9)
    written = plan.as_dict()
    assert written["starts"] == pytest.approx(plan.starts, abs=1e-4)
    assert written["repeat_duration"] == pytest.approx(once.duration, abs=1e-4)
    assert written["dwells"] == once.as_dict()["dwells"]
    assert plan.summary().startswith(f"{plan.duration:.1f} s, 3 times the motion of {once.duration:.1f} s")


def test_periods_follow_one_another():
    settings = {"base_frequency": 0.4, "harmonics": 3, "design_time": 0.0}
    experiment = FourierExcitation(ROBOT, LIMITS, WORKSPACE, **settings)
    plan = repeated(experiment.plan(), experiment, 3)
    periods = FourierExcitation(ROBOT, LIMITS, WORKSPACE, **settings, periods=3).plan()
    time = np.linspace(0.0, periods.duration, 500)
    for value, same in zip(plan.trajectory.at(time), periods.trajectory.at(time), strict=True):
        np.testing.assert_allclose(value, same, atol=1e-9)


def test_limits_by_which_a_joint_hardly_moves_are_refused():
    for changed in ({"acceleration": np.array([8.0, 1e-9, 8.0])}, {"velocity": np.array([2.0, 1e-6, 2.0])}):
        with pytest.raises(TrajectoryError, match=r"joint 'joint_2' takes .* s for a tenth of its range"):
            FourierExcitation(ROBOT, replace(LIMITS, **changed), WORKSPACE)


def test_once_is_the_plan_itself_and_less_is_refused():
    experiment = FourierExcitation(ROBOT, LIMITS, WORKSPACE, base_frequency=0.4, harmonics=3, design_time=0.0)
    plan = experiment.plan()
    assert repeated(plan, experiment, 1) is plan
    with pytest.raises(TrajectoryError, match="repeats is 0; it must be at least 1"):
        repeated(plan, experiment, 0)
    with pytest.raises(TrajectoryError, match=r"repeats is 4611686018427387904: .* more than 8 h"):
        repeated(plan, experiment, 2**62)


def test_each_guard_narrows_what_a_plan_may_use():
    guards = {"position_margin": 0.2, "speed_fraction": 0.6, "travel_speed_fraction": 0.3, "torque_fraction": 0.5}
    experiment = GuardedExperiment(ROBOT, LIMITS, WORKSPACE, **guards)
    for room, speed in ((experiment.room, 0.6), (experiment.slow, 0.3)):
        np.testing.assert_allclose(room.velocity, speed * LIMITS.velocity)
        np.testing.assert_allclose(room.acceleration, 0.8 * LIMITS.acceleration)
    np.testing.assert_allclose(experiment.room.lower, LIMITS.lower + 0.2)
    np.testing.assert_allclose(experiment.room.upper, LIMITS.upper - 0.2)
    np.testing.assert_allclose(experiment.room.torque, 0.5 * LIMITS.torque)


@pytest.mark.parametrize("bend", [-0.5, 0.5])
def test_rests_beyond_the_fraction_of_the_torque_limits_are_not_allowed(bend):
    """Gravity loads joint 2 of the stretched arm with 16.7 N m."""
    limits = replace(LIMITS, torque=np.array([50.0, 20.0, 50.0]))
    pose = np.array([[0.0, 0.0, bend]])
    for fraction, allowed in ((0.5, False), (1.0, True)):
        experiment = GuardedExperiment(ROBOT, limits, torque_fraction=fraction)
        assert experiment.space.allowed(pose).tolist() == [allowed]
