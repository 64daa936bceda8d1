"""A search goes on as long as a motion that keeps to its limits gets better, and gives up one that is stuck."""

import pickle

import numpy as np
import planar_arm
import pytest

from dynid_ros.excitation import fourier_search as motion_search
from dynid_ros.excitation.fourier_search import MAX_LIMIT_FRACTION, MIN_ROUNDS, SHARPNESS, Iterate, MotionSearch
from dynid_ros.information.criteria import CRITERIA
from dynid_ros.information.torque_information import TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace

# Random motions are as wide as limits allow.


@pytest.mark.parametrize("base_frequency", [0.01, 0.2])
def test_with_nothing_in_the_way_each_joint_uses_one_of_its_limits_up(base_frequency):
    """A slow one its range, wherever the pose is that it is drawn about, a quick one its speed or acceleration."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0, torque_limits=np.inf)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], base_frequency, 3)
    for seed in range(8):
        series = search.draw(np.random.default_rng(seed))
        low, high, speed, acceleration = series.peaks()
        assert np.all((limits.lower <= low) & (high <= limits.upper))
        used = (high - low) / (limits.upper - limits.lower), speed / limits.velocity, acceleration / limits.acceleration
        np.testing.assert_allclose(np.max(used, axis=0), MAX_LIMIT_FRACTION)


@pytest.mark.parametrize(("excess", "expected"), [(0.0, len(SHARPNESS)), (0.5, MIN_ROUNDS + 1)])
def test_only_a_motion_that_is_stuck_is_given_up(monkeypatch, excess, expected):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], 0.1, 2)
    state = search.run_slice(0)
    start, made = state.best, []

    def larger(problem, begun, sharpness):
        """In each round a motion a little larger, and so a little better."""
        del problem, sharpness
        vector = search._basis.vector(start.series) * (1.0 + 1e-4 * (len(made) + 1))
        made.append(search.rate(search._basis.series(vector)))
        return Iterate(vector, excess)

    monkeypatch.setattr(motion_search, "next_iterate", larger)
    while not state.has_ended:
        state = search.run_slice(state)
    assert len(made) == expected
    assert state.best.value == pytest.approx(made[-1].value)
    assert state.best.value < start.value
    assert np.isfinite(state.best.value)


def test_a_slice_made_again_elsewhere_is_the_same_and_little_is_sent_for_it():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], 0.1, 2)
    state = search.run_slice(search.run_slice(0))
    sent = pickle.dumps(search)
    assert len(sent) < 0.5 * len(pickle.dumps(vars(search)))
    elsewhere, again = pickle.loads(sent), pickle.loads(pickle.dumps(state))
    for _ in range(3):
        state, again = search.run_slice(state), elsewhere.run_slice(again)
        np.testing.assert_array_equal(state.iterate.vector, again.iterate.vector)
        np.testing.assert_array_equal(state.iterate.multipliers, again.iterate.multipliers)
        assert state.best.value == again.best.value
