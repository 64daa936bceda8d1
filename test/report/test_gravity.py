"""Test the gravity report: numbers, validations, unobservable joints, verdict, and the predicted torque."""

import re
from copy import deepcopy
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from html_page import HOSTILE, Page
from pictures import unrendered
from scipy.stats import t

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.model import RobotModel
from dynid_ros.report.gravity import rotation_plots, write_gravity_report


@pytest.fixture(name="write_page")
def fixture_write_page(tmp_path):
    def write_page(robot, document, samples):
        path = write_gravity_report(tmp_path / "new" / "report.html", robot, document, samples)
        return Page(path.read_text(encoding="utf-8"))

    with unrendered():
        yield write_page


@pytest.fixture(name="markup", scope="module")
def fixture_markup(tmp_path_factory, robot, result, samples):
    path = write_gravity_report(tmp_path_factory.mktemp("plain") / "report.html", robot, result.document(), samples)
    return path.read_text(encoding="utf-8")


@pytest.fixture(name="plain", scope="module")
def fixture_plain(markup):
    return Page(markup)


def format_number(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}".replace("-", "−")


def test_page_shows_estimates_and_intervals_of_the_document(plain, robot, document):
    for joint in ("shoulder", "elbow", "wrist"):
        entry = document["gravity"][joint]
        for label in ("n_x", "n_y"):
            half = t.ppf(0.975, entry["degrees_of_freedom"][label]) * entry["std"][label]
            decimals = 1 - int(np.floor(np.log10(half)))
            assert f"{format_number(entry[label], decimals)} ± {format_number(half, decimals)}" in plain.text
    for entry in document["friction"].values():
        for side, label in (("+", "torque_positive"), ("−", "torque_negative")):
            half = t.ppf(0.975, entry["degrees_of_freedom"][label]) * entry["std"][label]
            decimals = 1 - int(np.floor(np.log10(half)))
            assert f"{side}: {format_number(entry[label], decimals)} ± {format_number(half, decimals)}" in plain.text
    assert f"Condition number {document['condition_number']:.2f} good" in plain.text
    assert "3 of the 3 joints that gravity loads were identified from 128 poses at rest" in plain.text
    assert "gravity never loads waist" in plain.text
    assert "waist gravity never loads it" in plain.text
    for word in ("run_1.mcap", "estimator: global", "torque_offset: yes", "−9.80665", robot.urdf_sha256[:16]):
        assert word in plain.text


def test_page_shows_residual_rms_of_the_fit(plain, robot, result):
    for joint, rms in zip(robot.joint_names, result.residual_rms, strict=True):
        assert f"{joint} {rms:.4f} " in plain.text  # the noise is 0.02 N m, so four decimals give three digits


def test_names_are_escaped(write_page, arm, samples):
    names = (*arm.names[:2], HOSTILE, arm.names[3])
    robot = RobotModel.from_urdf(arm.urdf(names))
    document = GravityIdentification(robot).fit_samples(samples, ("<i>bag</i>",)).document()
    document["gravity"][HOSTILE] |= {"observable": False, "reason": "<i>why</i>"}
    page = write_page(robot, document, samples)
    assert not page.tags & {"script", "i"}
    assert HOSTILE in page.text
    assert "<i>why</i>" in page.text
    assert "<i>bag</i>" in page.text


def test_unobservable_joint_shows_its_reason_instead_of_numbers(write_page, arm, robot):
    samples = arm.experiment(joints=(0, 1, 2))
    samples = replace(samples, position=samples.position * [1, 1, 1, 0], torque=samples.torque * [1, 1, 1, 0])
    document = GravityIdentification(robot).fit_samples(samples).document()
    page = write_page(robot, document, samples)
    assert "1 of the 3 joints that gravity loads were identified" in page.text
    assert "gravity of elbow and wrist is not known" in page.text, "the elbow's moment includes the wrist's"
    for joint in ("elbow", "wrist"):
        assert f"{joint} {document['gravity'][joint]['reason']}" in page.text
        assert f"{joint} not identified" in page.text
        assert f"{joint} – – –" in page.text, "no residual where there is no prediction"
    assert "elbow not predicted, rotation 1 of 2" in page.text


