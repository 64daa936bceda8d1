"""The minimal gravity model of Ma and Hollerbach (1996) and its generalization."""

import known_problems as known
import numpy as np
import pytest
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.model import GravityModel, RobotModel


def _dh_arm(alphas, gravity=(0.0, 0.0, -9.80665), rng=None, kinds=None) -> RobotModel:
    n = len(alphas)
    rng = rng or np.random.default_rng(0)
    a = rng.uniform(-0.3, 0.3, n)
    d = rng.uniform(-0.5, 0.5, n)
    kinds = kinds or ["revolute"] * n
    rows = [{"a": a[i], "alpha": alphas[i], "d": d[i], "theta": 0.0, "type": kinds[i]} for i in range(n)]
    return RobotModel.from_dh(rows, gravity, rng.uniform(0.1, 1.0, 10 * n))


def _rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix.reshape(-1, matrix.shape[-1]), tol=1e-8))


def _poses(robot: RobotModel, n: int = 200) -> np.ndarray:
    return np.random.default_rng(5).uniform(-np.pi, np.pi, (n, robot.n_joints))


def test_moments_of_the_sarcos_arm_match_the_paper():
    parameters = np.zeros((7, 10))
    parameters[:, 0] = known.sarcos_masses()
    parameters[:, 1:4] = known.SARCOS_MOMENTS
    sarcos = RobotModel.from_dh(known.sarcos_dh(), parameters=parameters.ravel())
    gravity = GravityModel(sarcos)
    moments = gravity.project(sarcos.parameters)
    np.testing.assert_allclose(moments.reshape(7, 2), known.SARCOS_IDENTIFIED, rtol=0, atol=5.1e-5)
    q = _poses(sarcos)
    np.testing.assert_allclose(gravity.regressor(q) @ moments, sarcos.gravity_torque(q), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [3, 6, 9])
@pytest.mark.parametrize("prismatic_share", [0.0, 0.4])
def test_minimal_model_equals_the_full_model(n, prismatic_share):
    for seed in range(5):
        rng = np.random.default_rng([n, seed])
        robot = RobotModel.from_urdf(random_urdf(rng, n, prismatic_share), tip=TIP, gravity=rng.normal(size=3) * 6)
        gravity = GravityModel(robot)
        q = rng.uniform(-np.pi, np.pi, (30, n))
        moments = gravity.project(robot.parameters)
        np.testing.assert_allclose(gravity.projection @ robot.parameters, moments, rtol=0, atol=1e-13)
        expected = robot.gravity_torque(q)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(gravity.regressor(q) @ moments, expected, rtol=0, atol=1e-12 * max(1.0, scale))
        for torque in (gravity.compile(moments), gravity.bind(moments)):
            np.testing.assert_allclose([torque(sample) for sample in q[:5]], expected[:5], rtol=0, atol=1e-11)


@pytest.mark.parametrize("prismatic_share", [0.0, 0.4])
def test_observable_moments_are_independent(prismatic_share):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, 6, prismatic_share), tip=TIP, gravity=(0.3, 0.7, -9.0))
        gravity = GravityModel(robot)
        matrix = gravity.regressor(_poses(robot))
        observable = ~gravity.unobservable_axes()
        sizes = np.where(robot.chain.prismatic, 1, 2)
        assert _rank(matrix) == _rank(robot.gravity_regressor(_poses(robot)))
        assert _rank(matrix) == sizes[observable].sum()


@pytest.mark.parametrize(
    ("alphas", "kinds", "unobservable", "rank"),
    [
        ([90, -90, 90, -90, 90, -90, 0], "RRRRRRR", [True] + [False] * 6, 12),
        ([0, 0, 90, 0, 90, 0], "RRRRRR", [True, True, True, False, False, False], 6),
        ([180, 0, 90, 0], "RRRR", [True, True, True, False], 2),
        ([30, 90, 0], "RRR", [True, False, False], 4),
        ([0, 0, 0, 0], "RRPR", [True, True, False, True], 1),  # SCARA: gravity acts on the prismatic joint only
        ([90, -90, 90, 0], "RPRR", [True, True, True, False], 2),  # a prismatic joint that stays horizontal
        ([90, 90, 0], "PRR", [False, False, False], 5),
    ],
)
def test_ranks_of_special_arms(alphas, kinds, unobservable, rank):
    names = ["prismatic" if kind == "P" else "revolute" for kind in kinds]
    robot = _dh_arm(np.radians(alphas), kinds=names)
    gravity = GravityModel(robot)
    q = _poses(robot)
    np.testing.assert_array_equal(gravity.unobservable_axes(), unobservable)
    assert _rank(gravity.regressor(q)) == rank
    assert _rank(robot.gravity_regressor(q)) == rank
    for i in np.flatnonzero(unobservable):
        assert np.abs(gravity.regressor(q)[:, :, gravity.columns(i)]).max() < 1e-14


