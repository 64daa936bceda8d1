"""Trees and mimic joints, against Pinocchio, and refusals."""

import numpy as np
import pytest
from pinocchio_arm import REGRESSOR_ORDER, MimickingArm, example_urdf
from random_chains import random_tree_urdf
from urdf_parts import joint, link, robot

from dynid_ros.errors import ModelError
from dynid_ros.identification.online.online_equations import RegressorSums
from dynid_ros.model import BaseParameters, GravityModel, RobotModel
from dynid_ros.model.link_tree import held_positions
from dynid_ros.model.regressor import DifferentiableRegressor
from dynid_ros.model.robot import locked
from dynid_ros.model.urdf_export import urdf_with_inertias

pinocchio = pytest.importorskip("pinocchio")
TREES = 20


class FreeJoints:
    """A tree in Pinocchio whose joints are all free: positions are G q + o; G projects torques and regressors."""

    def __init__(self, tree: RobotModel):
        self.model, chain = pinocchio.buildModelFromXML(tree.urdf), tree.chain
        self.model.gravity.linear = tree.gravity
        self.data = self.model.createData()
        self.links = [self.model.getJointId(name) for name in chain.mover_names]
        assert sorted(self.links) == list(range(1, self.model.njoints))
        self.ratios = np.zeros((self.model.nv, tree.n_joints))
        self.offsets = np.zeros(self.model.nv)
        for i, row in enumerate(self.model.joints[k].idx_v for k in self.links):
            self.ratios[row, chain.drivers[i]] = chain.ratios[i]
            self.offsets[row] = chain.offsets[i]

    def _motion(self, q, qd, qdd):
        return self.ratios @ q + self.offsets, self.ratios @ qd, self.ratios @ qdd

    def inverse_dynamics(self, q, qd, qdd):
        return self.ratios.T @ pinocchio.rnea(self.model, self.data, *self._motion(q, qd, qdd))

    def torque_regressor(self, q, qd, qdd):
        matrix = pinocchio.computeJointTorqueRegressor(self.model, self.data, *self._motion(q, qd, qdd))
        columns = [10 * (link - 1) + k for link in self.links for k in REGRESSOR_ORDER]
        return self.ratios.T @ matrix[:, columns]


def _tree(seed: int) -> tuple[RobotModel, np.random.Generator]:
    rng = np.random.default_rng(seed)
    text = random_tree_urdf(rng, int(rng.integers(2, 12)))
    return RobotModel.from_urdf(text, "all", gravity=rng.normal(size=3) * 8), rng


def _assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_regressor_and_rank_of_random_trees_agree_with_pinocchio():
    branched = mimicking = 0
    for seed in range(TREES):
        tree, rng = _tree(seed)
        free = FreeJoints(tree)
        q, qd, qdd = rng.normal(size=(3, 60, tree.n_joints))
        expected = np.array([free.torque_regressor(*sample) for sample in zip(q, qd, qdd, strict=True)])
        matrix = tree.torque_regressor(q, qd, qdd)
        assert matrix.shape == (60, tree.n_joints, 10 * tree.n_links)
        _assert_close(matrix, expected)
        columns = expected.reshape(-1, expected.shape[2])
        norms = np.linalg.norm(columns, axis=0)
        scaled = columns / np.where(norms > 1e-10 * norms.max(), norms, 1.0)
        rank = np.linalg.matrix_rank(scaled, tol=1e-10 * np.linalg.norm(scaled, 2))
        # Mimic joints with small ratios have small effects, which count here.
        assert BaseParameters.of_robot(tree, motion=(q, qd, qdd), tolerance=1e-10).rank == rank
        assert tree.base_parameters().rank <= rank
        branched += tree.chain.has_branches
        mimicking += tree.chain.has_mimics
    assert branched > 16
    assert mimicking > 12


