"""Regressors of torques and wrenches with their gradients, against Pinocchio and published values."""

import numpy as np
import pytest
from numerical_gradient import numerical_gradient
from paper_arms import mit_arm, mit_motion
from pinocchio_arm import REGRESSOR_ORDER, PinocchioArm, example_urdf
from random_chains import TIP, random_urdf
from scipy.integrate import simpson
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel
from dynid_ros.model.dynamics import regressor_of_features, tip_motion, wrench_features
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix
from dynid_ros.model.regressor import DifferentiableRegressor, RegressorRows


def motions(rng, n_samples, n):
    return [rng.uniform(-1.5, 1.5, (n_samples, n)) for _ in range(3)]


def assert_gradients(robot, truth, rng):
    """Check the three gradients of a random function of the regressor, at a few samples."""
    motion = motions(rng, 3, robot.n_joints)
    regressor = DifferentiableRegressor(robot.chain, robot.gravity)
    matrix = regressor.matrix(*motion)
    weights = rng.standard_normal(matrix.shape)
    gradients = regressor.gradient(weights)

    def value(position, velocity, acceleration):
        rows = [truth.torque_regressor(*sample) for sample in zip(position, velocity, acceleration, strict=True)]
        return float(np.sum(np.stack(rows, axis=-1) * weights))

    for k, gradient in enumerate(gradients):
        expected = numerical_gradient(lambda array, k=k: value(*motion[:k], array, *motion[k + 1 :]), motion[k])
        np.testing.assert_allclose(gradient, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("path", ["ur_description/urdf/ur10_robot.urdf", "panda_description/urdf/panda.urdf"])
def test_gradients_of_real_arms(path):
    text = example_urdf(path).read_text()
    robot = RobotModel.from_urdf(text, tip="tool0" if "ur10" in path else "panda_hand")
    assert_gradients(robot, PinocchioArm(text, robot.joint_names, robot.gravity), np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_random_chains(seed):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 4, prismatic_share=0.4)
    robot = RobotModel.from_urdf(text, tip=TIP)
    assert_gradients(robot, PinocchioArm(text, robot.joint_names, robot.gravity), rng)


def test_selected_columns_equal_those_of_all():
    rng = np.random.default_rng(1)
    robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP)
    columns = np.array([3, 7, 9, 12, 24, 29, 38])
    motion = motions(rng, 5, 4)
    complete = DifferentiableRegressor(robot.chain, robot.gravity)
    some = DifferentiableRegressor(robot.chain, robot.gravity, columns)
    matrix = complete.matrix(*motion)
    np.testing.assert_array_equal(some.matrix(*motion), matrix[:, columns])
    np.testing.assert_array_equal(matrix, robot.torque_regressor(*motion).transpose(1, 2, 0))
    weights = np.zeros_like(matrix)
    weights[:, columns] = rng.standard_normal((4, len(columns), 5))
    for a, b in zip(complete.gradient(weights), some.gradient(weights[:, columns]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_cost_of_the_gradient_is_independent_of_the_joints(monkeypatch):
    """The cost is counted in calls of einsum."""
    counted = {"steps": 0}
    einsum = np.einsum

    def counting(subscripts, *operands, **options):
        counted["steps"] += 1
        return einsum(subscripts, *operands, **options)

    monkeypatch.setattr(np, "einsum", counting)
    steps = []
    for n in (3, 6):
        robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(n), n), tip=TIP)
        regressor = DifferentiableRegressor(robot.chain, robot.gravity)
        counted["steps"] = 0
        matrix = regressor.matrix(*motions(np.random.default_rng(0), 10, n))
        forward = counted["steps"]
        counted["steps"] = 0
        regressor.gradient(np.ones_like(matrix))
        steps.append(counted["steps"] / forward)
    assert max(steps) < 4  # differences would take 3 n + 1 evaluations


def random_arm(seed: int) -> tuple[RobotModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), tip=TIP, gravity=rng.normal(size=3) * 8)
    return robot, rng.normal(size=(3, 5, robot.n_joints))


@pytest.mark.parametrize("seed", range(10))
def test_wrench_regressor_agrees_with_pinocchio(seed):
    robot, motion = random_arm(seed)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    frame = arm.model.getFrameId(TIP)
    expected = []
    for q, qd, qdd in motion.transpose(1, 0, 2):
        arm.inverse_dynamics(q, qd, qdd)
        expected.append(arm.pinocchio.frameBodyRegressor(arm.model, arm.data, frame)[:, REGRESSOR_ORDER])
    np.testing.assert_allclose(robot.wrench_regressor(*motion), expected, rtol=1e-10, atol=1e-10)


def rank(regressor: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(regressor.reshape(-1, 10), tol=1e-9))


def test_ranks_of_the_wrench_regressor():
    robot = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="tool0")
    motion = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 2, 6))
    still = np.zeros((2, 6))
    at_rest = robot.wrench_regressor(motion[0], still, still)
    moving = robot.wrench_regressor(*motion)
    assert [rank(at_rest[:1]), rank(at_rest), rank(moving[:1]), rank(moving)] == [3, 4, 6, 10]


