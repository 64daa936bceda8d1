"""Test joint feedback: PD about a desired pose, and compensation of identified friction."""

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


def read_friction(model_file):
    return IdentifiedFriction.from_document(load_identified(model_file), JOINTS)


def test_compensated_friction_is_a_fraction_of_its_lower_bound(model_file):
    """The bound is two standard errors below the estimate, at least zero, and the smaller of both directions."""
    coulomb, viscous = read_friction(model_file).compensated([0.5, 0.8, 0.1])
    assert coulomb == pytest.approx((0.5 * 3.0, 0.8 * 3.0, 0.1 * 1.1))
    assert viscous == pytest.approx((0.5 * 1.8, 0.0, 0.0))


def test_zero_scale_needs_no_friction_in_the_file(tmp_path):
    model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    assert read_friction(model_file).compensated([0.0]) == ((0.0,) * 3, (0.0,) * 3)


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
def test_invalid_friction_or_scale_is_refused(tmp_path, friction, scale, error, message):
    model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document() | {"friction": friction})
    with pytest.raises(error) as error_info:
        read_friction(model_file).compensated(scale)
    assert message in str(error_info.value)


ROBOT = RobotModel.from_urdf(urdf())


def make_gains(**settings):
    return FeedbackGains.from_robot(ROBOT, **settings)


def hold_pose(position=(0.0, 0.0, 0.0)):
    feedback = JointFeedback()
    feedback.hold(position)
    return feedback


@pytest.mark.parametrize("velocity", [None, [math.nan] * 3])
def test_zero_gains_command_no_torque(velocity):
    assert hold_pose().torque(make_gains(), 0.01, [0.3, 0.2, 0.1], velocity) == [0.0, 0.0, 0.0]


def test_torque_is_that_of_pd_feedback():
    """The torque of each joint is k (q_d - q) - d v."""
    settings = make_gains(stiffness=[100.0, 50.0, 0.0], damping=[10.0, 5.0, 2.0])
    torque = hold_pose([0.1, 0.2, 0.3]).torque(settings, 0.01, [0.0, 0.25, 0.0], [0.1, -0.2, 0.5])
    assert torque == pytest.approx([100 * 0.1 - 10 * 0.1, -50 * 0.05 + 5 * 0.2, -2 * 0.5])


def test_desired_pose_moves_to_its_target_at_its_velocity():
    feedback = hold_pose()
    settings = make_gains(stiffness=[100.0], damping=[10.0], setpoint_velocity=[0.5, 0.25, 9.0])
    feedback.aim([0.5, -0.5, math.nan])
    for _ in range(50):
        torque = feedback.torque(settings, 0.01, feedback.desired, [0.0] * 3)
        assert torque[0] == pytest.approx(100 * 0.005 * 0 + 10 * 0.5 + 100 * 0.005, abs=1.0)
    assert feedback.desired == pytest.approx([0.25, -0.125, 0.0])
    for _ in range(200):
        torque = feedback.torque(settings, 0.01, feedback.desired, [0.0] * 3)
    assert feedback.desired == pytest.approx([0.5, -0.5, 0.0])
    assert torque == [0.0, 0.0, 0.0]


def test_set_point_velocity_is_limited_by_the_robot():
    assert make_gains(setpoint_velocity=[9.0]).setpoint_velocity == (3.0, 3.0, 3.0)
    unknown = RobotModel.from_urdf(urdf().replace('velocity="3', 'velocity="0'))
    assert not unknown.limits.velocity.any()
    assert FeedbackGains.from_robot(unknown, setpoint_velocity=[9.0]).setpoint_velocity == (9.0, 9.0, 9.0)


def test_friction_compensation_grows_with_velocity():
    settings = make_gains(coulomb=[4.0, 2.0, 0.0], viscous=[0.0, 0.0, 3.0], friction_velocity=0.1)

    def torque(velocity):
        return hold_pose().torque(settings, 0.01, [0.0] * 3, [velocity] * 3)

    assert torque(0.0) == [*torque(0.05)[:2], 0.0] == [0.0, 0.0, 0.0]
    assert torque(0.075) == pytest.approx([2.0, 1.0, 0.225])
    assert torque(0.1) == pytest.approx([4.0, 2.0, 0.3])
    assert torque(-0.5) == pytest.approx([-4.0, -2.0, -1.5])


@pytest.mark.parametrize("delay", [0, 5, 40])
@pytest.mark.parametrize("stiffness", [0.0, 200.0])
def test_friction_compensation_sustains_no_motion(delay, stiffness):
    """The measured velocity is noisy and up to 40 ms late; the joint comes to rest and stays."""
    rng = random.Random(1)
    inertia = 0.5
    coulomb = 4.0
    viscous = 2.0
    dt = 1e-3
    damping = [10.0] if stiffness else [0.0]
    fraction = 0.8
    settings = make_gains(
        stiffness=[stiffness],
        damping=damping,
        coulomb=[fraction * coulomb],
        viscous=[fraction * viscous],
        friction_velocity=0.04,
    )
    feedback = hold_pose()
    position = 0.2
    velocity = 0.0
    delayed = [0.0] * (delay + 1)
    velocity = 1.0
    travelled = 0.0
    for step in range(6000):
        delayed = [*delayed[1:], velocity + rng.gauss(0.0, 5e-3)]
        torque = feedback.torque(settings, dt, [position] * 3, [delayed[0]] * 3)[0]
        frictionless = velocity + dt * (torque - viscous * velocity) / inertia
        velocity_loss = dt * coulomb / inertia
        velocity = math.copysign(max(abs(frictionless) - velocity_loss, 0.0), frictionless)
        position += dt * velocity
        travelled += abs(dt * velocity) if step >= 4000 else 0.0
    assert velocity == 0.0
    assert travelled < 1e-4


def test_velocities_are_needed_only_by_velocity_gains():
    assert not make_gains().needs_velocity
    assert not make_gains().holds
    assert make_gains(damping=[1.0]).needs_velocity
    assert make_gains(viscous=[1.0]).needs_velocity
    assert make_gains(stiffness=[1.0], damping=[0.1]).holds
    with pytest.raises(ControlError, match="need velocities"):
        hold_pose().torque(make_gains(damping=[1.0]), 0.01, [0.0] * 3, None)


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
def test_invalid_gains_are_refused(settings, message):
    with pytest.raises(ControlError) as error:
        make_gains(**settings)
    assert message in str(error.value)
