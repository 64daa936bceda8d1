"""Gravity identification, against the tables of the paper, Pinocchio and hand calculations."""

import known_problems as known
import numpy as np
import pytest
from gravity_experiment import demo_robot, planned_recording
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import LinearEstimate
from dynid_ros.estimation.least_squares import standard_errors_of
from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.gravity.gravity_problem import angle_groups
from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.gravity import turned
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.recording import Recording
from dynid_ros.simulation.descriptions import demo_arm_urdf

NOISE_NM = np.array([0.1, 0.1, 0.05, 0.01, 0.01, 0.003])
COULOMB_NM = np.array([4.0, 6.0, 2.0, 0.2, 0.2, 0.06])
N_POSES = 8
REPETITIONS = 30


def approached_samples(arm, rng):
    """Return static samples of random poses, each approached from both sides."""
    pose = np.repeat(rng.uniform(-1.5, 1.5, (N_POSES, 6)), 2, axis=0)
    side = np.tile([1.0, -1.0], N_POSES)[:, None] * np.ones(6)
    torque = np.array([arm.gravity_torque(q) for q in pose]) + COULOMB_NM * side + rng.normal(0.0, NOISE_NM, pose.shape)
    count = len(pose)
    return Samples(
        pose, np.zeros_like(pose), torque, side, np.ones(count, bool), np.arange(count) * 1.0, np.zeros(count, int)
    )


def test_errors_of_few_poses_match_their_standard_errors():
    urdf = demo_arm_urdf()
    robot = RobotModel.from_urdf(urdf)
    arm = PinocchioArm(urdf, robot.joint_names, robot.gravity)
    rng = np.random.default_rng(5)
    score = []
    covered = []
    for _ in range(REPETITIONS):
        result = GravityIdentification(robot, torque_gain_error=0.0).fit_samples(approached_samples(arm, rng))
        truth = result.gravity.project(robot.parameters)
        score.append((result.parameters - truth) / result.standard_errors)
        low, high = result.confidence_intervals().T
        covered.append(((low <= truth) & (truth <= high))[np.isfinite(low)])
    score = np.array(score)
    assert 0.6 < np.sqrt(np.nanmean(score**2)) < 1.3
    assert np.mean(np.concatenate(covered)) > 0.93


def mean_estimate(values, angle):
    """Return the estimate of the mean of values at joint angles."""
    count = len(values)
    gain = np.full((1, count), 1 / count)
    return LinearEstimate(np.ones((count, 1)), gain, values - values.mean(), np.zeros(count, int), np.array([1e-3]))


def test_standard_error_of_a_mean_is_that_of_the_jackknife():
    """The standard error of a mean is spread / √N; values at equal angles count as one, by their mean."""
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    angle = np.arange(5.0)
    joint = np.zeros(5, int)
    covariance = mean_estimate(values, angle).covariance(angle_groups(joint, angle))
    np.testing.assert_allclose(covariance, [[values.var(ddof=1) / 5]])
    twice = mean_estimate(np.repeat(values, 2), np.repeat(angle, 2))
    np.testing.assert_allclose(twice.covariance(angle_groups(np.zeros(10, int), np.repeat(angle, 2))), covariance)
    np.testing.assert_allclose(twice.dof(), [9.0])


def test_parameter_from_one_angle_has_the_error_of_the_noise():
    matrix = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    gain = np.linalg.pinv(matrix)
    right = np.array([1.0, 2.0, 3.0, 7.0])
    estimate = LinearEstimate(matrix, gain, right - matrix @ gain @ right, np.array([0, 0, 0, 1]), np.array([1.0, 0.3]))
    covariance = estimate.covariance(np.array([0, 1, 2, 3]))
    np.testing.assert_allclose(covariance[1], [0.0, 0.09], atol=1e-12)
    assert covariance[0, 0] > 0.3


