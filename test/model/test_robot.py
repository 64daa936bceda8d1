"""RobotModel, against Pinocchio on real arms and random chains, and its arrays of samples."""

import tracemalloc

import numpy as np
import planar_arm
import pytest
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import BLOCK
from dynid_ros.model.robot import locked

ARMS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "ee_link"),
    "kinova": ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", None),
    "tiago": ("tiago_description/robots/tiago_no_hand.urdf", "arm_tool_link"),
}


def _assert_equal(robot: RobotModel, rng: np.random.Generator, n_samples: int) -> None:
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    q, qd, qdd = rng.normal(size=(3, n_samples, robot.n_joints))
    poses = robot.forward_kinematics(q)
    torques = robot.inverse_dynamics(q, qd, qdd)
    gravity = robot.gravity_torque(q)
    matrix = robot.torque_regressor(q, qd, qdd)
    gravity_matrix = robot.gravity_regressor(q)
    at_rest = gravity_matrix @ robot.parameters
    np.testing.assert_allclose(robot.parameters, arm.parameters(), rtol=0, atol=1e-10)
    for k in range(n_samples):
        expected = arm.inverse_dynamics(q[k], qd[k], qdd[k])
        np.testing.assert_allclose(poses[k], arm.poses(q[k]), rtol=0, atol=1e-10)
        np.testing.assert_allclose(torques[k], expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(matrix[k] @ robot.parameters, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(matrix[k], arm.torque_regressor(q[k], qd[k], qdd[k]), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(gravity[k], arm.gravity_torque(q[k]), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(at_rest[k], arm.gravity_torque(q[k]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ARMS)
def test_real_arms_agree_with_pinocchio(name):
    path, tip = ARMS[name]
    robot = RobotModel.from_urdf(example_urdf(path), tip=tip, gravity=(1.1, -2.3, -9.4))
    _assert_equal(robot, np.random.default_rng(1), 20)


def test_random_chains_agree_with_pinocchio():
    kinds = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 9))), tip=TIP, gravity=rng.normal(size=3) * 8)
        _assert_equal(robot, rng, 3)
        kinds += robot.joint_types
    assert kinds.count("prismatic") > 20
    assert kinds.count("revolute") > 60


def test_base_behind_moving_joints_has_gravity_of_its_frame():
    rng = np.random.default_rng(7)
    urdf = random_urdf(rng, 6)
    whole = RobotModel.from_urdf(urdf, tip=TIP)
    outer = ("joint_4", "joint_5", "joint_6")
    arm = PinocchioArm(urdf, whole.joint_names, whole.gravity)
    q, qd, qdd = rng.normal(size=(3, 6))
    qd[:3] = qdd[:3] = 0.0
    turn = arm.poses(q)[2, :3, :3]
    part = RobotModel.from_urdf(urdf, tip=TIP, base="link_3", gravity=turn.T @ whole.gravity)
    assert part.joint_names == outer
    torque = part.inverse_dynamics(*(array[None, 3:] for array in (q, qd, qdd)))
    np.testing.assert_allclose(torque[0], arm.inverse_dynamics(q, qd, qdd)[3:], rtol=1e-10, atol=1e-10)


URDFS = {"ur_description/urdf/ur10_robot.urdf": "tool0", "panda_description/urdf/panda.urdf": "panda_hand"}


@pytest.mark.parametrize("urdf", URDFS)
@pytest.mark.parametrize("kept", [(1,), (0, 3), (2, 3, 5), (5,)])
def test_locked_joints_agree_with_pinocchios_reduced_model(urdf, kept):
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(len(kept))
    robot = RobotModel.from_urdf(example_urdf(urdf), tip=URDFS[urdf], gravity=(1.0, -2.0, -9.0))
    names = robot.joint_names
    pose = rng.uniform(-1.5, 1.5, len(names))
    joints = [names[i] for i in kept]
    reduced_robot = locked(robot, joints[::-1], pose)
    assert reduced_robot.joint_names == tuple(joints)
    assert (reduced_robot.base, reduced_robot.tip) == (robot.base, robot.tip)
    assert reduced_robot.limits.upper == pytest.approx(robot.limits.upper[list(kept)])

    model = pin.buildModelFromXML(robot.urdf)
    q0 = pin.neutral(model)
    for name, position in zip(names, pose, strict=True):
        q0[model.joints[model.getJointId(name)].idx_q] = position
    reduced = pin.buildReducedModel(model, [model.getJointId(n) for n in model.names[1:] if n not in joints], q0)
    reduced.gravity.linear = robot.gravity
    data = reduced.createData()
    q, qd, qdd = rng.uniform(-2, 2, (3, 20, len(kept)))
    expected = np.array([pin.rnea(reduced, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    np.testing.assert_allclose(reduced_robot.inverse_dynamics(q, qd, qdd), expected, atol=1e-9)
    pin.framesForwardKinematics(reduced, data, q[0])
    tip = data.oMf[reduced.getFrameId(robot.tip)].homogeneous
    np.testing.assert_allclose(
        reduced_robot.forward_kinematics(q[:1])[0, -1] @ reduced_robot.tip_offset, tip, atol=1e-9
    )


def test_refuses_bad_locked_joints():
    robot = RobotModel.from_urdf(share_path("config/demo_arm.urdf"))
    pose = np.zeros(robot.n_joints)
    with pytest.raises(ModelError, match="joints to move are elbow; expected some of joint_1"):
        locked(robot, ["elbow"], pose)
    with pytest.raises(ModelError, match="joints to move are none"):
        locked(robot, [], pose)
    with pytest.raises(ModelError, match="expected \\(6,\\)"):
        locked(robot, ["joint_2"], [0.0])


@pytest.fixture
def robot() -> RobotModel:
    return RobotModel.from_urdf(random_urdf(np.random.default_rng(3), 5), tip=TIP)


def test_blocks_of_samples_equal_single_samples(robot):
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2 * BLOCK + 7, 5))
    indices = [0, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 6]
    for function, arrays in (
        (robot.torque_regressor, (q, qd, qdd)),
        (robot.inverse_dynamics, (q, qd, qdd)),
        (robot.gravity_regressor, (q,)),
        (robot.gravity_torque, (q,)),
        (robot.forward_kinematics, (q,)),
        (robot.joint_axes, (q,)),
    ):
        alone = np.concatenate([function(*(array[[k]] for array in arrays)) for k in indices])
        np.testing.assert_allclose(function(*arrays)[indices], alone, rtol=1e-12, atol=1e-12)


def test_accepts_zero_samples(robot):
    empty = np.empty((0, 5))
    assert robot.torque_regressor(empty, empty, empty).shape == (0, 5, 50)
    assert robot.inverse_dynamics(empty, empty, empty).shape == (0, 5)
    assert robot.forward_kinematics(empty).shape == (0, 5, 4, 4)


def test_nan_affects_its_own_sample_only(robot):
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 5, 5))
    clean = robot.inverse_dynamics(q, qd, qdd), robot.torque_regressor(q, qd, qdd)
    qd[2, 0] = np.nan
    broken = robot.inverse_dynamics(q, qd, qdd), robot.torque_regressor(q, qd, qdd)
    others = [0, 1, 3, 4]
    for before, after in zip(clean, broken, strict=True):
        np.testing.assert_allclose(after[others], before[others], rtol=1e-12, atol=1e-12)
        assert np.isnan(after[2]).any()


