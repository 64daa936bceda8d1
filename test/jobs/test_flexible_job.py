"""From recordings to files: flexible joints, against table I of Lightcap and Banks 2007 made uneven."""

from dataclasses import replace

import flexible_experiments as fe
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

ROBOT, TRUTH = pa10.single_joint_robot(2), pa10.table_one(2)
TERMS = ("stiffness", "motor_inertia", "motor_viscous", "link_coulomb", "link_viscous")
TOLERANCES = {
    "stiffness": 0.02,
    "motor_inertia": 0.05,
    "motor_viscous": 0.12,
    "link_coulomb": 0.03,
    "link_viscous": 0.05,
}


def truth():
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


def test_the_file_holds_the_truth(job):
    found = load_identified(job.identified)["flexible_joints"]
    assert list(found) == ["joint_2"]
    for term, value in truth().items():
        assert found["joint_2"][term] == pytest.approx(value, rel=TOLERANCES[term])
        assert found["joint_2"]["decided"][term]


def test_it_predicts_motion_without_links(job):
    (validation,) = load_identified(job.identified)["validation"]
    assert validation["recording"] == "run_2"
    assert validation["r2"]["joint_2"] > 0.999


def test_repeats_are_of_each_recording_alone(job):
    found = {entry["parameter"]: entry for entry in load_identified(job.identified)["repeats"]}
    identification = FlexibleJointIdentification(ROBOT)
    repeats = identification.repeat(*(files.with_encoders(k) for k in (0, 1)), links=[None, None])
    alone = [result.term("stiffness").values[0] for result in repeats]
    assert len(alone) == 2
    assert found["stiffness joint_2"]["mean"] == pytest.approx(np.mean(alone))
    assert found["stiffness joint_2"]["variation"] == pytest.approx(np.std(alone, ddof=1) / np.mean(alone))
    assert found["stiffness joint_2"]["variation"] < 0.02
    assert [name for name, _, _ in repeated(repeats)] == list(job.result.names)


def test_links_that_a_camera_saw(tmp_path):
    job = identify([files.filmed()], tmp_path, mocap=True, markers={"/markers": ROBOT.link_names[0]})
    found = load_identified(job.identified)
    assert found["flexible_joints"]["joint_2"]["stiffness"] == pytest.approx(TRUTH.stiffness, rel=0.03)
    assert found["flexible_recordings"][0]["clock_offset"] == pytest.approx(fe.CLOCK_OFFSET, abs=3e-4)
    assert any("outliers" in remark or "no marker determines" in remark for remark in found["remarks"])
    text = Page(job.report.read_text()).text
    assert "Motion capture" in text
    assert "/markers[3]" in text


@pytest.fixture(name="stiffening", scope="module")
def fixture_stiffening():
    """Joint 2 with a spring that stiffens by half at 1°."""
    growth = 0.5 / np.deg2rad(1.0) ** 2
    series, _ = fe.single_joint_motion(2)

    def spring(deflection):
        return TRUTH.stiffness * (deflection + growth * deflection**3)

    links = integrate(eq_10(TRUTH, series, SMOOTHING, spring), [0.3, 0.0], series.period, 2000)
    time = np.arange(1000) / fe.RATE
    motor, velocity, acceleration = series.at(time)
    link = links.at(time, True)
    torque = spring(motor - link) + TRUTH.motor_inertia * acceleration + TRUTH.motor_viscous * velocity
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((3, *link.shape)) * np.array([2e-4, 0.5, 5e-4])[:, None, None]
    recording = replace(files.with_encoders(), position=motor + noise[0], torque=torque + noise[1])
    return replace(recording, link_position=link + noise[2]), growth


def test_a_spring_that_stiffens_is_found_out(stiffening, tmp_path):
    recording, growth = stiffening
    job = identify([recording], tmp_path, spring="auto")
    entry = load_identified(job.identified)["flexible_joints"]["joint_2"]
    assert entry["spring"] == "cubic"
    assert entry["stiffness"] == pytest.approx(TRUTH.stiffness, rel=0.03)
    assert entry["cubic"] == pytest.approx(growth * TRUTH.stiffness, rel=0.15)
    assert any("joint_2: spring cubic: torque of parts left out is off by" in r for r in job.result.remarks)


def test_bad_input_is_refused(tmp_path):
    recording = files.with_encoders()
    with pytest.raises(IdentificationError, match="only one recording"):
        identify([recording], tmp_path, repeats=True)
    with pytest.raises(RecordingError, match="run_0: it is to be fitted and to be validated on"):
        identify([recording], tmp_path, validate=[recording])
    with pytest.raises(MocapError, match="filmed: nothing determines where the links are; it has poses of /markers"):
        identify([files.filmed()], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_law_that_linear_springs_cannot_stand_for_is_tried(monkeypatch):
    """Where springs stiffen much, a fit of linear ones explains nothing."""
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
