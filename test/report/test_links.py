"""Test the report on links: held-out residuals, friction, base parameters, URDF errors and residual analysis."""

import re
from dataclasses import replace
from types import SimpleNamespace
from xml.sax.saxutils import quoteattr

import link_experiment
import numpy as np
import planar_arm
import pytest
from html_page import HOSTILE, Page, assert_self_contained, assert_themed
from scipy.stats import t as student_t

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.link_prediction import compare
from dynid_ros.identification.links.link_identification import LinkIdentification
from dynid_ros.identification.repeated_motion import measure_repeatability
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel
from dynid_ros.report.formats import as_fine_as
from dynid_ros.report.link_parameters import BaseParameter, read_base_parameters
from dynid_ros.report.links import link_part, write_link_report

LIFT = f"""<robot name="lift"><link name="a"/>
<link name="b"><inertial><mass value="4"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="c"><inertial><origin xyz="0.3 0 0"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="lift" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
  <limit lower="-5" upper="5" velocity="9" effort="99"/></joint>
<joint name={quoteattr(HOSTILE)} type="revolute"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
  <limit lower="-5" upper="5" velocity="9" effort="99"/></joint></robot>"""


def write_page(folder, *arguments):
    return Page(write_link_report(folder / "new" / "report.html", *arguments).read_text(encoding="utf-8"))


def r_squared(measured, predicted):
    """Return R² of each joint."""
    return 1 - np.sum((measured - predicted) ** 2, axis=0) / np.sum((measured - measured.mean(axis=0)) ** 2, axis=0)


@pytest.fixture(name="problem", scope="module")
def fixture_problem(tmp_path_factory):
    robot, truth = link_experiment.build_planar()
    fitted = link_experiment.record(robot, truth, seed=1)
    held_out = link_experiment.record(robot, truth, seed=2)
    result = LinkIdentification(robot, friction=link_experiment.FRICTION).fit(fitted)
    page = write_page(tmp_path_factory.mktemp("problem"), result, [fitted], [held_out])
    return SimpleNamespace(robot=robot, truth=truth, fitted=fitted, held_out=held_out, result=result, page=page)


def identify_links(folder, estimator="consistent", **conditions):
    """Return the result of one recording without a held-out one, and its page."""
    robot, truth = link_experiment.build_planar()
    fitted = link_experiment.record(robot, truth, seed=1, **conditions)
    result = LinkIdentification(robot, friction=link_experiment.FRICTION, estimator=estimator).fit(fitted)
    return SimpleNamespace(result=result, page=write_page(folder, result, [fitted]))


@pytest.fixture(name="rippled", scope="module")
def fixture_rippled(tmp_path_factory):
    """Identify links from a torque ripple that the model lacks."""
    return identify_links(tmp_path_factory.mktemp("rippled"), ripple=1.0)


@pytest.fixture(name="still", scope="module")
def fixture_still(tmp_path_factory):
    """Identify links without prior from a motion that keeps joint 1 at rest."""
    return identify_links(tmp_path_factory.mktemp("still"), "weighted", still=(0,))


@pytest.fixture(name="lift", scope="module")
def fixture_lift(tmp_path_factory):
    robot = RobotModel.from_urdf(LIFT)
    fitted = replace(link_experiment.record(robot, 1.2 * robot.parameters), source="<i>bag</i>")
    friction = FrictionModel(
        [replace(link_experiment.FRICTION, asymmetric=True, offset=False), link_experiment.FRICTION]
    )
    result = LinkIdentification(robot, friction=friction, prior_weight=1.0).fit(fitted)
    folder = tmp_path_factory.mktemp("lift")
    return SimpleNamespace(result=result, fitted=fitted, folder=folder, page=write_page(folder, result, [fitted]))