def test_page_shows_residuals_of_validation_recordings(write_page, plain, arm, robot, samples):
    result = GravityIdentification(robot).fit_samples(samples)
    validation = result.validate_samples(arm.experiment(seed=1, noise=0.05), "run_2.mcap")
    assert "Validation" not in plain.text
    page = write_page(robot, result.document() | {"validation": [validation.document()]}, samples)
    assert "Validation Residuals on recordings that were not fitted" in page.text
    assert "On 1 recording not used to fit" in page.text
    for joint, rms, r2 in zip(robot.joint_names, validation.rms, validation.r2, strict=True):
        assert re.search(rf"run_2.mcap .*{joint} {rms:.4f} [\d.]+ % {r2:.4f}", page.text)


def test_prismatic_joint_is_shown_in_kg_mm_and_newton(tmp_path, arm):
    urdf = """<robot name="lift"><link name="a"/><link name="b"/><link name="c"/>
    <joint name="lift" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
      <limit lower="0" upper="1" velocity="1" effort="99"/></joint>
    <joint name="turn" type="revolute"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
      <limit lower="-3" upper="3" velocity="1" effort="99"/></joint></robot>"""
    robot = RobotModel.from_urdf(urdf)
    rng = np.random.default_rng(4)
    q = np.array([[0.1 * k, 0.5] for k in range(6)] + [[0.2, 0.4 * k] for k in range(8)])
    torque = 9.80665 * np.stack([np.full(len(q), 12.0), -1.5 * np.cos(q[:, 1])], axis=1)
    samples = arm.samples(q, torque + rng.normal(0, 0.05, q.shape), np.zeros_like(q))
    document = GravityIdentification(robot, torque_offset=False, torque_gain_error=0.0).fit_samples(samples).document()
    page = Page(write_gravity_report(tmp_path / "r.html", robot, document, samples).read_text(encoding="utf-8"))
    assert re.search(r"lift 1[12]\.\d+ ± 0\.00\d+", page.text)
    assert "prismatic: mass, kg" in page.text
    assert "position (mm)" in page.text
    assert "torque (N)" in page.text
    assert "measured − predicted torque (N or N m)" in page.text


def add_torque_noise(arm, samples, **rms):
    """Return the samples with white torque noise; `rms` is in N m by joint name."""
    errors = np.random.default_rng(5).normal(0, 1, samples.torque.shape) * [rms.get(name, 0.0) for name in arm.names]
    return replace(samples, torque=samples.torque + errors)


def test_verdict_combines_residual_and_observability(write_page, arm, robot, document, samples):
    largest = np.abs(arm.gravity_torque(samples.position)).max()
    result = GravityIdentification(robot).fit_samples(samples)
    for error, words in ((0.02, "Good enough to compensate gravity."), (0.2, "the residual exceeds 5.0 %")):
        validation_samples = add_torque_noise(arm, arm.experiment(seed=1), elbow=error * largest)
        validations = [result.validate_samples(validation_samples, "run_2").document()]
        page = write_page(robot, document | {"validation": validations}, samples)
        assert words in page.text
        assert page.text.count("ood enough to compensate") == 1
        percentage = re.search(r"at most ([\d.]+) % of the largest gravity torque of the arm", page.text)
        assert float(percentage[1]) == pytest.approx(100 * error, rel=0.2)
    assert "Good on the fitted data; validate it on another recording" in write_page(robot, document, samples).text
    document["gravity"]["wrist"] = {"n_x": None, "n_y": None, "observable": False, "reason": "it did not turn"}
    assert (
        "Not good enough to compensate gravity: gravity of wrist is not known."
        in write_page(robot, document, samples).text
    )


