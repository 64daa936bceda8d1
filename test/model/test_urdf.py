"""Rounded right angles in URDFs: ranks are those of exact angles, torques those of the file."""

import re

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm, example_urdf

from dynid_ros.identified.links import MIN_HIDDEN_PART
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.model.urdf import parse_urdf

JACO = "kinova_description/robots/kinova.urdf"
TIP = "j2s6s200_end_effector"


def rounded_jaco(decimals: int, error: float = 0.0) -> str:
    """Return the URDF of the Jaco with rounded angles; nonzero angles have an error."""

    def shorter(match: re.Match) -> str:
        angles = [float(angle) for angle in match[1].split()]
        return f'rpy="{" ".join(f"{angle + error * (angle != 0):.{decimals}f}" for angle in angles)}"'

    return re.sub(r'rpy="([^"]*)"', shorter, example_urdf(JACO).read_text())


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6, 7, 12])
def test_rank_is_independent_of_rounded_angles(decimals):
    exact = RobotModel.from_urdf(example_urdf(JACO), TIP).base_parameters()
    rounded_base = RobotModel.from_urdf(rounded_jaco(decimals), TIP).base_parameters()
    assert (exact.rank, rounded_base.rank) == (36, 36)
    np.testing.assert_array_equal(rounded_base.columns, exact.columns)
    # The wrist of the Jaco has angles of 55 and 60 degrees, which rounding changes.
    np.testing.assert_allclose(rounded_base.combinations, exact.combinations, atol=2 * 10.0**-decimals + 2e-4)


def test_rank_of_a_dh_table_is_independent_of_rounded_angles():
    def arm(angle: float) -> RobotModel:
        row = {"a": 0.3, "d": 0.1, "theta": 0.0, "type": "revolute"}
        return RobotModel.from_dh([row | {"alpha": alpha} for alpha in (angle, 0.0, 0.0, angle, 0.0)])

    drives = FrictionModel(JointFriction(offset=True, rotor_inertia=True))
    for angle in (1.57, 1.571, 1.5707):
        assert arm(angle).base_parameters(drives).rank == arm(np.pi / 2).base_parameters(drives).rank == 47
        assert arm(angle).forward_kinematics(np.zeros((1, 5)))[0, 0, 2, 1] == np.sin(angle)
    assert arm(1.572).base_parameters(drives).rank == 48


def test_torques_use_the_angles_of_the_file():
    robot = RobotModel.from_urdf(rounded_jaco(4), TIP)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 6))
    torque = robot.inverse_dynamics(q[None], qd[None], qdd[None])[0]
    np.testing.assert_allclose(torque, arm.inverse_dynamics(q, qd, qdd), rtol=1e-11)
    assert np.abs(torque - robot.structure.inverse_dynamics(q[None], qd[None], qdd[None])[0]).max() > 1e-6


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1.5708", np.pi / 2),
        ("-1.57081", -1.57081),
        ("-1.570796", -np.pi / 2),
        ("3.1416", np.pi),
        ("0.78540", np.pi / 4),
        ("2.3562e0", 3 * np.pi / 4),
        ("6.2832", 2 * np.pi),
        ("0.0000", 0.0),
        ("1.571", np.pi / 2),
        ("1.57", np.pi / 2),
        ("-1.57", -np.pi / 2),
        ("1.5707", np.pi / 2),
        ("1.57079", np.pi / 2),
        ("3.14", np.pi),
        ("-3.141", -np.pi),
        ("4.71", 3 * np.pi / 2),
        ("0.785", np.pi / 4),
        ("0.79", 0.79),
        ("1.6", 1.6),
        ("1.572", 1.572),
        ("1.58", 1.58),
        ("1.570796326794896619231321691639751442", np.pi / 2),
        ("1.0472", 1.0472),
        ("0", 0.0),
        ("3", 3.0),
    ],
)
def test_parser_restores_rounded_angles(written, expected):
    text = (
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/>'
        f'<child link="b"/><origin rpy="0.5 {written} 0"/></joint></robot>'
    )
    assert parse_urdf(text, "URDF").joints[0].origin.rpy == [0.5, float(written), 0.0]
    joint = parse_urdf(text, "URDF", meant_angles=True).joints[0]
    assert joint.origin.rpy == pytest.approx([0.5, expected, 0], abs=1e-15)


def test_omits_base_parameters_below_the_noise():
    robot = RobotModel.from_urdf(rounded_jaco(4, error=3e-4), TIP)
    columns = LinkColumns(robot, [(JointFriction.none(),)] * 6)
    assert columns.n_inertial > 36
    assert columns.above(np.full(6, 0.05)).n_inertial == 36
    assert columns.above(np.full(6, 1e-7)) is columns
    # The mass moments of gravity remain in the span; gravity never loads joint 1.
    combinations = columns.above(np.full(6, 0.05)).base.combinations
    projection = GravityModel(robot).projection[2:]
    shares = np.linalg.lstsq(combinations.T, projection.T, rcond=None)[0].T
    assert np.abs(shares @ combinations - projection).max() < 0.1 * MIN_HIDDEN_PART
    exact = LinkColumns(RobotModel.from_urdf(example_urdf(JACO), TIP), [(JointFriction.none(),)] * 6)
    assert exact.above(np.full(6, 0.5)) is exact
