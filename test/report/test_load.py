"""Test the report on a load: mass, center, torque of the load, undetermined inertia, tare and wrenches."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import weighed_loads
import wrench_experiments
from html_page import HOSTILE, Page, assert_self_contained, assert_themed
from pictures import unrendered

from dynid_ros.identification import LoadIdentification
from dynid_ros.identification.load.driver_settings import driver_settings
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.report.load import LoadEvidence, load_part, load_views, write_load_report
from dynid_ros.signals import LowPass

EXPERIMENT = weighed_loads.experiment()
ROBOT = EXPERIMENT.robot
LOAD = EXPERIMENT.load
UNDETERMINED_INERTIA = "The motion does not determine its inertia"


def collect_evidence(identification, result, recordings):
    problem = identification.problem(*recordings)
    return LoadEvidence.from_equations(problem.equations, problem.columns, result, identification.tare)


def identify_load(recording=EXPERIMENT.loaded, **settings):
    """Return the identified load and its evidence."""
    identification = LoadIdentification(ROBOT, weighed_loads.arm().known_arm, **settings)
    result = identification.fit(recording)
    return result, collect_evidence(identification, result, [recording])


@unrendered()
def write_page_without_plots(folder, result, evidence):
    return write_page(folder, result, evidence)


def write_page(folder, result, evidence, drivers=None):
    """Write the report and return its page."""
    return Page(
        write_load_report(folder / "new" / "report.html", result, evidence, drivers).read_text(encoding="utf-8")
    )


@pytest.fixture(name="moving", scope="module")
def fixture_moving():
    return identify_load(replace(EXPERIMENT.loaded, source=HOSTILE))


@pytest.fixture(name="page", scope="module")
def fixture_page(moving, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("report"), *moving, driver_settings(moving[0]))


def test_page_is_self_contained_and_themed(page):
    assert_self_contained(page)
    assert_themed(page)


def test_reports_mass_interval_and_names(moving, page):
    result = moving[0]
    sentence = re.search(r"The arm carries ([\d.]+) kg \(95 %: ([\d.]+) to ([\d.]+) kg\) at tool", page.text)
    numbers = [result.mass, *result.confidence_intervals()[0]]
    assert [float(number) for number in sentence.groups()] == pytest.approx(numbers, abs=0.006)
    assert HOSTILE in page.text
    for name in ROBOT.joint_names:
        assert f"offset {name}" in page.text
    for text in driver_settings(result).values():
        assert " ".join(text.split()) in page.text


def test_intervals_of_the_table_contain_the_true_load(moving):
    table = load_part(moving[0].document()).sections[0].parts[1]
    rows = {row[0]: row for row in table.rows}
    truth = {"Mass": LOAD[0]} | {f"Centre {a}": 1e3 * c / LOAD[0] for a, c in zip("xyz", LOAD[1:4], strict=True)}
    for name, true in truth.items():
        value, unit = rows[name][1].replace("−", "-").split()
        low, high = map(float, re.findall(r"-?[\d.]+", rows[name][2].replace("−", "-")))
        assert abs(float(value) - true) < 0.75 * (high - low)
        assert abs((low + high) / 2 - true) < 0.75 * (high - low)
        assert unit == ("kg" if name == "Mass" else "mm")
    assert len(rows) == 1 + 3 + 6 + 3


def test_evidence_matches_the_load_torque_of_mujoco(moving):
    """The reference is MuJoCo's torque with minus without the load, after the same low-pass filter."""
    result, evidence = moving
    loaded, unloaded = (weighed_loads.drive_torque(EXPERIMENT, load) for load in (LOAD, None))
    cutoff = weighed_loads.arm().model.signals.cutoff
    recording = EXPERIMENT.loaded
    true = LowPass(cutoff, 100.0).filter(loaded - unloaded)
    expected = np.stack([np.interp(evidence.time, recording.time, column) for column in true.T], axis=1)
    scale = np.sqrt(np.mean(expected**2, axis=0))
    for torque, share in ((evidence.load, 0.05), (evidence.measured, 0.1)):
        assert np.all(np.sqrt(np.mean((torque - expected) ** 2, axis=0)) < share * scale)
    # The plot shows all samples, whereas the fit weights samples at standstill and at reversals less.
    ratio = evidence.residual_rms / result.residual_rms
    assert np.all(ratio > 0.7)
    assert np.count_nonzero(ratio < 1.3) >= 5


