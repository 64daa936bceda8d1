"""Compare the judgement of motions with NumPy and Pinocchio's regressor, and with published examples."""

import numpy as np
import planar_arm
import pytest
import yaml
from helpers.judged_motions import RATE_HZ, load_planar, load_ur10, make_motion
from paper_arms import cosine_motion, cylindrical_robot
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.errors import DynidError, ModelError, TrajectoryError
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.information.torque_information import TorqueColumns
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import JointFriction
from dynid_ros.trajectories import MotionLimits

NO_FRICTION = JointFriction.none()


@pytest.mark.parametrize("still", [(), (0, 1, 2), (1, 2)])
def test_rank_and_condition_number_match_pinocchio_and_numpy(still):
    robot = load_ur10()
    samples = [array[::10] for array in make_motion(robot, still)]
    quality = MotionQuality.of(robot, *samples, friction=NO_FRICTION, rate=RATE_HZ / 10)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    regressor = np.concatenate([arm.torque_regressor(*sample) for sample in zip(*samples, strict=True)])
    assert quality.full_rank == robot.base_parameters().rank
    norms = np.linalg.norm(regressor, axis=0)
    assert quality.rank == np.linalg.matrix_rank(regressor[:, norms > 1e-6] / norms[norms > 1e-6], tol=1e-3)
    if still:
        assert quality.rank < quality.full_rank
        assert quality.condition_number == quality.unscaled == np.inf
        assert quality.missing
        return
    base = regressor[:, quality.columns.base.columns]
    scaled = base / np.linalg.norm(base, axis=0)
    assert quality.condition_number == pytest.approx(np.linalg.cond(scaled), rel=1e-6)
    assert quality.unscaled == pytest.approx(np.linalg.cond(base), rel=1e-6)
    np.testing.assert_allclose(quality.singular_values, np.linalg.svd(scaled, compute_uv=False), rtol=1e-6)
    # Textbook formulas: σ² (Yᵀ Y)⁻¹, and the inflation relative to knowing all other parameters.
    covariance = np.linalg.inv(base.T @ base)
    np.testing.assert_allclose(quality.standard_errors, np.sqrt(np.diag(covariance)), rtol=1e-6)
    inflation = np.sqrt(np.diag(covariance) * np.diag(base.T @ base))
    np.testing.assert_allclose(quality.identifiability.inflation, inflation, rtol=1e-6)
    assert not quality.missing
    assert not quality.determined_sums


def test_standard_errors_match_the_scatter_of_fits():
    robot = load_planar()
    noise = np.array([0.5, 0.2, 0.1])
    samples = make_motion(robot)
    quality = MotionQuality.of(robot, *samples, noise=noise)
    rows = quality.columns.rows(*samples) / noise[:, None, None]
    matrix = rows.transpose(0, 2, 1).reshape(-1, quality.columns.size)
    fits = np.linalg.pinv(matrix) @ np.random.default_rng(3).standard_normal((len(matrix), 800))
    np.testing.assert_allclose(fits.std(axis=1), quality.standard_errors, rtol=0.1)
    assert quality.enough
    # Propagate the errors to the torques of other motions within the limits.
    limits = quality.motion.limits
    spread = np.random.default_rng(4).uniform(-1, 1, (3, 500, 3))
    middle = (limits.lower + limits.upper) / 2
    half = (limits.upper - limits.lower) / 2
    other = (middle + half * spread[0], limits.velocity * spread[1], limits.acceleration * spread[2])
    errors = np.einsum("jkN,kf->jNf", quality.columns.rows(*other), fits)
    np.testing.assert_allclose(np.sqrt(np.mean(errors**2, axis=(1, 2))), quality.prediction, rtol=0.1)


def test_locked_joints_make_parameters_unidentifiable():
    """Khosla and Kanade 1987: with joints 1 and 2 locked, link 3 has rank 1 and m3 s3z is not identifiable."""
    robot = cylindrical_robot()
    q, qd, qdd = cosine_motion([np.pi / 2, 0.5, 0.5])
    full = MotionQuality.of(robot, q, qd, qdd, friction=NO_FRICTION)
    assert full.rank == full.full_rank == 5
    locked = [array * np.array([0.0, 0.0, 1.0]) for array in (q, qd, qdd)]
    quality = MotionQuality.of(robot, *locked, friction=NO_FRICTION)
    assert quality.joint_ranks[2] == 1
    assert "mcz3" in quality.missing
    assert "mcz3" in quality.without_effect
    assert "m3" not in quality.missing
    # Parameters without effect in any motion of this robot are not attributed to this motion.
    assert {"m1", "mcx1", "Ixx3"} <= set(quality.columns.hidden)
    assert not set(quality.columns.hidden) & set(quality.missing)


