from itertools import pairwise

import numpy as np
import pytest

from dynid_ros.excitation.rotation_search import Rotation
from dynid_ros.excitation.static_rotation import stepped_rotation
from dynid_ros.trajectories import MotionLimits, check_limits

JOINTS = ("a", "b", "c")
LIMITS = MotionLimits(
    JOINTS, ("rad", "rad", "m"), np.full(3, -3.0), np.full(3, 3.0), np.array([1.0, 2.0, 0.5]), np.array([4.0, 8.0, 2.0])
)
APPROACH = np.array([0.05, 0.08, 0.01])
STEPS, DWELL = 5, 0.3


@pytest.fixture(scope="module")
def planned():
    rotation = Rotation(1, np.array([0.4, 0.2, -0.3]), -0.8, 1.2, np.pi / 2, 1.0)
    return stepped_rotation(rotation, LIMITS, APPROACH, STEPS, DWELL)


def test_dwells_are_at_equal_steps_up_and_down(planned):
    motion, dwells = planned
    angles = [-0.8, -0.3, 0.2, 0.7, 1.2]
    expected = [[0.4, angle, -0.3] for angle in angles + angles[::-1]]
    assert [dwell.direction for dwell in dwells] == [1] * STEPS + [-1] * STEPS
    assert {dwell.joint for dwell in dwells} == {"b"}
    for dwell, pose in zip(dwells, expected, strict=True):
        assert dwell.end - dwell.start == pytest.approx(DWELL)
        position, velocity, acceleration = motion.at(np.linspace(dwell.start, dwell.end, 20))
        np.testing.assert_allclose(position, np.tile(pose, (20, 1)), atol=1e-12)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        np.testing.assert_allclose(acceleration, 0.0, atol=1e-7)


def test_every_joint_arrives_at_every_dwell_in_the_same_direction(planned):
    """What makes the sign of Coulomb friction known: the last move of each joint, by at least its approach."""
    motion, dwells = planned
    for dwell, before in zip(dwells, [0.0, *(dwell.end for dwell in dwells)], strict=False):
        position = motion.at(np.linspace(before, dwell.start, 2000))[0]
        travel = dwell.direction * (position[-1] - position)
        assert np.all(travel.max(axis=0) >= APPROACH - 1e-9)
        last = np.argmax(travel, axis=0)
        for joint, start in enumerate(last):
            assert np.all(np.diff(dwell.direction * position[start:, joint]) >= -1e-12)


def test_motion_is_smooth_and_within_limits(planned):
    motion, _ = planned
    check_limits(motion, LIMITS)
    time = np.arange(0.0, motion.duration, 1e-4)
    _, velocity, acceleration = motion.at(time)
    assert np.abs(np.diff(acceleration, axis=0)).max() < 0.05
    np.testing.assert_allclose(np.gradient(velocity, time, axis=0), acceleration, atol=0.02)


def test_holding_joints_move_no_further_than_their_approach(planned):
    motion, _ = planned
    held = motion.at(np.arange(0.0, motion.duration, 0.001))[0][:, [0, 2]] - [0.4, -0.3]
    np.testing.assert_allclose(held.max(axis=0), APPROACH[[0, 2]], atol=1e-6)
    np.testing.assert_allclose(held.min(axis=0), -APPROACH[[0, 2]], atol=1e-6)


def test_at_the_last_step_the_rotating_joint_comes_back_from_beyond(planned):
    """So that it arrives there downwards too; at the first step, where it ends, nothing more is to do."""
    motion, dwells = planned
    last, first_down = dwells[len(dwells) // 2 - 1], dwells[len(dwells) // 2]
    between = motion.at(np.linspace(last.end, first_down.start, 501))[0]
    assert np.ptp(between[:, 1]) == pytest.approx(APPROACH[1], abs=1e-6)
    np.testing.assert_allclose(between[0], between[-1], atol=1e-9)
    assert motion.duration == pytest.approx(dwells[-1].end)


def test_time_is_not_wasted(planned):
    """Some joint is at its limit in every move from dwell to dwell."""
    motion, dwells = planned
    for before, after in pairwise(dwells[:5]):
        _, velocity, acceleration = motion.at(np.linspace(before.end, after.start, 2001))
        used = max((np.abs(velocity) / LIMITS.velocity).max(), (np.abs(acceleration) / LIMITS.acceleration).max())
        assert used == pytest.approx(1.0, abs=1e-3)