def test_undetermined_inertia_is_reported_as_such(moving, page):
    """Five seconds of joint torque do not determine the inertia; the wrist sensor below does."""
    assert (moving[0].possible.moment_errors > moving[0].possible.moments).all()
    assert UNDETERMINED_INERTIA in page.text


def test_dwells_determine_no_inertia(tmp_path):
    page = write_page_without_plots(tmp_path, *identify_load(weighed_loads.record_rests(), motion="static"))
    assert "Its inertia is not known" in page.text
    assert "Each point is a dwell." in page.text
    assert "Principal" not in page.text


@pytest.mark.parametrize(("unknown", "views"), [((3,), ["along z"]), ((0, 1, 2, 3), [])])
def test_views_need_both_coordinates_of_the_center(moving, unknown, views):
    result = moving[0]
    parameters = moving[0].parameters.copy()
    parameters[list(unknown)] = np.nan
    fields = {name: getattr(result, name) for name in ("is_loaded", "mass", "body", "estimate", "frame")}
    part = SimpleNamespace(**fields, parameters=parameters, center=parameters[1:4] / parameters[0])
    assert list(load_views(part)) == views


def test_no_load_is_reported_without_driver_settings(tmp_path):
    result, evidence = identify_load(weighed_loads.experiment(1).unloaded)
    page = write_page_without_plots(tmp_path, result, evidence)
    assert "No load is measured at tool" in page.text
    assert "there is no load that a driver could be given" in page.text
    assert load_views(result) == {}
    assert not evidence.load.any()


def test_undetermined_mass_is_reported_without_number(tmp_path):
    page = write_page_without_plots(tmp_path, *identify_load(weighed_loads.record_rests(turning=(0,)), motion="static"))
    assert "do not determine the mass of the load" in page.text
    assert "nan" not in page.text


def test_tare_is_subtracted_from_measured_and_load_torque():
    tare = LoadIdentification(ROBOT, weighed_loads.arm().known_arm).fit(EXPERIMENT.loaded)
    _, evidence = identify_load(tare=tare)
    assert not evidence.load.any()
    _, untared = identify_load()
    assert np.abs(evidence.measured).max() < 0.2 * np.abs(untared.measured).max()


@pytest.mark.slow
def test_wrench_evidence_excludes_bias_and_sensor_load(tmp_path):
    motion = wrench_experiments.carried_motion("demo", 10.0, 0)
    recording = motion.record(wrench_experiments.FT_300, np.random.default_rng(0))
    identification = LoadIdentification(motion.robot, sensor=WrenchSource())
    result = identification.fit(recording)
    evidence = collect_evidence(identification, result, [recording])
    page = write_page(tmp_path, result, evidence)
    for words in ("Wrench of the load", "force x", "torque z", "Measured wrench minus the bias"):
        assert words in page.text
    assert UNDETERMINED_INERTIA not in page.text
    assert np.all(evidence.explained > 0.99)
    true = np.stack([np.interp(evidence.time, motion.time, column) for column in motion.wrench.T], axis=1)
    size = np.sqrt(np.mean(true.reshape(-1, 2, 3) ** 2, axis=(0, 2))).repeat(3)
    # The measured wrench is the negative of the wrench that the load exerts on the sensor.
    assert np.all(np.sqrt(np.mean((evidence.measured + true) ** 2, axis=0)) < 0.05 * size)
