"""Load and sensor bias from static poses: MuJoCo's wrenches, and a real sensor with a tool."""

import numpy as np
import pytest
from real_recordings import DATA, MISSING
from scipy.spatial.transform import Rotation
from static_wrenches import BIAS, CENTER, MASS, WRIST, calibrate, readings

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.load_result import sensor_biases
from dynid_ros.identified.identified_file import load_identified

EVEN = readings(30)
TRUTH = np.concatenate([[MASS], MASS * CENTER, BIAS])


def estimates(result):
    """Return values and half widths of the 95 % intervals of mass, mass moments and bias, (10,) each."""
    (bias,) = sensor_biases(result)
    low, high = result.confidence_intervals()[:4].T
    values = [*result.body.parameters[:4], *(value for value, _, _ in bias.values())]
    return np.array(values), np.array([*(high - low) / 2, *(half for _, _, half in bias.values())])


def test_identifies_mass_center_and_bias():
    values, half = estimates(calibrate(EVEN.rotations, EVEN.read(np.random.default_rng(0))))
    np.testing.assert_allclose(values, TRUTH, atol=0.08)
    assert np.all(np.abs(values - TRUTH) < 2.5 * half)
    assert half[0] < 0.02


def test_result_is_independent_of_frame_and_convention():
    wrench = EVEN.read(np.random.default_rng(1))
    expected, _ = estimates(calibrate(EVEN.rotations, wrench))
    for read, frame, convention, sign in (
        (EVEN.in_base(wrench), WRIST.base, "load_on_sensor", 1),
        (-wrench, WRIST.tip, "sensor_on_load", -1),
    ):
        values, _ = estimates(calibrate(EVEN.rotations, read, frame, convention=convention))
        np.testing.assert_allclose(values[:4], expected[:4], atol=1e-3)
        np.testing.assert_allclose(values[4:], sign * expected[4:], atol=1e-2)


def test_bias_has_the_axes_of_a_rotated_sensor():
    mount = Rotation.from_rotvec([0.3, 0.2, -0.4])
    wrench = EVEN.read(np.random.default_rng(2))
    values, half = estimates(calibrate(EVEN.rotations @ mount.as_matrix(), wrench))
    np.testing.assert_allclose(values[1:4], MASS * mount.inv().apply(CENTER), atol=0.002)
    assert np.all(np.abs(values[4:] - BIAS) < 2.5 * half[4:])


def test_estimates_a_drift_of_the_bias():
    poses = readings(40, 2)
    # If a robot visits the poses in order of their tilt, warming up looks like weight.
    order = np.argsort(poses.rotations[:, 2, 2])
    wrench = (poses.read(np.random.default_rng(3)))[order]
    wrench[:, 2] += np.linspace(-1.0, 1.0, 40)
    result = calibrate(poses.rotations[order], wrench)
    values, half = estimates(result)
    assert "force z" in result.faults[0]
    assert np.all(np.abs(values - TRUTH) < 2.5 * half)


def test_identifies_the_bias_without_load():
    wrench = EVEN.read(np.random.default_rng(0)) - EVEN.load
    result = calibrate(EVEN.rotations, wrench)
    values, half = estimates(result)
    assert not result.is_loaded
    np.testing.assert_allclose(values[4:], BIAS, atol=3 * half[4:].max())


@pytest.mark.parametrize(
    ("wrench", "message"), [(EVEN.in_base(EVEN.load + BIAS), "contradicts the data"), (-EVEN.load, "other sign")]
)
def test_refuses_contradicting_settings(wrench, message):
    with pytest.raises(IdentificationError, match=message):
        calibrate(EVEN.rotations, wrench)


def test_file_contains_the_bias(tmp_path):
    result = calibrate(EVEN.rotations, EVEN.read(np.random.default_rng(0)))
    (entry,) = load_identified(result.save(tmp_path / "identified.yaml"))["force_sensor"]
    np.testing.assert_allclose(list(entry["bias"].values()), BIAS, atol=0.1)
    assert all(error > 0 for error in entry["bias_std"].values())


@pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)
def test_identifies_the_load_of_a_warming_real_sensor():
    """Forces x and y, and pairs of consecutive poses, yield 1.17 kg; force z drifts by 2 N."""
    with np.load(DATA / "ft_static" / "develop" / "poses_even.npz") as archive:
        rotations = Rotation.from_quat(archive["pose_xyz_quat_xyzw"][:, 3:]).as_matrix()
        wrench = archive["wrench_base"]
    result = calibrate(rotations, wrench, WRIST.base)
    assert result.mass == pytest.approx(1.175, abs=0.01)
    assert result.center[2] == pytest.approx(0.0475, abs=0.001)
    assert "force z by 2" in result.faults[0]
    assert np.all(result.residual_rms < [0.05, 0.05, 0.15, 0.001, 0.002, 0.001])
    with pytest.raises(IdentificationError):
        calibrate(rotations, wrench, WRIST.base, convention="sensor_on_load")
