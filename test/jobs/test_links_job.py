"""Test the link job: files, validation, warnings, refusals and repeated motion."""

from dataclasses import replace

import link_experiment
import numpy as np
import pytest
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import RecordingError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.jobs.prediction import predict
from dynid_ros.jobs.run import run
from dynid_ros.model import RobotModel

ROBOT, _ = link_experiment.build_planar()
TRUTH = 1.3 * ROBOT.parameters
FITTED = link_experiment.record(ROBOT, TRUTH)
HELD_OUT = link_experiment.record(ROBOT, TRUTH, seed=1)
QUICK_FIT = {"friction": link_experiment.FRICTION, "prior_weight": 1.0}


def identify(recordings, folder):
    return run("links", LinkIdentification(ROBOT, **QUICK_FIT), recordings, folder)


def test_urdf_has_the_true_torque_in_pinocchio(tmp_path, capfd):
    job = identify({"recordings": [FITTED], "validate": [HELD_OUT]}, tmp_path)
    document = load_identified(job.identified)
    assert document["validation"][0]["recording"] == "run_1"
    assert min(document["validation"][0]["r2"].values()) > 0.99
    assert link_model(document, ROBOT).coefficients == pytest.approx(job.result.model.coefficients)
    assert job.files["urdf"] == tmp_path / "identified.urdf"
    assert job.report.read_text().count("joint_2") > 3
    for words in ("Validation on run_1", "joint_3", f"wrote {job.identified}, {job.files['urdf']}, {job.report}"):
        assert words in job.summary()
    assert job.document()["links"] == document["links"]
    assert capfd.readouterr().err == ""
    arm = PinocchioArm(job.files["urdf"].read_text(), ROBOT.joint_names, ROBOT.gravity)
    q, qd, qdd = np.random.default_rng(2).uniform(-1, 1, (3, 100, 3))
    identified = np.array([arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])
    true, nominal = (ROBOT.inverse_dynamics(q, qd, qdd, parameters) for parameters in (TRUTH, None))
    error, before = (np.sqrt(np.mean((torque - true) ** 2, axis=0)) for torque in (identified, nominal))
    assert np.all(error < 0.1 * before)


def test_robot_without_urdf_gives_no_identified_urdf(tmp_path):
    (tmp_path / "identified.urdf").write_text("of an earlier run")
    robot = RobotModel(ROBOT.chain, ROBOT.parameters, ROBOT.gravity)
    job = run("links", LinkIdentification(robot, **QUICK_FIT), {"recordings": [FITTED]}, tmp_path)
    assert "urdf" not in job.files
    assert not (tmp_path / "identified.urdf").exists()
    assert "no URDF: " in job.summary()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["identified.yaml", "report.html"]


def test_impossible_links_give_no_urdf(tmp_path):
    identification = LinkIdentification(ROBOT, friction=link_experiment.FRICTION, estimator="weighted")
    impossible = TRUTH.copy()
    impossible[[19, 29]] = -0.5
    job = run("links", identification, {"recordings": [link_experiment.record(ROBOT, impossible)]}, tmp_path)
    assert "urdf" not in job.files
    assert "use the estimator 'consistent'" in job.summary()
    assert job.identified.exists()


@pytest.mark.parametrize("faulty", [0, 1])
def test_faulty_recording_stops_the_job_before_the_fit(faulty, tmp_path, monkeypatch):
    monkeypatch.setattr(LinkIdentification, "fit", lambda self, *recordings: pytest.fail("it fits"))
    recordings = [FITTED, HELD_OUT]
    recordings[faulty] = replace(recordings[faulty], torque=np.full_like(FITTED.torque, np.nan))
    with pytest.raises(RecordingError, match=f"run_{faulty}: no torque was recorded"):
        identify({"recordings": recordings[:1], "validate": recordings[1:]}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_fitted_recording_is_refused_for_validation(tmp_path):
    with pytest.raises(RecordingError, match="run_0: it is to be fitted and to be validated on"):
        identify({"recordings": [FITTED], "validate": [HELD_OUT, replace(FITTED)]}, tmp_path)


def test_warnings_are_in_summary_and_document(tmp_path):
    torque = FITTED.torque.copy()
    torque[100:120, 1] = np.nan
    job = identify({"recordings": [replace(FITTED, torque=torque)]}, tmp_path)
    assert "warning: run_0, joint 'joint_2': its torque is NaN in 20 of 1000 samples" in job.summary()
    assert "NaN in 20 of 1000" in job.document()["warnings"][0]


def test_repeated_motion_gives_the_repeatability(tmp_path):
    repetition = link_experiment.record(ROBOT, TRUTH, noise_seed=5)
    repetition = replace(
        repetition, position=repetition.position + 1e-6, time=repetition.time + 0.7, source="repetition"
    )
    job = identify({"recordings": [FITTED], "validate": [repetition]}, tmp_path)
    section = load_identified(job.identified)["repeatability"]
    assert section["ratio"] == pytest.approx(1.0, abs=0.3)
    assert section["ratio_interval"][0] < 1.0 < section["ratio_interval"][1]
    assert "times the floor of one run" in job.screen().text()
    assert "× floor" in job.screen().text()
    channels = ("position", "velocity", "torque")
    joined = {name: np.concatenate([getattr(FITTED, name), getattr(repetition, name)]) for name in channels}
    whole = replace(FITTED, time=np.concatenate([FITTED.time, 10 + FITTED.time]), **joined)
    predicted = predict(job.identified, ROBOT, whole, tmp_path / "predicted.csv")
    assert predicted.document()["repeatability"]["seconds"] > 5
    assert any("times the floor of one run" in line for line in predicted.screen().remarks)
