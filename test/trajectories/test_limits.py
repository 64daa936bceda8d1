"""Test limits of motions: sources, checks of motions and torques, and errors."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, check_limits, check_start, check_torque, move
from dynid_ros.trajectories.limits import describe_weak_joints, holding_torque

JOINTS = ("a", "b")


def create_limits(**changes):
    values = {"lower": [-1.0, -2.0], "upper": [1.0, 2.0], "velocity": [1.0, 1.0], "acceleration": [2.0, 2.0], **changes}
    return MotionLimits(JOINTS, ("rad", "m"), **{name: np.array(value) for name, value in values.items()})


def create_mirrored_motions(position, velocity, acceleration):
    """Return a motion of two samples in 1 s, equal for both joints, and its negative."""
    states = [
        np.repeat(np.array(values, dtype=float)[:, None], 2, axis=1) for values in (position, velocity, acceleration)
    ]
    return [Trajectory(JOINTS, [0.0, 1.0], *(sign * state for state in states)) for sign in (1, -1)]


def test_accepts_motions_up_to_the_limits():
    check_limits(move(JOINTS, [-1.0, -2.0], [1.0, 2.0], 7.5), create_limits())


@pytest.mark.parametrize(
    ("goal", "duration", "message"),
    [
        ([0.5, 2.3], 10.0, r"joint 'b' would reach position 2.3 m at 10.000 s; its limit is 2 m$"),
        ([-1.2, 0.0], 10.0, r"joint 'a' would reach position -1.2 rad at 10.000 s; its limit is -1 rad$"),
        ([0.8, 0.0], 1.2, r"joint 'a' would reach speed 1.25 rad/s at 0.600 s; its limit is 1 rad/s$"),
        ([0.0, 0.4], 1.0, r"joint 'b' would reach acceleration 2.309 m/s² at 0.\d+ s; its limit is 2 m/s²$"),
    ],
)
def test_reports_joint_time_value_and_limit(goal, duration, message):
    motion = move(JOINTS, [0.0, 0.0], goal, duration)
    for trajectory in (motion, motion.sample(50.0)):
        with pytest.raises(TrajectoryError, match=message):
            check_limits(trajectory, create_limits())


@pytest.mark.parametrize(
    ("quantity", "states", "bounds"),
    [
        ("position", ([0.0, 1.2], [1.2, 1.2], [0, 0]), {"velocity": [2, 2], "lower": [-1, -1], "upper": [1, 1]}),
        ("speed", ([-0.6, 0.6], [1.2, 1.2], [0, 0]), {"velocity": [1, 1]}),
        ("acceleration", ([0.0, 0.9], [-0.6, 2.4], [3.0, 3.0]), {"velocity": [9, 9], "acceleration": [2, 2]}),
        ("jerk", ([0.0, 0.5], [0.0, 1.5], [0.0, 3.0]), {"velocity": [9, 9], "acceleration": [9, 9], "jerk": [2, 2]}),
    ],
)
def test_limits_apply_in_both_directions(quantity, states, bounds):
    for motion in create_mirrored_motions(*states):
        with pytest.raises(TrajectoryError, match=f"would reach {quantity} "):
            check_limits(motion, create_limits(**bounds))
        check_limits(motion, create_limits(**{name: 2 * np.array(value) for name, value in bounds.items()}))


@pytest.mark.parametrize("field", ["position", "velocity", "acceleration"])
def test_reports_values_that_are_not_finite(field):
    motion = move(JOINTS, [0.0, 0.0], [0.5, 0.5], 5.0).sample(10.0)
    getattr(motion, field)[20, 1] = np.nan
    with pytest.raises(TrajectoryError, match=f"{field} of joint 'b' is nan at 2.000 s"):
        check_limits(motion, create_limits())


@pytest.mark.parametrize(("step", "slope"), [(0.05, 0.0), (0.0, 0.05)], ids=["position", "velocity"])
def test_detects_jumps_between_samples(step, slope):
    motion = move(JOINTS, [0.0, 0.0], [0.5, 0.5], 5.0).sample(50.0)
    motion.position[120:, 0] += step + slope * (motion.time[120:] - 2.4)
    motion.velocity[120:, 0] += slope
    with pytest.raises(TrajectoryError, match=r"joint 'a' would reach (speed|acceleration) .* at 2\.(3[89]|4)\d* s"):
        check_limits(motion, create_limits())


def test_detects_excursions_between_samples():
    """Both samples are within the limits; the polynomial between them is not."""
    motion = Trajectory(JOINTS, [0.0, 4.0], [[0.9, 0.0], [0.9, 0.0]], [[0.5, 0], [-0.5, 0]], np.zeros((2, 2)))
    with pytest.raises(TrajectoryError, match=r"joint 'a' would reach position 1\.\d+ rad at 2.000 s"):
        check_limits(motion, create_limits(acceleration=[9.0, 9.0]))


def test_refuses_limits_of_other_joints():
    with pytest.raises(TrajectoryError, match="the motion is of joints"):
        check_limits(move(("b", "a"), [0, 0], [0.1, 0.1], 1.0), create_limits())


def test_motion_must_start_at_the_measured_position():
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


def test_checks_jerk_where_it_is_limited():
    motion = move(JOINTS, [0.0, 0.0], [0.5, 0.1], 2.0)
    check_limits(motion, create_limits())
    check_limits(motion, create_limits(jerk=[60 * 0.5 / 8, np.inf]))
    for trajectory in (motion, motion.sample(50.0)):
        with pytest.raises(TrajectoryError, match=r"joint 'a' would reach jerk 3.75 rad/s³ at [02].000 s"):
            check_limits(trajectory, create_limits(jerk=[3.7, 3.7]))


ARM = RobotModel.from_urdf(planar_arm.urdf())


def create_arm_limits(torque=np.inf):
    return MotionLimits(ARM.joint_names, ("rad",) * 3, -2.5, 2.5, 3.0, 9.0, torque=torque)


def test_checks_torque_of_the_nominal_arm():
    """The torque of the stretched arm at rest is known in closed form."""
    rest = move(ARM.joint_names, np.zeros(3), np.zeros(3), 1.0)
    needed = np.abs(planar_arm.gravity_torque([0.0, 0.0, 0.0]))
    check_torque(rest, create_arm_limits(), ARM)
    check_torque(rest, create_arm_limits([1.0, *1.0001 * needed[1:]]), ARM)
    check_torque(rest, create_arm_limits([1.0, *1.26 * needed[1:]]), ARM, 0.2)
    message = rf"joint 'joint_2' would need -{needed[1]:.4g} N m at 0.000 s; allowed are 10.8 N m, its limit of 12 N m"
    with pytest.raises(TrajectoryError, match=message):
        check_torque(rest, create_arm_limits([1.0, 12.0, 50.0]), ARM, 0.1)


def test_refuses_to_check_torques_without_masses():
    massless = RobotModel(ARM.chain)
    rest = move(ARM.joint_names, np.zeros(3), np.zeros(3), 1.0)
    check_torque(rest, create_arm_limits(), massless)
    with pytest.raises(TrajectoryError, match=r"torque of joints joint_2, joint_3 cannot be checked: .* no mass there"):
        check_torque(rest, create_arm_limits([np.inf, 10.0, 10.0]), massless)
    with pytest.raises(TrajectoryError, match="the torque margin is 1; it must be 0 or more and below 1"):
        check_torque(rest, create_arm_limits(), ARM, 1.0)


LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="40"/>'
EMPTY_RANGE = '<limit lower="2" upper="2" velocity="3" effort="40"/>'


def create_chain(*joints: tuple[str, str]) -> RobotModel:
    """Return a chain of joints given as (type, limit element), named j1, j2, …"""
    parts = ['<link name="l0"/>']
    for i, (kind, limit) in enumerate(joints, start=1):
        parts.append(
            f'<link name="l{i}"/><joint name="j{i}" type="{kind}"><parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<axis xyz="0 1 0"/>{limit}</joint>'
        )
    return RobotModel.from_urdf(f'<robot name="r">{"".join(parts)}</robot>')


def test_reads_limits_from_the_urdf():
    limits = MotionLimits.of(create_chain(("revolute", LIMIT), ("prismatic", LIMIT)), [4.0, 5.0])
    assert limits.units == ("rad", "m")
    np.testing.assert_array_equal(limits.lower, [-1, -1])
    np.testing.assert_array_equal(limits.upper, [2, 2])
    np.testing.assert_array_equal(limits.velocity, [3, 3])
    np.testing.assert_array_equal(limits.acceleration, [4, 5])


def test_reads_acceleration_and_jerk_limits_of_urdf_1_2():
    described = LIMIT.replace("/>", ' acceleration="6" deceleration="5" jerk="40"/>')
    arm = create_chain(("revolute", described), ("revolute", LIMIT))
    limits = MotionLimits.of(arm, [np.nan, 4.0])
    np.testing.assert_array_equal(limits.acceleration, [5, 4])
    np.testing.assert_array_equal(limits.jerk, [40, np.inf])
    assert MotionLimits.of(arm, [3.0, 4.0], jerk_limits=[20.0, np.nan]).jerk[0] == 20.0
    with pytest.raises(TrajectoryError, match="acceleration_limits of joint 'j1' is 6, wider than the URDF's 5"):
        MotionLimits.of(arm, 6.0)
    with pytest.raises(TrajectoryError, match=r"acceleration_limits of joint 'j2' .* give it"):
        MotionLimits.of(arm)


def test_reports_placeholder_torque_limits():
    arm = RobotModel.from_urdf(planar_arm.urdf(effort=5.0))
    needed = [0.0, planar_arm.G * sum(planar_arm.MOMENTS.values()), planar_arm.G * planar_arm.MOMENTS["joint_3"]]
    np.testing.assert_allclose(holding_torque(arm, arm.limits.lower, arm.limits.upper), needed, atol=1e-9)
    (remark,) = describe_weak_joints(arm, MotionLimits.of(arm, 1.0))
    assert "joint 'joint_2' needs up to 17 N m" in remark
    assert "URDF limit is 5: a placeholder?" in remark
    assert "joint_3" not in remark
    wide = MotionLimits.of(arm, 1.0, torque_limits=[np.nan, 40.0, 20.0])
    np.testing.assert_array_equal(wide.torque, [5, 40, 20])
    assert describe_weak_joints(arm, wide) == []
    sound = RobotModel.from_urdf(planar_arm.urdf(effort=20.0))
    with pytest.raises(TrajectoryError, match="torque_limits of joint 'joint_2' is 40, wider than the URDF's 20"):
        MotionLimits.of(sound, 1.0, torque_limits=[np.nan, 40.0, np.nan])


def test_continuous_joints_have_one_revolution_by_default():
    arm = create_chain(("continuous", '<limit velocity="2" effort="1"/>'))
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
        (EMPTY_RANGE, {}, "the URDF's position limits of joint 'j1', 2 to 2 rad, leave it no room; correct them"),
        (EMPTY_RANGE, {"position_lower": -1.0}, "the URDF's position limits of joint 'j1', 2 to 2 rad"),
    ],
)
def test_reports_missing_and_contradictory_limits(limit, arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        MotionLimits.of(create_chain(("revolute", limit)), **{"acceleration_limits": 1.0, **arguments})


def test_random_poses_fill_the_range():
    arm = create_chain(("revolute", LIMIT), ("continuous", '<limit velocity="2" effort="1"/>'))
    limits = MotionLimits.of(arm, 1.0, position_lower=[np.nan, -9.0], position_upper=[np.nan, 9.0])
    poses = limits.poses(128, [0.2, 0.1])
    assert poses.shape == (128, 2)
    assert np.all((poses >= [-0.8, -np.pi]) & (poses <= [1.8, np.pi]))
    np.testing.assert_allclose(poses.mean(axis=0), [0.5, 0.0], atol=0.05)
    with pytest.raises(TrajectoryError, match="joint 'j1' has no room left"):
        limits.poses(16, [1.5, 0.1])


CONFIGURED = {"position_lower": [np.nan, -1], "position_upper": [np.nan, 1], "velocity_limits": [np.nan, 1.0]}


def test_jerk_and_torque_are_unlimited_unless_known():
    arm = create_chain(("revolute", LIMIT), ("revolute", ZEROS))
    limits = MotionLimits.of(arm, 4.0, **CONFIGURED)
    np.testing.assert_array_equal(limits.jerk, [np.inf, np.inf])
    np.testing.assert_array_equal(limits.torque, [40, np.inf])  # exporters write 0 for unknown limits
    limits = MotionLimits.of(arm, 4.0, **CONFIGURED, jerk_limits=[np.nan, 50.0], torque_limits=30.0)
    np.testing.assert_array_equal(limits.jerk, [np.inf, 50])
    np.testing.assert_array_equal(limits.torque, [30, 30])
    bare = MotionLimits(("a", "b"), ("rad", "m"), -1.0, 1.0, 2.0, 3.0)
    np.testing.assert_array_equal(bare.jerk, [np.inf, np.inf])
    np.testing.assert_array_equal(bare.velocity, [2, 2])


@pytest.mark.parametrize("field", ["lower", "upper", "velocity", "acceleration", "jerk", "torque"])
def test_refuses_limits_that_are_not_numbers(field):
    values = {**dict.fromkeys(("upper", "velocity", "acceleration", "jerk", "torque"), 1.0), "lower": -1.0}
    MotionLimits(("a", "b"), ("rad", "rad"), **values)
    quantity = "position" if field in ("lower", "upper") else field
    with pytest.raises(TrajectoryError, match=f"the {quantity} limits? of joint 'b'"):
        MotionLimits(("a", "b"), ("rad", "rad"), **{**values, field: np.array([values[field], np.nan])})
    with pytest.raises(TrajectoryError, match=f"{field} limits: 3 values; give one for all joints"):
        MotionLimits(("a", "b"), ("rad", "rad"), **{**values, field: np.ones(3)})


def test_scaling_keeps_jerk_and_torque_limits():
    limits = MotionLimits.of(create_chain(("revolute", LIMIT)), 4.0, jerk_limits=50.0).scaled(0.5, 0.8)
    assert (limits.velocity[0], limits.acceleration[0], limits.jerk[0], limits.torque[0]) == (1.5, 3.2, 50.0, 40.0)
    assert limits.scaled(1.0, 1.0, 0.5).jerk[0] == 25.0
