"""Prediction of links and torques from motor motion, on held-out motions."""

import flexible_experiments as experiments
import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.recording import Recording

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def other():
    """Return the experiment of a slower motion of joint 2 that was not fitted."""
    experiment = experiments.single_joint(2, 1, base_frequency=0.5, harmonics=9, motion=7)
    return experiments.shorten(experiment, 6.0)


def test_predicts_links_of_another_motion_without_link_sensor(by_camera, other):
    prediction = by_camera.result.predict(other.recording)
    rows = np.searchsorted(other.time, prediction.time + 1e-9) - 1
    settled = prediction.time > prediction.time[0] + 1.5
    error = prediction.link - other.exact[2][rows]
    assert np.sqrt(np.mean(error[settled] ** 2)) < 0.5 * experiments.LINK_NOISE
    assert np.isnan(prediction.measured_link).all()
    deflection = (other.exact[0] - other.exact[2])[rows]
    assert np.sqrt(np.mean(error[settled] ** 2)) < 0.05 * np.sqrt(np.mean(deflection[settled] ** 2))


def test_predicts_torques_of_another_motion(by_camera, other):
    result = by_camera.result
    truth = by_camera.truth
    prediction = result.predict(other.recording)
    rows = np.searchsorted(other.time, prediction.time + 1e-9) - 1
    settled = prediction.time > prediction.time[0] + 1.5
    exact = other.exact[1][rows]
    assert np.sqrt(np.mean((prediction.torque - exact)[settled] ** 2)) < 0.03 * np.sqrt(np.mean(exact**2))
    spring = truth.stiffness * (other.exact[0] - other.exact[2])[rows]
    assert np.sqrt(np.mean((prediction.spring_torque - spring)[settled] ** 2)) < 0.05 * np.sqrt(np.mean(spring**2))
    np.testing.assert_allclose(prediction.deflection, other.exact[0][rows] - prediction.link, atol=3e-4)


def test_validation_of_a_good_model(by_camera, other):
    validation = by_camera.result.validate(other.recording)
    assert validation.recording == "experiment"
    assert validation.relative_rms[0] < 0.05
    assert validation.r2[0] > 0.995


def test_validation_of_a_wrong_model(by_camera):
    """The recording is that of joint 3, with the name of joint 2."""
    wrong = experiments.shorten(experiments.single_joint(3), 4.0).recording
    wrong = Recording(("joint_2",), wrong.time, wrong.position, wrong.velocity, wrong.torque)
    validation = by_camera.result.validate(wrong)
    assert validation.relative_rms[0] > 0.5


def test_result_contains_the_prediction_of_its_recording(by_camera, by_encoders):
    for _, _, result in (by_camera, by_encoders):
        prediction = result.runs[0].prediction
        measured = np.isfinite(prediction.measured_link)
        assert measured.mean() > 0.95
        error = (prediction.link - prediction.measured_link)[measured]
        assert np.sqrt(np.mean(error**2)) == pytest.approx(experiments.LINK_NOISE, rel=0.2)
        assert abs(error.mean()) < 0.1 * experiments.LINK_NOISE


def test_refuses_to_predict_a_joint_that_was_not_recorded(by_camera, other):
    recording = other.recording
    renamed = Recording(("elbow",), recording.time, recording.position, recording.velocity, recording.torque)
    with pytest.raises(DynidError, match="joint_2"):
        by_camera.result.predict(renamed)
