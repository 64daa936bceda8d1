"""Test the load job: files, driver settings, validation and refusals."""

from dataclasses import replace

import numpy as np
import pytest
import weighed_loads

from dynid_ros.errors import RecordingError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.load.driver_settings import DRIVER_FILES
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.load import LoadRun, LoadSettings
from dynid_ros.jobs.run import run
from dynid_ros.model.friction import JointFriction

EXPERIMENT = weighed_loads.experiment()
ROBOT = EXPERIMENT.robot
LOAD = EXPERIMENT.load


def weigh(folder, recordings=(EXPERIMENT.loaded,), **settings):
    estimator = LoadRun(ROBOT, LoadSettings(**settings), model=weighed_loads.arm().save(folder / "model.yaml"))
    try:
        return run("load", estimator, {"recordings": recordings}, folder / "out")
    finally:
        (folder / "model.yaml").unlink()


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory):
    return weigh(tmp_path_factory.mktemp("load"))


@pytest.fixture(name="no_report")
def fixture_no_report(monkeypatch):
    """Skip the report, whose plots take long."""
    monkeypatch.setattr("dynid_ros.report.load.write_load_report", lambda path, *_: path)


def test_file_contains_arm_and_load(job):
    document = load_identified(job.identified)
    assert document["links"] == weighed_loads.arm().document()["links"]
    load = document["load"]
    assert load["frame"] == "tool"
    low, high = load["interval"]["mass"]
    assert low < LOAD[0] < high
    assert load["mass"] == pytest.approx(LOAD[0], rel=0.03)
    assert load["center"] == pytest.approx(LOAD[1:4] / LOAD[0], abs=0.005)
    assert load["source"]["recordings"] == ["loaded"]


def test_summary_names_all_files(job):
    folder = job.identified.parent
    assert sorted(path.name for path in folder.iterdir()) == ["drivers", "identified.yaml", "report.html"]
    assert f"wrote {job.identified}, {job.report}" in job.summary()
    assert f"wrote settings for drivers into {folder / 'drivers'}: gravity_compensation_filter.yaml" in job.summary()
    assert {path.name for path in (folder / "drivers").iterdir()} == set(DRIVER_FILES)
    assert sorted(job.document()["drivers"]) == sorted(map(str, (folder / "drivers").iterdir()))
    assert job.document()["load"]["mass"] == job.result.mass


@pytest.mark.slow
def test_arm_is_identified_from_unloaded_recordings(tmp_path, monkeypatch, no_report):
    quick = {"friction": JointFriction(offset=True), "prior_weight": 1.0}
    monkeypatch.setattr(
        "dynid_ros.jobs.load.LinkIdentification",
        lambda robot, **settings: LinkIdentification(robot, **quick, **settings),
    )
    recordings = {"recordings": [EXPERIMENT.loaded], "unloaded": [EXPERIMENT.unloaded]}
    job = run("load", LoadRun(ROBOT), recordings, tmp_path)
    assert job.result.mass == pytest.approx(LOAD[0], rel=0.03)
    assert set(load_identified(job.identified)) >= {"links", "friction", "gravity", "load"}
    assert load_identified(job.identified)["source"]["recordings"] == ["unloaded"]


def test_no_load_removes_earlier_driver_settings(tmp_path, no_report):
    (tmp_path / "out" / "drivers").mkdir(parents=True)
    (tmp_path / "out" / "drivers" / "ur.script").write_text("of an earlier run")
    job = weigh(tmp_path, [replace(weighed_loads.experiment(1).unloaded, source="empty")])
    assert not job.result.is_loaded
    assert not list((tmp_path / "out" / "drivers").iterdir())
    assert "warning: no settings for drivers: no load is shown" in job.summary()
    assert load_identified(job.identified)["load"]["mass"] == 0.0


def test_faulty_recording_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="at rest"):
        weigh(tmp_path, [weighed_loads.record_rests().slice(slice(0, 50))])


def test_held_out_recording_is_predicted(tmp_path, no_report):
    estimator = LoadRun(ROBOT, LoadSettings(), model=weighed_loads.arm().save(tmp_path / "model.yaml"))
    held_out = replace(weighed_loads.record_work(5.0), source="held_out")
    recordings = {"recordings": [EXPERIMENT.loaded], "validate": [held_out]}
    job = run("load", estimator, recordings, tmp_path / "out")
    (validation,) = job.validations
    assert validation.recording == "held_out"
    assert np.linalg.norm(validation.rms) < 0.2 * np.linalg.norm(validation.rms / validation.relative_rms)
    assert load_identified(job.identified)["load"]["validation"][0]["recording"] == "held_out"
    assert len(job.screen().text().splitlines()) <= 25
