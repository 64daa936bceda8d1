import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories import MotionInProgress, move

MOTION = MotionInProgress(move(("a", "b"), [0.0, 0.0], [1.0, 0.0], 4.0), 100.0, np.array([0.1, 0.05]), 0.2)


def test_fraction_and_end_follow_the_clock():
    assert [MOTION.fraction(now) for now in (99.0, 100.0, 101.0, 104.0, 110.0)] == [0.0, 0.0, 0.25, 1.0, 1.0]
    assert [MOTION.done(now) for now in (99.0, 103.9, 104.0)] == [False, False, True]


def test_arm_may_be_as_far_away_as_its_limit():
    """Beyond where the motion is, or has been within the latency."""
    before = MOTION.trajectory.at(1.8)[0][0]
    assert before < 0.45
    MOTION.check([before - 0.099, 0.0], 102.0)
    with pytest.raises(TrajectoryError):
        MOTION.check([before - 0.101, 0.0], 102.0)
    MOTION.check([0.0, 0.0], 99.0)
    MOTION.check([0.59, 0.049], 102.0)
    MOTION.check([0.95, 0.0], 110.0)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ([0.30, 0.0], "joint 'a' is at 0.3, the motion at 0.5: further away than tracking_error_limit 0.1"),
        ([0.5, -0.06], "joint 'b' is at -0.06, the motion at 0: further away than tracking_error_limit 0.05"),
        ([0.5, np.nan], "joint 'b' is at nan"),
    ],
)
def test_arm_too_far_away_is_named(measured, message):
    with pytest.raises(TrajectoryError, match=message):
        MOTION.check(measured, 102.0)
