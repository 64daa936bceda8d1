"""Online identification, against batch fits, the robot of Khosla and Kanade, and MuJoCo."""

import numpy as np
import pytest
from online_experiment import block, identified_model, measure, moves, mujoco_torque
from paper_arms import CYLINDRICAL_NOMINAL, CYLINDRICAL_TRUTH, column, cosine_motion, cylindrical_robot

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import OnlineIdentification
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import is_possible
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.simulation.descriptions import demo_arm_urdf

NONE = FrictionModel(JointFriction.none())


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


def _without_friction(robot: RobotModel, parameters: np.ndarray) -> LinkModel:
    return LinkModel(robot, parameters, NONE, np.zeros(0), LinkSignals(10.0, 10.0, ""))


@pytest.mark.parametrize("cutoff", [None, 5.0])
def test_identifies_table_2_of_the_cylindrical_robot(cutoff):
    """The equations Y (truth - nominal) of the error model yield the corrections of the nominal values."""
    robot = cylindrical_robot()
    t = 0.02 * np.arange(1, 26)
    q, qd, qdd = cosine_motion([np.pi / 2, 0.4, 0.3])
    torque = robot.inverse_dynamics(q, qd, qdd, CYLINDRICAL_TRUTH - CYLINDRICAL_NOMINAL)
    online = OnlineIdentification(robot, "links", friction=NONE, noise=np.ones(3), cutoff=cutoff)
    for sample in zip(t, q, qd, qdd, torque, strict=True):
        online.update(*sample)
    estimate = online.estimate()
    base = robot.base_parameters()
    expected = base.project(CYLINDRICAL_TRUTH - CYLINDRICAL_NOMINAL)
    assert estimate.rank == 5
    np.testing.assert_allclose(estimate.values, expected, atol=1e-6)
    values = dict(zip(base.columns, estimate.values + base.project(CYLINDRICAL_NOMINAL), strict=True))
    for name, value in {"mcz3": 1.25, "m3": 2.5}.items():
        assert values[column(name)] == pytest.approx(value, abs=1e-6)


def test_base_parameters_equal_those_of_the_batch_fit(robot):
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 500, robot.n_joints))
    torque = robot.inverse_dynamics(q, qd, qdd) + rng.normal(size=q.shape)
    noise = np.linspace(1.0, 0.2, robot.n_joints)
    online = OnlineIdentification(robot, "links", friction=NONE, noise=noise, cutoff=None)
    for k in range(len(q)):
        online.update(0.01 * k, q[k], qd[k], qdd[k], torque[k])
    base = robot.base_parameters()
    tall = base.reduce(robot.torque_regressor(q, qd, qdd)) / noise[:, None]
    expected, *_ = np.linalg.lstsq(tall.reshape(-1, base.rank), (torque / noise).ravel(), rcond=None)
    estimate = online.estimate()
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
    assert estimate.rank == base.rank
    assert estimate.nominal == pytest.approx(base.project(robot.parameters))


def test_identifies_a_load_with_noise_and_friction_errors(robot):
    """Encoder noise at 250 Hz causes no bias, and the errors match the standard errors."""
    rng = np.random.default_rng(1)
    motion = moves(robot, 30.0, 250.0, rng, 0.6)
    load = block(1.5)
    q, torque = measure(robot, motion, mujoco_torque(robot, motion, [(0.0, load)]), rng)
    online = OnlineIdentification(robot, arm=identified_model(robot))
    for k, time in enumerate(motion.time):
        online.sample(time, q[k], torque[k])
    assert not online.changes
    estimate = online.estimate()
    score = (estimate.values[:10] - load) / estimate.standard_errors[:10]
    assert np.abs(score).max() < 4
    assert np.sqrt(np.mean(score**2)) < 2
    assert estimate.standard_errors[0] < 0.1
    result = estimate.load()
    assert result.is_loaded
    assert result.mass == pytest.approx(1.5, abs=0.1)
    np.testing.assert_allclose(result.center, load[1:4] / load[0], atol=0.015)
    assert np.linalg.eigvalsh(result.possible.inertia).min() > 0


def test_standard_errors_account_for_correlated_noise(robot):
    """The noise has a correlation time of one second, which standard errors of white noise ignore."""
    scores = []
    naive = []
    arm = _without_friction(robot, robot.parameters)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        motion = moves(robot, 60.0, 25.0, rng, 0.6)
        noise = np.empty_like(motion.q)
        state = np.zeros(robot.n_joints)
        for row in noise:
            state = 0.96 * state + rng.normal(size=robot.n_joints) * np.sqrt(1 - 0.96**2)
            row[:] = state
        torque = robot.inverse_dynamics(motion.q, motion.qd, motion.qdd) + noise
        online = OnlineIdentification(robot, arm=arm, friction=NONE, noise=np.ones(robot.n_joints), watch=False)
        for sample in zip(*motion, torque, strict=True):
            online.update(*sample)
        estimate = online.estimate()
        scores.append(estimate.values / estimate.standard_errors)
        naive.append(estimate.values / (estimate.standard_errors / np.sqrt(estimate.inflation)))
    assert np.sqrt(np.mean(np.square(naive))) > 2.5
    assert 0.5 < np.sqrt(np.mean(np.square(scores))) < 1.6