def test_torque_of_random_trees_agrees_with_pinocchio(tmp_path):
    compared = 0
    seed = 100
    while compared < TREES:
        tree, rng = _tree(seed)
        seed += 1
        try:
            mimicking = MimickingArm(tree, tmp_path)
        except ValueError:  # Pinocchio needs the mimicked joint before the mimic joint
            continue
        compared += tree.chain.has_mimics
        q, qd, qdd = rng.normal(size=(3, 5, tree.n_joints))
        still = np.zeros_like(q)
        expected = np.array([mimicking.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])
        at_rest = np.array([mimicking.inverse_dynamics(*sample) for sample in zip(q, still, still, strict=True)])
        _assert_close(tree.inverse_dynamics(q, qd, qdd), expected)
        _assert_close(tree.torque_regressor(q, qd, qdd) @ tree.parameters, expected)
        _assert_close(tree.gravity_torque(q), at_rest)
        _assert_close(tree.gravity_regressor(q) @ tree.parameters, at_rest)
        gravity = GravityModel(tree)
        moments = gravity.project(tree.parameters)
        _assert_close(gravity.regressor(q) @ moments, at_rest)
        _assert_close(gravity.compile(moments)(q[0]), at_rest[0])
        _assert_close(gravity.bind(moments)(q[0].tolist()), at_rest[0])
        assert [gravity.columns(j).stop for j in range(tree.n_joints)][-1] == len(gravity.names)


def test_gradients_of_trees_equal_finite_differences():
    for seed in range(8):
        tree, rng = _tree(seed)
        motion = rng.normal(size=(3, 2, tree.n_joints))
        regressor = DifferentiableRegressor(tree.chain, tree.gravity)
        weights = rng.normal(size=regressor.matrix(*motion).shape)
        gradient = np.array(regressor.gradient(weights))
        change = rng.normal(size=motion.shape)
        step = 1e-6
        upper, lower = (np.sum(weights * regressor.matrix(*(motion + side * step * change))) for side in (1, -1))
        np.testing.assert_allclose(np.sum(gradient * change), (upper - lower) / (2 * step), rtol=1e-6, atol=1e-6)


def test_sums_of_trees_equal_those_of_many_samples():
    for seed in range(8):
        tree, rng = _tree(seed)
        motion = rng.normal(size=(3, 4, tree.n_joints))
        weights = rng.normal(size=(2, 4))
        sums = RegressorSums(tree)
        features = np.array([sums.features(*sample) for sample in np.transpose(motion, (1, 0, 2)).tolist()])
        _assert_close(sums(features, weights), np.einsum("kN,Nij->kij", weights, tree.torque_regressor(*motion)))


def test_urdf_of_a_tree_has_the_parameters_of_every_link():
    for seed in range(8):
        tree, _ = _tree(seed)
        parameters = RobotModel.from_urdf(random_tree_urdf(np.random.default_rng(seed + 1), 40), "all").parameters
        parameters = parameters.reshape(-1, 10)[parameters[::10] > 0.5][: tree.n_links].ravel()
        read = RobotModel.from_urdf(urdf_with_inertias(tree, parameters), tree.tip, gravity=tree.gravity)
        np.testing.assert_allclose(read.parameters, parameters, rtol=1e-9, atol=1e-9)
        assert read.kinematics_sha256 == tree.kinematics_sha256


def test_tree_contains_its_chains():
    baxter = example_urdf("baxter_description/urdf/baxter.urdf")
    left = RobotModel.from_urdf(baxter, "left_wrist")
    two_arms = RobotModel.from_urdf(baxter, "left_wrist,right_wrist")
    assert two_arms.chain.tips == ("left_wrist", "right_wrist")
    assert two_arms.joint_names[:7] == left.joint_names
    assert two_arms.joint_names == RobotModel.from_urdf(baxter, ["left_wrist", "right_wrist"]).joint_names
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 5, 14))
    torque = left.inverse_dynamics(q[:, :7], qd[:, :7], qdd[:, :7])
    np.testing.assert_array_equal(two_arms.inverse_dynamics(q, qd, qdd)[:, :7], torque)
    assert not two_arms.torque_regressor(q, qd, qdd)[:, 7:, :70].any()
    assert two_arms.base_parameters().rank == 2 * left.base_parameters().rank
    assert RobotModel.from_urdf(baxter, ["left_wrist"]).kinematics_sha256 == left.kinematics_sha256


