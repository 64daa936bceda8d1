"""Test the friction that simulators can represent, its nearest fit, and the remaining error."""

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
NO_FRICTION = JointFriction.none()


def fit_held_friction(joint: JointFriction, coefficients: list[float], kept=()) -> HeldFriction:
    """Return the represented friction of an arm whose joint 2 has this friction."""
    friction = FrictionModel([NO_FRICTION, joint, NO_FRICTION], load_parameters=ROBOT.parameters)
    return HeldFriction.of(arm_of(ROBOT, friction, coefficients), kept, MOTION)


def test_motion_keeps_limits_and_moves_all_joints():
    for series, std in ((MOTION.q, 0.3), (MOTION.qd, 0.3)):
        assert (series.std(axis=0) > std / 2).all()
    limits = ROBOT.limits
    assert ((MOTION.q > limits.lower) & (limits.upper > MOTION.q)).all()
    assert (np.abs(MOTION.qd) <= limits.velocity).all()
    step = 60.0 / (len(MOTION.q) - 1)
    np.testing.assert_allclose(np.gradient(MOTION.q, step, axis=0)[5:-5], MOTION.qd[5:-5], atol=1e-3)
    np.testing.assert_allclose(np.gradient(MOTION.qd, step, axis=0)[5:-5], MOTION.qdd[5:-5], atol=1e-3)


def test_coulomb_and_viscous_friction_are_exact():
    represented = fit_held_friction(JointFriction(), [2.0, 0.5])
    assert (represented.coulomb[1], represented.viscous[1]) == (2.0, 0.5)
    assert represented.lost == {}
    assert represented.error.max() < 1e-12
    assert represented.remarks("a URDF", ROBOT.joint_names) == []


def test_dropped_terms_are_the_error():
    represented = fit_held_friction(JointFriction(offset=True, rotor_inertia=True), [2.0, 0.5, 0.7, 0.3])
    assert (represented.coulomb[1], represented.viscous[1]) == (2.0, 0.5)
    dropped = np.sqrt(np.mean((0.7 + 0.3 * MOTION.qdd[:, 1]) ** 2))
    assert represented.error == pytest.approx([0.0, dropped, 0.0], rel=0.01)  # at rest Coulomb friction hides the error
    (remark,) = represented.remarks("a URDF", ROBOT.joint_names)
    assert remark.startswith("a URDF cannot hold: offset of joint_2; rotor_inertia of joint_2. RMS error")
    assert f"joint_2 {represented.error[1]:.3g} of {represented.rms[1]:.3g}" in remark
    with_rotor = fit_held_friction(
        JointFriction(offset=True, rotor_inertia=True), [2.0, 0.5, 0.7, 0.3], ("rotor_inertia",)
    )
    assert with_rotor.rotor_inertia[1] == 0.3
    assert with_rotor.error[1] == pytest.approx(0.7, rel=0.01)


def test_spring_and_offset_give_a_rest_angle():
    represented = fit_held_friction(
        JointFriction(offset=True, spring=True), [2.0, 0.5, 0.7, 4.0], ("rotor_inertia", "spring")
    )
    assert (represented.spring[1], represented.rest[1]) == (4.0, -0.175)
    assert represented.error.max() < 1e-12


@pytest.mark.parametrize(
    ("joint", "coefficients"),
    [
        (JointFriction(stribeck_velocity=0.3), [2.0, 0.5, 1.5]),
        (JointFriction(load=True), [1.0, 0.5, 0.1]),
        (JointFriction(asymmetric=True), [2.0, 1.0, 0.5, 0.3]),
        (JointFriction(saturation_velocity=0.4), [2.0, 0.5]),
    ],
)
def test_coulomb_and_viscous_fit_similar_terms(joint, coefficients):
    represented = fit_held_friction(joint, coefficients)
    friction = FrictionModel([NO_FRICTION, joint, NO_FRICTION], load_parameters=ROBOT.parameters)
    torque = (friction.of_motion(ROBOT, MOTION.q, MOTION.qd, MOTION.qdd) @ coefficients)[:, 1]

    def error(coulomb, viscous):
        is_moving = np.abs(MOTION.qd[:, 1]) >= 0.005
        residual = torque - coulomb * np.sign(MOTION.qd[:, 1]) - viscous * MOTION.qd[:, 1]
        return np.sqrt(np.sum(residual[is_moving] ** 2) / len(residual))

    assert represented.error[1] == pytest.approx(error(represented.coulomb[1], represented.viscous[1]), rel=0.02)
    assert 0.01 < represented.error[1] < represented.rms[1]
    for change in (-0.02, 0.02):
        smallest_error = error(represented.coulomb[1], represented.viscous[1])
        assert error(represented.coulomb[1] + change, represented.viscous[1]) > smallest_error
        assert (
            error(represented.coulomb[1], represented.viscous[1] + change) > smallest_error
            or represented.viscous[1] == 0.0
        )
    assert "joint_2" in represented.lost


