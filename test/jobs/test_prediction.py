"""Test the prediction job: measured and predicted torque of a recording by an identified model."""

from dataclasses import replace
from functools import cache

import link_experiment
import numpy as np
import pytest
import yaml
from gravity_experiment import demo_robot, planned_recording

from dynid_ros.errors import IdentificationError, IdentifiedFileError, RecordingError
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.jobs.prediction import predict
from dynid_ros.recording import Recording

ROBOT, _ = link_experiment.build_planar()
TRUTH = 1.3 * ROBOT.parameters
NOISE_NM = 0.05
HELD_OUT = link_experiment.record(ROBOT, TRUTH, seed=1, noise=NOISE_NM)


@cache
def identify_planar():
    return LinkIdentification(ROBOT, friction=link_experiment.FRICTION, prior_weight=1.0).fit(
        link_experiment.record(ROBOT, TRUTH)
    )


@pytest.fixture(name="model")
def fixture_model(tmp_path):
    return identify_planar().save(tmp_path / "identified.yaml")


def read_table(path):
    """Return the column names, and the columns by name."""
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return names, dict(zip(names, table.T, strict=True))


def test_samples_are_predicted_up_to_their_noise(model, tmp_path):
    shifted = replace(HELD_OUT, time=HELD_OUT.time + 3.0)
    job = predict(model, ROBOT, shifted, tmp_path / "folder" / "pred.csv")
    names, columns = read_table(job.predicted)
    joints = ROBOT.joint_names
    assert names == ["t", *(f"{joint}_{kind}" for joint in joints for kind in ("measured", "predicted"))]
    np.testing.assert_allclose(columns["t"], shifted.time, rtol=1e-11)
    for j, joint in enumerate(joints):
        np.testing.assert_allclose(columns[f"{joint}_measured"], HELD_OUT.torque[:, j], rtol=1e-11)
        error = columns[f"{joint}_predicted"] - HELD_OUT.torque[:, j]
        assert np.sqrt(np.mean(error[20:-20] ** 2)) < 1.2 * NOISE_NM
    assert job.validation.r2 == pytest.approx(identify_planar().validate(HELD_OUT).r2)
    assert "low-pass" in job.screen().full()
    assert "R²" in job.screen().full()
    assert job.document()["rms"]["joint_1"] < 1.2 * NOISE_NM


def test_order_and_other_joints_do_not_matter(model, tmp_path):
    order = [2, 0, 1, 2]
    reordered = Recording(
        ("joint_3", "joint_1", "joint_2", "finger"),
        HELD_OUT.time,
        *(getattr(HELD_OUT, name)[:, order] for name in ("position", "velocity", "torque")),
    )
    predict(model, ROBOT, HELD_OUT, tmp_path / "a.csv")
    predict(model, ROBOT, reordered, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_gaps_and_missing_torque_are_nan(model, tmp_path):
    torque = HELD_OUT.torque.copy()
    torque[:, 1] = np.nan
    torque[200, 0] = np.nan
    kept = np.r_[0:500, 600:1000]
    job = predict(model, ROBOT, replace(HELD_OUT, torque=torque).slice(kept), tmp_path / "pred.csv")
    _, columns = read_table(job.predicted)
    assert len(columns["t"]) == 900
    assert np.isnan(columns["joint_2_measured"]).all()
    assert np.flatnonzero(np.isnan(columns["joint_1_measured"])).tolist() == [200]
    error = columns["joint_1_predicted"] - HELD_OUT.torque[kept, 0]
    assert np.sqrt(np.mean(error[np.r_[20:480, 520:880]] ** 2)) < 1.2 * NOISE_NM
    assert np.isnan(job.validation.rms[1])
    assert job.validation.rms[0] < 5 * NOISE_NM
    assert "sample by sample, nothing filtered: run_1: no torque of joint(s) joint_2" in job.screen().full()


def test_poses_at_rest_are_predicted(model, tmp_path):
    rest = replace(HELD_OUT, position=np.tile(HELD_OUT.position[:1], (1000, 1)), velocity=np.zeros((1000, 3)))
    rest = replace(
        rest, torque=np.tile(ROBOT.gravity_torque(rest.position[:1], TRUTH) + link_experiment.OFFSET, (1000, 1))
    )
    job = predict(model, ROBOT, rest, tmp_path / "pred.csv")
    assert np.isnan(job.validation.r2).all()
    assert np.all(job.validation.rms < 0.2)


@cache
def identify_demo_gravity():
    return GravityIdentification(demo_robot()).fit(planned_recording())


def test_gravity_model_predicts_gravity_and_friction(tmp_path):
    robot = demo_robot()
    recording = planned_recording(1)
    model = identify_demo_gravity().save(tmp_path / "identified.yaml")
    job = predict(model, robot, recording, tmp_path / "pred.csv")
    assert "gravity and friction" in job.screen().full()
    _, columns = read_table(job.predicted)
    assert len(columns["t"]) == recording.n_samples
    # These two joints carry most; in the others the sensor errors are a large part.
    assert job.validation.r2[1:3].min() > 0.9
    window = 51
    position_range = np.ptp(np.lib.stride_tricks.sliding_window_view(recording.position, window, axis=0), axis=-1)
    still = np.flatnonzero((position_range < 5e-4).all(axis=1)) + window // 2
    assert len(still) > 500
    true = robot.gravity_torque(recording.position[still])
    for j, joint in enumerate(robot.joint_names[1:], start=1):
        # Friction has no direction at rest; the identified offset remains.
        difference = columns[f"{joint}_predicted"][still] - true[:, j]
        assert np.ptp(difference) < 0.02 * np.ptp(true[:, j])


def test_unobservable_joints_of_a_gravity_model_are_nan(tmp_path):
    robot = demo_robot()
    document = identify_demo_gravity().document()
    document["gravity"]["joint_5"] |= {"observable": False, "torque_free": False, "reason": "it never moved"}
    model = tmp_path / "identified.yaml"
    model.write_text(yaml.safe_dump(document))
    job = predict(model, robot, planned_recording(), tmp_path / "pred.csv")
    _, columns = read_table(job.predicted)
    assert np.isnan(columns["joint_5_predicted"]).all()
    assert np.isfinite(columns["joint_6_predicted"]).all()
    assert "joint_5: no prediction, it never moved" in job.screen().full()
    assert np.isnan(job.validation.rms[4])


def test_faults_of_the_recording_are_reported(model, tmp_path):
    swapped = replace(HELD_OUT, position=HELD_OUT.position[:, [0, 2, 1]], velocity=HELD_OUT.velocity[:, [0, 2, 1]])
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
def test_files_without_a_model_of_the_robot_are_refused(change, error, words, model, tmp_path):
    document = yaml.safe_load(model.read_text())
    change(document)
    model.write_text(yaml.safe_dump(document))
    with pytest.raises(error, match=words):
        predict(model, ROBOT, HELD_OUT, tmp_path / "pred.csv")
    assert not (tmp_path / "pred.csv").exists()


def test_recordings_without_torque_joints_or_samples_are_refused(model, tmp_path):
    with pytest.raises(IdentificationError, match="run_1: no torque to compare with"):
        predict(model, ROBOT, replace(HELD_OUT, torque=np.full((1000, 3), np.nan)), tmp_path / "pred.csv")
    with pytest.raises(RecordingError, match="lacks joint"):
        predict(model, ROBOT, HELD_OUT.select(["joint_1"]), tmp_path / "pred.csv")
    with pytest.raises(IdentificationError, match="only 5 samples"):
        predict(model, ROBOT, HELD_OUT.slice(slice(0, 5)), tmp_path / "pred.csv")
