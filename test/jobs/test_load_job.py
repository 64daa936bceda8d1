"""From recordings to files: what an arm carries."""

from dataclasses import replace

import numpy as np
import pytest
import weighed_loads as known

from dynid_ros.errors import RecordingError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.load.driver_settings import DRIVER_FILES
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.load import LoadRun, LoadSettings
from dynid_ros.jobs.run import run
from dynid_ros.model.friction import JointFriction

EXPERIMENT = known.experiment()
ROBOT, LOAD = EXPERIMENT.robot, EXPERIMENT.load


def weigh(folder, recordings=(EXPERIMENT.loaded,), **settings):
    estimator = LoadRun(ROBOT, LoadSettings(**settings), model=known.arm().save(folder / "model.yaml"))
    try:
        return run("load", estimator, {"recordings": recordings}, folder / "out")
    finally:
        (folder / "model.yaml").unlink()


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory):
    return weigh(tmp_path_factory.mktemp("load"))


@pytest.fixture(name="no_report")
def fixture_no_report(monkeypatch):
    """Its pictures take their time."""
    monkeypatch.setattr("dynid_ros.report.load.write_load_report", lambda path, *_: path)


def test_the_file_holds_the_arm_and_the_load(job):
    document = load_identified(job.identified)
    assert document["links"] == known.arm().document()["links"]
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
def test_the_arm_is_identified_from_recordings_without_the_load(tmp_path, monkeypatch, no_report):
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


def test_nothing_carried_leaves_no_settings_not_even_those_of_before(tmp_path, no_report):
    (tmp_path / "out" / "drivers").mkdir(parents=True)
    (tmp_path / "out" / "drivers" / "ur.script").write_text("of before")
    job = weigh(tmp_path, [replace(known.experiment(1).unloaded, source="empty")])
    assert not job.result.is_loaded
    assert not list((tmp_path / "out" / "drivers").iterdir())
    assert "warning: no settings for drivers: no load is shown" in job.summary()
    assert load_identified(job.identified)["load"]["mass"] == 0.0


def test_faults_of_a_recording_stop_it(tmp_path):
    with pytest.raises(RecordingError, match="at rest"):
        weigh(tmp_path, [known.resting().slice(slice(0, 50))])


def test_a_recording_that_was_not_fitted_is_predicted(tmp_path, no_report):
    estimator = LoadRun(ROBOT, LoadSettings(), model=known.arm().save(tmp_path / "model.yaml"))
    unseen = replace(known.at_work(5.0), source="unseen")
    recordings = {"recordings": [EXPERIMENT.loaded], "validate": [unseen]}
    job = run("load", estimator, recordings, tmp_path / "out")
    (validation,) = job.validations
    assert validation.recording == "unseen"
    assert np.linalg.norm(validation.rms) < 0.2 * np.linalg.norm(validation.rms / validation.relative_rms)
    assert load_identified(job.identified)["load"]["validation"][0]["recording"] == "unseen"
    assert len(job.screen().text().splitlines()) <= 25