def test_regressor_needs_little_more_memory_than_its_result(robot):
    def overhead(n_samples: int) -> int:
        arrays = np.zeros((3, n_samples, 5))
        tracemalloc.start()
        result = robot.torque_regressor(*arrays)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak - result.nbytes

    assert overhead(20 * BLOCK) < 1.1 * overhead(5 * BLOCK)


def test_joint_axes_equal_finite_differences(robot):
    q = np.random.default_rng(0).normal(size=(1, 5))
    axes = robot.joint_axes(q)[0]
    step = 1e-6
    np.testing.assert_allclose(np.linalg.norm(axes, axis=1), 1.0, rtol=1e-14)
    for j, kind in enumerate(robot.joint_types):
        move = np.zeros(5)
        move[j] = step
        before = robot.forward_kinematics(q - move)[0, j]
        after = robot.forward_kinematics(q + move)[0, j]
        if kind == "prismatic":
            moved = (after - before)[:3, 3] / (2 * step)
        else:
            spin = (after - before)[:3, :3] @ before[:3, :3].T / (2 * step)
            moved = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        np.testing.assert_allclose(moved, axes[j], atol=1e-5)


def test_kinematics_hash_excludes_inertias():
    urdf = random_urdf(np.random.default_rng(3), 4)
    robot = RobotModel.from_urdf(urdf, tip=TIP)
    other_mass = urdf.replace('<mass value="', '<mass value="1')
    assert RobotModel.from_urdf(other_mass, tip=TIP).kinematics_sha256 == robot.kinematics_sha256
    assert RobotModel.from_urdf(other_mass, tip=TIP).urdf_sha256 != robot.urdf_sha256
    assert RobotModel.from_urdf(urdf, tip="link_3").kinematics_sha256 != robot.kinematics_sha256
    assert RobotModel.from_urdf(urdf.replace("joint_2", "elbow"), tip=TIP).kinematics_sha256 != robot.kinematics_sha256
    row = {"a": 0.1, "alpha": 0.2, "d": 0.3, "theta": 0.4, "type": "revolute"}
    hashes = [
        RobotModel.from_dh([{**row, **change}]).kinematics_sha256
        for change in ({}, {"a": 0.1 + 1e-12}, {"a": 0.101}, {"alpha": 0.201}, {"d": 0.301}, {"type": "prismatic"})
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


ONE_SAMPLE = np.zeros((1, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (
                lambda robot, shape=shape: robot.gravity_torque(np.zeros(shape)),
                r"q has shape .*expected \(N, 5\).*joint_1",
            )
            for shape in ((6,), (4, 6), (2, 4, 5), ())
        ),
        (lambda robot: robot.torque_regressor(ONE_SAMPLE, ONE_SAMPLE, np.zeros((3, 5))), r"qdd has shape \(3, 5\)"),
        (lambda robot: robot.gravity_torque(ONE_SAMPLE, np.zeros(49)), r"parameters.*shape \(49,\).*\(50,\)"),
        (lambda robot: robot.gravity_torque(ONE_SAMPLE, np.r_[np.zeros(7), np.inf, np.zeros(42)]), "entry 7"),
        *(
            (lambda _, gravity=gravity: RobotModel.from_urdf(planar_arm.urdf(), gravity=gravity), message)
            for gravity, message in (
                ((0.0, -9.81), "gravity"),
                ((0.0, 0.0, np.nan), "gravity"),
                *(((0.0, 0.0, size), r"gravity is .* expected about 9\.8") for size in (-1e-300, 1e-5, 1e5)),
            )
        ),
    ],
)
def test_refuses_bad_arrays(robot, call, message):
    with pytest.raises(ModelError, match=message):
        call(robot)