def test_degrees_of_freedom_of_sums_follow_satterthwaite():
    """Means of five and three rows have four and two degrees of freedom; their sum has a value in between."""
    matrix = np.zeros((8, 3))
    matrix[:5, 0] = 1.0
    matrix[5:, 1] = 1.0
    gain = np.zeros((3, 8))
    gain[0, :5] = 1 / 5
    gain[1, 5:] = 1 / 3
    gain[2] = gain[0] + gain[1]
    group = np.repeat([0, 1], [5, 3])
    dof = LinearEstimate(matrix, gain, np.zeros(8), group, np.array([1.0, 1.0])).dof()
    a = 1 / 5
    b = 1 / 3
    np.testing.assert_allclose(dof, [4.0, 2.0, (a + b) ** 2 / (a**2 / 4 + b**2 / 2)])


STEPS = 12
TILTED_GRAVITY = (3.0, 2.0, -9.1)  # no joint axis is vertical in every pose


def make_samples(position, torque, direction=None):
    return Samples(
        position=position,
        velocity=np.zeros_like(position),
        torque=torque,
        direction=np.zeros_like(position) if direction is None else direction,
        static=np.ones(len(position), bool),
        time=np.arange(len(position), dtype=float),
        part=np.zeros(len(position), int),
    )


@pytest.fixture(name="sarcos")
def fixture_sarcos():
    return RobotModel.from_dh(known.sarcos_dh(), gravity=TILTED_GRAVITY)


def sarcos_torque(q):
    return known.dh_gravity_torque(known.sarcos_dh(), known.sarcos_masses(), known.SARCOS_MOMENTS, q, TILTED_GRAVITY)


def sarcos_experiment(rng, n_holds=1, span=np.pi, joints=None):
    holds = rng.uniform(-1, 1, (n_holds, 7))
    q = known.single_rotations(holds, span, STEPS, joints)
    n_rotations = n_holds * (7 if joints is None else len(joints))
    return q, known.approach_directions(STEPS, n_rotations, 7)


@pytest.mark.parametrize("estimator", ["recursive", "global"])
def test_identifies_table_2_from_table_1(sarcos, estimator):
    q, direction = sarcos_experiment(np.random.default_rng(1))
    offset = np.linspace(-2, 2, 7)
    coulomb = np.linspace(0.5, 1.5, 7)
    torque = sarcos_torque(q) + offset + coulomb * direction
    result = GravityIdentification(sarcos, estimator=estimator).fit_samples(make_samples(q, torque, direction))
    np.testing.assert_allclose(result.parameters.reshape(7, 2), known.SARCOS_IDENTIFIED, atol=2e-4)
    np.testing.assert_allclose(result.per_joint("offset")[0], offset, atol=1e-9)
    np.testing.assert_allclose(result.per_joint("coulomb")[0], coulomb, atol=1e-9)
    fresh = np.random.default_rng(2).uniform(-np.pi, np.pi, (100, 7))
    np.testing.assert_allclose(result.predict(fresh), sarcos_torque(fresh), atol=1e-9)


@pytest.mark.slow
def test_intervals_include_the_gain_error(sarcos):
    """Every run has other gains and another noise; without the gain error a quarter of the intervals miss the truth."""
    covered = {0.0: [], 0.02: []}
    rng = np.random.default_rng(6)
    truth = np.asarray(known.SARCOS_IDENTIFIED).ravel()
    q, direction = sarcos_experiment(rng)
    for _ in range(10):
        torque = (sarcos_torque(q) + direction) * (1 + 0.02 * rng.normal(size=7))
        samples = make_samples(q, torque + rng.normal(0, 0.05, q.shape), direction)
        for error, hits in covered.items():
            result = GravityIdentification(sarcos, torque_gain_error=error).fit_samples(samples)
            low, high = result.confidence_intervals().T
            hits.append((low <= truth + 2e-4) & (truth - 2e-4 <= high))
    assert np.mean(covered[0.0]) < 0.8
    assert 0.92 < np.mean(covered[0.02]) < 0.995


