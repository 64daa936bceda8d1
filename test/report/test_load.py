"""The report on a load as a reader gets it: what it says, of which data, and what it does not claim."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import weighed_loads as known
import wrench_experiments
from html_page import HOSTILE, Page, assert_self_contained, assert_themed
from pictures import unrendered

from dynid_ros.identification import LoadIdentification
from dynid_ros.identification.load.driver_settings import driver_settings
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.report.load import LoadEvidence, load_part, load_views, write_load_report
from dynid_ros.signals import LowPass

EXPERIMENT = known.experiment()
ROBOT, LOAD = EXPERIMENT.robot, EXPERIMENT.load
GUESS = "The motion does not determine its inertia"


def evidence(identification, result, recordings):
    problem = identification.problem(*recordings)
    return LoadEvidence.from_equations(problem.equations, problem.columns, result, identification.tare)


def found(recording=EXPERIMENT.loaded, **settings):
    identification = LoadIdentification(ROBOT, known.arm().known_arm, **settings)
    result = identification.fit(recording)
    return result, evidence(identification, result, [recording])


@unrendered()
def plain(folder, result, shown):
    return written(folder, result, shown)


def written(folder, result, shown, drivers=None):
    return Page(write_load_report(folder / "new" / "report.html", result, shown, drivers).read_text(encoding="utf-8"))


@pytest.fixture(name="moving", scope="module")
def fixture_moving():
    return found(replace(EXPERIMENT.loaded, source=HOSTILE))


@pytest.fixture(name="page", scope="module")
def fixture_page(moving, tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), *moving, driver_settings(moving[0]))


def test_it_is_one_page_that_follows_the_theme(page):
    assert_self_contained(page)
    assert_themed(page)


def test_it_says_what_is_carried(moving, page):
    result = moving[0]
    said = re.search(r"The arm carries ([\d.]+) kg \(95 %: ([\d.]+) to ([\d.]+) kg\) at tool", page.text)
    numbers = [result.mass, *result.confidence_intervals()[0]]
    assert [float(number) for number in said.groups()] == pytest.approx(numbers, abs=0.006)
    assert HOSTILE in page.text
    for name in ROBOT.joint_names:
        assert f"offset {name}" in page.text
    for text in driver_settings(result).values():
        assert " ".join(text.split()) in page.text


def test_rows_hold_the_truth(moving):
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


def test_the_evidence_is_the_torque_of_the_load(moving):
    """Against MuJoCo's torques with and without the load, through the same low-pass."""
    result, shown = moving
    loaded, unloaded = (known.drive_torque(EXPERIMENT, load) for load in (LOAD, None))
    cutoff, own = known.arm().model.signals.cutoff, EXPERIMENT.loaded
    true = LowPass(cutoff, 100.0).filter(loaded - unloaded)
    there = np.stack([np.interp(shown.time, own.time, column) for column in true.T], axis=1)
    scale = np.sqrt(np.mean(there**2, axis=0))
    for seen, share in ((shown.load, 0.05), (shown.measured, 0.1)):
        assert np.all(np.sqrt(np.mean((seen - there) ** 2, axis=0)) < share * scale)
    # Shown are all samples; the result counts those less in which a joint stands or sets off.
    ratio = shown.residual_rms / result.residual_rms
    assert np.all(ratio > 0.7)
    assert np.count_nonzero(ratio < 1.3) >= 5


def test_an_inertia_that_is_a_guess_is_called_one(moving, page):
    """In motion of five seconds; a wrist sensor, below, knows better."""
    assert (moving[0].possible.moment_errors > moving[0].possible.moments).all()
    assert GUESS in page.text


def test_rests(tmp_path):
    page = plain(tmp_path, *found(known.resting(), motion="static"))
    assert "Its inertia is not known" in page.text
    assert "Each point is a dwell." in page.text
    assert "Principal" not in page.text


@pytest.mark.parametrize(("unknown", "seen"), [((3,), ["along z"]), ((0, 1, 2, 3), [])])
def test_views_are_those_along_which_the_centre_is_known(moving, unknown, seen):
    result, parameters = moving[0], moving[0].parameters.copy()
    parameters[list(unknown)] = np.nan
    given = {name: getattr(result, name) for name in ("is_loaded", "mass", "body", "estimate", "frame")}
    part = SimpleNamespace(**given, parameters=parameters, center=parameters[1:4] / parameters[0])
    assert list(load_views(part)) == seen


def test_no_load(tmp_path):
    result, shown = found(known.experiment(1).unloaded)
    page = plain(tmp_path, result, shown)
    assert "No load is measured at tool" in page.text
    assert "there is no load that a driver could be given" in page.text
    assert load_views(result) == {}
    assert not shown.load.any()


def test_a_mass_that_is_not_shown(tmp_path):
    page = plain(tmp_path, *found(known.resting(turning=(0,)), motion="static"))
    assert "do not determine the mass of the load" in page.text
    assert "nan" not in page.text


def test_a_tare_is_neither_measured_nor_load():
    tare = LoadIdentification(ROBOT, known.arm().known_arm).fit(EXPERIMENT.loaded)
    _, shown = found(tare=tare)
    assert not shown.load.any()
    _, whole = found()
    assert np.abs(shown.measured).max() < 0.2 * np.abs(whole.measured).max()


@pytest.mark.slow
def test_a_wrench(tmp_path):
    """Bias and all that is the sensor's are neither measured nor load."""
    motion = wrench_experiments.carried_motion("demo", 10.0, 0)
    recording = motion.record(wrench_experiments.FT_300, np.random.default_rng(0))
    identification = LoadIdentification(motion.robot, sensor=WrenchSource())
    result = identification.fit(recording)
    shown = evidence(identification, result, [recording])
    page = written(tmp_path, result, shown)
    for words in ("Wrench of the load", "force x", "torque z", "Measured wrench minus the bias"):
        assert words in page.text
    assert GUESS not in page.text
    assert np.all(shown.explained > 0.99)
    true = np.stack([np.interp(shown.time, motion.time, column) for column in motion.wrench.T], axis=1)
    size = np.sqrt(np.mean(true.reshape(-1, 2, 3) ** 2, axis=(0, 2))).repeat(3)
    # what is read is what the load does to the sensor
    assert np.all(np.sqrt(np.mean((shown.measured + true) ** 2, axis=0)) < 0.05 * size)
