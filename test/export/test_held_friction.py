"""What simulators hold of friction: the same where they can, else the nearest, and the error that they make."""

import numpy as np
import planar_arm
import pytest
from c_arm import arm_of

from dynid_ros.export.exported_arm import Motion
from dynid_ros.export.held_friction import BRISTLE, POLYNOMIAL, HeldFriction
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.friction_terms import dahl_direction

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
MOTION = Motion.sinusoids(ROBOT)
NONE = JointFriction.none()


def held(joint: JointFriction, coefficients: list[float], kept=()) -> HeldFriction:
    """Of an arm whose second joint has friction."""
    friction = FrictionModel([NONE, joint, NONE], load_parameters=ROBOT.parameters)
    return HeldFriction.of(arm_of(ROBOT, friction, coefficients), kept, MOTION)


def test_motion_is_within_limits_and_moves_all_joints():
    for part, size in ((MOTION.q, 0.3), (MOTION.qd, 0.3)):
        assert (part.std(axis=0) > size / 2).all()
    limits = ROBOT.limits
    assert ((MOTION.q > limits.lower) & (limits.upper > MOTION.q)).all()
    assert (np.abs(MOTION.qd) <= limits.velocity).all()
    step = 60.0 / (len(MOTION.q) - 1)
    np.testing.assert_allclose(np.gradient(MOTION.q, step, axis=0)[5:-5], MOTION.qd[5:-5], atol=1e-3)
    np.testing.assert_allclose(np.gradient(MOTION.qd, step, axis=0)[5:-5], MOTION.qdd[5:-5], atol=1e-3)


def test_coulomb_and_viscous_friction_are_held_exactly():
    found = held(JointFriction(), [2.0, 0.5])
    assert (found.coulomb[1], found.viscous[1]) == (2.0, 0.5)
    assert found.lost == {}
    assert found.error.max() < 1e-12
    assert found.remarks("a URDF", ROBOT.joint_names) == []


def test_what_is_dropped_is_the_error():
    found = held(JointFriction(offset=True, rotor_inertia=True), [2.0, 0.5, 0.7, 0.3])
    assert (found.coulomb[1], found.viscous[1]) == (2.0, 0.5)
    dropped = np.sqrt(np.mean((0.7 + 0.3 * MOTION.qdd[:, 1]) ** 2))
    assert found.error == pytest.approx([0.0, dropped, 0.0], rel=0.01)  # at rest Coulomb friction hides it
    (remark,) = found.remarks("a URDF", ROBOT.joint_names)
    assert remark.startswith("a URDF cannot hold: offset of joint_2; rotor_inertia of joint_2. RMS error")
    assert f"joint_2 {found.error[1]:.3g} of {found.rms[1]:.3g}" in remark
    kept = held(JointFriction(offset=True, rotor_inertia=True), [2.0, 0.5, 0.7, 0.3], ("rotor_inertia",))
    assert kept.rotor_inertia[1] == 0.3
    assert kept.error[1] == pytest.approx(0.7, rel=0.01)


def test_spring_with_its_rest_angle():
    found = held(JointFriction(offset=True, spring=True), [2.0, 0.5, 0.7, 4.0], ("rotor_inertia", "spring"))
    assert (found.spring[1], found.rest[1]) == (4.0, -0.175)
    assert found.error.max() < 1e-12


