"""Test the flexible-joint job against table I of Lightcap and Banks (2007)."""

from dataclasses import replace

import flexible_experiments
import flexible_joint_files as files
import numpy as np
import pa10
import pytest
from flexible_link import eq_10
from flexible_motion import SMOOTHING, integrate
from html_page import Page

from dynid_ros.errors import IdentificationError, MocapError, RecordingError
from dynid_ros.identification.flexible import FlexibleJointIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.flexible_joints import FlexibleRun, FlexibleSettings, _first_fit, repeated
from dynid_ros.jobs.run import run

pytestmark = pytest.mark.slow

ROBOT = pa10.single_joint_robot(2)
TRUTH = pa10.table_one(2)
TERMS = ("stiffness", "motor_inertia", "motor_viscous", "link_coulomb", "link_viscous")
TOLERANCES = {
    "stiffness": 0.02,
    "motor_inertia": 0.05,
    "motor_viscous": 0.12,
    "link_coulomb": 0.03,
    "link_viscous": 0.05,
}


def true_parameters():
    """Return the true parameters of joint 2."""
    return dict(zip(TERMS, (getattr(TRUTH, term.removeprefix("link_")) for term in TERMS), strict=True))


def identify(recordings, folder, *, repeats=False, validate=(), **settings):
    fit = FlexibleJointIdentification(ROBOT)
    estimator = FlexibleRun(ROBOT, fit, settings=FlexibleSettings(repeats=repeats), **{"mocap": False} | settings)
    return run("flexible", estimator, {"recordings": recordings, "validate": validate}, folder)


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory):
    recordings = [files.with_encoders(k) for k in (0, 1)]
    unseen = replace(files.with_encoders(2), link_position=None)
    return identify(recordings, tmp_path_factory.mktemp("out"), validate=[unseen], repeats=True)


def test_file_contains_the_true_parameters(job):
    joints = load_identified(job.identified)["flexible_joints"]
    assert list(joints) == ["joint_2"]
    for term, value in true_parameters().items():
        assert joints["joint_2"][term] == pytest.approx(value, rel=TOLERANCES[term])
        assert joints["joint_2"]["decided"][term]


def test_recording_without_links_is_predicted(job):
    (validation,) = load_identified(job.identified)["validation"]
    assert validation["recording"] == "run_2"
    assert validation["r2"]["joint_2"] > 0.999


def test_repeats_fit_each_recording_alone(job):
    entries = {entry["parameter"]: entry for entry in load_identified(job.identified)["repeats"]}
    identification = FlexibleJointIdentification(ROBOT)
    repeats = identification.repeat(*(files.with_encoders(k) for k in (0, 1)), links=[None, None])
    stiffness = [result.term("stiffness").values[0] for result in repeats]
    assert len(stiffness) == 2
    assert entries["stiffness joint_2"]["mean"] == pytest.approx(np.mean(stiffness))
    assert entries["stiffness joint_2"]["variation"] == pytest.approx(np.std(stiffness, ddof=1) / np.mean(stiffness))
    assert entries["stiffness joint_2"]["variation"] < 0.02
    assert [name for name, _, _ in repeated(repeats)] == list(job.result.names)


def test_links_are_measured_by_a_camera(tmp_path):
    job = identify([files.record_markers()], tmp_path, mocap=True, markers={"/markers": ROBOT.link_names[0]})
    document = load_identified(job.identified)
    assert document["flexible_joints"]["joint_2"]["stiffness"] == pytest.approx(TRUTH.stiffness, rel=0.03)
    assert document["flexible_recordings"][0]["clock_offset"] == pytest.approx(
        flexible_experiments.CLOCK_OFFSET, abs=3e-4
    )
    assert any("outliers" in remark or "no marker determines" in remark for remark in document["remarks"])
    text = Page(job.report.read_text()).text
    assert "Motion capture" in text
    assert "/markers[3]" in text


@pytest.fixture(name="stiffening", scope="module")
def fixture_stiffening():
    """Simulate joint 2 with a spring that is 1.5 times stiffer at 1°; return recording and growth in 1/rad²."""
    growth = 0.5 / np.deg2rad(1.0) ** 2
    series, _ = flexible_experiments.single_joint_motion(2)

    def spring(deflection):
        return TRUTH.stiffness * (deflection + growth * deflection**3)

    links = integrate(eq_10(TRUTH, series, SMOOTHING, spring), [0.3, 0.0], series.period, 2000)
    time = np.arange(1000) / flexible_experiments.RATE
    motor, velocity, acceleration = series.at(time)
    link = links.at(time, True)
    torque = spring(motor - link) + TRUTH.motor_inertia * acceleration + TRUTH.motor_viscous * velocity
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((3, *link.shape)) * np.array([2e-4, 0.5, 5e-4])[:, None, None]
    recording = replace(files.with_encoders(), position=motor + noise[0], torque=torque + noise[1])
    return replace(recording, link_position=link + noise[2]), growth


def test_cubic_spring_is_selected(stiffening, tmp_path):
    recording, growth = stiffening
    job = identify([recording], tmp_path, spring="auto")
    entry = load_identified(job.identified)["flexible_joints"]["joint_2"]
    assert entry["spring"] == "cubic"
    assert entry["stiffness"] == pytest.approx(TRUTH.stiffness, rel=0.03)
    assert entry["cubic"] == pytest.approx(growth * TRUTH.stiffness, rel=0.15)
    assert any("joint_2: spring cubic: torque of parts left out is off by" in r for r in job.result.remarks)


def test_invalid_recordings_are_refused(tmp_path):
    recording = files.with_encoders()
    with pytest.raises(IdentificationError, match="only one recording"):
        identify([recording], tmp_path, repeats=True)
    with pytest.raises(RecordingError, match="run_0: it is to be fitted and to be validated on"):
        identify([recording], tmp_path, validate=[recording])
    with pytest.raises(MocapError, match="filmed: nothing determines where the links are; it has poses of /markers"):
        identify([files.record_markers()], tmp_path)
    assert not list(tmp_path.iterdir())


def test_spring_law_is_tried_after_a_failed_linear_fit(monkeypatch):
    tried = []

    def fit(self, *recordings, links):
        tried.append(self.spring)
        if self.spring == "linear":
            raise IdentificationError("run_0: the best fit leaves 178% of joint 'joint_2's torque unexplained")
        return "a result"

    monkeypatch.setattr(FlexibleJointIdentification, "fit", fit)
    identification, result = _first_fit(FlexibleJointIdentification(ROBOT), [], [], ["linear", "cubic", "dead_zone"])
    assert result == "a result"
    assert identification.spring == "cubic"
    with pytest.raises(IdentificationError, match="leaves 178%"):
        _first_fit(FlexibleJointIdentification(ROBOT), [], [], ["linear"])
    assert tried == ["linear", "cubic", "linear"]