BLOCK = 1.106, 0.0254 * np.array([2.0, 2.0, 6.0])
"""Mass (kg) and edges (m) of the aluminium block of table 1 of Atkeson, An and Hollerbach (1986)."""
MIT_WITH_BLOCK = """<mujoco><option gravity="0 0 -9.80665"/><worldbody>
  <body><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body euler="90 0 0"><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body pos="0 0 0.45" euler="90 0 0"><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body><site name="wrist"/><geom type="box" pos="0.01 -0.02 0.047" euler="20 30 0" mass="{mass}" size="{size}"/></body>
  </body></body></body></worldbody>
  <sensor><force site="wrist"/><torque site="wrist"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def block() -> tuple[np.ndarray, np.ndarray]:
    """Return parameters (10,) of the block on the paper's arm, and wrenches (600, 6) in the paper's motions."""
    mujoco = pytest.importorskip("mujoco")
    mass, edges = BLOCK
    size = " ".join(f"{edge / 2!r}" for edge in edges.tolist())
    model = mujoco.MjModel.from_xml_string(MIT_WITH_BLOCK.format(mass=mass, size=size))
    data = mujoco.MjData(model)
    wrenches = []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(*mit_motion(), strict=True):
        mujoco.mj_inverse(model, data)
        wrenches.append(data.sensordata.copy())
    axes = Rotation.from_quat(np.roll(model.body_iquat[-1], -1)).as_matrix()
    parameters = from_center_of_mass(mass, model.body_ipos[-1], axes * model.body_inertia[-1] @ axes.T)
    return parameters, np.array(wrenches)


def test_identifies_the_block_of_the_paper(block):
    """Section 3.1.1: the largest principal moment of the load of table 1 is 0.00238 kg m²."""
    parameters, wrenches = block
    regressor = mit_arm().wrench_regressor(*mit_motion())
    np.testing.assert_allclose(regressor @ parameters, wrenches, atol=1e-9)
    estimate = np.linalg.lstsq(regressor.reshape(-1, 10), wrenches.ravel(), rcond=None)[0]
    np.testing.assert_allclose(estimate, parameters, atol=1e-10)
    point_mass = from_center_of_mass(estimate[0], estimate[1:4] / estimate[0], np.zeros((3, 3)))
    moments = np.linalg.eigvalsh(inertia_matrix(estimate - point_mass))
    assert moments[-1] == pytest.approx(0.0023785, abs=1e-7)


def test_integral_form_needs_no_accelerations(block):
    """Eqs. 25 to 27 replace the accelerations by the difference of the twists at the ends."""
    parameters, wrenches = block
    robot = mit_arm()
    step = 1.3 / 199
    for first in (0, 200, 400):
        q, qd, qdd = (
            values[first : first + 199] for values in mit_motion()
        )  # Simpson's rule needs an odd number of samples
        moved = tip_motion(robot.chain, robot.gravity, q, qd, np.full_like(qdd, np.nan))
        features = simpson(wrench_features(moved.velocity, moved.weight), dx=step)
        features[:6] += moved.velocity[:, -1] - moved.velocity[:, 0]
        impulse = simpson(wrenches[first : first + 199], dx=step, axis=0)
        np.testing.assert_allclose(regressor_of_features(features[:, None])[0] @ parameters, impulse, atol=3e-7)


UNCHANGED = 7.0


@pytest.mark.parametrize("seed", range(12))
def test_regressor_rows_have_any_columns(seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), tip=TIP, gravity=rng.normal(size=3) * 8)
    motion = rng.normal(size=(3, 4, robot.n_joints))
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    expected = np.array([arm.torque_regressor(*sample) for sample in motion.transpose(1, 0, 2)])
    size = robot.parameters.size
    for columns in (np.arange(size), np.flatnonzero(rng.random(size) < 0.3), np.array([size - 10]), np.array([], int)):
        link = columns // 10
        matrix = np.full((robot.n_joints, len(columns), motion.shape[1]), UNCHANGED)
        RegressorRows(robot.chain, robot.gravity, columns).fill(matrix, *motion)
        rows = matrix.transpose(2, 0, 1)
        for joint in range(robot.n_joints):
            np.testing.assert_allclose(
                rows[:, joint, link >= joint], expected[:, joint, columns[link >= joint]], rtol=1e-10, atol=1e-10
            )
            assert (rows[:, joint, link < joint] == UNCHANGED).all()


def test_regressor_rows_accept_blocks_of_any_size():
    rng = np.random.default_rng(3)
    robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP)
    rows = RegressorRows(robot.chain, robot.gravity)
    for size in (5, 5, 1, 0, 17):
        motion = rng.normal(size=(3, size, 4))
        matrix = np.zeros((4, 40, size))
        rows.fill(matrix, *motion)
        np.testing.assert_array_equal(matrix.transpose(2, 0, 1), robot.torque_regressor(*motion))


def test_regressor_does_not_change_the_motion():
    rng = np.random.default_rng(4)
    robot = RobotModel.from_dh([{"a": 0.3, "alpha": 0.5, "d": 0.1, "theta": 0.2, "type": "prismatic"}])
    motion = rng.normal(size=(3, 6, 1))
    before = motion.copy()
    robot.torque_regressor(*motion)
    np.testing.assert_array_equal(motion, before)


def test_regressor_at_odd_multiples_of_pi():
    robot = RobotModel.from_dh([{"a": 0.3, "alpha": 0.5, "d": 0.1, "theta": 0.2, "type": "revolute"}] * 2)
    q = np.pi * np.array([[1.0, -1.0], [3.0, 5.0], [0.5, -0.5], [101.0, 0.0]])
    shifted = q - 2.0 * np.pi * np.array([[1, 0], [2, 3], [0, 0], [50, 0]])
    rates = np.ones_like(q)
    expected = robot.torque_regressor(shifted, rates, rates)
    np.testing.assert_allclose(robot.torque_regressor(q, rates, rates), expected, atol=1e-12)
    parameters = np.random.default_rng(5).uniform(0.1, 1.0, 20)
    torques = robot.inverse_dynamics(q, rates, rates, parameters)
    np.testing.assert_allclose(robot.torque_regressor(q, rates, rates) @ parameters, torques, rtol=1e-12, atol=1e-12)
