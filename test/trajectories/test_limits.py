"""test_limits."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, check_limits, check_start, check_torque, move
from dynid_ros.trajectories.limits import describe_weak_joints, holding_torque

JOINTS = ("a", "b")


def limits(**changes):
    values = {"lower": [-1.0, -2.0], "upper": [1.0, 2.0], "velocity": [1.0, 1.0], "acceleration": [2.0, 2.0]} | changes
    return MotionLimits(JOINTS, ("rad", "m"), **{what: np.array(value) for what, value in values.items()})


def both_ways(position, velocity, acceleration):
    """Return the two-sample motion of 1 s, and the one with the opposite sign, of joints that both move so."""
    states = [
        np.repeat(np.array(values, dtype=float)[:, None], 2, axis=1) for values in (position, velocity, acceleration)
    ]
    return [Trajectory(JOINTS, [0.0, 1.0], *(sign * state for state in states)) for sign in (1, -1)]


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


@pytest.mark.parametrize(
    ("quantity", "states", "bounds"),
    [
        ("position", ([0.0, 1.2], [1.2, 1.2], [0, 0]), {"velocity": [2, 2], "lower": [-1, -1], "upper": [1, 1]}),
        ("speed", ([-0.6, 0.6], [1.2, 1.2], [0, 0]), {"velocity": [1, 1]}),
        ("acceleration", ([0.0, 0.9], [-0.6, 2.4], [3.0, 3.0]), {"velocity": [9, 9], "acceleration": [2, 2]}),
        ("jerk", ([0.0, 0.5], [0.0, 1.5], [0.0, 3.0]), {"velocity": [9, 9], "acceleration": [9, 9], "jerk": [2, 2]}),
    ],
)
def test_each_limit_holds_on_both_sides(quantity, states, bounds):
    for motion in both_ways(*states):
        with pytest.raises(TrajectoryError, match=f"would reach {quantity} "):
            check_limits(motion, limits(**bounds))
        check_limits(motion, limits(**{name: 2 * np.array(value) for name, value in bounds.items()}))


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
    for speed in (0.2, -0.2):
        moving = Trajectory(JOINTS, [0.0, 1.0], np.zeros((2, 2)), [[0.0, speed], [0, 0]], np.zeros((2, 2)))
        with pytest.raises(TrajectoryError, match=rf"starts with velocity {speed} of joint 'b', not at rest"):
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


LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="40"/>'
STUCK = '<limit lower="2" upper="2" velocity="3" effort="40"/>'


def robot(*joints: tuple[str, str]) -> RobotModel:
    """A chain of joints of (type, limit element), named j1, j2, …"""
    parts = ['<link name="l0"/>']
    for i, (kind, limit) in enumerate(joints, start=1):
        parts.append(
            f'<link name="l{i}"/><joint name="j{i}" type="{kind}"><parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<axis xyz="0 1 0"/>{limit}</joint>'
        )
    return RobotModel.from_urdf(f'<robot name="r">{"".join(parts)}</robot>')


def test_limits_come_from_the_urdf():
    limits = MotionLimits.of(robot(("revolute", LIMIT), ("prismatic", LIMIT)), [4.0, 5.0])
    assert limits.units == ("rad", "m")
    np.testing.assert_array_equal(limits.lower, [-1, -1])
    np.testing.assert_array_equal(limits.upper, [2, 2])
    np.testing.assert_array_equal(limits.velocity, [3, 3])
    np.testing.assert_array_equal(limits.acceleration, [4, 5])


def test_acceleration_and_jerk_of_urdf_1_2_hold_where_none_are_given():
    described = LIMIT.replace("/>", ' acceleration="6" deceleration="5" jerk="40"/>')
    arm = robot(("revolute", described), ("revolute", LIMIT))
    found = MotionLimits.of(arm, [np.nan, 4.0])
    np.testing.assert_array_equal(found.acceleration, [5, 4])
    np.testing.assert_array_equal(found.jerk, [40, np.inf])
    assert MotionLimits.of(arm, [3.0, 4.0], jerk_limits=[20.0, np.nan]).jerk[0] == 20.0
    with pytest.raises(TrajectoryError, match="acceleration_limits of joint 'j1' is 6, wider than the URDF's 5"):
        MotionLimits.of(arm, 6.0)
    with pytest.raises(TrajectoryError, match=r"acceleration_limits of joint 'j2' .* give it"):
        MotionLimits.of(arm)


def test_placeholder_torque_limits_are_named_and_may_be_replaced():
    arm = RobotModel.from_urdf(planar_arm.urdf(effort=5.0))
    needed = [0.0, planar_arm.G * sum(planar_arm.MOMENTS.values()), planar_arm.G * planar_arm.MOMENTS["joint_3"]]
    np.testing.assert_allclose(holding_torque(arm, arm.limits.lower, arm.limits.upper), needed, atol=1e-9)
    (sentence,) = describe_weak_joints(arm, MotionLimits.of(arm, 1.0))
    assert "joint 'joint_2' needs up to 17 N m" in sentence
    assert "URDF limit is 5: a placeholder?" in sentence
    assert "joint_3" not in sentence
    wide = MotionLimits.of(arm, 1.0, torque_limits=[np.nan, 40.0, 20.0])
    np.testing.assert_array_equal(wide.torque, [5, 40, 20])
    assert describe_weak_joints(arm, wide) == []
    sound = RobotModel.from_urdf(planar_arm.urdf(effort=20.0))
    with pytest.raises(TrajectoryError, match="torque_limits of joint 'joint_2' is 40, wider than the URDF's 20"):
        MotionLimits.of(sound, 1.0, torque_limits=[np.nan, 40.0, np.nan])


def test_continuous_joint_turns_from_minus_pi_to_pi_unless_told_otherwise():
    arm = robot(("continuous", '<limit velocity="2" effort="1"/>'))
    limits = MotionLimits.of(arm, 1.0)
    assert (limits.lower[0], limits.upper[0]) == (-np.pi, np.pi)
    limits = MotionLimits.of(arm, 1.0, position_lower=-6.0, position_upper=6.0)
    assert (limits.lower[0], limits.upper[0]) == (-6.0, 6.0)


ZEROS = '<limit lower="0" upper="0" velocity="0" effort="0"/>'


@pytest.mark.parametrize(
    ("limit", "arguments", "message"),
    [
        ("", {}, r"position_lower of joint 'j1' is not in the robot's description; give it \(--position-lower"),
        (ZEROS, {}, "position_lower of joint 'j1' is not in"),
        (ZEROS, {"position_lower": -1, "position_upper": 1}, "velocity_limits of joint 'j1' is not in"),
        (LIMIT, {"acceleration_limits": np.nan}, "acceleration_limits of joint 'j1' is not in"),
        (LIMIT, {"acceleration_limits": [1.0, 2.0]}, "acceleration_limits: 2 values; give one .* of j1"),
        (LIMIT, {"acceleration_limits": 0.0}, "acceleration limit of joint 'j1' is 0; it must be positive"),
        (LIMIT, {"torque_limits": -1.0}, "torque limit of joint 'j1' is -1; .* at most 1e.09; give torque_limits"),
        (LIMIT, {"jerk_limits": 0.0}, "jerk limit of joint 'j1' is 0; it must be positive, at most 1e.09"),
        (LIMIT, {"position_lower": -1.5}, "position_lower of joint 'j1' is -1.5, wider than the URDF's -1"),
        (LIMIT, {"position_upper": 2.5}, "position_upper of joint 'j1' is 2.5, wider than the URDF's 2"),
        (LIMIT, {"velocity_limits": 4.0}, "velocity_limits of joint 'j1' is 4, wider than the URDF's 3"),
        (LIMIT, {"torque_limits": 41.0}, "torque_limits of joint 'j1' is 41, wider than the URDF's 40"),
        (LIMIT, {"position_lower": 1.0, "position_upper": 0.5}, "1 to 0.5 rad, leave it no room; give position_lower"),
        (STUCK, {}, "the URDF's position limits of joint 'j1', 2 to 2 rad, leave it no room; correct them, or give"),
        (STUCK, {"position_lower": -1.0}, "the URDF's position limits of joint 'j1', 2 to 2 rad"),
    ],
)
def test_missing_and_contradictory_limits_are_named(limit, arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        MotionLimits.of(robot(("revolute", limit)), **{"acceleration_limits": 1.0} | arguments)


def test_spread_poses_fill_the_range_and_stay_inside():
    arm = robot(("revolute", LIMIT), ("continuous", '<limit velocity="2" effort="1"/>'))
    limits = MotionLimits.of(arm, 1.0, position_lower=[np.nan, -9.0], position_upper=[np.nan, 9.0])
    poses = limits.poses(128, [0.2, 0.1])
    assert poses.shape == (128, 2)
    assert np.all((poses >= [-0.8, -np.pi]) & (poses <= [1.8, np.pi]))
    np.testing.assert_allclose(poses.mean(axis=0), [0.5, 0.0], atol=0.05)
    with pytest.raises(TrajectoryError, match="joint 'j1' has no room left"):
        limits.poses(16, [1.5, 0.1])


def test_jerk_and_torque_are_unlimited_unless_known():
    limits = MotionLimits.of(robot(("revolute", LIMIT), ("revolute", ZEROS)), 4.0, **GIVEN)
    np.testing.assert_array_equal(limits.jerk, [np.inf, np.inf])
    np.testing.assert_array_equal(limits.torque, [40, np.inf])  # exporters write 0 for not known
    limits = MotionLimits.of(
        robot(("revolute", LIMIT), ("revolute", ZEROS)), 4.0, **GIVEN, jerk_limits=[np.nan, 50.0], torque_limits=30.0
    )
    np.testing.assert_array_equal(limits.jerk, [np.inf, 50])
    np.testing.assert_array_equal(limits.torque, [30, 30])
    bare = MotionLimits(("a", "b"), ("rad", "m"), -1.0, 1.0, 2.0, 3.0)
    np.testing.assert_array_equal(bare.jerk, [np.inf, np.inf])
    np.testing.assert_array_equal(bare.velocity, [2, 2])


GIVEN = {"position_lower": [np.nan, -1], "position_upper": [np.nan, 1], "velocity_limits": [np.nan, 1.0]}


@pytest.mark.parametrize("field", ["lower", "upper", "velocity", "acceleration", "jerk", "torque"])
def test_limit_that_is_not_a_number_makes_no_limits(field):
    values = dict.fromkeys(("lower", "upper", "velocity", "acceleration", "jerk", "torque"), 1.0) | {"lower": -1.0}
    MotionLimits(("a", "b"), ("rad", "rad"), **values)
    what = "position" if field in ("lower", "upper") else field
    with pytest.raises(TrajectoryError, match=f"the {what} limits? of joint 'b'"):
        MotionLimits(("a", "b"), ("rad", "rad"), **values | {field: np.array([values[field], np.nan])})
    with pytest.raises(
        TrajectoryError, match=f"{field} limits: 3 values; give one for all joints or one for each of a, b"
    ):
        MotionLimits(("a", "b"), ("rad", "rad"), **values | {field: np.ones(3)})


def test_scaled_keeps_jerk_and_torque():
    limits = MotionLimits.of(robot(("revolute", LIMIT)), 4.0, jerk_limits=50.0).scaled(0.5, 0.8)
    assert (limits.velocity[0], limits.acceleration[0], limits.jerk[0], limits.torque[0]) == (1.5, 3.2, 50.0, 40.0)
    assert limits.scaled(1.0, 1.0, 0.5).jerk[0] == 25.0