@pytest.mark.parametrize(
    ("angles", "gravity", "unobservable"),
    [
        ([np.pi / 2, 0, 0], (0, 0, -9.8), [True, False, False]),
        ([np.pi / 2, 0, 0], (0.5, 0, -9.8), [False, False, False]),
        # Axes with rounded right angles count as parallel to gravity.
        ([1.5708 - np.pi / 2, np.pi / 2, 0.0], (0, 0, -9.8), [True, True, False]),
        ([1.571 - np.pi / 2, np.pi / 2, 0.0], (0, 0, -9.8), [True, True, False]),
        ([1.56 - np.pi / 2, np.pi / 2, 0.0], (0, 0, -9.8), [True, False, False]),
        ([0.3, 0.4], (0, 0, 0), [True, True]),
    ],
)
def test_finds_axes_that_gravity_does_not_load(angles, gravity, unobservable):
    assert GravityModel(_dh_arm(angles, gravity)).unobservable_axes().tolist() == unobservable


def test_names_and_columns_of_moments():
    gravity = GravityModel(_dh_arm([0.1, 0.2, 0.3], kinds=["revolute", "prismatic", "revolute"]))
    expected = ("n_x joint_1", "n_y joint_1", "mass joint_2", "n_x joint_3", "n_y joint_3")
    assert gravity.names == expected
    assert [gravity.columns(i) for i in range(3)] == [slice(0, 2), slice(2, 3), slice(3, 5)]
    assert gravity.projection.shape == (5, 30)


def test_bound_functions_are_independent():
    gravity = GravityModel(_dh_arm(np.radians([90, 0, 0])))
    q = np.array([0.1, 0.2, 0.3])
    first = gravity.bind(np.ones(6))
    before = first(q)
    second = gravity.bind(np.arange(6.0))
    np.testing.assert_array_equal(first(q), before)
    np.testing.assert_allclose(second(q), gravity.compile(np.arange(6.0))(q), rtol=0, atol=1e-14)
    with pytest.raises(ModelError, match=r"shape \(3,\).*\(6,\)"):
        gravity.bind(np.ones(3))


def test_compiled_torque_of_invalid_positions():
    robot = _dh_arm(np.radians([90, 0, 0]))
    torque = GravityModel(robot).compile(np.ones(6))
    assert np.isnan(torque(np.array([0.0, 0.0, np.nan]))[1:]).all()
    for q in (np.zeros(2), np.zeros(4), np.array([0.0, np.inf, 0.0])):
        with pytest.raises(ValueError):  # noqa: PT011 (the message is the interpreter's)
            torque(q)


def test_refuses_vectors_of_wrong_size():
    gravity = GravityModel(_dh_arm([0.1, 0.2]))
    with pytest.raises(ModelError, match=r"n_x joint_1.*shape \(3,\).*\(4,\)"):
        gravity.compile(np.ones(3))
    with pytest.raises(ModelError, match="entry 1 is not finite"):
        gravity.compile([1.0, np.nan, 1.0, 1.0])
    with pytest.raises(ModelError, match=r"parameters.*\(20,\)"):
        gravity.project(np.ones(19))
    with pytest.raises(ModelError, match=r"expected \(N, 2\)"):
        gravity.regressor(np.ones(2))


def test_torque_on_a_tilting_base_agrees_with_pinocchio():
    """A single compiled function serves all directions of gravity."""
    ur5 = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur5_robot.urdf"), tip="tool0")
    model = GravityModel(ur5)
    down = [0.0, 0.0, -9.81]
    moments = model.project(ur5.parameters)
    torque = model.bind(moments, lambda: down)
    rng = np.random.default_rng(4)
    for gravity in rng.normal(0.0, 5.0, (10, 3)):
        down[:] = gravity
        q = rng.uniform(-3, 3, ur5.n_joints)
        expected = PinocchioArm(ur5.urdf, ur5.joint_names, gravity).gravity_torque(q)
        np.testing.assert_allclose(torque(q.tolist()), expected, atol=1e-10)