@pytest.mark.slow
def test_standard_errors_of_predictions_match_their_scatter(sarcos):
    rng = np.random.default_rng(4)
    q, direction = sarcos_experiment(rng)
    fresh = rng.uniform(-np.pi, np.pi, (20, 7))
    identification = GravityIdentification(sarcos, torque_gain_error=0.0)
    torque = sarcos_torque(q) + direction
    results = [
        identification.fit_samples(make_samples(q, torque + rng.normal(0, 0.3, q.shape), direction)) for _ in range(24)
    ]
    scatter = np.std([result.predict(fresh) for result in results], axis=0)
    stated = np.mean([standard_errors_of(result._gravity_rows(fresh), result.covariance) for result in results], axis=0)
    # Samples of a joint at one angle count once, which widens the errors by a sixth for independent noise.
    assert 0.95 < np.mean(stated / scatter) < 1.3


def test_recursion_equals_the_own_torque_fit_of_one_pose(sarcos):
    rng = np.random.default_rng(3)
    q, direction = sarcos_experiment(rng)
    samples = make_samples(q, sarcos_torque(q) + direction + rng.normal(0, 0.3, q.shape), direction)
    recursive = GravityIdentification(sarcos, estimator="recursive").fit_samples(samples)
    together = GravityIdentification(sarcos, own_torque_only=True).fit_samples(samples)
    np.testing.assert_allclose(recursive.parameters, together.parameters, atol=1e-10)
    np.testing.assert_allclose(recursive.standard_errors, together.standard_errors, rtol=1e-6)


def test_recursion_of_distal_links_ignores_proximal_torque(sarcos):
    rng = np.random.default_rng(5)
    q, direction = sarcos_experiment(rng, n_holds=3)
    torque = sarcos_torque(q) + direction + rng.normal(0, 0.3, q.shape)
    wrong = torque.copy()
    wrong[:, 0] += rng.normal(0, 5.0, len(q))
    identification = GravityIdentification(sarcos, estimator="recursive")
    correct, disturbed = (
        identification.fit_samples(make_samples(q, t, direction)).parameters.reshape(7, 2) for t in (torque, wrong)
    )
    np.testing.assert_allclose(disturbed[1:], correct[1:], atol=1e-10)


def paper_recursion_std(regressor, joint_of_rotation, rows_of_rotation, direction):
    """Return the standard errors of the published recursion for unit noise (Ma & Hollerbach, section 4).

    Every sinusoid has its own offset and friction, a joint uses the mean over its rotations, and errors propagate
    from distal to proximal links.
    """
    size = regressor.shape[2]
    covariance = np.zeros((size, size))
    for i in reversed(range(regressor.shape[1])):
        columns = np.arange(2 * i, 2 * i + 2)
        distal = np.arange(2 * i + 2, size)
        gains = []
        coupling = np.zeros((2, len(distal)))
        fits = [rows for joint, rows in zip(joint_of_rotation, rows_of_rotation, strict=True) if joint == i]
        for rows in fits:
            matrix = np.column_stack([regressor[rows, i][:, columns], np.ones(len(rows)), direction[rows, i]])
            gains.append(np.linalg.pinv(matrix)[:2] / len(fits))
            coupling -= gains[-1] @ regressor[rows, i][:, distal]
        passed = coupling @ covariance[np.ix_(distal, distal)]
        covariance[np.ix_(columns, columns)] = sum(g @ g.T for g in gains) + passed @ coupling.T
        covariance[np.ix_(columns, distal)] = passed
        covariance[np.ix_(distal, columns)] = passed.T
    return np.sqrt(np.diag(covariance))