def test_constant_gravity_is_confounded_with_the_offset():
    """Only joint 3 moves, so gravity of joint 2 is constant and adds to its offset."""
    robot = load_planar()
    q, qd, qdd = make_motion(robot, still=(0, 1))
    quality = MotionQuality.of(robot, q, qd, qdd)
    assert {"mcx2 + 0.4 m3", "offset joint_2"} <= set(quality.missing)
    assert {"coulomb joint_1", "coulomb joint_2"} <= set(quality.without_effect)
    (offset_sum,) = [text for text in quality.determined_sums if "offset joint_2" in text]
    # τ₂ contains −g cos(q₂) (m₂ s₂ + ...) and the offset.
    base = quality.columns.base
    row = quality.identifiability.combinations()[quality.determined_sums.index(offset_sum)]
    shares = {
        quality.columns.names[i]: row[i] / row[quality.columns.names.index("offset joint_2")] for i in row.nonzero()[0]
    }
    assert shares["mcx2"] == pytest.approx(-planar_arm.G * np.cos(q[0, 1]), rel=1e-6)
    # Parameter changes that preserve all such sums leave the torques unchanged.
    preserved = np.vstack(
        [quality.identifiability.combinations(), np.eye(base.rank)[quality.identifiability.identifiable]]
    )
    _, _, right = np.linalg.svd(preserved)
    rows = quality.columns.rows(q, qd, qdd)
    assert np.abs(np.einsum("jkN,hk->jNh", rows, right[len(preserved) :])).max() < 1e-9
    assert len(preserved) == quality.rank


@pytest.mark.parametrize("seed", range(6))
def test_rank_of_random_arms_with_a_joint_at_rest(seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(2, 6))), tip=TIP)
    moving = MotionQuality.of(robot, *make_motion(robot, seed=seed), rate=RATE_HZ)
    assert moving.rank == moving.full_rank
    still = int(rng.integers(robot.n_joints))
    samples = make_motion(robot, still=(still,), seed=seed)
    quality = MotionQuality.of(robot, *samples, rate=RATE_HZ)
    name = robot.joint_names[still]
    assert {f"coulomb {name}", f"viscous {name}"} <= set(quality.without_effect)
    assert quality.rank < quality.full_rank
    # The reference rank uses all columns, not only the base.
    regressor = np.concatenate([robot.torque_regressor(*samples), quality.columns.friction.regressor(*samples[1:])], -1)
    flat = regressor.reshape(-1, regressor.shape[-1])
    norms = np.linalg.norm(flat, axis=0)
    excited = norms > 1e-6 * norms.max()
    assert quality.rank == np.linalg.matrix_rank(flat[:, excited] / norms[excited], tol=1e-4 * np.sqrt(flat.shape[1]))
    joined = [np.concatenate(pair) for pair in zip(samples, make_motion(robot, seed=seed), strict=True)]
    assert MotionQuality.of(robot, *joined, rate=RATE_HZ).rank == quality.full_rank


def test_gravity_rank_of_static_poses_matches_numpy():
    robot = load_ur10()
    rng = np.random.default_rng(0)
    q = rng.uniform(-2, 2, (30, 6))
    sign = rng.choice([-1.0, 1.0], (30, 6))
    q[:, 3:] = 0.5
    quality = MotionQuality.of(robot, q, sign, 0 * q, model="gravity")
    regressor = robot.gravity_regressor(q).reshape(180, -1)
    drives = np.concatenate([np.tile(np.eye(6), (30, 1)), np.concatenate([np.diag(row) for row in sign])], axis=1)
    stacked = np.concatenate([regressor, drives], axis=1)
    assert quality.rank == np.linalg.matrix_rank(stacked, tol=1e-3)
    assert quality.rank < quality.full_rank


