"""From a model and a recording to measured beside predicted torque."""

from dataclasses import replace
from functools import cache

import link_experiment as known
import numpy as np
import pytest
import yaml
from gravity_experiment import demo_robot, planned_recording

from dynid_ros.errors import IdentificationError, IdentifiedFileError, RecordingError
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.jobs.prediction import predict
from dynid_ros.recording import Recording

ROBOT, _ = known.build_planar()
TRUTH = 1.3 * ROBOT.parameters
NOISE = 0.05
UNSEEN = known.record(ROBOT, TRUTH, seed=1, noise=NOISE)


@cache
def result():
    return LinkIdentification(ROBOT, friction=known.FRICTION, prior_weight=1.0).fit(known.record(ROBOT, TRUTH))


@pytest.fixture(name="model")
def fixture_model(tmp_path):
    return result().save(tmp_path / "identified.yaml")


def read(path):
    """Names, and columns by name."""
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return names, dict(zip(names, table.T, strict=True))


def test_every_sample_measured_as_recorded_and_predicted_to_its_noise(model, tmp_path):
    later = replace(UNSEEN, time=UNSEEN.time + 3.0)
    job = predict(model, ROBOT, later, tmp_path / "folder" / "pred.csv")
    names, columns = read(job.predicted)
    joints = ROBOT.joint_names
    assert names == ["t", *(f"{joint}_{what}" for joint in joints for what in ("measured", "predicted"))]
    np.testing.assert_allclose(columns["t"], later.time, rtol=1e-11)
    for j, joint in enumerate(joints):
        np.testing.assert_allclose(columns[f"{joint}_measured"], UNSEEN.torque[:, j], rtol=1e-11)
        error = columns[f"{joint}_predicted"] - UNSEEN.torque[:, j]
        assert np.sqrt(np.mean(error[20:-20] ** 2)) < 1.2 * NOISE
    assert job.validation.r2 == pytest.approx(result().validate(UNSEEN).r2)
    assert "low-pass" in job.screen().full()
    assert "R²" in job.screen().full()
    assert job.document()["rms"]["joint_1"] < 1.2 * NOISE


