"""Base parameters of arbitrary chains: rank, prediction, and choice of the columns."""

import tracemalloc

import numpy as np
import pytest
from paper_arms import MIT_CAD, mit_arm, puma
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.model import BaseParameters, FrictionModel, JointFriction, RobotModel
from dynid_ros.model.base_parameters import parameter_names, random_motion, regressor_blocks

FULL_FRICTION = FrictionModel(JointFriction(offset=True, rotor_inertia=True))


def motion_of(robot: RobotModel, samples: int = 100, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3.0, 3.0, (3, samples, robot.n_joints))


def stacked(robot: RobotModel, friction: FrictionModel | None, motion) -> np.ndarray:
    blocks = list(regressor_blocks(robot, friction, motion))
    return np.concatenate(blocks).reshape(-1, blocks[0].shape[-1])


@pytest.mark.parametrize("friction", [None, FULL_FRICTION], ids=["rigid", "friction"])
def test_base_parameters_predict_torques_of_random_chains(friction):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        robot = RobotModel.from_urdf(random_urdf(rng, n), tip=TIP, gravity=rng.normal(size=3) * 6)
        base = robot.base_parameters(friction)
        matrix = stacked(robot, friction, motion_of(robot))
        norms = np.linalg.norm(matrix, axis=0)
        moving = norms > 1e-9 * norms.max()
        assert base.rank == np.linalg.matrix_rank(matrix[:, moving] / norms[moving], tol=1e-9)
        np.testing.assert_array_equal(base.combinations[:, base.columns], np.eye(base.rank))
        assert list(base.columns) == sorted(base.columns)
        parameters = rng.normal(size=matrix.shape[1])
        torque = matrix @ parameters
        reduced_torque = base.reduce(matrix) @ base.project(parameters)
        np.testing.assert_allclose(reduced_torque, torque, rtol=0, atol=1e-11 * np.abs(torque).max())


def test_categories_follow_from_the_row_space():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP)
        base = robot.base_parameters()
        matrix = stacked(robot, None, motion_of(robot))
        _, singular, rows = np.linalg.svd(matrix)
        rows = rows[: np.count_nonzero(singular > 1e-9 * singular[0])]
        share = np.sum(rows**2, axis=0)
        for i, category in enumerate(base.categories):
            expected = "identifiable" if share[i] > 1 - 1e-9 else "combined" if share[i] > 1e-9 else "unidentifiable"
            assert category == expected, (seed, base.names[i])


def test_base_parameters_of_real_arms_predict_pinocchios_torque():
    for path, tip, rank in (
        ("panda_description/urdf/panda.urdf", "panda_hand", 43),
        ("ur_description/urdf/ur10_robot.urdf", "tool0", 36),
    ):
        robot = RobotModel.from_urdf(example_urdf(path), tip=tip)
        base = robot.base_parameters()
        assert base.rank == rank
        arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
        motion = motion_of(robot, 20)
        torque = base.reduce(robot.torque_regressor(*motion)) @ base.project(arm.parameters())
        expected = [arm.inverse_dynamics(*sample) for sample in zip(*motion, strict=True)]
        np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-9)


def test_base_parameters_are_independent_of_motion_and_noise():
    robot = puma()
    reference = robot.base_parameters(FULL_FRICTION)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        motion = motion_of(robot, 200, seed) * rng.uniform(0.1, 1.0, (3, 1, 6)) + rng.normal(0, 1e-3, (3, 200, 6))
        base = BaseParameters.of_robot(robot, FULL_FRICTION, motion)
        assert base.expressions == reference.expressions
        assert base.categories == reference.categories
        np.testing.assert_array_equal(base.columns, reference.columns)


def test_zero_regressor_has_no_base_parameters():
    base = BaseParameters(np.zeros((4, 3, 30)), parameter_names(mit_arm()))
    assert (base.rank, base.expressions, set(base.categories)) == (0, (), {"unidentifiable"})
    assert base.project(MIT_CAD).shape == (0,)
    assert base.reduce(np.zeros((4, 3, 30))).shape == (4, 3, 0)


def test_random_motion_stays_within_limits():
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    q, qd, _ = random_motion(robot)
    assert (q >= robot.limits.lower).all()
    assert (q <= robot.limits.upper).all()
    assert (np.abs(qd) <= robot.limits.velocity).all()
    np.testing.assert_array_equal(q, random_motion(robot)[0])
    for lower, upper in ((-np.inf, np.inf), (-1e12, 1e12), (4.0, 9.0), (-0.1, np.inf)):
        arm = mit_arm()
        arm.limits.lower[:] = lower
        arm.limits.upper[:] = upper
        q, _, _ = random_motion(arm)
        assert (q >= lower).all()
        assert (q <= upper).all()
        assert 2.5 < np.ptp(q) < 6.4


@pytest.mark.parametrize("limits", ['velocity="0"', 'lower="0" upper="0"'])
def test_ignores_limits_that_permit_no_motion(limits):
    """Programs that convert drawings to URDFs write such limits."""
    text = random_urdf(np.random.default_rng(2), 3, prismatic_share=0.3)
    name = limits.split("=", maxsplit=1)[0]
    still = text.replace('velocity="3"' if name == "velocity" else 'lower="-2" upper="2"', limits)
    assert still != text
    moving, robot = (RobotModel.from_urdf(urdf, tip=TIP) for urdf in (text, still))
    friction = FrictionModel(JointFriction(offset=True))
    assert robot.base_parameters(friction).expressions == moving.base_parameters(friction).expressions
    assert np.all(np.ptp(random_motion(robot)[0], axis=0) > 0.5)
    assert np.all(np.ptp(random_motion(robot)[1], axis=0) > 0.5)


def test_factor_needs_constant_memory():
    robot = mit_arm()
    rng = np.random.default_rng(0)
    motion = rng.uniform(-2, 2, (3, 40_000, 3))
    whole = robot.torque_regressor(*(array[:700] for array in motion)).reshape(-1, 30)
    factor = triangular_factor(regressor_blocks(robot, None, [array[:700] for array in motion]))
    np.testing.assert_allclose(factor.T @ factor, whole.T @ whole, rtol=1e-12, atol=1e-8)
    peaks = []
    for samples in (2_000, 40_000):
        tracemalloc.start()
        triangular_factor(regressor_blocks(robot, None, [array[:samples] for array in motion]))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_refuses_bad_input():
    robot = mit_arm()
    names = parameter_names(robot)
    q, qd, qdd = motion_of(robot)
    with pytest.raises(ModelError, match=r"shape \(5, 29\); expected \(..., 30\)"):
        BaseParameters(np.ones((5, 29)), names)
    with pytest.raises(ModelError, match="not finite"):
        BaseParameters(np.full((5, 30), np.nan), names)
    base = robot.base_parameters()
    for function, values in ((base.project, np.ones(31)), (base.reduce, np.ones((4, 31)))):
        with pytest.raises(ModelError, match=r"expected \(..., 30\)"):
            function(values)
    with pytest.raises(ModelError, match=r"qd has shape \(100, 2\)"):
        BaseParameters.of_robot(robot, motion=(q, qd[:, :2], qdd))
    qd[70, 1] = np.nan
    with pytest.raises(ModelError, match="qd of joint_2 is nan in sample 70"):
        BaseParameters.of_robot(robot, motion=(q, qd, qdd))
    with pytest.raises(ModelError, match="no samples"):
        BaseParameters.of_robot(robot, motion=np.empty((3, 0, 3)))
