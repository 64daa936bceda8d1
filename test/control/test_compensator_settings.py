"""Test the settings of joints: limits from the URDF, given values, and refusals."""

import math

import numpy as np
import pytest

from dynid_ros.control import JointSettings
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel

URDF = """<robot name="two">
  <link name="base"/><link name="a"/><link name="b"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" velocity="3" effort="40"/></joint>
  <joint name="slide" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.5" velocity="0" effort="100"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(URDF)


def test_limits_come_from_the_urdf(robot):
    joints = JointSettings.from_robot(robot, fault_ramp_time=0.5, effort_limit_factor=0.5, limit_margin=0.2)
    assert joints.names == ("turn", "slide")
    assert joints.gain == (1.0, 1.0)
    assert joints.torque == (20.0, 50.0)
    assert joints.rate == (40.0, 100.0)
    np.testing.assert_allclose(joints.lower, (-1.2, -0.2))
    np.testing.assert_allclose(joints.upper, (2.2, 0.7))
    assert joints.velocity == (3.0, math.inf), "a velocity limit of zero is a placeholder"


def test_given_values_take_precedence(robot):
    joints = JointSettings.from_robot(robot, fault_ramp_time=0.5, gain=(0.9,), torque=(10.0, 30.0), rate=(60.0,))
    assert joints.gain == (0.9, 0.9)
    assert joints.torque == (10.0, 30.0)
    assert joints.rate == (60.0, 60.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gain": (2.0,)}, "scale of joint 'turn' is 2.0"),
        ({"gain": (1.0, -0.1)}, "scale of joint 'slide' is -0.1"),
        ({"gain": (1.0, math.nan)}, "scale of joint 'slide' is nan"),
        ({"gain": (1.0, 1.0, 1.0)}, "scale: 3 values; give one for all joints or one for each of turn, slide"),
        ({"torque": (10.0, 0.0)}, "no torque limit is known for joint.* slide"),
        ({"torque": (math.inf,)}, "no torque limit is known for joint.* turn, slide"),
        ({"torque": (10.0, math.nan)}, "no torque limit is known for joint.* slide"),
        ({"effort_limit_factor": 1.5}, "effort_limit_factor is 1.5"),
        ({"effort_limit_factor": 0.0}, "effort_limit_factor is 0.0"),
        ({"rate": (10.0,)}, "max_rate of joint 'turn' is 10.0 .* takes 80 or more"),
        ({"rate": (math.inf,)}, "max_rate of joint 'turn' is inf"),
        ({"limit_margin": -0.1}, "limit_margin is -0.1"),
    ],
)
def test_invalid_values_are_refused_by_name(robot, arguments, message):
    with pytest.raises(ControlError, match=message):
        JointSettings.from_robot(robot, fault_ramp_time=0.5, **arguments)


def test_arm_without_effort_limits_is_refused():
    robot = RobotModel.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    with pytest.raises(ControlError, match="no torque limit is known"):
        JointSettings.from_robot(robot, fault_ramp_time=0.5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_acting_torque_may_slightly_exceed_the_limit(robot, sign):
    joints = JointSettings.from_robot(robot, fault_ramp_time=0.5)
    assert joints.checked_start([sign * 39.0, sign * 104.0]) == [sign * 39.0, sign * 100.0]
    for torque in ([sign * 43.0, 0.0], [sign * math.inf, 0.0], [math.nan, 0.0]):
        with pytest.raises(ControlError, match=r"on joint 'turn' .* act already, and its limit is 40"):
            joints.checked_start(torque)


def test_target_must_be_within_the_limits_without_margin(robot):
    joints = JointSettings.from_robot(robot, fault_ramp_time=0.5, limit_margin=0.2)
    for target in ([-0.99, 0.01], [1.99, 0.49], [math.nan, 0.2]):
        assert joints.checked_target(target) == target
    for target in ([-1.01, 0.2], [2.01, 0.2]):
        with pytest.raises(ControlError, match=r"joint 'turn' is to go to .* its limits are -1.0000 to 2.0000"):
            joints.checked_target(target)