def test_plots_at_most_300_samples_without_single_joint_rotations(write_page, arm, robot):
    q = np.random.default_rng(2).uniform(-1.5, 1.5, (500, 4))
    samples = arm.samples(q, arm.gravity_torque(q) + arm.offset, np.zeros_like(q))
    page = write_page(robot, GravityIdentification(robot).fit_samples(samples).document(), samples)
    assert "No joint turns alone in the recordings" in page.text
    assert page.text.count("300 of 500 samples") == 3, "gravity never loads the waist"


def test_joint_without_gravity_is_reported(write_page, arm, robot, document, samples):
    result = GravityIdentification(robot).fit_samples(samples)
    other = add_torque_noise(arm, arm.experiment(seed=1), waist=7.0)
    page = write_page(robot, document | {"validation": [result.validate_samples(other, "run_2").document()]}, samples)
    assert re.search(r"Gravity hardly loads waist \((6|7)\.\d N m\)", page.text)
    assert float(re.search(r"torque is at most ([\d.]+) %", page.text)[1]) < 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("gravity"), "no section 'gravity'"),
        (lambda d: d["gravity"]["elbow"].update(n_y=None), "joint 'elbow'.*n_y is None"),
        (lambda d: d.update(source=["a"]), "'source' is \\['a'\\]"),
        (lambda d: d.update(validation={"recording": "r"}), "'validation' must be a list"),
        (lambda d: d["robot"].update(kinematics_sha256="0"), "another robot"),
    ],
)
def test_malformed_document(tmp_path, robot, document, samples, change, words):
    document = deepcopy(document)
    change(document)
    with pytest.raises(IdentifiedFileError, match=words):
        write_gravity_report(tmp_path / "report.html", robot, document, samples)
    assert not (tmp_path / "report.html").exists()


def test_matplotlib_settings_stay_unchanged(tmp_path, robot, document, samples):
    mpl.rcParams["lines.linewidth"] = 3.25
    before = dict(mpl.rcParams)
    write_gravity_report(tmp_path / "r.html", robot, document, samples)
    assert dict(mpl.rcParams) == before


def predict(model, samples):
    return model.predict(samples.position, samples.velocity, samples.direction)


@pytest.fixture(name="exact")
def fixture_exact(arm, robot):
    samples = arm.experiment(noise=0)
    return IdentifiedGravity(robot, GravityIdentification(robot).fit_samples(samples).document())


def test_curve_is_gravity_torque_plus_offset(arm, exact):
    q = np.random.default_rng(1).uniform(-2, 2, (50, 4))
    np.testing.assert_allclose(exact.sensor_torque(q), arm.gravity_torque(q) + arm.offset, atol=1e-9)


def test_prediction_includes_friction(arm, exact):
    samples = arm.experiment(noise=0)
    np.testing.assert_allclose(predict(exact, samples), samples.torque, atol=1e-9)


def test_plot_note_gives_the_rotating_joints_residual(arm, exact):
    samples = arm.experiment(noise=0)
    elbow = [plot.name for plot in rotation_plots(exact, samples, predict(exact, samples))].index("elbow")
    steps = 2 * 8
    rows = slice(2 * steps, 3 * steps)  # third joint at the first pose
    samples.torque[rows, 2] += np.tile([0.3, -0.3], steps // 2)
    samples.torque[rows, 1] += 5.0
    plots = rotation_plots(exact, samples, predict(exact, samples))
    assert plots[elbow].note == "residual 0.30 N m RMS, rotation 1 of 2"
    assert "·10⁻" in plots[elbow + 1].note


def test_torque_is_nan_where_a_gravity_moment_is_unobservable(robot, arm, document):
    document["gravity"]["wrist"]["observable"] = False
    model = IdentifiedGravity(robot, document)
    q = np.random.default_rng(1).uniform(-2, 2, (20, 4))
    torque = model.sensor_torque(q)
    assert np.isnan(torque[:, 1:]).all()
    np.testing.assert_allclose(torque[:, 0], document["friction"]["waist"]["offset"])
    assert np.isnan(model.moments[-2:]).all()
