"""PD and friction against the equations of motion, integrated by hand with small steps."""

import math
import random

import planar_arm
import pytest
from planar_arm import JOINTS, urdf

from dynid_ros.control import FeedbackGains, IdentifiedFriction, JointFeedback
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel

FRICTION = {
    "joint_1": {"coulomb": 4.0, "viscous": 2.0, "std": {"coulomb": 0.5, "viscous": 0.1}},
    "joint_2": {"coulomb": 3.0, "viscous": None, "std": {"coulomb": None}},
    "joint_3": {
        "coulomb": 2.0,
        "coulomb_positive": 2.5,
        "coulomb_negative": 1.5,
        "viscous": 0.1,
        "std": {"coulomb_positive": 0.1, "coulomb_negative": 0.2, "viscous": 0.2},
    },
}


@pytest.fixture
def model_file(tmp_path):
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document() | {"friction": FRICTION})


def friction_of(model_file):
    return IdentifiedFriction.from_document(load_identified(model_file), JOINTS)


def test_it_is_part_of_what_a_joint_has_at_least(model_file):
    """Two standard errors less than the estimate, not below zero, and the smaller one of two directions."""
    coulomb, viscous = friction_of(model_file).compensated([0.5, 0.8, 0.1])
    assert coulomb == pytest.approx((0.5 * 3.0, 0.8 * 3.0, 0.1 * 1.1))
    assert viscous == pytest.approx((0.5 * 1.8, 0.0, 0.0))


def test_nothing_is_asked_of_the_file_where_nothing_is_compensated(tmp_path):
    model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    assert friction_of(model_file).compensated([0.0]) == ((0.0,) * 3, (0.0,) * 3)


@pytest.mark.parametrize(
    ("friction", "scale", "error", "message"),
    [
        (FRICTION, [0.9], ControlError, "friction_scale of joint 'joint_1' is 0.9; expected at most 0.8"),
        (FRICTION, [-0.1], ControlError, "friction_scale of joint 'joint_1' is -0.1"),
        (None, [0.5], IdentifiedFileError, "has no section friction; set friction_scale to 0"),
        ({"joint_1": {}}, [0.5], IdentifiedFileError, "friction of joint 'joint_1' was not identified"),
        ({"joint_1": 3}, [0.5], IdentifiedFileError, "friction of joint 'joint_1' was not identified"),
    ],
)
def test_what_cannot_be_compensated_is_refused(tmp_path, friction, scale, error, message):
    model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document() | {"friction": friction})
    with pytest.raises(error) as refused:
        friction_of(model_file).compensated(scale)
    assert message in str(refused.value)


ROBOT = RobotModel.from_urdf(urdf())


def gains(**settings):
    return FeedbackGains.from_robot(ROBOT, **settings)


def held(position=(0.0, 0.0, 0.0)):
    feedback = JointFeedback()
    feedback.hold(position)
    return feedback


def test_without_gains_nothing_is_commanded():
    assert held().torque(gains(), 0.01, [0.3, 0.2, 0.1], None) == [0.0, 0.0, 0.0]


def test_without_gains_velocities_are_not_looked_at():
    assert held().torque(gains(), 0.01, [0.3, 0.2, 0.1], [math.nan] * 3) == [0.0, 0.0, 0.0]


def test_torque_by_hand():
    """k (q_d - q) - d v of each joint."""
    settings = gains(stiffness=[100.0, 50.0, 0.0], damping=[10.0, 5.0, 2.0])
    torque = held([0.1, 0.2, 0.3]).torque(settings, 0.01, [0.0, 0.25, 0.0], [0.1, -0.2, 0.5])
    assert torque == pytest.approx([100 * 0.1 - 10 * 0.1, -50 * 0.05 + 5 * 0.2, -2 * 0.5])


def test_the_desired_pose_goes_to_its_target_at_its_velocity_and_stops_there():
    feedback, settings = held(), gains(stiffness=[100.0], damping=[10.0], setpoint_velocity=[0.5, 0.25, 9.0])
    feedback.aim([0.5, -0.5, math.nan])
    for _ in range(50):
        torque = feedback.torque(settings, 0.01, feedback.desired, [0.0] * 3)
        assert torque[0] == pytest.approx(100 * 0.005 * 0 + 10 * 0.5 + 100 * 0.005, abs=1.0)
    assert feedback.desired == pytest.approx([0.25, -0.125, 0.0])
    for _ in range(200):
        torque = feedback.torque(settings, 0.01, feedback.desired, [0.0] * 3)
    assert feedback.desired == pytest.approx([0.5, -0.5, 0.0])
    assert torque == [0.0, 0.0, 0.0]


