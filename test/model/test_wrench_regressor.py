"""The wrench on a body at the tip, against Pinocchio, virtual work and what Atkeson, An and Hollerbach 1986 print."""

import numpy as np
import pytest
from paper_arms import mit_arm, mit_motion
from pinocchio_arm import REGRESSOR_ORDER, PinocchioArm, example_urdf
from random_chains import TIP, random_urdf
from scipy.integrate import simpson
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix, transformed
from dynid_ros.model.regressor import of_features, tip_motion, wrench_features


def random_arm(seed: int) -> tuple[RobotModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), tip=TIP, gravity=rng.normal(size=3) * 8)
    return robot, rng.normal(size=(3, 5, robot.n_joints))


@pytest.mark.parametrize("seed", range(10))
def test_random_chains_against_pinocchio(seed):
    robot, motion = random_arm(seed)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    frame = arm.model.getFrameId(TIP)
    expected = []
    for q, qd, qdd in motion.transpose(1, 0, 2):
        arm.inverse_dynamics(q, qd, qdd)
        expected.append(arm.pinocchio.frameBodyRegressor(arm.model, arm.data, frame)[:, REGRESSOR_ORDER])
    np.testing.assert_allclose(robot.wrench_regressor(*motion), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(20, 26))
def test_power_of_the_wrench_is_that_of_the_torques(seed):
    robot, motion = random_arm(seed)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    frame = arm.model.getFrameId(TIP)
    about_link = transformed(np.eye(10), robot.tip_offset).T
    torques = robot.torque_regressor(*motion)[:, :, -10:] @ about_link
    for q, wrench, torque in zip(motion[0], robot.wrench_regressor(*motion), torques, strict=True):
        jacobian = arm.pinocchio.computeFrameJacobian(arm.model, arm.data, arm.configuration(q), frame)
        np.testing.assert_allclose(np.atleast_2d(jacobian.T @ wrench), torque, rtol=1e-9, atol=1e-9)


def rank(regressor: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(regressor.reshape(-1, 10), tol=1e-9))


def test_ranks_of_the_paper():
    robot = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="tool0")
    motion = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 2, 6))
    still = np.zeros((2, 6))
    at_rest, moving = robot.wrench_regressor(motion[0], still, still), robot.wrench_regressor(*motion)
    assert [rank(at_rest[:1]), rank(at_rest), rank(moving[:1]), rank(moving)] == [3, 4, 6, 10]


BLOCK = 1.106, 0.0254 * np.array([2.0, 2.0, 6.0])
"""Aluminium block of Table 1: kg, and its edges in m."""
MIT_WITH_BLOCK = """<mujoco><option gravity="0 0 -9.80665"/><worldbody>
  <body><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body euler="90 0 0"><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body pos="0 0 0.45" euler="90 0 0"><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body><site name="wrist"/><geom type="box" pos="0.01 -0.02 0.047" euler="20 30 0" mass="{mass}" size="{size}"/></body>
  </body></body></body></worldbody>
  <sensor><force site="wrist"/><torque site="wrist"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def block() -> tuple[np.ndarray, np.ndarray]:
    """Parameters (10,) of the block on the paper's arm, and the wrenches (600, 6) on it in the paper's moves."""
    mujoco = pytest.importorskip("mujoco")
    mass, edges = BLOCK
    size = " ".join(f"{edge / 2!r}" for edge in edges.tolist())
    model = mujoco.MjModel.from_xml_string(MIT_WITH_BLOCK.format(mass=mass, size=size))
    data = mujoco.MjData(model)
    found = []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(*mit_motion(), strict=True):
        mujoco.mj_inverse(model, data)
        found.append(data.sensordata.copy())
    axes = Rotation.from_quat(np.roll(model.body_iquat[-1], -1)).as_matrix()
    parameters = from_center_of_mass(mass, model.body_ipos[-1], axes * model.body_inertia[-1] @ axes.T)
    return parameters, np.array(found)


def test_block_of_the_paper_in_mujoco(block):
    """Section 3.1.1: the largest principal moment of the load of Table 1 is 0.00238 kg m²."""
    parameters, wrenches = block
    regressor = mit_arm().wrench_regressor(*mit_motion())
    np.testing.assert_allclose(regressor @ parameters, wrenches, atol=1e-9)
    found = np.linalg.lstsq(regressor.reshape(-1, 10), wrenches.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found, parameters, atol=1e-10)
    center = found[1:4] / found[0]
    moments = np.linalg.eigvalsh(inertia_matrix(found - from_center_of_mass(found[0], center, np.zeros((3, 3)))))
    assert moments[-1] == pytest.approx(0.0023785, abs=1e-7)


def test_integral_form_of_the_paper(block):
    """Eqs. 25 to 27: of accelerations, only the difference of the twists at the ends is left."""
    parameters, wrenches = block
    robot, step = mit_arm(), 1.3 / 199
    for first in (0, 200, 400):
        q, qd, qdd = (values[first : first + 199] for values in mit_motion())  # Simpson's rule wants an odd number
        moved = tip_motion(robot.chain, robot.gravity, q, qd, np.full_like(qdd, np.nan))
        features = simpson(wrench_features(moved.velocity, moved.weight), dx=step)
        features[:6] += moved.velocity[:, -1] - moved.velocity[:, 0]
        impulse = simpson(wrenches[first : first + 199], dx=step, axis=0)
        np.testing.assert_allclose(of_features(features[:, None])[0] @ parameters, impulse, atol=3e-7)