def test_breakaway_torque_exceeds_coulomb_friction():
    represented = fit_held_friction(JointFriction(stribeck_velocity=0.05), [2.0, 0.5, 1.5])
    assert represented.breakaway[1] == 3.5
    assert 2.0 <= represented.coulomb[1] < 2.3


def test_lost_memory_is_reported_with_its_error():
    represented = fit_held_friction(JointFriction(sliding_length=0.05), [2.0, 0.5])
    assert (represented.coulomb[1], represented.viscous[1]) == (2.0, 0.5)
    assert represented.lost == {"joint_2": ("memory of the direction",)}
    direction = dahl_direction(MOTION.q[:, 1], 0.05)
    is_moving = np.abs(MOTION.qd[:, 1]) >= 0.005
    residual = 2.0 * (direction - np.sign(MOTION.qd[:, 1]))[is_moving]
    assert represented.error[1] == pytest.approx(np.sqrt(np.sum(residual**2) / len(is_moving)), rel=0.01)


def test_torque_below_coulomb_friction_holds_a_resting_joint():
    friction = FrictionModel([NO_FRICTION, JointFriction(offset=True), NO_FRICTION])
    at_rest = Motion(np.zeros((10, 3)), np.zeros((10, 3)), np.zeros((10, 3)), "rest")
    represented = HeldFriction.of(arm_of(ROBOT, friction, [2.0, 0.5, 1.5]), (), at_rest)
    assert represented.error[1] == 0.0
    represented = HeldFriction.of(arm_of(ROBOT, friction, [2.0, 0.5, 2.5]), (), at_rest)
    assert represented.error[1] == pytest.approx(0.5)


def test_fitted_friction_is_never_negative():
    represented = fit_held_friction(JointFriction(), [-0.1, 0.5])
    assert represented.coulomb[1] == 0.0
    represented = fit_held_friction(JointFriction(stribeck_velocity=0.3), [2.0, -1.5, 0.5])
    assert represented.viscous[1] == 0.0
    assert represented.coulomb[1] > 0.0


def test_polynomial_drag_fits_saturating_friction_better():
    joint = JointFriction(saturation_velocity=0.4)
    without_drag, with_drag = (fit_held_friction(joint, [2.0, 0.5], kept) for kept in ((), (POLYNOMIAL,)))
    assert with_drag.error[1] < without_drag.error[1] / 3
    speed = np.linspace(0.0, 100.0, 1000)
    drag = with_drag.viscous[1] * speed + with_drag.drag[1] @ [speed**2, speed**3]
    assert (drag >= 0.0).all(), "drag opposes motion at each speed"
    assert not with_drag.drag[[0, 2]].any()


@pytest.mark.parametrize("shape", [{"stribeck_velocity": 0.3}, {"stribeck_velocity": 0.3, "sliding_length": 0.01}])
def test_bristles_represent_breakaway_friction_and_memory(shape):
    represented = fit_held_friction(JointFriction(**shape), [2.0, 0.5, 1.5], (BRISTLE,))
    assert represented.bristle[1, 2:].tolist() == [2.0, 3.5, 0.3]
    assert represented.bristle[1, 0] == pytest.approx(3.5 / shape.get("sliding_length", 2e-4))
    assert represented.lost == {}
    assert represented.error.max() < 0.02 * represented.rms[1]
    assert not fit_held_friction(JointFriction(), [2.0, 0.5], (BRISTLE,)).bristle.any()
