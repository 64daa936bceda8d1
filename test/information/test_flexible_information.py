"""Rows of eqs 3 and 6 and their gradient, on one link and on arms with joints that are held."""

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


def planar(robot, **settings):
    given = {"base_frequency": 1.0, "harmonics": 3, "noise": NOISE} | settings
    return FlexibleInformation(robot, PRIOR, SPEEDS, **given)


def basis(robot, held=None):
    positions = np.array([(held or {}).get(name, np.nan) for name in robot.joint_names])
    return FourierBasis(MotionLimits.of(robot, 10.0), 1.0, 3, 72, positions)


def vector(size, seed=0):
    return 0.3 * np.random.default_rng(seed).standard_normal(size)


@pytest.mark.parametrize("stiffness", [False, True])
@pytest.mark.parametrize("held", [None, HELD])
def test_gradient(robot, held, stiffness):
    source = planar(robot, held=held, stiffness=stiffness)
    motions = basis(robot, held)
    at = vector(motions.size)
    rng = np.random.default_rng(1)
    rows = source.rows(motions.motion(at))
    weights = Rows(rng.standard_normal(rows.regressor.shape), rng.standard_normal(rows.torque.shape))
    found = motions.gradient(source.gradient(weights))

    def value(vector):
        rows = source.rows(motions.motion(vector))
        return float(np.sum(rows.regressor * weights.regressor) + np.sum(rows.torque * weights.torque))

    expected = numerical_gradient(value, at)
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max(), rtol=0)
    if held:
        assert not found[:5].any()


def test_rows_of_an_arm_are_pinocchios(robot):
    source = planar(robot, stiffness=True)
    motion = basis(robot).motion(vector(15))
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


def test_what_held_joints_alone_would_tell_is_not_asked(robot):
    every, some = planar(robot), planar(robot, held=HELD)
    assert len(every.names) == 15 + 12
    assert some.names[:6] == ("mcx2", "mcy2", "Izz2", "mcx3", "mcy3", "Izz3")
    assert not any("joint_1" in name for name in some.names)
    rows = some.rows(basis(robot, HELD).motion(vector(15)))
    assert rows.regressor.shape == (14, 2, 72)
    assert not rows.torque[:, 0].any()
    assert np.linalg.matrix_rank(rows.regressor.reshape(14, -1), tol=1e-9) == 14


def test_motor_and_link_are_not_told_apart_without_a_spring_that_gives(robot):
    motion = basis(robot, HELD).motion(vector(15))
    stiff = FlexibleJoints(1e8, PRIOR.motor_inertia, PRIOR.motor_viscous, PRIOR.coulomb, PRIOR.viscous)
    conditions = []
    for prior in (PRIOR, stiff):
        source = FlexibleInformation(robot, prior, SPEEDS, base_frequency=1.0, harmonics=3, held=HELD)
        conditions.append(np.linalg.cond(source.rows(motion).regressor.reshape(14, -1)))
    assert conditions[1] > 1e3 * conditions[0]


def test_senseless_settings(robot):
    for settings, message in (
        ({"held": {"joint_9": 0.0}}, "held: no joint joint_9; the joints: joint_1, joint_2, joint_3"),
        ({"held": dict.fromkeys(planar_arm.JOINTS, 0.0)}, "held: all joints are"),
        ({"noise": 0.0}, r"the noise of \S+ is 0; it must be positive and finite"),
    ):
        with pytest.raises(TrajectoryError, match=message):
            planar(robot, **settings)
    source = planar(robot, base_frequency=1.1)
    with pytest.raises(TrajectoryError, match=r"no period of 0\.909"):
        source.rows(basis(robot).motion(vector(15)))
    still = np.zeros((5, 3))
    with pytest.raises(TrajectoryError, match="recordings cannot be added"):
        source.over_time(np.arange(5.0), still, still, still)
