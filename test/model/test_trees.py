"""Trees and joints that mimic others against Pinocchio, and what of these is refused."""

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
    """A tree in Pinocchio whose joints are all free: positions are G q + o, torques and regressors those of G."""

    def __init__(self, tree: RobotModel):
        self.model, chain = pinocchio.buildModelFromXML(tree.urdf), tree.chain
        self.model.gravity.linear = tree.gravity
        self.data = self.model.createData()
        self.links = [self.model.getJointId(name) for name in chain.mover_names]
        assert sorted(self.links) == list(range(1, self.model.njoints))
        self.ratios, self.offsets = np.zeros((self.model.nv, tree.n_joints)), np.zeros(self.model.nv)
        for i, row in enumerate(self.model.joints[k].idx_v for k in self.links):
            self.ratios[row, chain.drivers[i]], self.offsets[row] = chain.ratios[i], chain.offsets[i]

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


def _assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_random_trees_have_the_regressor_and_the_rank_of_pinocchio():
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
        # Joints that mimic others with slight ratios leave effects that no sensor has, but that are there.
        assert BaseParameters.of_robot(tree, motion=(q, qd, qdd), tolerance=1e-10).rank == rank
        assert tree.base_parameters().rank <= rank
        branched += tree.chain.has_branches
        mimicking += tree.chain.has_mimics
    assert branched > 16
    assert mimicking > 12


def test_random_trees_have_the_torque_of_pinocchio(tmp_path):
    compared, seed = 0, 100
    while compared < TREES:
        tree, rng = _tree(seed)
        seed += 1
        try:
            mimicking = MimickingArm(tree, tmp_path)
        except ValueError:  # it takes only joints that it comes across before those that mimic them
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


def test_gradients_follow_branches_and_mimics():
    for seed in range(8):
        tree, rng = _tree(seed)
        motion = rng.normal(size=(3, 2, tree.n_joints))
        regressor = DifferentiableRegressor(tree.chain, tree.gravity)
        weights = rng.normal(size=regressor.matrix(*motion).shape)
        gradient = np.array(regressor.gradient(weights))
        way, step = rng.normal(size=motion.shape), 1e-6
        ends = [np.sum(weights * regressor.matrix(*(motion + side * step * way))) for side in (1, -1)]
        np.testing.assert_allclose(np.sum(gradient * way), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6)


def test_sums_of_samples_follow_branches_and_mimics():
    for seed in range(8):
        tree, rng = _tree(seed)
        motion, weights = rng.normal(size=(3, 4, tree.n_joints)), rng.normal(size=(2, 4))
        sums = RegressorSums(tree)
        features = np.array([sums.features(*sample) for sample in np.transpose(motion, (1, 0, 2)).tolist()])
        _assert_close(sums(features, weights), np.einsum("kN,Nij->kij", weights, tree.torque_regressor(*motion)))


def test_parameters_of_every_link_come_back_from_the_urdf():
    for seed in range(8):
        tree, _ = _tree(seed)
        parameters = RobotModel.from_urdf(random_tree_urdf(np.random.default_rng(seed + 1), 40), "all").parameters
        parameters = parameters.reshape(-1, 10)[parameters[::10] > 0.5][: tree.n_links].ravel()
        read = RobotModel.from_urdf(urdf_with_inertias(tree, parameters), tree.tip, gravity=tree.gravity)
        np.testing.assert_allclose(read.parameters, parameters, rtol=1e-9, atol=1e-9)
        assert read.kinematics_sha256 == tree.kinematics_sha256


