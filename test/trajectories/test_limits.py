import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits

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


def test_given_limits_narrow_those_of_the_urdf():
    arm = robot(("revolute", LIMIT), ("revolute", LIMIT))
    limits = MotionLimits.of(arm, 4.0, position_lower=[-0.5, np.nan], position_upper=1.5, velocity_limits=[np.nan, 1.0])
    np.testing.assert_array_equal(limits.lower, [-0.5, -1])
    np.testing.assert_array_equal(limits.upper, [1.5, 1.5])
    np.testing.assert_array_equal(limits.velocity, [3, 1])


def test_continuous_joint_turns_from_minus_pi_to_pi_unless_told_otherwise():
    arm = robot(("continuous", '<limit velocity="2" effort="1"/>'))
    limits = MotionLimits.of(arm, 1.0)
    assert (limits.lower[0], limits.upper[0]) == (-np.pi, np.pi)
    limits = MotionLimits.of(arm, 1.0, position_lower=-6.0, position_upper=6.0)
    assert (limits.lower[0], limits.upper[0]) == (-6.0, 6.0)


ZEROS = '<limit lower="0" upper="0" velocity="0" effort="0"/>'


@pytest.mark.parametrize(
    ("joint", "arguments", "message"),
    [
        (("revolute", ""), {}, "position_lower of joint 'j1' is not in the robot's description; give it"),
        (("prismatic", ""), {}, "position_lower of joint 'j1' is not in"),
        (("revolute", ZEROS), {}, "position_lower of joint 'j1' is not in"),
        (("continuous", ""), {}, "velocity_limits of joint 'j1' is not in"),
        (("revolute", ZEROS), {"position_lower": -1, "position_upper": 1}, "velocity_limits of joint 'j1' is not in"),
        (("revolute", LIMIT), {"acceleration_limits": np.nan}, "acceleration_limits of joint 'j1' is not in"),
        (
            ("revolute", LIMIT),
            {"acceleration_limits": 0.0},
            "acceleration limit of joint 'j1' is 0; it must be positive",
        ),
        (("revolute", LIMIT), {"acceleration_limits": [1.0, 2.0]}, "acceleration_limits: 2 values; give one .* of j1"),
        (
            ("revolute", LIMIT),
            {"position_lower": -1.5},
            "position_lower of joint 'j1' is -1.5, wider than the URDF's -1",
        ),
        (("revolute", LIMIT), {"position_upper": 2.5}, "position_upper of joint 'j1' is 2.5, wider than the URDF's 2"),
        (("revolute", LIMIT), {"velocity_limits": 4.0}, "velocity_limits of joint 'j1' is 4, wider than the URDF's 3"),
        (
            ("revolute", LIMIT),
            {"position_upper": -1.0},
            "position limits of joint 'j1', -1 to -1 rad, leave it no room",
        ),
    ],
)
def test_no_limit_is_invented(joint, arguments, message):
    arguments = {"acceleration_limits": 1.0} | arguments
    with pytest.raises(TrajectoryError, match=message):
        MotionLimits.of(robot(joint), **arguments)


def test_dh_arm_needs_all_limits():
    arm = RobotModel.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    with pytest.raises(TrajectoryError, match="position_lower of joint 'joint_1' is not in"):
        MotionLimits.of(arm, 1.0)
    limits = MotionLimits.of(arm, 1.0, position_lower=-1, position_upper=1, velocity_limits=2)
    assert limits.upper[0] == 1.0


def test_spread_poses_fill_the_range_and_stay_inside():
    arm = robot(("revolute", LIMIT), ("continuous", '<limit velocity="2" effort="1"/>'))
    limits = MotionLimits.of(arm, 1.0, position_lower=[np.nan, -9.0], position_upper=[np.nan, 9.0])
    poses = limits.poses(128, [0.2, 0.1])
    assert poses.shape == (128, 2)
    assert np.all((poses >= [-0.8, -np.pi]) & (poses <= [1.8, np.pi]))
    np.testing.assert_allclose(poses.mean(axis=0), [0.5, 0.0], atol=0.05)
    with pytest.raises(TrajectoryError, match="joint 'j1' has no room left"):
        limits.poses(16, [1.5, 0.1])


def test_spread_poses_are_where_the_limits_are():
    names, units = ("beyond", "turns", "slides"), ("rad", "rad", "m")
    limits = MotionLimits(names, units, np.array([3.5, -1.0, -9.0]), np.array([5.0, 9.0, 9.0]), 1.0, 1.0)
    poses = limits.poses(128)
    np.testing.assert_allclose(poses.min(axis=0), [3.5, -1.0, -9.0], atol=0.2)
    np.testing.assert_allclose(poses.max(axis=0), [5.0, 2 * np.pi - 1, 9.0], atol=0.2)


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


def test_infinite_torque_limit_does_not_undo_the_urdfs():
    np.testing.assert_array_equal(MotionLimits.of(robot(("revolute", LIMIT)), 4.0, torque_limits=np.inf).torque, [40])


@pytest.mark.parametrize(
    ("joint", "arguments", "message"),
    [
        (LIMIT, {"torque_limits": 41.0}, "torque_limits of joint 'j1' is 41, wider than the URDF's 40"),
        (
            LIMIT,
            {"torque_limits": 0.0},
            "torque limit of joint 'j1' is 0; it must be positive, at most 1e.09; give torque_limits",
        ),
        (LIMIT, {"torque_limits": -1.0}, "torque limit of joint 'j1' is -1; it must be positive"),
        (
            LIMIT,
            {"jerk_limits": 0.0},
            "jerk limit of joint 'j1' is 0; it must be positive, at most 1e.09; give jerk_limits",
        ),
        (LIMIT, {"jerk_limits": [1.0, 2.0]}, "jerk_limits: 2 values; give one"),
        (LIMIT, {"velocity_limits": -1.0}, "velocity limit of joint 'j1' is -1; .* give velocity_limits"),
        (LIMIT, {"position_lower": 1.0, "position_upper": 0.5}, "1 to 0.5 rad, leave it no room; give position_lower"),
        (
            STUCK,
            {},
            "the URDF's position limits of joint 'j1', 2 to 2 rad, leave it no room; correct them, or give",
        ),
        (STUCK, {"position_lower": -1.0}, "the URDF's position limits of joint 'j1', 2 to 2 rad"),
    ],
)
def test_contradiction_names_the_joint_and_the_way_out(joint, arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        MotionLimits.of(robot(("revolute", joint)), **{"acceleration_limits": 1.0} | arguments)


def test_contradiction_of_the_urdf_is_settled_by_the_caller():
    arm = robot(("revolute", STUCK))
    assert MotionLimits.of(arm, 1.0, position_lower=-0.5, position_upper=0.5).lower[0] == -0.5


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