@pytest.mark.parametrize(
    ("joint", "coefficients"),
    [
        (JointFriction(stribeck_velocity=0.3), [2.0, 0.5, 1.5]),
        (JointFriction(load=True), [1.0, 0.5, 0.1]),
        (JointFriction(asymmetric=True), [2.0, 1.0, 0.5, 0.3]),
        (JointFriction(saturation_velocity=0.4), [2.0, 0.5]),
    ],
)
def test_nearest_where_a_term_is_like_them(joint, coefficients):
    found = held(joint, coefficients)
    friction = FrictionModel([NONE, joint, NONE], load_parameters=ROBOT.parameters)
    torque = (friction.of_motion(ROBOT, MOTION.q, MOTION.qd, MOTION.qdd) @ coefficients)[:, 1]

    def error(coulomb, viscous):
        moving = np.abs(MOTION.qd[:, 1]) >= 0.005
        off = torque - coulomb * np.sign(MOTION.qd[:, 1]) - viscous * MOTION.qd[:, 1]
        return np.sqrt(np.sum(off[moving] ** 2) / len(off))

    assert found.error[1] == pytest.approx(error(found.coulomb[1], found.viscous[1]), rel=0.02)
    assert 0.01 < found.error[1] < found.rms[1]
    for change in (-0.02, 0.02):
        least = error(found.coulomb[1], found.viscous[1])
        assert error(found.coulomb[1] + change, found.viscous[1]) > least
        assert error(found.coulomb[1], found.viscous[1] + change) > least or found.viscous[1] == 0.0
    assert "joint_2" in found.lost


def test_breakaway_is_more_than_coulomb():
    found = held(JointFriction(stribeck_velocity=0.05), [2.0, 0.5, 1.5])
    assert found.breakaway[1] == 3.5
    assert 2.0 <= found.coulomb[1] < 2.3


def test_memory_is_told_with_its_error():
    found = held(JointFriction(sliding_length=0.05), [2.0, 0.5])
    assert (found.coulomb[1], found.viscous[1]) == (2.0, 0.5)
    assert found.lost == {"joint_2": ("memory of the direction",)}
    direction = dahl_direction(MOTION.q[:, 1], 0.05)
    moving = np.abs(MOTION.qd[:, 1]) >= 0.005
    off = 2.0 * (direction - np.sign(MOTION.qd[:, 1]))[moving]
    assert found.error[1] == pytest.approx(np.sqrt(np.sum(off**2) / len(moving)), rel=0.01)


def test_joint_at_rest_is_held_by_less_than_coulomb_friction():
    friction = FrictionModel([NONE, JointFriction(offset=True), NONE])
    still = Motion(np.zeros((10, 3)), np.zeros((10, 3)), np.zeros((10, 3)), "rest")
    found = HeldFriction.of(arm_of(ROBOT, friction, [2.0, 0.5, 1.5]), (), still)
    assert found.error[1] == 0.0
    found = HeldFriction.of(arm_of(ROBOT, friction, [2.0, 0.5, 2.5]), (), still)
    assert found.error[1] == pytest.approx(0.5)


def test_never_below_zero():
    found = held(JointFriction(), [-0.1, 0.5])
    assert found.coulomb[1] == 0.0
    found = held(JointFriction(stribeck_velocity=0.3), [2.0, -1.5, 0.5])
    assert found.viscous[1] == 0.0
    assert found.coulomb[1] > 0.0


def test_powers_of_the_speed_hold_a_saturating_friction_better():
    joint = JointFriction(saturation_velocity=0.4)
    plain, powers = (held(joint, [2.0, 0.5], kept) for kept in ((), (POLYNOMIAL,)))
    assert powers.error[1] < plain.error[1] / 3
    speed = np.linspace(0.0, 100.0, 1000)
    drag = powers.viscous[1] * speed + powers.drag[1] @ [speed**2, speed**3]
    assert (drag >= 0.0).all(), "it opposes motion at every speed"
    assert not powers.drag[[0, 2]].any()


@pytest.mark.parametrize("shape", [{"stribeck_velocity": 0.3}, {"stribeck_velocity": 0.3, "sliding_length": 0.01}])
def test_bristles_hold_breakaway_friction_and_memory(shape):
    found = held(JointFriction(**shape), [2.0, 0.5, 1.5], (BRISTLE,))
    assert found.bristle[1, 2:].tolist() == [2.0, 3.5, 0.3]
    assert found.bristle[1, 0] == pytest.approx(3.5 / shape.get("sliding_length", 2e-4))
    assert found.lost == {}
    assert found.error.max() < 0.02 * found.rms[1]
    assert not held(JointFriction(), [2.0, 0.5], (BRISTLE,)).bristle.any()
