import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories import MotionLimits, Trajectory, check_limits, check_start, move

JOINTS = ("a", "b")


def limits(**changes):
    values = {"lower": [-1.0, -2.0], "upper": [1.0, 2.0], "velocity": [1.0, 1.0], "acceleration": [2.0, 2.0]} | changes
    return MotionLimits(
        JOINTS, ("rad", "m"), *(np.array(values[k]) for k in ("lower", "upper", "velocity", "acceleration"))
    )


def test_motion_within_limits_passes_up_to_the_limit():
    check_limits(move(JOINTS, [-1.0, -2.0], [1.0, 2.0], 7.5), limits())


@pytest.mark.parametrize(
    ("goal", "duration", "message"),
    [
        ([0.5, 2.3], 10.0, r"joint 'b' would reach position 2.3 m at 10.000 s; its limit is 2 m$"),
        ([-1.2, 0.0], 10.0, r"joint 'a' would reach position -1.2 rad at 10.000 s; its limit is -1 rad$"),
        ([0.8, 0.0], 1.2, r"joint 'a' would reach speed 1.25 rad/s at 0.600 s; its limit is 1 rad/s$"),
        ([0.0, 0.4], 1.0, r"joint 'b' would reach acceleration 2.309 m/s² at 0.\d+ s; its limit is 2 m/s²$"),
    ],
)
def test_violation_names_joint_time_value_and_bound(goal, duration, message):
    motion = move(JOINTS, [0.0, 0.0], goal, duration)
    for trajectory in (motion, motion.sample(50.0)):
        with pytest.raises(TrajectoryError, match=message):
            check_limits(trajectory, limits())


@pytest.mark.parametrize("field", ["position", "velocity", "acceleration"])
def test_value_that_is_not_finite_is_named(field):
    motion = move(JOINTS, [0.0, 0.0], [0.5, 0.5], 5.0).sample(10.0)
    getattr(motion, field)[20, 1] = np.nan
    with pytest.raises(TrajectoryError, match=f"{field} of joint 'b' is nan at 2.000 s"):
        check_limits(motion, limits())


@pytest.mark.parametrize(("step", "slope"), [(0.05, 0.0), (0.0, 0.05)], ids=["position", "velocity"])
def test_jump_between_samples_is_found(step, slope):
    motion = move(JOINTS, [0.0, 0.0], [0.5, 0.5], 5.0).sample(50.0)
    motion.position[120:, 0] += step + slope * (motion.time[120:] - 2.4)
    motion.velocity[120:, 0] += slope
    with pytest.raises(TrajectoryError, match=r"joint 'a' would reach (speed|acceleration) .* at 2\.(3[89]|4)\d* s"):
        check_limits(motion, limits())


def test_excursion_between_two_samples_is_found():
    """Both samples are inside; the polynomial between them is not."""
    motion = Trajectory(JOINTS, [0.0, 4.0], [[0.9, 0.0], [0.9, 0.0]], [[0.5, 0], [-0.5, 0]], np.zeros((2, 2)))
    with pytest.raises(TrajectoryError, match=r"joint 'a' would reach position 1\.\d+ rad at 2.000 s"):
        check_limits(motion, limits(acceleration=[9.0, 9.0]))


def test_limits_of_other_joints_do_not_fit():
    with pytest.raises(TrajectoryError, match="the motion is of joints"):
        check_limits(move(("b", "a"), [0, 0], [0.1, 0.1], 1.0), limits())


def test_motion_starts_where_the_arm_is():
    motion = move(JOINTS, [0.1, 0.2], [0.5, 0.5], 5.0)
    check_start(motion, [0.105, 0.195])
    with pytest.raises(TrajectoryError, match=r"starts at 0.2 of joint 'b', which is at 0.22; .* difference of 0.01"):
        check_start(motion, [0.1, 0.22])
    check_start(motion, [0.1, 0.22], [0.01, 0.03])
    with pytest.raises(TrajectoryError, match="which is at nan"):
        check_start(motion, [np.nan, 0.2])
    moving = Trajectory(JOINTS, [0.0, 1.0], np.zeros((2, 2)), [[0.0, 0.2], [0, 0]], np.zeros((2, 2)))
    with pytest.raises(TrajectoryError, match=r"starts with velocity 0.2 of joint 'b', not at rest"):
        check_start(moving, [0.0, 0.0])