def test_headline_and_table_use_the_held_out_recording(problem):
    result = problem.result
    text = problem.page.text
    _, measured, predicted = compare(result.model, problem.held_out)
    urdf = compare(result.urdf_model, problem.held_out)[2]
    _, fit_measured, fit_predicted = compare(result.model, problem.fitted)
    assert r_squared(measured, urdf).mean() < 0.98 < 0.999 < r_squared(measured, predicted).mean()
    assert "R² of the torque is 99.9 % with the identified model" in text, "never rounded up to all of it"
    assert f"{100 * r_squared(measured, urdf).mean():.0f} % with the URDF" in text
    for i, joint in enumerate(planar_arm.JOINTS):
        rms = np.sqrt(np.mean((measured - predicted)[:, i] ** 2))
        torque = np.sqrt(np.mean(measured[:, i] ** 2))
        row = re.search(rf"{joint} ([\d.]+) N m ([\d.]+) N m [\d.]+ % ([\d.]+) ([\d.]+) ([−\d.]+) ([\d.]+) N m", text)
        numbers = [float(number.replace("−", "-")) for number in row.groups()]
        urdf_rms = np.sqrt(np.mean((measured - urdf)[:, i] ** 2))
        expected = [
            torque,
            rms,
            r_squared(measured, predicted)[i],
            r_squared(fit_measured, fit_predicted)[i],
            r_squared(measured, urdf)[i],
            urdf_rms,
        ]
        assert numbers == pytest.approx(expected, rel=6e-3)
    worst = planar_arm.JOINTS[int(np.argmin(r_squared(measured, predicted)))]
    assert f"R² is lowest at {worst}" in text
    assert "run_2, which was not used to fit" in text
    assert "kept back" not in text


def test_friction_table_shows_intervals_that_contain_the_truth(problem):
    estimate = problem.result.base_parameters
    for joint in planar_arm.JOINTS:
        index = {term: estimate.names.index(f"{term} {joint}") for term in ("coulomb", "viscous", "offset")}
        for signs, true in (
            ({"viscous": 1}, link_experiment.VISCOUS),
            ({"offset": 1, "coulomb": 1}, link_experiment.OFFSET + link_experiment.COULOMB),
            ({"offset": 1, "coulomb": -1}, link_experiment.OFFSET - link_experiment.COULOMB),
        ):
            row = np.zeros(len(estimate.names))
            row[[index[term] for term in signs]] = list(signs.values())
            dof = min(estimate.dof[index[term]] for term in signs)
            half = student_t.ppf(0.975, dof) * np.sqrt(row @ estimate.covariance @ row)
            decimals = 1 - int(np.floor(np.log10(half)))
            value = f"{row @ np.nan_to_num(estimate.values):.{decimals}f}".replace("-", "−")
            if "viscous" in signs:
                assert f" {value} ± {half:.{decimals}f} " in problem.page.text
            else:
                assert f" ± {half:.{decimals}f} " in problem.page.text
            assert row @ np.nan_to_num(estimate.values) == pytest.approx(true, abs=2 * half)
    assert problem.page.text.count("reverses within 0.050 rad/s") == 3
    assert "Friction and offset" in problem.page.text


def test_names_base_parameters_that_contradict_the_urdf(problem):
    text = problem.page.text
    wrong = set(
        re.search(r"The URDF is wrong in \d+ of 15 base parameters \(([^)]*)\)", text)[1]
        .replace(" and ", ", ")
        .split(", ")
    )
    assert {"mcx2", "Izz3"} <= wrong, "the first moment of link 2 and the inertia of link 3 differ from the URDF"
    flagged = set(re.findall(r"(\w+) −?[\d.]+ ± [\d.]+ kg m²? −?[\d.]+ −?[\d.]+ URDF wrong", text))
    assert flagged == wrong
    names = problem.result.base.names
    hidden = {names[i] for i, category in enumerate(problem.result.base.categories) if category == "unidentifiable"}
    assert hidden
    assert not wrong & hidden


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "is_urdf_wrong"),
        ({"urdf": 0.95}, ""),
        ({"urdf": np.nan}, ""),
        ({"value": np.nan, "half": np.nan}, ""),
        ({"model": 0.5}, "is_doubtful"),
        ({"model": 0.5, "urdf": np.nan}, ""),
        ({"model": np.nan}, ""),
    ],
)
def test_urdf_is_wrong_only_where_the_consistent_model_fits_the_data(change, verdict):
    numbers = {"value": 1.0, "error": 0.05, "half": 0.1, "urdf": 0.2, "model": 1.05} | change
    row = BaseParameter(expression="Izz1 + Ixx2", **numbers)
    assert [name for name in ("is_urdf_wrong", "is_doubtful") if getattr(row, name)] == [verdict] * bool(verdict)
    assert (row.name, row.label, row.link, row.unit) == ("Izz1", "Izz1 + …", 0, "kg m²")