def test_held_joints_equal_fixed_joints():
    for seed in range(8):
        tree, rng = _tree(seed)
        names = tree.joint_names
        if len(names) < 2:
            continue
        positions = rng.normal(size=len(names))
        hold = dict(zip(names[::2], positions[::2].tolist(), strict=True))
        if set(hold) == set(names):
            continue
        held = RobotModel.from_urdf(tree.urdf, "all", gravity=tree.gravity, held=hold)
        moving = [i for i, name in enumerate(names) if name not in hold]
        assert held.joint_names == tuple(names[i] for i in moving)
        assert held.held == hold
        motion = np.zeros((3, 5, len(names)))
        motion[0] = positions
        motion[:, :, moving] = rng.normal(size=(3, 5, len(moving)))
        expected = tree.inverse_dynamics(*motion)[:, moving]
        reduced = motion[:, :, moving]
        _assert_close(held.inverse_dynamics(*reduced), expected)
        _assert_close(locked(tree, held.joint_names, positions).inverse_dynamics(*reduced), expected)
        _assert_close(held.torque_regressor(*reduced) @ held.parameters, expected)
        assert held.structure.chain.sha256 == held.kinematics_sha256


def _assert_refused(text: str, *words: str, tip="all", **options) -> None:
    with pytest.raises(ModelError) as error:
        RobotModel.from_urdf(text, tip, **options)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def _fork(mimic: str) -> str:
    return robot(
        *map(link, ("base", "a", "b", "c")),
        joint("first", "base", "a"),
        joint("second", "a", "b", content=mimic),
        joint("third", "a", "c", content='<mimic joint="first"/>'),
    )


def test_refuses_impossible_mimic_joints():
    _assert_refused(_fork('<mimic joint="third"/>'), "'second' mimics joint 'third'", "itself mimics joint 'first'")
    _assert_refused(_fork('<mimic joint="second"/>'), "'second' mimics joint 'second'", "itself mimics")
    _assert_refused(_fork('<mimic joint="fifth"/>'), "'second' mimics joint 'fifth'", "not in the URDF")
    _assert_refused(_fork('<mimic joint="first" multiplier="inf"/>'), "'second'", "finite")
    other = _fork("").replace('<mimic joint="first"/>', '<mimic joint="second"/>')
    _assert_refused(other, "'third' mimics joint 'second'", "add link 'b' to the tips, or hold joint 'second'", tip="c")
    assert RobotModel.from_urdf(other, "c", held={"second": 0.5}).joint_names == ("first",)


def test_refuses_impossible_held_joints_and_tips():
    text = _fork("")
    _assert_refused(text, "'fourth'", "not in the URDF", "'first'", held={"fourth": 0.0})
    _assert_refused(text, "'third'", "mimics joint 'first'; hold that one", held={"third": 0.0})
    _assert_refused(text, "'first'", "nan", held={"first": np.nan})
    _assert_refused(text, "no moving joint", held={"first": 0.0, "second": 0.0})
    _assert_refused(text, "tip link 'd' is not in the URDF", tip="b,d")
    _assert_refused(text, "several links end a chain: 'b', 'c'", "with commas", "--tip", tip=None)
    _assert_refused(text, "no moving joint between base link 'a' and tip link 'a'", tip=["b", "a"], base="a")


def test_parses_held_joints():
    assert held_positions(["torso=0.2, neck = -1e-3,", "a=b=3"]) == {"torso": 0.2, "neck": -1e-3, "a=b": 3.0}
    for words in (["torso"], ["torso=high"], ["=0.2"]):
        with pytest.raises(ModelError, match="is not joint=position"):
            held_positions(words)
    with pytest.raises(ModelError, match="'torso' is given twice"):
        held_positions(["torso=0.2,torso=0.2"])