def test_load_model_has_ten_parameters():
    robot = load_ur10()
    quality = MotionQuality.of(robot, *make_motion(robot), model="load")
    assert quality.rank == quality.full_rank == 10
    assert quality.columns.expressions == ("m6", "mcx6", "mcy6", "mcz6", "Ixx6", "Ixy6", "Ixz6", "Iyy6", "Iyz6", "Izz6")
    # A load turned about a vertical axis only affects gravity by its mass' moments about the other axes.
    still = MotionQuality.of(robot, *make_motion(robot, still=(1, 2, 3, 4, 5)), model="load")
    regressor = robot.torque_regressor(*make_motion(robot, still=(1, 2, 3, 4, 5)))[..., 50:]
    assert still.rank == BaseParameters(regressor, [str(i) for i in range(10)]).rank < 10


def test_columns_have_names_and_units_of_the_base_parameters():
    robot = load_ur10()
    columns = TorqueColumns(robot, NO_FRICTION)
    base = robot.base_parameters()
    assert columns.expressions == base.expressions
    assert columns.hidden == tuple(n for n, c in zip(base.names, base.categories, strict=True) if c == "unidentifiable")
    units = dict(zip(TorqueColumns(robot).names, TorqueColumns(robot).units, strict=True))
    assert units["Iyy3"] == units["rotor_inertia wrist_1_joint"] == "kg m²"
    assert units["mcx3"] == "kg m"
    assert units["viscous wrist_1_joint"] == "N m s/rad"
    prismatic = TorqueColumns(cylindrical_robot())
    assert dict(zip(prismatic.names, prismatic.units, strict=True))["coulomb joint_3"] == "N"


def test_summary_and_dictionary_contain_the_verdict():
    robot = load_planar()
    quality = MotionQuality.of(robot, *make_motion(robot, still=(2,)), rate=RATE_HZ)
    assert quality.summary().startswith("not enough")
    assert all(expected in quality.summary() for expected in quality.without_effect)
    content = quality.as_dict()
    assert content["condition_number"] is None
    assert content["missing"] == list(quality.missing)
    assert content["noise"] is None
    assert yaml.safe_load(yaml.safe_dump(content)) == content
    good = MotionQuality.of(robot, *make_motion(robot, width=1.0, duration=40.0), rate=RATE_HZ, noise=0.01)
    assert good.summary().startswith("enough")
    assert good.as_dict()["noise"] == [0.01] * 3


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda q, qd, qdd: (q[:, :2], qd, qdd), ModelError, "joint_3"),
        (lambda q, qd, qdd: (q, qd[:-1], qdd), ModelError, "the same N"),
        (
            lambda q, qd, qdd: (q, np.where(np.arange(len(q))[:, None] == 7, np.nan, qd), qdd),
            TrajectoryError,
            "sample 7",
        ),
        (lambda q, qd, qdd: (q[:2], qd[:2], qdd[:2]), TrajectoryError, "2 samples"),
        (lambda q, qd, qdd: (0 * q + 1, 0 * qd, 0 * qdd), TrajectoryError, "no joint moves"),
    ],
)
def test_refuses_invalid_motions(change, error, words):
    robot = load_planar()
    with pytest.raises(error, match=words):
        MotionQuality.of(robot, *change(*make_motion(robot)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": 0.0}, "noise of joint_1"),
        ({"noise": [1.0, 2.0]}, "noise: 2 values"),
        ({"rate": -1.0}, "rate is -1"),
        ({"model": "gripper"}, "links, gravity, load"),
        (
            {
                "friction": JointFriction(),
                "limits": MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf(joints=("a", "b", "c"))), 1.0),
            },
            "limits are of a, b, c",
        ),
    ],
)
def test_refuses_invalid_quality_settings(settings, words):
    robot = load_planar()
    with pytest.raises(DynidError, match=words):
        MotionQuality.of(robot, *make_motion(robot), **settings)


@pytest.mark.parametrize(
    ("terms", "added"),
    [
        ({"spring": True, "offset": True}, 6),
        ({"harmonics": (1, 3)}, 12),
        ({"load": True}, 3),
        ({"sliding_length": 0.02}, 0),
    ],
)
def test_judges_friction_of_position_load_and_memory(terms, added):
    robot = load_planar()
    samples = [array[::10] for array in make_motion(robot)]
    plain = MotionQuality.of(robot, *samples, friction=JointFriction(), rate=RATE_HZ / 10)
    quality = MotionQuality.of(robot, *samples, friction=JointFriction(**terms), rate=RATE_HZ / 10)
    assert plain.full_rank <= quality.full_rank <= plain.full_rank + added
    assert 0 < quality.rank <= quality.full_rank
    assert not added or quality.full_rank > plain.full_rank