def test_other_joints_in_another_order_do_not_matter(model, tmp_path):
    order = [2, 0, 1, 2]
    more = Recording(
        ("joint_3", "joint_1", "joint_2", "finger"),
        UNSEEN.time,
        *(getattr(UNSEEN, name)[:, order] for name in ("position", "velocity", "torque")),
    )
    predict(model, ROBOT, UNSEEN, tmp_path / "a.csv")
    predict(model, ROBOT, more, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_gap_and_what_was_not_measured_are_nan(model, tmp_path):
    torque = UNSEEN.torque.copy()
    torque[:, 1] = np.nan
    torque[200, 0] = np.nan
    kept = np.r_[0:500, 600:1000]
    job = predict(model, ROBOT, replace(UNSEEN, torque=torque).slice(kept), tmp_path / "pred.csv")
    _, columns = read(job.predicted)
    assert len(columns["t"]) == 900
    assert np.isnan(columns["joint_2_measured"]).all()
    assert np.flatnonzero(np.isnan(columns["joint_1_measured"])).tolist() == [200]
    error = columns["joint_1_predicted"] - UNSEEN.torque[kept, 0]
    assert np.sqrt(np.mean(error[np.r_[20:480, 520:880]] ** 2)) < 1.2 * NOISE
    assert np.isnan(job.validation.rms[1])
    assert job.validation.rms[0] < 5 * NOISE
    assert "sample by sample, nothing filtered: run_1: no torque of joint(s) joint_2" in job.screen().full()


def test_poses_at_rest_are_compared_as_well(model, tmp_path):
    rest = replace(UNSEEN, position=np.tile(UNSEEN.position[:1], (1000, 1)), velocity=np.zeros((1000, 3)))
    rest = replace(rest, torque=np.tile(ROBOT.gravity_torque(rest.position[:1], TRUTH) + known.OFFSET, (1000, 1)))
    job = predict(model, ROBOT, rest, tmp_path / "pred.csv")
    assert np.isnan(job.validation.r2).all()
    assert np.all(job.validation.rms < 0.2)


@cache
def gravity_of_the_demo_arm():
    return GravityIdentification(demo_robot()).fit(planned_recording())


def test_a_gravity_model_predicts_gravity_and_friction(tmp_path):
    robot, recording = demo_robot(), planned_recording(1)
    model = gravity_of_the_demo_arm().save(tmp_path / "identified.yaml")
    job = predict(model, robot, recording, tmp_path / "pred.csv")
    assert "gravity and friction" in job.screen().full()
    _, columns = read(job.predicted)
    assert len(columns["t"]) == recording.n_samples
    # These two carry most; of the others, what their sensors are off by in this recording is a large part.
    assert job.validation.r2[1:3].min() > 0.9
    window = 51
    range_of = np.ptp(np.lib.stride_tricks.sliding_window_view(recording.position, window, axis=0), axis=-1)
    still = np.flatnonzero((range_of < 5e-4).all(axis=1)) + window // 2
    assert len(still) > 500
    true = robot.gravity_torque(recording.position[still])
    for j, joint in enumerate(robot.joint_names[1:], start=1):
        # Friction has no direction at rest; what is left is the offset that the model has learnt.
        difference = columns[f"{joint}_predicted"][still] - true[:, j]
        assert np.ptp(difference) < 0.02 * np.ptp(true[:, j])


def test_joints_that_a_gravity_model_does_not_know_are_nan(tmp_path):
    robot = demo_robot()
    document = gravity_of_the_demo_arm().document()
    document["gravity"]["joint_5"] |= {"observable": False, "torque_free": False, "reason": "it never moved"}
    model = tmp_path / "identified.yaml"
    model.write_text(yaml.safe_dump(document))
    job = predict(model, robot, planned_recording(), tmp_path / "pred.csv")
    _, columns = read(job.predicted)
    assert np.isnan(columns["joint_5_predicted"]).all()
    assert np.isfinite(columns["joint_6_predicted"]).all()
    assert "joint_5: no prediction, it never moved" in job.screen().full()
    assert np.isnan(job.validation.rms[4])


def test_faults_of_the_recording_are_told(model, tmp_path):
    swapped = replace(UNSEEN, position=UNSEEN.position[:, [0, 2, 1]], velocity=UNSEEN.velocity[:, [0, 2, 1]])
    job = predict(model, ROBOT, swapped, tmp_path / "pred.csv")
    assert "error in the recording: run_1" in job.screen().full()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda document: document.pop("links") and document.pop("gravity"), IdentifiedFileError, "neither links nor"),
        (lambda document: document.pop("signals"), IdentifiedFileError, "no section 'signals'"),
        (lambda document: document["robot"].update(joints=["a"]), IdentifiedFileError, "joints"),
    ],
)
def test_files_that_hold_no_model_of_the_robot(change, error, words, model, tmp_path):
    document = yaml.safe_load(model.read_text())
    change(document)
    model.write_text(yaml.safe_dump(document))
    with pytest.raises(error, match=words):
        predict(model, ROBOT, UNSEEN, tmp_path / "pred.csv")
    assert not (tmp_path / "pred.csv").exists()


def test_recordings_without_torque_joints_or_samples(model, tmp_path):
    with pytest.raises(IdentificationError, match="run_1: no torque to compare with"):
        predict(model, ROBOT, replace(UNSEEN, torque=np.full((1000, 3), np.nan)), tmp_path / "pred.csv")
    with pytest.raises(RecordingError, match="lacks joint"):
        predict(model, ROBOT, UNSEEN.select(["joint_1"]), tmp_path / "pred.csv")
    with pytest.raises(IdentificationError, match="only 5 samples"):
        predict(model, ROBOT, UNSEEN.slice(slice(0, 5)), tmp_path / "pred.csv")