@pytest.mark.slow
def test_global_fit_reduces_errors_to_a_quarter(sarcos):
    rng = np.random.default_rng(4)
    holds = rng.uniform(-2.5, 2.5, (3, 7))
    q = known.single_rotations(holds, np.pi, STEPS)
    direction = known.approach_directions(STEPS, 21, 7)
    rows = np.arange(len(q)).reshape(21, 2 * STEPS)
    printed = paper_recursion_std(GravityModel(sarcos).regressor(q), np.tile(np.arange(7), 3), rows, direction)
    clean = sarcos_torque(q) + direction
    truth = GravityIdentification(sarcos).fit_samples(make_samples(q, clean, direction)).parameters
    errors = []
    claimed = []
    for _ in range(30):
        result = GravityIdentification(sarcos, torque_gain_error=0.0).fit_samples(
            make_samples(q, clean + rng.normal(0, 1, q.shape), direction)
        )
        errors.append(result.parameters - truth)
        claimed.append(result.standard_errors)
    scatter = np.std(errors, axis=0)
    assert np.median(scatter / printed) <= 0.25
    np.testing.assert_allclose(scatter, np.mean(claimed, axis=0), rtol=0.5)
    # For white noise, the errors from leaving out angles are somewhat too large, but never much too small.
    assert 0.8 < np.mean(scatter / np.mean(claimed, axis=0)) < 1.1


def test_vertical_first_axis_is_free_of_gravity_torque():
    robot = RobotModel.from_dh(known.sarcos_dh())
    q, direction = sarcos_experiment(np.random.default_rng(5))
    torque = known.dh_gravity_torque(known.sarcos_dh(), known.sarcos_masses(), known.SARCOS_MOMENTS, q)
    result = GravityIdentification(robot).fit_samples(make_samples(q, torque + direction, direction))
    assert result.observability["joint_1"].torque_free
    assert result.verdict().startswith("Gravity of all joints that it loads is observable")
    assert np.isnan(result.parameters[:2]).all()
    np.testing.assert_allclose(result.parameters.reshape(7, 2)[1:], known.SARCOS_IDENTIFIED[1:], atol=2e-4)
    np.testing.assert_allclose(result.predict(q)[:, 0], 0, atol=1e-9)


def narrow_fourth_joint(span_degrees, steps=STEPS):
    rng = np.random.default_rng(6)
    hold = rng.uniform(-1, 1, 7)
    wide = known.single_rotations(hold, np.pi, STEPS, [0, 1, 2, 4, 5, 6])
    narrow = known.single_rotations(hold, np.deg2rad(span_degrees), steps, [3])
    q = np.vstack([wide, narrow])
    direction = np.vstack([known.approach_directions(STEPS, 6, 7), known.approach_directions(steps, 1, 7)])
    return make_samples(q, sarcos_torque(q) + rng.normal(0, 0.01, q.shape), direction)


@pytest.mark.parametrize(
    ("span_degrees", "steps", "words"),
    [(25, 12, "spans only 25 degrees"), (170, 3, "only 3 different angle"), (0, 3, "only 1 different angle")],
)
def test_joint_with_too_little_motion_is_not_observable(sarcos, span_degrees, steps, words):
    samples = narrow_fourth_joint(span_degrees, steps)
    result = GravityIdentification(sarcos, own_torque_only=True).fit_samples(samples)
    state = result.observability["joint_4"]
    assert not state.observable
    assert words in state.reason
    assert np.isnan(result.parameters[result.gravity.columns(3)]).all()
    assert result.observability["joint_7"].observable


def test_recursion_propagates_unobservability_and_worst_condition(sarcos):
    identification = GravityIdentification(sarcos, estimator="recursive")
    few = identification.fit_samples(narrow_fourth_joint(170, 3))
    assert [state.observable for state in few.observability.values()] == [False] * 4 + [True] * 3
    wide, narrow = (identification.fit_samples(narrow_fourth_joint(span)) for span in (180, 60))
    assert narrow.condition_number > 5 * wide.condition_number > 5


