import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits

LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="40"/>'


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