def test_parameters_without_excitation_are_undetermined(robot):
    rest = np.linspace(0.1, 0.6, robot.n_joints)
    still = np.zeros(robot.n_joints)
    torque = robot.gravity_torque(rest[None])[0]
    online = OnlineIdentification(robot, arm=_without_friction(robot, robot.parameters))
    with pytest.raises(IdentificationError, match="no sample"):
        online.estimate()
    for k in range(200):
        online.update(0.01 * k, rest, still, still, torque)
    estimate = online.estimate()
    assert np.isnan(estimate.values[4:10]).all()
    assert np.isnan(estimate.load().mass)


def test_consistent_links_are_physically_possible(robot):
    rng = np.random.default_rng(2)
    motion = moves(robot, 30.0, 50.0, rng, 0.6)
    torque = robot.inverse_dynamics(motion.q, motion.qd, motion.qdd) + rng.normal(size=motion.q.shape)
    # The configured noise is five times too small; the residuals of the equations decide.
    online = OnlineIdentification(robot, "links", friction=NONE, noise=np.full(robot.n_joints, 0.2))
    for sample in zip(*motion, torque, strict=True):
        online.update(*sample)
    fit = online.estimate().consistent_links()
    assert is_possible(fit.solution.reshape(-1, 10)).all()
    predicted = robot.inverse_dynamics(motion.q, motion.qd, motion.qdd, fit.solution)
    difference = predicted - robot.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    assert np.sqrt(np.mean(difference**2)) < 0.2
    with pytest.raises(IdentificationError, match="target='load'"):
        online.estimate().load()


def test_gaps_and_non_finite_samples_do_not_bias_the_estimate(robot):
    load = block(2.0)
    motion = moves(robot, 20.0, 200.0, np.random.default_rng(3), 0.6)
    torque = mujoco_torque(robot, motion, [(0.0, load)])
    online = OnlineIdentification(robot, arm=_without_friction(robot, robot.parameters), friction=NONE)
    for k, time in enumerate(motion.time):
        if 1000 <= k < 1100:
            continue
        online.sample(time, motion.q[k], torque[k] if k % 500 else np.full(robot.n_joints, np.nan))
    assert online.skipped == 7
    # The derivatives at 200 Hz have errors of about 1e-4.
    np.testing.assert_allclose(online.estimate().values[:4], load[:4], atol=2e-3)


@pytest.mark.parametrize("rate", [100.0, pytest.param(500.0, marks=pytest.mark.slow)])
def test_lost_samples_and_jitter_do_not_bias_a_load(robot, rate):
    rng = np.random.default_rng(7)
    motion = moves(robot, 20.0, rate, rng, 0.6)
    load = block(1.5)
    q, torque = measure(robot, motion, mujoco_torque(robot, motion, [(0.0, load)]), rng)
    online = OnlineIdentification(robot, arm=identified_model(robot))
    lost = rng.random(len(q)) < 0.03
    lost[rng.integers(len(q), size=10)[:, None] + np.arange(round(0.01 * rate))[None].clip(max=9)] = True
    for k, time in enumerate(motion.time + 0.1 / rate * rng.standard_normal(len(q))):
        if not lost[k]:
            online.sample(time, q[k], torque[k])
    assert not online.changes
    assert online.missing > 0
    estimate = online.estimate()
    assert estimate.standard_errors[0] < 0.1
    assert np.abs((estimate.values[:10] - load) / estimate.standard_errors[:10]).max() < 4


def test_refuses_bad_input(robot):
    arm = _without_friction(robot, robot.parameters)
    n = robot.n_joints
    online = OnlineIdentification(robot, arm=arm)
    zeros = np.zeros(n)
    online.sample(1.0, zeros, zeros)
    for time, torque, words in (
        (0.5, zeros, "time must increase"),
        (np.nan, zeros, "time must increase"),
        (2.0, np.zeros(3), r"torque \(3,\); expected \(6,\)"),
    ):
        with pytest.raises(IdentificationError, match=words):
            online.sample(time, zeros, torque)
    longer = RobotModel.from_urdf(demo_arm_urdf().replace('xyz="0 -0.45 0" rpy', 'xyz="0 -0.5 0" rpy'))
    assert longer.kinematics_sha256 != robot.kinematics_sha256
    for settings, words in (
        ({}, "give the identified `arm`"),
        ({"target": "tool", "arm": arm}, "expected 'load' or 'links'"),
        ({"arm": arm, "noise": np.zeros(n)}, "noise is"),
        ({"arm": arm, "forgetting": -1.0}, "forgetting is -1"),
        ({"arm": arm, "torque_gain_error": -0.1}, r"torque_gain_error is -0\.1"),
        ({"arm": _without_friction(cylindrical_robot(), np.zeros(30))}, "its model is of robot"),
        ({"arm": _without_friction(longer, longer.parameters)}, "is of robot 'demo_arm' with joints joint_1"),
    ):
        with pytest.raises(IdentificationError, match=words):
            OnlineIdentification(robot, **settings)


@pytest.mark.parametrize(("forgetting", "limits"), [(0.3, (0.8, 1.01)), (None, (0.3, 0.7))])
def test_forgets_data_older_than_the_time_constant(robot, forgetting, limits):
    """The masses grow by half after 4 of 8 s."""
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 800, robot.n_joints))
    torque = robot.inverse_dynamics(q, qd, qdd) * (1.0 + 0.5 * (np.arange(800) >= 400))[:, None]
    online = OnlineIdentification(robot, "links", friction=NONE, cutoff=None, forgetting=forgetting)
    for k in range(800):
        online.update(0.01 * k, q[k], qd[k], qdd[k], torque[k])
    base = robot.base_parameters().project(robot.parameters)
    grown = (online.estimate().values - base) @ base / (0.5 * base @ base)
    assert limits[0] < grown < limits[1]
