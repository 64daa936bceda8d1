"""Prediction of recordings by several models."""

from dataclasses import replace

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record

from dynid_ros.identification.link_prediction import compare, predict_with
from dynid_ros.identified.links import LinkModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals.driver_filter import DriverFilter

FRICTION = FrictionModel(JointFriction(sliding_length=0.01))


@pytest.mark.parametrize("driver", [None, DriverFilter(5.0, 2)])
def test_joint_prediction_equals_that_of_each_model(driver):
    robot = chain()
    signals = replace(LinkSignals(7.0, 17.5), driver=driver)
    first = LinkModel(robot, robot.parameters, FRICTION, np.tile([1.0, 0.5], 3), signals)
    second = LinkModel(robot, 0.8 * robot.parameters, FRICTION, np.tile([0.7, 0.9], 3), signals)
    recording = record(robot, Fourier(3, size=0.5), Drive(), rate=200.0, duration=8.0)
    prediction = predict_with([first, second], recording)
    assert np.abs(prediction.predicted[0] - prediction.predicted[1]).max() > 0.1
    for model, predicted in zip((first, second), prediction.predicted, strict=True):
        time, measured, alone = compare(model, recording)
        np.testing.assert_array_equal(prediction.time, time)
        np.testing.assert_array_equal(prediction.measured, measured)
        np.testing.assert_allclose(predicted, alone, rtol=0, atol=1e-10)
    assert len(prediction.segments) == 1