def test_prediction_of_undetermined_torques_is_nan(sarcos):
    rng = np.random.default_rng(7)
    q, direction = sarcos_experiment(rng, joints=[4, 5, 6])
    samples = make_samples(q, sarcos_torque(q), direction)
    result = GravityIdentification(sarcos).fit_samples(samples)
    np.testing.assert_allclose(result.predict_samples(samples), sarcos_torque(q), atol=1e-6)
    np.testing.assert_allclose(result.predict(q)[:, 4:], sarcos_torque(q)[:, 4:], atol=1e-6)
    assert np.isnan(result.predict(q)[:, :4]).all()  # their offset cannot be distinguished from gravity
    turned = make_samples(q + np.array([0, 0, 0.5, 0, 0, 0, 0]), sarcos_torque(q), direction)
    assert np.isnan(result.predict_samples(turned)[:, 2]).all()


@pytest.mark.slow
def test_intervals_have_nominal_coverage(sarcos):
    """Noise, offsets of 2 % of the range, and friction of 5 % of gravity that varies by a fifth between dwells."""
    rng = np.random.default_rng(8)
    q, direction = sarcos_experiment(rng, n_holds=1)
    clean = sarcos_torque(q)
    largest = np.abs(clean).max(axis=0)
    truth = (
        GravityIdentification(sarcos, torque_gain_error=0.0)
        .fit_samples(make_samples(q, clean + direction, direction))
        .parameters
    )
    covered = []
    for _ in range(300):
        friction = 0.05 * largest * direction * rng.uniform(0.8, 1.2, q.shape)
        noise = rng.normal(0, 0.005 * largest, q.shape)
        torque = clean + friction + noise + 0.02 * largest * rng.uniform(-1, 1, 7)
        result = GravityIdentification(sarcos, torque_gain_error=0.0).fit_samples(make_samples(q, torque, direction))
        low, high = result.confidence_intervals(0.95).T
        covered.append((low <= truth) & (truth <= high))
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize(
    ("count", "estimator", "message"),
    [
        (1, "global", "determine no joint's gravity parameters: joint_1: only 1 different"),
        (20, "recursive", "No single-joint rotation"),
    ],
)
def test_refuses_insufficient_poses(sarcos, count, estimator, message):
    q = np.random.default_rng(10).uniform(-1, 1, (count, 7))
    with pytest.raises(IdentificationError, match=message):
        GravityIdentification(sarcos, estimator=estimator).fit_samples(make_samples(q, sarcos_torque(q)))


def test_refuses_validation_on_motion_without_dwells():
    robot = demo_robot()
    recording = planned_recording()
    result = GravityIdentification(robot).fit(recording)
    assert np.isfinite(result.validate(planned_recording(1)).rms).all()
    time = np.arange(0.0, 10.0, 0.01)
    position = 0.5 * np.sin(time)[:, None] + np.zeros(6)
    velocity = 0.5 * np.cos(time)[:, None] + np.zeros(6)
    motion = Recording(robot.joint_names, time, position, velocity, robot.gravity_torque(position), source="motion.csv")
    with pytest.raises(IdentificationError, match="nothing to validate"):
        result.validate(motion)


@pytest.mark.parametrize("name", ["torque_offset", "gravity_direction", "torque_gain_error"])
def test_settings_change_the_result(name):
    """The base of the recording is tilted, so every setting of the estimator has an effect."""
    robot = demo_robot()
    recording = planned_recording()
    values = {"torque_offset": False, "gravity_direction": "estimated", "torque_gain_error": 0.05}
    plain = GravityIdentification(robot).fit(recording)
    changed = GravityIdentification(robot, **{name: values[name]}).fit(recording)
    finite = np.isfinite(plain.standard_errors) & np.isfinite(changed.standard_errors)
    assert not np.allclose(changed.standard_errors[finite], plain.standard_errors[finite], rtol=1e-3)


def test_configured_gravity_direction_changes_the_result():
    recording = planned_recording()
    gravity = turned(STANDARD_GRAVITY, (0.1, 0.0, 0.0))
    level, tilted = (
        GravityIdentification(robot).fit(recording) for robot in (demo_robot(), demo_robot().with_gravity(gravity))
    )
    assert np.nanmax(np.abs(tilted.parameters[2:] - level.parameters[2:])) > 0.01
    np.testing.assert_allclose(tilted.document()["robot"]["gravity"], gravity)