def test_table_of_base_parameters_agrees_with_the_result(problem):
    """The document stores the identified model as links and friction, so base parameters are projected again."""
    result = problem.result
    base = problem.result.base
    model = base.project(np.concatenate([result.parameters, result.model.coefficients]))
    rows = read_base_parameters(result.document(), model)
    assert tuple(row.name for row in rows) == result.base_parameters.names
    sections = {section.title: section for section in link_part(result.document(), problem.robot).sections if section}
    table = sections["Base parameters"].parts[-1]
    assert [row[2] for row in table.rows] == [as_fine_as(row.model, row.half) for row in rows]
    half = np.ptp(result.base_parameters.confidence_intervals(), axis=1) / 2
    np.testing.assert_allclose([row.half for row in rows], half)


def test_residual_analysis_separates_white_noise_from_a_ripple(problem, rippled):
    assert "The residuals look like sensor noise" in problem.page.text
    assert "are not sensor noise" not in problem.page.text
    assert "The residuals of all joints are not sensor noise" in rippled.page.text


def test_says_that_no_recording_was_held_out(rippled):
    text = rippled.page.text
    assert "No recording was kept back: these data were fitted." in text
    assert "On the fitted data, R² of the torque is" in text
    assert "Validate on another recording" in text
    assert "not used to fit" not in text


def test_undetermined_base_parameters_have_no_numbers(still):
    text = still.page.text
    values = still.result.base_parameters.values
    assert np.isnan(values).any()
    assert f" of {len(values)} to a standard error of" in text
    assert f"this motion does not determine {np.isnan(values).sum()} of them" in text
    assert re.search(r"Izz1 not determined \S+ \S+ Izz1 \+", text)
    assert "Measured and predicted torque" not in text, "undetermined links predict no torque"
    assert "nan" not in text.lower().split()


def test_prismatic_joint_shows_linear_units_and_friction_by_direction(lift):
    text = lift.page.text
    assert re.search(r"lift – \+: [\d.]+ ± [\d.]+ N −: [\d.]+ ± [\d.]+ N ", text)
    assert "N s/m" in text
    assert "N m s/rad" in text
    assert "velocity (m/s)" in text
    assert "torque (N)" in text
    assert "torque (N m)" in text


def test_names_are_escaped(lift):
    assert not lift.page.tags & {"script", "i"}
    assert HOSTILE in lift.page.text
    assert "<i>bag</i>" in lift.page.text


def test_pages_are_self_contained_and_themed(problem, rippled, still, lift):
    for page in (problem.page, rippled.page, still.page, lift.page):
        assert_self_contained(page)
        assert_themed(page)


def test_fitted_recording_is_refused_as_held_out(problem, tmp_path):
    with pytest.raises(IdentificationError, match="run_1 is among the fitted and among the unseen"):
        write_link_report(tmp_path / "r.html", problem.result, [problem.fitted], [problem.held_out, problem.fitted])


def test_first_tile_is_residual_over_repeatability(problem, tmp_path):
    repetition = link_experiment.record(problem.robot, problem.truth, seed=1, noise_seed=9)
    repetition = replace(repetition, position=repetition.position + 1e-6)
    model = problem.result.model
    repeatability = measure_repeatability(problem.robot, model.signals, [problem.fitted, repetition], model, [1])
    repeated = replace(problem.result, repeatability=repeatability)
    html = write_link_report(tmp_path / "report.html", repeated, [problem.fitted], [repetition]).read_text()
    first = re.search(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html)
    assert first[1] == "Residual over repeatability"
    assert float(first[2].split()[0]) == pytest.approx(repeatability.total_ratio, rel=0.06)
    assert "Repeatability" in Page(html).text
    assert "Residual over repeatability" not in problem.page.text
