"""Compare predicted torques with Pinocchio's, by sample and through the low-pass."""

from functools import partial

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, distort, record, rigid_torque, ur10, with_links

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification.link_prediction import compare, validate
from dynid_ros.identified.links import LinkModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals import LowPass

SIGNALS = LinkSignals(7.0, 17.5)
DRIVE = Drive(rotor=0.3, smoothing=0.1, stribeck=0.4)
FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.1, stribeck_velocity=0.3)
COEFFICIENTS = [1.0, 0.5, 0.4, 0.2, 0.3]
MOTION = Fourier(3, size=0.5)


@pytest.fixture(name="model", scope="module")
def fixture_model():
    """Return the true links in an arm whose URDF has other inertial parameters, which must not be used."""
    return LinkModel(distort(chain()), chain().parameters, FrictionModel(FRICTION), np.tile(COEFFICIENTS, 3), SIGNALS)


def compute_relative_error(predicted, true):
    """Return the RMS error of each column relative to its RMS."""
    return np.sqrt(np.mean((predicted - true) ** 2, axis=0) / np.mean(true**2, axis=0))


def test_predicted_torque_matches_pinocchio_plus_friction(model):
    motion = MOTION(np.linspace(0, 5, 60))
    expected = rigid_torque(chain(), *motion) + DRIVE.torque(*motion[1:])
    np.testing.assert_allclose(model.predict(*motion), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict(*(values.tolist() for values in motion)), expected, atol=1e-9)


def test_predicted_torque_includes_coupling():
    robot = ur10()
    friction = FrictionModel(JointFriction.none(), [(4, 5)])
    model = LinkModel(robot, robot.parameters, friction, np.array([0.7, 0.2, 1.5]), SIGNALS)
    q, qd, qdd = Fourier(6)(np.linspace(0, 5, 60))
    expected = rigid_torque(robot, q, qd, qdd)
    expected[:, 4:] += 0.7 * qdd[:, [5, 4]] + 0.2 * qd[:, [5, 4]] + 1.5 * np.sign(qd[:, [4]] + qd[:, [5]])
    np.testing.assert_allclose(model.predict(q, qd, qdd), expected, atol=1e-9)
    recording = record(robot, Fourier(6), Drive(0, 0, 0), noise=0.0, duration=6.0)
    torque = model.predict(*Fourier(6)(recording.time))
    _, measured, predicted = compare(
        model, type(recording)(robot.joint_names, recording.time, recording.position, recording.velocity, torque)
    )
    assert np.all(compute_relative_error(predicted, measured) < 0.02)


@pytest.mark.parametrize("rate", [60.0, 1000.0])
def test_predicts_all_recorded_samples(model, rate):
    recording = record(chain(), MOTION, DRIVE, rate=rate, duration=6.0, noise=0.0)
    predicted = model.predict_recording(recording)
    assert predicted.shape == recording.torque.shape
    assert np.all(compute_relative_error(predicted, recording.torque) < 0.01)
    shuffled = recording.select(recording.joint_names[::-1])
    np.testing.assert_array_equal(model.predict_recording(shuffled), predicted)
    unmeasured = type(recording)(
        recording.joint_names, recording.time, recording.position, recording.velocity, np.full_like(predicted, np.nan)
    )
    np.testing.assert_allclose(model.predict_recording(unmeasured), predicted)


def test_compares_torques_through_the_same_low_pass(model):
    recording = record(chain(), MOTION, DRIVE, rate=200.0, duration=10.0, noise=0.5)
    time, measured, predicted = compare(model, recording)
    low_pass = LowPass(7.0, 200.0)
    truth = model.predict(*MOTION(recording.time))
    for low_passed, signal in ((measured, recording.torque), (predicted, truth)):
        expected = np.column_stack([np.interp(time, recording.time, column) for column in low_pass.filter(signal).T])
        assert np.all(compute_relative_error(low_passed, expected) < 0.01)
    validation = validate(model, recording)
    np.testing.assert_allclose(validation.rms, np.sqrt(np.mean((measured - predicted) ** 2, axis=0)))
    assert validation.recording == recording.source
    # The low-pass transmits about 7 of 100 Hz of the noise.
    assert np.all((validation.rms > 0.05) & (validation.rms < 0.25))
    np.testing.assert_allclose(validation.relative_rms, compute_relative_error(predicted, measured))


def test_wrong_links_increase_the_residual(model):
    recording = record(chain(), MOTION, DRIVE, noise=0.05)
    nominal = LinkModel(model.robot, model.robot.parameters, model.friction, model.coefficients, SIGNALS)
    assert np.all(validate(nominal, recording).rms > 5 * validate(model, recording).rms)


def test_ignores_inertial_parameters_of_the_robot(model):
    recording = record(chain(), MOTION, DRIVE, noise=0.05)
    massless = LinkModel(
        with_links(chain(), np.zeros(30)), model.parameters, model.friction, model.coefficients, SIGNALS
    )
    np.testing.assert_allclose(validate(massless, recording).rms, validate(model, recording).rms, rtol=1e-9)
    np.testing.assert_allclose(massless.predict_recording(recording), model.predict_recording(recording), atol=1e-9)


def test_refuses_recordings_that_cannot_be_compared(model):
    recording = record(chain(), MOTION, DRIVE, duration=6.0)
    with pytest.raises(RecordingError, match="lacks joint"):
        validate(model, recording.select(recording.joint_names[:2]))
    slow = record(chain(), MOTION, DRIVE, rate=30.0)
    for call in (partial(validate, model), model.predict_recording):
        with pytest.raises(IdentificationError, match="30 samples per second are too few for the motion cut-off of 17"):
            call(slow)
    rest = record(chain(), Fourier(3, still=(0, 1, 2)), DRIVE, position_noise=1e-5)
    with pytest.raises(IdentificationError, match="all joints are at rest"):
        validate(model, rest)
    assert np.isfinite(model.predict_recording(rest)).all()
    with pytest.raises(IdentificationError, match=r"all of which|no stretch of motion"):
        validate(model, recording.slice(recording.time < 0.3))
