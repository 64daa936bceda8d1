import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, check_limits, check_start, check_torque, move

JOINTS = ("a", "b")


def limits(**changes):
    values = {"lower": [-1.0, -2.0], "upper": [1.0, 2.0], "velocity": [1.0, 1.0], "acceleration": [2.0, 2.0]} | changes
    return MotionLimits(JOINTS, ("rad", "m"), **{what: np.array(value) for what, value in values.items()})


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


def test_jerk_is_checked_where_it_is_limited():
    motion = move(JOINTS, [0.0, 0.0], [0.5, 0.1], 2.0)
    check_limits(motion, limits())
    check_limits(motion, limits(jerk=[60 * 0.5 / 8, np.inf]))
    for trajectory in (motion, motion.sample(50.0)):
        with pytest.raises(
            TrajectoryError, match=r"joint 'a' would reach jerk 3.75 rad/s³ at [02].000 s; its limit is 3.7 rad/s³$"
        ):
            check_limits(trajectory, limits(jerk=[3.7, 3.7]))


def test_sampled_motion_of_several_moves_needs_no_more_jerk():
    """Samples that straddle the start of a move would: a quintic that is at rest first must catch up."""
    moves = [([0.0, 0.0], [0.3, 0.1], 1.003), ([0.3, 0.1], [0.3, 0.1], 0.511), ([0.3, 0.1], [0.0, 0.3], 1.217)]
    motion = Trajectory.join([move(JOINTS, *part) for part in moves])
    most = np.abs(motion.jerk_peaks()[1]).max(axis=0)
    for rate in (20.0, 50.0, 125.0):
        check_limits(motion.sample(rate), limits(jerk=most))
    time = np.arange(0.0, motion.duration, 0.02)
    with pytest.raises(TrajectoryError, match="would reach jerk"):
        check_limits(Trajectory(JOINTS, time, *motion.at(time)), limits(jerk=most))


ARM = RobotModel.from_urdf(planar_arm.urdf())


def arm_limits(torque=np.inf):
    return MotionLimits(ARM.joint_names, ("rad",) * 3, -2.5, 2.5, 3.0, 9.0, torque=torque)


def test_torque_of_the_nominal_arm_is_checked():
    """At rest with the arm stretched the torque is known by hand."""
    rest = move(ARM.joint_names, np.zeros(3), np.zeros(3), 1.0)
    needed = np.abs(planar_arm.gravity_torque([0.0, 0.0, 0.0]))
    check_torque(rest, arm_limits(), ARM)
    check_torque(rest, arm_limits([1.0, *1.0001 * needed[1:]]), ARM)
    check_torque(rest, arm_limits([1.0, *1.26 * needed[1:]]), ARM, 0.2)
    with pytest.raises(
        TrajectoryError,
        match=rf"joint 'joint_2' would need -{needed[1]:.4g} N m at 0.000 s; allowed are 10.8 N m, its limit of 12 N m "
        "less a margin of 10 %",
    ):
        check_torque(rest, arm_limits([1.0, 12.0, 50.0]), ARM, 0.1)


def test_torque_of_acceleration_is_checked_between_samples():
    motion = move(ARM.joint_names, [-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], 1.2)
    time = np.linspace(0.0, 1.2, 2401)
    most = np.abs(ARM.inverse_dynamics(*motion.at(time))).max(axis=0)
    check_torque(motion, arm_limits(1.001 * most), ARM)
    with pytest.raises(TrajectoryError, match=r"joint 'joint_1' would need .* N m at 0.\d+ s"):
        check_torque(motion, arm_limits([0.99 * most[0], np.inf, np.inf]), ARM)


def test_torque_of_an_arm_without_masses_is_not_passed_silently():
    massless = RobotModel(ARM.chain)
    rest = move(ARM.joint_names, np.zeros(3), np.zeros(3), 1.0)
    check_torque(rest, arm_limits(), massless)
    with pytest.raises(
        TrajectoryError, match=r"torque of joints joint_2, joint_3 cannot be checked: .* no mass there; give masses, or"
    ):
        check_torque(rest, arm_limits([np.inf, 10.0, 10.0]), massless)
    with pytest.raises(TrajectoryError, match="the torque margin is 1; it must be 0 or more and below 1"):
        check_torque(rest, arm_limits(), ARM, 1.0)
