"""Static calibration of a force/torque sensor, against MuJoCo."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from static_wrenches import BIAS, CENTER, GRAVITY, MASS, readings

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.identification import ForceSensorCalibration

EVEN = readings(30)


def test_mass_center_and_bias():
    calibration = ForceSensorCalibration(gain_error=0.0, turn_error=0.0)
    result = calibration.fit(EVEN.rotations, EVEN.read(np.random.default_rng(0)))
    assert result.mass == pytest.approx(MASS, abs=5 * result.mass_error)
    assert result.mass_error < 0.004
    assert np.all(np.abs(result.center - CENTER) < 5 * result.center_errors)
    assert np.all(result.center_errors < 2e-4)
    assert np.all(np.abs(result.bias - BIAS) < 5 * result.bias_errors)
    assert np.all(result.residual_rms < 1.3 * np.repeat([0.05, 0.002], 3))
    assert result.remarks == ()
    assert result.condition_number < 5


def test_quaternions_frames_and_conventions_are_the_same_fit():
    wrench = EVEN.read(np.random.default_rng(1))
    expected = ForceSensorCalibration().fit(EVEN.rotations, wrench)
    quaternions = Rotation.from_matrix(EVEN.rotations).as_quat()
    in_base = EVEN.in_base(wrench)
    for calibration, read, sign in (
        (ForceSensorCalibration(frame="base"), in_base, 1),
        (ForceSensorCalibration(convention="sensor_on_load"), -wrench, -1),
        (ForceSensorCalibration(frame="base", convention="sensor_on_load"), -in_base, -1),
    ):
        result = calibration.fit(quaternions, read)
        np.testing.assert_allclose(result.parameters[:4], expected.parameters[:4], rtol=1e-9)
        np.testing.assert_allclose(result.bias, sign * expected.bias, rtol=1e-9)
        np.testing.assert_allclose(result.standard_errors, expected.standard_errors, rtol=1e-9)
        np.testing.assert_allclose(np.abs(result.residuals), np.abs(expected.residuals), atol=1e-9)
        np.testing.assert_allclose(result.contact(quaternions, read), result.residuals, atol=1e-9)


def test_prediction_of_other_poses():
    result = ForceSensorCalibration().fit(EVEN.rotations, EVEN.read(np.random.default_rng(0)))
    other = readings(20, seed=5)
    error = result.predict(other.rotations) - other.load - BIAS
    assert np.all(np.abs(error) < 0.5 * np.repeat([0.2, 0.008], 3))
    np.testing.assert_allclose(
        result.validate(other.rotations, other.load + BIAS), np.sqrt(np.mean(error**2, axis=0)), rtol=1e-9
    )


@pytest.mark.parametrize("poses", [4, 30])
def test_intervals_cover(poses):
    covered, total = 0, 0
    truth = np.concatenate([[MASS], MASS * CENTER, BIAS])
    for seed in range(30):
        measured = readings(poses, seed)
        wrench = measured.read(np.random.default_rng(seed))
        result = ForceSensorCalibration(gain_error=0.0, turn_error=0.0).fit(measured.rotations, wrench)
        low, high = result.confidence_intervals().T
        covered += np.sum((low <= truth) & (truth <= high))
        total += len(truth)
    assert 0.91 < covered / total < 0.99


def test_gain_and_turn_that_no_residual_shows():
    rng = np.random.default_rng(7)
    truth = np.concatenate([[MASS], MASS * CENTER, BIAS])
    covered = []
    for _ in range(30):
        turn = Rotation.from_rotvec(0.002 * rng.standard_normal(3)).as_matrix()
        wrench = EVEN.read(rng) + 0.005 * rng.standard_normal(6) * EVEN.load
        result = ForceSensorCalibration().fit(EVEN.rotations @ turn, wrench)
        low, high = result.confidence_intervals().T
        covered.append((low <= truth) & (truth <= high))
    assert 0.92 < np.mean(covered) < 0.995
    assert result.mass_error == pytest.approx(0.005 * MASS / np.sqrt(3), rel=0.2)


def test_drift_is_seen_and_its_error_is_honest():
    rng = np.random.default_rng(3)
    poses = readings(40, 2)
    # Poses that a robot visits in order, so that warming up looks like weight.
    order = np.argsort(poses.rotations[:, 2, 2])
    measured = type(poses)(poses.rotations[order], poses.load[order])
    wrench = measured.read(rng)
    wrench[:, 2] += np.linspace(0.0, 2.0, 40)
    result = ForceSensorCalibration().fit(measured.rotations, wrench)
    assert abs(result.mass - MASS) > 0.03
    assert abs(result.mass - MASS) < 2.5 * result.mass_error
    assert "force z by 2 N" in result.remarks[0]
    drifting = ForceSensorCalibration(drift=1).fit(measured.rotations, wrench, np.arange(len(wrench)))
    assert drifting.mass == pytest.approx(MASS, abs=4 * drifting.mass_error)
    assert drifting.mass_error < 0.3 * result.mass_error


def test_drift_is_predicted_too():
    """By the time of each pose; beyond the calibration the bias stays as it was at its end."""
    rng = np.random.default_rng(13)
    time = 10.0 + np.cumsum(rng.uniform(5.0, 15.0, 40))
    course = 2 * (time - time[0]) / np.ptp(time) - 1
    drift = np.outer(course + 0.5 * course**2, [1.0, -2.0, 3.0, 0.05, 0.02, -0.04])
    wrench = readings(40, 2).read(rng) + drift
    rotations = readings(40, 2).rotations
    for convention, sign in (("load_on_sensor", 1.0), ("sensor_on_load", -1.0)):
        calibration = ForceSensorCalibration(drift=2, convention=convention)
        result = calibration.fit(rotations, sign * wrench, time)
        assert np.all(result.validate(rotations, sign * wrench, time) < 1.3 * np.repeat([0.05, 0.002], 3))
        np.testing.assert_allclose(result.contact(rotations, sign * wrench, time), result.residuals, atol=1e-9)
        end = result.predict(rotations[:1], [time[-1]])
        np.testing.assert_allclose(result.predict(rotations[:1], [time[-1] + 1e4]), end)
        with pytest.raises(IdentificationError, match=r"the bias drifts \(drift=2\), and no time is given"):
            calibration.fit(rotations, wrench)
        with pytest.raises(IdentificationError, match="the bias drifts, and no time is given"):
            result.predict(rotations)
        with pytest.raises(IdentificationError, match=r"times of shape \(3,\) for 40 poses"):
            result.validate(rotations, wrench, time[:3])
    assert len(result.document()["drift"]["force x"]) == 2
    assert "drift of the bias from" in result.summary()
    still = ForceSensorCalibration().fit(rotations, wrench - drift, time)
    np.testing.assert_array_equal(still.predict(rotations, time), still.predict(rotations))


def test_turned_sensor_and_tilted_base():
    rng = np.random.default_rng(4)
    turn, tilt = Rotation.from_rotvec([0.02, -0.01, 0.03]), Rotation.from_rotvec([0.01, 0.02, 0.0])
    # The poses given are those that a level base and a straight sensor would have.
    given = tilt.inv().as_matrix() @ EVEN.rotations @ turn.as_matrix()
    wrench = EVEN.read(rng)
    plain = ForceSensorCalibration().fit(given, wrench)
    assert "tilted by 1.3° and the sensor turned by 2.1°" in plain.remarks[0]
    result = ForceSensorCalibration(base_tilt=True, sensor_turn=True).fit(given, wrench)
    assert result.mass == pytest.approx(MASS, abs=4 * result.mass_error)
    assert np.all(result.residual_rms < 1.2 * np.repeat([0.05, 0.002], 3))
    np.testing.assert_allclose(result.reading.turned.as_rotvec(), turn.as_rotvec(), atol=0.003)
    np.testing.assert_allclose(result.gravity, tilt.inv().apply([0, 0, -GRAVITY]), atol=0.03)
    assert np.all(result.validate(given, wrench) < 1.2 * np.repeat([0.05, 0.002], 3))


def test_known_bias_needs_no_more_than_two_poses():
    result = ForceSensorCalibration(bias=BIAS).fit(EVEN.rotations[:2], EVEN.load[:2] + BIAS)
    np.testing.assert_allclose([result.mass, *result.center], [MASS, *CENTER], atol=1e-9)
    with pytest.raises(
        IdentificationError, match=r"1 pose\(s\) show 3 of 4 unknowns and leave undetermined mcx, mcy, mcz"
    ):
        ForceSensorCalibration(bias=BIAS).fit(EVEN.rotations[:1], EVEN.load[:1] + BIAS)


def test_sensor_without_load():
    wrench = EVEN.read(np.random.default_rng(0)) - EVEN.load
    result = ForceSensorCalibration().fit(EVEN.rotations, wrench)
    assert abs(result.mass) < 4 * result.mass_error
    assert np.isnan(result.center).all()
    assert "no weight is seen" in result.remarks[0]
    np.testing.assert_allclose(result.bias, BIAS, atol=5 * result.bias_errors.max())


def about_vertical(angles: np.ndarray) -> np.ndarray:
    return Rotation.from_rotvec(np.outer(angles, [0, 0, 1])).as_matrix() @ EVEN.rotations[0]


@pytest.mark.parametrize(
    ("rotations", "wrench", "message"),
    [
        (EVEN.rotations[:1], EVEN.load[:1], "1 pose.*show 6 of 10 unknowns.*leave undetermined m, mcx"),
        (EVEN.rotations[:2], EVEN.load[:2], "2 pose.*show 9 of 10 unknowns.*leave undetermined mcx"),
        (about_vertical(np.arange(9.0)), np.repeat(EVEN.load[:1], 9, axis=0), "differ by at most .*e-0[5-9]°|most 0°"),
        (EVEN.rotations, EVEN.in_base(EVEN.load), "contradicts the data.*0% if they are in the frame of the base"),
        (EVEN.rotations.swapaxes(1, 2), EVEN.load, "orientations are those of the base in the sensor"),
        (Rotation.from_matrix(EVEN.rotations).as_quat()[:, [3, 0, 1, 2]], EVEN.load, "in the order w x y z"),
        (EVEN.rotations, -EVEN.load, "mass would be -1.3 kg.*convention='sensor_on_load'"),
        (EVEN.rotations, EVEN.load[:5], "do not fit"),
        (EVEN.rotations[:0], EVEN.load[:0], "at least one pose"),
        (2 * EVEN.rotations, EVEN.load, "orientation 0 is not a rotation matrix"),
        (np.ones((30, 4)), EVEN.load, "quaternion 0 is not of unit length"),
        (EVEN.rotations[0], EVEN.load, "shape"),
        (EVEN.rotations, np.where(np.arange(180).reshape(30, 6) == 25, np.nan, EVEN.load), "pose 4 is not finite"),
    ],
)
def test_what_poses_do_not_show_or_contradict(rotations, wrench, message):
    with pytest.raises(IdentificationError, match=message):
        ForceSensorCalibration().fit(rotations, wrench)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frame": "tool"}, "frame is 'tool'; expected one of sensor, base"),
        ({"convention": "up"}, "convention is 'up'"),
        ({"gravity": (0, 0, 0)}, "gravity is zero"),
        ({"drift": 7}, "drift is 7"),
        ({"drift": 1, "bias": np.zeros(6)}, "drift is 1"),
        ({"bias": np.zeros(3)}, "bias"),
        ({"gain_error": -1.0}, "gain_error is -1.0"),
    ],
)
def test_settings(settings, message):
    with pytest.raises((IdentificationError, ModelError), match=message):
        ForceSensorCalibration(**settings)


def test_document_and_summary_are_plain():
    result = ForceSensorCalibration().fit(EVEN.rotations, EVEN.read(np.random.default_rng(0)))
    document = result.document()
    assert document["mass"] == result.mass
    assert document["bias"]["torque z"] == result.bias[5]
    assert all(type(value) in (float, int, str, list, dict) for value in document.values())
    assert "30 poses" in result.summary()
