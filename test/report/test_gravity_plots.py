"""The model that the file holds, and the panels that show it against the measurement."""

import numpy as np
import pytest

from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.report.gravity_plots import rotation_plots


def predict(model, samples):
    return model.predict(samples.position, samples.velocity, samples.direction)


@pytest.fixture(name="exact")
def fixture_exact(arm, robot):
    samples = arm.experiment(noise=0)
    return IdentifiedGravity(robot, GravityIdentification(robot).fit_samples(samples).document())


def test_curve_is_the_gravity_torque_and_the_offset(arm, exact):
    q = np.random.default_rng(1).uniform(-2, 2, (50, 4))
    np.testing.assert_allclose(exact.sensor_torque(q), arm.gravity_torque(q) + arm.offset, atol=1e-9)


def test_prediction_includes_friction(arm, exact):
    samples = arm.experiment(noise=0)
    np.testing.assert_allclose(predict(exact, samples), samples.torque, atol=1e-9)


def test_residual_is_of_the_rotating_joint_in_its_rotation(arm, exact):
    samples = arm.experiment(noise=0)
    elbow = [plot.name for plot in rotation_plots(exact, samples, predict(exact, samples))].index("elbow")
    steps = 2 * 8
    rows = slice(2 * steps, 3 * steps)  # third joint of the first pose
    samples.torque[rows, 2] += np.tile([0.3, -0.3], steps // 2)
    samples.torque[rows, 1] += 5.0
    plots = rotation_plots(exact, samples, predict(exact, samples))
    assert plots[elbow].note == "residual 0.30 N m RMS, rotation 1 of 2"
    assert "·10⁻" in plots[elbow + 1].note


def test_prediction_rests_on_nothing_that_is_not_known(robot, arm, document):
    document["gravity"]["wrist"]["observable"] = False
    model = IdentifiedGravity(robot, document)
    q = np.random.default_rng(1).uniform(-2, 2, (20, 4))
    torque = model.sensor_torque(q)
    assert np.isnan(torque[:, 1:]).all()
    np.testing.assert_allclose(torque[:, 0], document["friction"]["waist"]["offset"])
    assert np.isnan(model.moments[-2:]).all()