def test_velocity_limits_of_the_robot_hold_for_the_desired_pose():
    assert gains(setpoint_velocity=[9.0]).setpoint_velocity == (3.0, 3.0, 3.0)
    unknown = RobotModel.from_urdf(urdf().replace('velocity="3', 'velocity="0'))
    assert not unknown.limits.velocity.any()
    assert FeedbackGains.from_robot(unknown, setpoint_velocity=[9.0]).setpoint_velocity == (9.0, 9.0, 9.0)


def test_friction_is_none_at_rest_and_all_from_its_velocity_on():
    settings = gains(coulomb=[4.0, 2.0, 0.0], viscous=[0.0, 0.0, 3.0], friction_velocity=0.1)

    def torque(velocity):
        return held().torque(settings, 0.01, [0.0] * 3, [velocity] * 3)

    assert torque(0.0) == [*torque(0.05)[:2], 0.0] == [0.0, 0.0, 0.0]
    assert torque(0.075) == pytest.approx([2.0, 1.0, 0.225])
    assert torque(0.1) == pytest.approx([4.0, 2.0, 0.3])
    assert torque(-0.5) == pytest.approx([-4.0, -2.0, -1.5])


@pytest.mark.parametrize("delay", [0, 5, 40])
@pytest.mark.parametrize("stiffness", [0.0, 200.0])
def test_friction_compensation_feeds_no_motion(delay, stiffness):
    """A joint with friction, its velocity late by up to 40 ms and noisy: it comes to rest and stays."""
    rng = random.Random(1)
    inertia, coulomb, viscous, dt = 0.5, 4.0, 2.0, 1e-3
    damping = [10.0] if stiffness else [0.0]
    part = 0.8
    settings = gains(
        stiffness=[stiffness],
        damping=damping,
        coulomb=[part * coulomb],
        viscous=[part * viscous],
        friction_velocity=0.04,
    )
    feedback, position, velocity, late = held(), 0.2, 0.0, [0.0] * (delay + 1)
    velocity = 1.0
    travelled = 0.0
    for step in range(6000):
        late = [*late[1:], velocity + rng.gauss(0.0, 5e-3)]
        torque = feedback.torque(settings, dt, [position] * 3, [late[0]] * 3)[0]
        wanted = velocity + dt * (torque - viscous * velocity) / inertia
        lost = dt * coulomb / inertia
        velocity = math.copysign(max(abs(wanted) - lost, 0.0), wanted)
        position += dt * velocity
        travelled += abs(dt * velocity) if step >= 4000 else 0.0
    assert velocity == 0.0
    assert travelled < 1e-4


def test_velocities_are_asked_for_only_where_they_count():
    assert not gains().needs_velocity
    assert not gains().holds
    assert gains(damping=[1.0]).needs_velocity
    assert gains(viscous=[1.0]).needs_velocity
    assert gains(stiffness=[1.0], damping=[0.1]).holds
    with pytest.raises(ControlError, match="need velocities"):
        held().torque(gains(damping=[1.0]), 0.01, [0.0] * 3, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"stiffness": [1.0, 2.0]},
            f"stiffness: 2 values; give one for all joints or one for each of {', '.join(JOINTS)}",
        ),
        ({"stiffness": [100.0, 0.0, 0.0]}, "joint 'joint_1' has stiffness 100 and no damping"),
        ({"damping": [-1.0]}, "damping of joint 'joint_1' is -1.0; expected a number of at least 0"),
        ({"damping": [math.inf]}, "damping of joint 'joint_1' is inf"),
        ({"setpoint_velocity": [0.0]}, "setpoint_velocity of joint 'joint_1' is 0.0; expected a number above 0"),
        ({"friction_velocity": 0.0}, "friction_velocity is 0.0; expected a number of rad/s"),
    ],
)
def test_gains_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ControlError) as error:
        gains(**settings)
    assert message in str(error.value)