def test_one_tip_of_a_tree_is_a_chain_and_a_chain_a_tree_without_branches():
    baxter = example_urdf("baxter_description/urdf/baxter.urdf")
    left = RobotModel.from_urdf(baxter, "left_wrist")
    both = RobotModel.from_urdf(baxter, "left_wrist,right_wrist")
    assert both.chain.tips == ("left_wrist", "right_wrist")
    assert both.joint_names[:7] == left.joint_names
    assert both.joint_names == RobotModel.from_urdf(baxter, ["left_wrist", "right_wrist"]).joint_names
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 5, 14))
    torque = left.inverse_dynamics(q[:, :7], qd[:, :7], qdd[:, :7])
    np.testing.assert_array_equal(both.inverse_dynamics(q, qd, qdd)[:, :7], torque)
    assert not both.torque_regressor(q, qd, qdd)[:, 7:, :70].any()
    assert both.base_parameters().rank == 2 * left.base_parameters().rank
    assert RobotModel.from_urdf(baxter, ["left_wrist"]).kinematics_sha256 == left.kinematics_sha256


def test_held_joints_are_as_fixed_ones():
    for seed in range(8):
        tree, rng = _tree(seed)
        names = tree.joint_names
        if len(names) < 2:
            continue
        at = rng.normal(size=len(names))
        hold = dict(zip(names[::2], at[::2].tolist(), strict=True))
        if set(hold) == set(names):
            continue
        held = RobotModel.from_urdf(tree.urdf, "all", gravity=tree.gravity, held=hold)
        moving = [i for i, name in enumerate(names) if name not in hold]
        assert held.joint_names == tuple(names[i] for i in moving)
        assert held.held == hold
        motion = np.zeros((3, 5, len(names)))
        motion[0] = at
        motion[:, :, moving] = rng.normal(size=(3, 5, len(moving)))
        expected = tree.inverse_dynamics(*motion)[:, moving]
        own = motion[:, :, moving]
        _assert_close(held.inverse_dynamics(*own), expected)
        _assert_close(locked(tree, held.joint_names, at).inverse_dynamics(*own), expected)
        _assert_close(held.torque_regressor(*own) @ held.parameters, expected)
        assert held.structure.chain.sha256 == held.kinematics_sha256


def _refused(text: str, *words: str, tip="all", **options) -> None:
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


def test_what_a_joint_cannot_mimic():
    _refused(_fork('<mimic joint="third"/>'), "'second' mimics joint 'third'", "itself mimics joint 'first'")
    _refused(_fork('<mimic joint="second"/>'), "'second' mimics joint 'second'", "itself mimics")
    _refused(_fork('<mimic joint="fifth"/>'), "'second' mimics joint 'fifth'", "not in the URDF")
    _refused(_fork('<mimic joint="first" multiplier="inf"/>'), "'second'", "finite")
    other = _fork("").replace('<mimic joint="first"/>', '<mimic joint="second"/>')
    _refused(other, "'third' mimics joint 'second'", "add link 'b' to the tips, or hold joint 'second'", tip="c")
    assert RobotModel.from_urdf(other, "c", held={"second": 0.5}).joint_names == ("first",)


def test_what_cannot_be_held_and_where_a_tree_cannot_end():
    text = _fork("")
    _refused(text, "'fourth'", "not in the URDF", "'first'", held={"fourth": 0.0})
    _refused(text, "'third'", "mimics joint 'first'; hold that one", held={"third": 0.0})
    _refused(text, "'first'", "nan", held={"first": np.nan})
    _refused(text, "no moving joint", held={"first": 0.0, "second": 0.0})
    _refused(text, "tip link 'd' is not in the URDF", tip="b,d")
    _refused(text, "several links end a chain: 'b', 'c'", "with commas", "--tip", tip=None)
    _refused(text, "no moving joint between base link 'a' and tip link 'a'", tip=["b", "a"], base="a")


def test_held_joints_are_read_from_words_with_and_without_commas():
    assert held_positions(["torso=0.2, neck = -1e-3,", "a=b=3"]) == {"torso": 0.2, "neck": -1e-3, "a=b": 3.0}
    for words in (["torso"], ["torso=high"], ["=0.2"]):
        with pytest.raises(ModelError, match="is not joint=position"):
            held_positions(words)
    with pytest.raises(ModelError, match="'torso' is given twice"):
        held_positions(["torso=0.2,torso=0.2"])
