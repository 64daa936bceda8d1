"""Link identification of simulated arms with known links: estimators, intervals, remarks and special cases."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from link_problems import (
    PLAIN,
    DenseEquations,
    Drive,
    Fourier,
    chain,
    couple_joints,
    distort,
    record,
    rigid_torque,
    run,
    ur10,
    with_links,
)
from slide_arms import gantry, scara
from whole_experiments import ARMS, draw

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identification.links import link_identification, link_structure
from dynid_ros.identification.links.link_estimators import ESTIMATORS, UNBIASED, solve_regularized, solve_unbiased
from dynid_ros.identification.links.link_regularization import FullProblem
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model import BaseParameters, FrictionModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import is_possible
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording

FRICTION = JointFriction(offset=True)
NOISE = np.array([0.05, 0.2, 0.5])


class Case:
    """Random equations with the structure of the chain, whose URDF is inaccurate."""

    def __init__(self, seed=0, lacking=()):
        self.robot = distort(chain())
        self.columns = columns = LinkColumns(self.robot, [(FRICTION,)] * 3)
        self.equations = DenseEquations(columns, (400,), seed=seed, noise=NOISE)
        self.truth = np.concatenate([columns.base.project(chain().parameters), np.tile([1.0, 0.5, 0.2], 3)])
        rng = np.random.default_rng(seed + 100)
        for j, column_indices in enumerate(columns.of_joint):
            self.equations.rows[j][:, np.isin(column_indices, lacking)] = 0.0
            noise = NOISE[j] * rng.normal(size=400)
            self.equations.torque[:, j] = self.equations.rows[j] @ self.truth[column_indices] + noise
        self.problem = WeightedProblem(self.equations.factors(columns), columns.chosen(columns.first))
        self.base = BaseParameters.of_robot(self.robot, FrictionModel(FRICTION))

    def estimate(self, kind):
        return solve_unbiased(kind, self.problem, self.base, lambda: self.equations.blocks(self.columns))

    def full(self, noise=NOISE):
        return FullProblem(self.problem, noise, self.robot.parameters, self.columns.nonnegative(self.columns.first))

    def dense(self):
        return self.equations.dense(np.arange(self.columns.size))


@pytest.mark.parametrize("kind", UNBIASED)
def test_unbiased_estimators_are_near_the_truth(kind):
    case = Case()
    fit, noise = case.estimate(kind)
    np.testing.assert_allclose(fit.values, case.truth, atol=0.3)
    np.testing.assert_allclose(fit.values, fit.solution)
    np.testing.assert_allclose(noise, NOISE, rtol=0.15)
    assert 1 < fit.condition_number < 100
    if fit.covariance is not None:
        errors = (fit.values - case.truth) / np.sqrt(np.diag(fit.covariance))
        assert 0.5 < np.sqrt(np.mean(errors**2)) < 1.6


@pytest.mark.parametrize("kind", UNBIASED)
def test_undetermined_parameters_are_nan(kind):
    lacking = [3, 17]
    fit, _ = Case(lacking=lacking).estimate(kind)
    assert list(np.flatnonzero(np.isnan(fit.values))) == lacking
    assert np.isfinite(fit.solution).all()
    assert np.isinf(fit.condition_number) or kind == "huber"
    if kind == "sequential":
        assert any("no effect on any torque" in remark for remark in fit.remarks)


def test_huber_estimate_is_robust_against_outliers():
    case = Case()
    rows = np.random.default_rng(5).permutation(400)[:20]
    case.equations.torque[rows] += 50.0
    case.problem = WeightedProblem(case.equations.factors(case.columns), case.columns.chosen(case.columns.first))
    robust, noise = case.estimate("huber")
    weighted, _ = case.estimate("weighted")
    error = [np.linalg.norm(fit.solution - case.truth) for fit in (robust, weighted)]
    assert error[0] < 0.3 * error[1]
    np.testing.assert_allclose(noise, NOISE, rtol=0.3)
    assert "count less than half: 5." in robust.remarks[0]


def test_error_model_minimizes_the_change_of_the_urdf():
    case = Case()
    nominal = case.robot.parameters
    fit = solve_regularized("error_model", case.full(), nominal, None)
    matrix, torque = case.dense()
    A = np.concatenate([matrix[:, j] / NOISE[j] for j in range(3)]) @ case.full().to_base
    b = np.concatenate([torque[:, j] / NOISE[j] for j in range(3)])
    start = np.append(nominal, np.zeros(9))
    expected = start + np.linalg.lstsq(A, b - A @ start, rcond=1e-8)[0]
    np.testing.assert_allclose(fit, expected, rtol=1e-5, atol=1e-5)


def test_minimum_norm_estimate_is_the_pseudoinverse():
    case = Case()
    fit = solve_regularized("minimum_norm", case.full(), case.robot.parameters, None)
    matrix, torque = case.dense()
    A = np.concatenate([matrix[:, j] / NOISE[j] for j in range(3)]) @ case.full().to_base
    b = np.concatenate([torque[:, j] / NOISE[j] for j in range(3)])
    np.testing.assert_allclose(fit, np.linalg.pinv(A, rcond=1e-8) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weight", [None, 3.0])
def test_ridge_towards_the_urdf_weights_joints_equally(weight):
    case = Case()
    nominal = case.robot.parameters
    fit = solve_regularized("ridge", case.full(), nominal, weight)
    matrix, torque = case.dense()
    A = matrix.reshape(-1, matrix.shape[-1]) @ case.full().to_base
    start = np.append(nominal, np.zeros(9))
    damped = A.T @ A + (weight or 10.0) * np.eye(A.shape[1])
    expected = start + np.linalg.solve(damped, A.T @ (torque.ravel() - A @ start))
    np.testing.assert_allclose(fit, expected, rtol=1e-6, atol=1e-6)


def truth(result, robot) -> np.ndarray:
    """Return the true base parameters (k,); NaN where they contain friction or rotors."""
    links = robot.parameters.size
    nominal = np.append(robot.parameters, np.zeros(len(result.base.names) - links))
    mixed = np.abs(result.base.combinations[:, links:]).any(axis=1)
    return np.where(mixed, np.nan, result.base.project(nominal))


def scores(result, robot) -> np.ndarray:
    """Return the finite errors of base parameters in units of their standard errors."""
    ratio = (result.base_parameters.values - truth(result, robot)) / result.base_parameters.standard_errors
    return ratio[np.isfinite(ratio)]


@pytest.mark.parametrize("equations", ["filtered", "integral"])
def test_white_standard_errors_are_right_for_white_noise(equations):
    """Filters and windows correlate neighbouring equations, which the standard errors include."""
    robot = chain()
    identification = LinkIdentification(
        robot, friction=PLAIN, estimator="weighted", equations=equations, errors="white", torque_gain_error=0.0
    )
    squares = [scores(identification.fit(run(robot, seed, noise=0.5)), robot) ** 2 for seed in range(9)]
    assert 0.8 < np.mean(squares) < 1.2


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_predicts_another_motion(estimator):
    robot = chain()
    result = LinkIdentification(distort(robot), friction=PLAIN, estimator=estimator).fit(run(robot), run(robot, 1))
    validation = result.validate(run(robot, 7))
    assert np.all(validation.relative_rms < 0.02)
    assert np.all(validation.relative_rms < 0.3 * validate(result.urdf_model, run(robot, 7)).relative_rms)
    assert np.sqrt(np.mean(scores(result, robot) ** 2)) < 2.5
    estimate = result.base_parameters
    assert np.isfinite(estimate.values).all()
    friction = dict(zip(estimate.names, estimate.values, strict=True))
    assert friction["coulomb joint_1"] == pytest.approx(1.0, abs=0.1)
    assert result.friction_coefficients["viscous joint_2"] == pytest.approx(0.5, abs=0.1)
    if estimator in UNBIASED:
        # The links of the file have the identified base parameters.
        np.testing.assert_allclose(
            result.base.project(np.append(result.parameters, result.model.coefficients)), estimate.values, atol=1e-6
        )


@pytest.mark.parametrize(
    ("nominal", "noise"),
    [
        ("wrong", 20.0),
        ("massless", 0.0),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("wrong", 0.0), ("massless", 20.0))),
    ],
)
def test_consistent_links_are_physically_possible(nominal, noise):
    robot = chain()
    start = distort(robot, 0.5) if nominal == "wrong" else with_links(robot, np.zeros(30))
    result = LinkIdentification(start, friction=PLAIN).fit(run(robot, noise=noise, duration=8.0))
    assert is_possible(result.parameters.reshape(3, 10)).all()
    bounded = [v for name, v in result.friction_coefficients.items() if not name.startswith("offset")]
    assert min(bounded) >= 0
    if nominal == "massless":
        assert sum("prior of" in remark for remark in result.remarks) == 3


@pytest.mark.slow
def test_selects_friction_of_an_arm_with_all_terms():
    robot = ur10()
    drive = Drive(rotor=1.0, stribeck=1.0, smoothing=0.01)
    result = LinkIdentification(distort(robot)).fit(run(robot, 0, drive), run(robot, 1, drive))
    validation = result.validate(run(robot, 7, drive, noise=0.0))
    assert np.all(validation.relative_rms[:3] < 0.02)
    assert np.all(validation.relative_rms[3:] < 0.08)
    assert sum("stribeck" in friction.terms for friction in result.model.joints) >= 4
    changed = [remark for remark in result.remarks if remark.startswith("friction of")]
    assert len(changed) >= 5
    assert all(0 < float(remark.split("held-out samples ")[1].split("%")[0]) < 100 for remark in changed)


@pytest.mark.parametrize("name", ["joint_5 joint_6", pytest.param("wrist", marks=pytest.mark.slow)])
def test_identifies_a_coupled_wrist(name):
    """The last rotor turns with the sum of both motions, as in a Stäubli arm."""
    robot = ur10()
    pair = robot.joint_names[4:]

    def wrist(seed):
        return couple_joints(run(robot, seed), (4, 5), seed)

    friction = FrictionModel(PLAIN, [(4, 5)]) if name == "wrist" else PLAIN
    pairs = () if name == "wrist" else [pair]
    identification = LinkIdentification(distort(robot), friction=friction, coupled=pairs, estimator="weighted")
    result = identification.fit(wrist(0), wrist(1))
    coefficients = result.friction_coefficients
    key = " ".join(pair)
    assert coefficients[f"coupling_inertia {key}"] == pytest.approx(0.4, abs=0.05)
    assert coefficients[f"coupling_viscous {key}"] == pytest.approx(0.3, abs=0.05)
    assert coefficients[f"coupling_coulomb {key}"] == pytest.approx(1.0, abs=0.1)
    assert np.all(result.validate(wrist(7)).relative_rms[4:] < 0.05)
    alone = LinkIdentification(distort(robot), friction=PLAIN, estimator="weighted").fit(wrist(0), wrist(1))
    assert np.all(alone.validate(wrist(7)).relative_rms[4:] > 0.2)


@pytest.mark.parametrize(
    ("estimator", "position_noise"),
    [
        ("consistent", 1e-4),
        ("weighted", 0.0),
        pytest.param("weighted", 1e-4, marks=pytest.mark.slow),
        pytest.param("huber", 1e-5, marks=pytest.mark.slow),
        ("sequential", 1e-5),
    ],
)
def test_joint_at_rest_has_no_estimates(estimator, position_noise):
    """The property holds for exact positions, and for encoder noise, which has a direction."""
    robot = ur10()
    recording = run(robot, still=(1, 3), position_noise=position_noise)
    result = LinkIdentification(distort(robot), friction=PLAIN, estimator=estimator).fit(recording)
    estimate = dict(zip(result.base_parameters.names, result.base_parameters.values, strict=True))
    for joint in np.array(robot.joint_names)[[1, 3]]:
        assert np.isnan(estimate[f"coulomb {joint}"])
        assert np.isnan(estimate[f"viscous {joint}"])
    assert np.isfinite(estimate["coulomb elbow_joint"])
    assert np.isnan(result.base_parameters.standard_errors[np.isnan(result.base_parameters.values)]).all()
    (remark,) = [remark for remark in result.remarks if remark.startswith("this motion does not determine")]
    assert "viscous shoulder_lift_joint" in remark
    # Undetermined parameters stay near the URDF.
    assert np.max(np.abs(result.parameters - result.robot.parameters)) < 40
    assert np.all(result.residual_rms < (0.1 if position_noise < 1e-4 else 0.5))  # accelerations are noisy too
    assert np.isinf(result.condition_number) or estimator == "huber"


def test_result_is_independent_of_unobservable_urdf_parameters():
    """URDFs that differ in the null space of the base parameters describe the same dynamics."""
    robot = distort(chain())
    base = robot.base_parameters()
    null = np.linalg.svd(base.combinations)[2][base.rank :]
    shift = null.T @ np.random.default_rng(0).normal(size=len(null)) * 0.02
    results = [
        LinkIdentification(arm, friction=PLAIN, estimator="weighted").fit(run(chain()))
        for arm in (robot, with_links(robot, robot.parameters + shift))
    ]
    first, second = (result.base_parameters for result in results)
    np.testing.assert_allclose(first.nominal, second.nominal, atol=1e-9)
    np.testing.assert_allclose(results[0].urdf_residual_rms, results[1].urdf_residual_rms, atol=1e-9)
    np.testing.assert_allclose(first.values, second.values, atol=1e-9)


def test_sums_with_rotors_have_no_nominal_value():
    robot = chain()
    friction = JointFriction(offset=True, rotor_inertia=True, smoothing=0.02)
    result = LinkIdentification(robot, friction=friction).fit(run(robot, drive=Drive(rotor=0.5)))
    estimate = result.base_parameters
    with_rotor = ["rotor_inertia" in expression for expression in estimate.expressions]
    assert any(with_rotor)
    assert np.isnan(estimate.nominal[with_rotor]).all()


def test_intervals_include_the_gain_error():
    recording = run(chain())
    narrow, wide = (
        LinkIdentification(chain(), friction=PLAIN, estimator="weighted", torque_gain_error=error)
        .fit(recording)
        .base_parameters
        for error in (0.0, 0.05)
    )
    mass = int(np.argmax(np.abs(narrow.values) * (np.arange(len(narrow.values)) < 10)))
    assert narrow.relative_standard_errors[mass] < 0.01
    assert wide.relative_standard_errors[mass] == pytest.approx(0.05, rel=0.7)
    np.testing.assert_array_equal(narrow.values, wide.values)


@pytest.mark.parametrize("estimator", ["huber", "sequential"])
def test_repetitions_do_not_reduce_standard_errors(estimator):
    """The errors are at least half of those of the weighted fit, which count kinds of motion."""
    recording = run(chain())
    errors = {
        kind: np.sqrt(
            np.diag(
                LinkIdentification(chain(), friction=PLAIN, estimator=kind).fit(recording).base_parameters.covariance
            )
        )
        for kind in ("weighted", estimator)
    }
    finite = np.isfinite(errors[estimator])
    assert finite.sum() > 10
    assert np.all(errors[estimator][finite] >= 0.5 * errors["weighted"][finite])


def test_integral_equations_agree_with_filtered_ones():
    robot = chain()
    soft = Drive(smoothing=0.2)
    friction = JointFriction(offset=True, smoothing=0.2)
    recordings = run(robot, 0, soft), run(robot, 1, soft)
    settings = {"friction": friction, "estimator": "weighted"}
    filtered, integral = (
        LinkIdentification(distort(robot), equations=equations, **settings).fit(*recordings)
        for equations in ("filtered", "integral")
    )
    assert np.all(integral.validate(run(robot, 7, soft)).relative_rms < 0.02)
    # Both residuals are in N m.
    np.testing.assert_allclose(integral.torque_rms, filtered.torque_rms, rtol=0.1)
    assert np.all(integral.noise / filtered.noise < 3)


class TestSamples:
    """Identification from arrays of motion and torque, without a recording."""

    @staticmethod
    def samples(size=1500, seed=0):
        q, qd, qdd = Fourier(3, seed, size=0.6)(np.arange(size) / 75)
        torque = rigid_torque(chain(), q, qd, qdd) + Drive().torque(qd, qdd)
        return q, qd, qdd, torque + 0.05 * np.random.default_rng(seed).normal(size=q.shape)

    @pytest.mark.parametrize("estimator", ["consistent", "huber"])
    def test_fit(self, estimator, tmp_path):
        robot = chain()
        result = LinkIdentification(distort(robot), friction=PLAIN, estimator=estimator).fit_samples(*self.samples())
        assert result.n_samples == 1500
        assert np.sqrt(np.mean(scores(result, robot) ** 2)) < 2.5
        assert np.all(result.validate(run(robot, 7)).relative_rms < 0.02)
        result.save(tmp_path / "identified.yaml")

    def test_direction_of_gravity(self):
        robot = chain()
        tilted = robot.with_gravity(9.80665 * np.array([0.0, np.sin(0.05), -np.cos(0.05)]))
        settings = {"friction": PLAIN, "estimator": "weighted"}
        estimated = LinkIdentification(tilted, gravity_direction="estimated", **settings).fit_samples(*self.samples())
        assert np.linalg.norm(estimated.robot.gravity - robot.gravity) < 0.02
        with pytest.raises(IdentificationError, match="samples have no IMU"):
            LinkIdentification(tilted, gravity_direction="imu", **settings).fit_samples(*self.samples())

    @pytest.mark.parametrize("estimator", ["weighted", "ordinary"])
    def test_white_errors_of_independent_samples(self, estimator):
        squares = []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            q, qd, qdd = rng.uniform(-2, 2, (3, 600, 3))
            torque = rigid_torque(chain(), q, qd, qdd) + rng.normal(size=q.shape) * [0.2, 0.1, 0.02]
            identification = LinkIdentification(
                distort(chain()), friction=PLAIN, estimator=estimator, errors="white", torque_gain_error=0.0
            )
            squares.append(scores(identification.fit_samples(q, qd, qdd, torque), chain()) ** 2)
        assert 0.85 < np.mean(squares) < 1.15

    def test_saved_model_is_read_back(self, tmp_path):
        result = LinkIdentification(distort(chain()), friction=PLAIN, cutoff=5.0).fit_samples(*self.samples())
        model = link_model(load_identified(result.save(tmp_path / "a.yaml")), chain())
        assert (model.signals.cutoff, model.signals.motion_cutoff) == (5.0, 12.5)
        np.testing.assert_array_equal(
            model.predict_recording(run(chain())), result.model.predict_recording(run(chain()))
        )

    @pytest.mark.parametrize("size", [1, 5, 10])
    def test_too_few(self, size):
        with pytest.raises(IdentificationError, match=rf"samples: {size} samples .* for \d+ unknowns of one joint"):
            LinkIdentification(chain(), friction=PLAIN).fit_samples(*(x[:size] for x in self.samples(20)))

    def test_few_samples_do_not_have_small_errors(self):
        """Standard errors from few samples are missing or large; no interval has zero width."""
        for size in (25, 30, 45, 60, 90):
            identification = LinkIdentification(chain(), friction=PLAIN, estimator="weighted", torque_gain_error=0.0)
            estimate = identification.fit_samples(*(x[:size] for x in self.samples())).base_parameters
            low, high = estimate.confidence_intervals().T
            assert not np.any(high - low < 1e-6)


ROTOR_INERTIA = 3.0
"""Rotor inertia (kg m²) or mass (kg) that no torque separates from the links; it exceeds that of each link."""


@cache
def collinear(make_arm, seed=0):
    """Return the result of an arm with selected friction, and its true base parameters (k,)."""
    arm = make_arm()
    recording = run(arm, seed, drive=Drive(rotor=ROTOR_INERTIA), noise=0.1)
    result = LinkIdentification(distort(arm, 0.1), torque_gain_error=0.0).fit(recording)
    true = {"coulomb": 1.0, "viscous": 0.5, "offset": 0.2, "rotor_inertia": ROTOR_INERTIA}
    friction = [true.get(name.split(" ")[0], 0.0) for name in result.friction.names(arm)]
    return result, result.base.combinations @ np.concatenate([arm.parameters, friction])


@pytest.mark.slow
@pytest.mark.parametrize("arm", [scara, gantry])
def test_sums_with_a_rotor_are_named_and_covered(arm):
    covered = []
    for seed in range(6):
        result, truth = collinear(arm, seed)
        estimate = result.base_parameters
        links = result.base.columns < result.parameters.size
        low, high = estimate.confidence_intervals().T
        assert any("rotor_inertia joint_3" in expression for expression in np.array(estimate.expressions)[links])
        covered.append(((low <= truth) & (truth <= high))[links])
    assert np.mean(covered) >= 0.85


@pytest.mark.parametrize("arm", [scara, gantry])
def test_rotors_in_a_sum_are_excluded_from_the_links(arm):
    result, _ = collinear(arm)
    mass = result.parameters[::10]
    true = result.robot.parameters[::10]
    assert mass == pytest.approx(true, rel=0.2)
    assert result.friction_coefficients["rotor_inertia joint_3"] == pytest.approx(ROTOR_INERTIA, rel=0.2)
    assert any("rotor_inertia joint_3" in remark and "together with links" in remark for remark in result.remarks)


def test_weight_of_a_prismatic_joint_with_offset_is_unobservable():
    """Mass times gravity equals an offset, and mass times acceleration equals a rotor."""
    result, _ = collinear(scara)
    document = result.document()
    assert not document["gravity"]["joint_3"]["observable"]
    assert document["friction"]["joint_3"]["std"]["rotor_inertia"] is None
    assert document["friction"]["joint_2"]["std"]["rotor_inertia"] > 0.0


def choices(result):
    """Return all settings that an identification selects."""
    signals = result.model.signals
    return round(signals.cutoff, 6), str(signals.driver), result.settings["prior_weight"], result.friction.joints


@pytest.mark.slow
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("motion", [0, 1], ids=["all joints at once", "from pose to pose"])
def test_rounding_of_a_recording_changes_no_selection(name, motion):
    experiment = draw(name, 900, known=True)
    recording = experiment.unloaded[motion]
    first = choices(LinkIdentification(experiment.robot).fit(recording))
    for number, change in enumerate((-1e-12, 1e-12)):
        noise = np.random.default_rng(number).uniform(-1e-9, 1e-9, recording.position.shape)
        rounded = replace(recording, time=recording.time * (1 + change), position=recording.position * (1 + noise))
        assert choices(LinkIdentification(experiment.robot).fit(rounded)) == first


def test_selects_structure_on_a_part_and_fits_all_samples(monkeypatch):
    robot = chain()
    recording = record(robot, Fourier(3, 0), Drive(rotor=0.5), noise=0.05)
    monkeypatch.setattr(link_identification, "MAX_STRUCTURE_SAMPLES", 200)
    counts = []
    choose = link_structure.choose_friction

    def counted(columns, menus, grams, prior):
        counts.append(grams.factors.counts.sum())
        return choose(columns, menus, grams, prior)

    monkeypatch.setattr(link_structure, "choose_friction", counted)
    selected = LinkIdentification(distort(robot)).fit(recording)
    configured = LinkIdentification(distort(robot), friction=selected.friction).fit(recording)
    assert max(counts) < 0.5 * selected.n_samples
    assert selected.n_samples == configured.n_samples
    values = selected.base_parameters.values
    np.testing.assert_allclose(values, configured.base_parameters.values, rtol=1e-6, atol=1e-8)


def test_configured_friction_needs_one_least_squares_solution(monkeypatch):
    problems = []
    create = WeightedProblem.__init__
    monkeypatch.setattr(WeightedProblem, "__init__", lambda self, *args: problems.append(self) or create(self, *args))
    robot = chain()
    q, qd, qdd = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 300, robot.n_joints))
    torque = robot.inverse_dynamics(q, qd, qdd) + 0.5 * qd + 0.3 * np.sign(qd)
    identification = LinkIdentification(robot, JointFriction(), estimator="weighted", errors="white")
    identification.fit_samples(q, qd, qdd, torque)
    assert len(problems) == 1


@pytest.mark.parametrize("arm", [scara, gantry])
def test_coarse_counts_of_a_slow_slide_do_not_lower_its_mass(arm):
    """Fast joints need a wide low-pass, which transmits the encoder counts to the slide's acceleration."""
    robot = arm()
    slides = robot.chain.prismatic
    slow = slides if arm is scara else np.arange(3) == 0
    time = np.arange(0.0, 20.0, 0.004)
    rng = np.random.default_rng(3)
    motion = np.zeros((3, len(time), robot.n_joints))
    for j, is_slow in enumerate(slow):
        for harmonic in (1, 2, 4):
            rate = 2 * np.pi * harmonic * (0.1 if is_slow else 2.3)
            phase = rng.uniform(0.0, 2 * np.pi)
            size = (0.04 if is_slow else 0.1) / harmonic
            for order in range(3):
                motion[order, :, j] += size * rate**order * np.sin(rate * time + phase + order * np.pi / 2)
    torque = robot.inverse_dynamics(*motion)
    counts = np.where(slow, 2e-5, 1e-6)
    recording = Recording(robot.joint_names, time, np.round(motion[0] / counts) * counts, motion[1], torque)
    result = LinkIdentification(robot, friction=JointFriction(offset=True), estimator="weighted").fit(recording)
    error = result.base.combinations[:, : robot.parameters.size] @ robot.parameters - result.base_parameters.values
    masses = [
        k
        for k, text in enumerate(result.base_parameters.expressions)
        if text.startswith("m1" if arm is gantry else "m3")
    ]
    assert masses
    for k in masses:
        assert error[k] == pytest.approx(0.0, abs=0.005 * robot.parameters[::10].sum())
        low, high = result.base_parameters.confidence_intervals()[k]
        assert low <= result.base_parameters.values[k] + error[k] <= high
