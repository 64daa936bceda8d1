"""Compare the regressor of eqs 3 and 6 with Pinocchio and its gradient with finite differences."""

import numpy as np
import planar_arm
import pytest
from numerical_gradient import numerical_gradient
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_problem import FourierBasis
from dynid_ros.information.flexible_information import FlexibleInformation
from dynid_ros.information.steady_state import FlexibleJoints, LinkPrediction
from dynid_ros.information.torque_information import SMOOTHING_FRACTION, Rows
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits

PRIOR = FlexibleJoints([2e3, 3e3, 1e3], [0.1, 0.2, 0.05], [1.0, 2.0, 0.5], [2.0, 2.0, 1.0], [3.0, 3.0, 1.0])
SPEEDS = np.full(3, 3.0)
NOISE = np.array([1.0, 2.0, 0.5])
HELD = {"joint_1": 0.3}


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(planar_arm.urdf())


def create_information(robot, base_frequency=1.0, noise=NOISE, **settings):
    return FlexibleInformation(
        robot, PRIOR, SPEEDS, base_frequency=base_frequency, harmonics=3, noise=noise, **settings
    )


def create_basis(robot, held=None):
    positions = np.array([(held or {}).get(name, np.nan) for name in robot.joint_names])
    return FourierBasis(MotionLimits.of(robot, 10.0), 1.0, 3, 72, positions)


def draw_coefficients(size, seed=0):
    """Return random Fourier coefficients (size,)."""
    return 0.3 * np.random.default_rng(seed).standard_normal(size)


@pytest.mark.parametrize("stiffness", [False, True])
@pytest.mark.parametrize("held", [None, HELD])
def test_gradient_matches_finite_differences(robot, held, stiffness):
    source = create_information(robot, held=held, stiffness=stiffness)
    basis = create_basis(robot, held)
    coefficients = draw_coefficients(basis.size)
    rng = np.random.default_rng(1)
    rows = source.rows(basis.motion(coefficients))
    weights = Rows(rng.standard_normal(rows.regressor.shape), rng.standard_normal(rows.torque.shape))
    gradient = basis.gradient(source.gradient(weights))

    def value(vector):
        rows = source.rows(basis.motion(vector))
        return float(np.sum(rows.regressor * weights.regressor) + np.sum(rows.torque * weights.torque))

    expected = numerical_gradient(value, coefficients)
    np.testing.assert_allclose(gradient, expected, atol=2e-6 * np.abs(expected).max(), rtol=0)
    if held:
        assert not gradient[:5].any()


def test_regressor_matches_pinocchio(robot):
    source = create_information(robot, stiffness=True)
    motion = create_basis(robot).motion(draw_coefficients(15))
    rows = source.rows(motion)
    prediction = LinkPrediction(robot, PRIOR, base_frequency=1.0, harmonics=3, smoothing=SMOOTHING_FRACTION * SPEEDS)
    q, qd, qdd = prediction.motion(motion.position)
    driving = PRIOR.motor_inertia * motion.acceleration + PRIOR.motor_viscous * motion.velocity
    motor_torque = driving + PRIOR.stiffness * (motion.position - q)
    np.testing.assert_allclose(rows.torque, motor_torque, atol=1e-9 * np.abs(motor_torque).max())
    np.testing.assert_array_equal(source.torque(motion), rows.torque)
    truth = PinocchioArm(planar_arm.urdf(), robot.joint_names, robot.gravity)
    links = [name for name in source.names if " " not in name]
    kinds = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    columns = [10 * (int(name[-1]) - 1) + kinds.index(name[:-1]) for name in links]
    for sample in range(0, 72, 7):
        expected = np.zeros((len(source.names), 6))
        expected[: len(links), :3] = truth.torque_regressor(q[sample], qd[sample], qdd[sample])[:, columns].T
        for joint, name in enumerate(robot.joint_names):
            deflection = motion.position[sample, joint] - q[sample, joint]
            for term, row, value in (
                ("coulomb", joint, np.tanh(qd[sample, joint] / 0.06)),
                ("viscous", joint, qd[sample, joint]),
                ("motor_inertia", 3 + joint, motion.acceleration[sample, joint]),
                ("motor_viscous", 3 + joint, motion.velocity[sample, joint]),
                ("stiffness", joint, -deflection),
                ("stiffness", 3 + joint, deflection),
            ):
                expected[source.names.index(f"{term} {name}"), row] += value
        np.testing.assert_allclose(rows.regressor[..., sample], expected / np.tile(NOISE, 2), atol=1e-9)


def test_omits_parameters_visible_only_by_held_joints(robot):
    reduced = create_information(robot, held=HELD)
    assert len(create_information(robot).names) == 15 + 12
    assert reduced.names[:6] == ("mcx2", "mcy2", "Izz2", "mcx3", "mcy3", "Izz3")
    assert not any("joint_1" in name for name in reduced.names)
    rows = reduced.rows(create_basis(robot, HELD).motion(draw_coefficients(15)))
    assert rows.regressor.shape == (14, 2, 72)
    assert not rows.torque[:, 0].any()
    assert np.linalg.matrix_rank(rows.regressor.reshape(14, -1), tol=1e-9) == 14


def test_stiff_springs_make_motor_and_link_indistinguishable(robot):
    motion = create_basis(robot, HELD).motion(draw_coefficients(15))
    stiff = FlexibleJoints(1e8, PRIOR.motor_inertia, PRIOR.motor_viscous, PRIOR.coulomb, PRIOR.viscous)
    conditions = []
    for prior in (PRIOR, stiff):
        source = FlexibleInformation(robot, prior, SPEEDS, base_frequency=1.0, harmonics=3, held=HELD)
        conditions.append(np.linalg.cond(source.rows(motion).regressor.reshape(14, -1)))
    assert conditions[1] > 1e3 * conditions[0]


def test_refuses_invalid_flexible_settings(robot):
    for settings, message in (
        ({"held": {"joint_9": 0.0}}, "held: no joint joint_9; the joints: joint_1, joint_2, joint_3"),
        ({"held": dict.fromkeys(planar_arm.JOINTS, 0.0)}, "held: all joints are"),
        ({"noise": 0.0}, r"the noise of \S+ is 0; it must be positive and finite"),
    ):
        with pytest.raises(TrajectoryError, match=message):
            create_information(robot, **settings)
    source = create_information(robot, base_frequency=1.1)
    with pytest.raises(TrajectoryError, match=r"no period of 0\.909"):
        source.rows(create_basis(robot).motion(draw_coefficients(15)))
    still = np.zeros((5, 3))
    with pytest.raises(TrajectoryError, match="recordings cannot be added"):
        source.over_time(np.arange(5.0), still, still, still)
