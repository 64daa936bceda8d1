"""Axis and centre of rotation: closed cases, and the accuracy that a correct implementation must show."""

import numpy as np
import pytest
from hinge_bench import REQUIRED, REQUIRED_ANGLE, rms_errors
from hinge_markers import AXIS, NOISE, POINT, direction_error, distance_error, places, swing, turning

from dynid_ros.errors import MocapError
from dynid_ros.mocap import axis_of_rotation, center_of_rotation


def record_axis(range_deg=60.0, body=None, seed=1, noise=3e-4):
    return turning(swing(range_deg), places() if body is None else body, np.random.default_rng(seed), noise)


def test_exact_without_noise_axis():
    found = axis_of_rotation(record_axis(noise=0.0).markers, towards=AXIS)
    np.testing.assert_allclose(found.direction, AXIS, atol=1e-9)
    assert found.standard_error < 1e-6


def test_markers_come_and_go_axis():
    markers = record_axis().markers
    markers[np.random.default_rng(2).random(markers.shape[:2]) < 0.4] = np.nan
    found = axis_of_rotation(markers)
    assert direction_error(found.direction) < 3 * np.rad2deg(found.standard_error) < 0.2
    assert found.noise == pytest.approx(3e-4, rel=0.05)


def test_one_marker_is_enough_for_a_long_arc():
    found = axis_of_rotation(record_axis(body=places(0.15, (0,))).markers)
    assert direction_error(found.direction) < 3 * np.rad2deg(found.standard_error) < 0.5


def test_sign():
    markers = record_axis().markers
    for sign in (1, -1):
        assert axis_of_rotation(markers, towards=sign * np.add(AXIS, [0.3, 0, 0])).direction @ AXIS * sign > 0.999
    assert np.max(axis_of_rotation(markers).direction) > 0.6


def test_standard_error_is_that_of_many_records_axis():
    found = [axis_of_rotation(record_axis(30.0, seed=seed).markers) for seed in range(60)]
    off = [np.deg2rad(direction_error(f.direction)) / f.standard_error for f in found]
    assert 0.8 < np.sqrt(np.mean(np.square(off))) < 1.2


@pytest.mark.parametrize(
    ("range_deg", "body"),
    [(0.0, places()), (0.3, places()), (60.0, places(0.0))],
    ids=["still", "hardly moved", "on the axis"],
)
def test_what_noise_hides_is_refused(range_deg, body):
    with pytest.raises(MocapError, match="Turn the joint"):
        axis_of_rotation(record_axis(range_deg, body).markers)


def test_the_same_small_motion_is_enough_with_less_noise():
    found = axis_of_rotation(record_axis(0.3, noise=3e-7).markers)
    assert direction_error(found.direction) < 1


@pytest.mark.parametrize("towards", [[0, 0, 0], [1, 2], np.cross(AXIS, [0, 0, 1])])
def test_useless_approximate_axis(towards):
    with pytest.raises(MocapError, match="axis"):
        axis_of_rotation(record_axis().markers, towards)


def record(range_deg=60.0, body=None, seed=1, noise=NOISE):
    return turning(swing(range_deg), places() if body is None else body, np.random.default_rng(seed), noise)


@pytest.mark.parametrize("compensated", [True, False])
def test_exact_without_noise(compensated):
    found = center_of_rotation(record(noise=0.0).markers, AXIS, compensated=compensated)
    assert distance_error(found.point) < 1e-6
    np.testing.assert_allclose(found.radii, 0.15, atol=1e-9)


def test_noise_is_told_from_radii():
    found = center_of_rotation(record().markers, AXIS)
    assert found.noise == pytest.approx(NOISE, rel=0.05)
    np.testing.assert_allclose(found.radii, 0.15, atol=5 * found.standard_error)


def test_compensation_takes_out_the_bias_and_nothing_else():
    """The mean over records tells the bias: noise draws the centre towards the markers."""
    outward = places()[1] - places()[1] @ AXIS * AXIS
    towards = {True: [], False: []}
    for seed in range(30):
        markers = record(10.0, seed=seed).markers
        for compensated, found in towards.items():
            point = center_of_rotation(markers, AXIS, compensated=compensated).point
            found.append(1000 * (point - POINT) @ outward / np.linalg.norm(outward))
    assert np.mean(towards[False]) > 8
    assert abs(np.mean(towards[True])) < 3 * np.std(towards[True]) / np.sqrt(30)


def test_markers_come_and_go():
    markers = record().markers
    gone = np.random.default_rng(2).random(markers.shape[:2]) < [0.2, 0.5, 0.8]
    markers[gone] = np.nan
    found = center_of_rotation(markers, AXIS)
    assert distance_error(found.point) < 3000 * found.standard_error < 1
    # A frame counts although some of its markers are missing.
    whole = np.where(gone.any(axis=1)[:, None, None], np.nan, markers)
    assert center_of_rotation(whole, AXIS).standard_error > 1.5 * found.standard_error


def test_marker_never_seen():
    markers = record().markers
    markers[:, 1] = np.nan
    found = center_of_rotation(markers, AXIS)
    assert np.isnan(found.radii).tolist() == [False, True, False]


@pytest.mark.parametrize("range_deg", [10.0, 90.0])
def test_standard_error_is_that_of_many_records(range_deg):
    found = [center_of_rotation(record(range_deg, seed=seed).markers, AXIS) for seed in range(50)]
    off = [distance_error(f.point) / (1000 * f.standard_error) for f in found]
    assert 0.75 < np.sqrt(np.mean(np.square(off))) < 1.25


@pytest.mark.parametrize("noise", [0.0, NOISE])
def test_still_markers_are_refused(noise):
    with pytest.raises(MocapError, match="turn the joint further"):
        center_of_rotation(record(noise=noise, range_deg=0.0).markers, AXIS)


REPETITIONS = 30
"""A root mean square over so many is good to some 12 %."""


@pytest.fixture(scope="module")
def measured():
    return {range_deg: rms_errors(range_deg, REPETITIONS, seed=0) for range_deg in REQUIRED}


@pytest.mark.slow
@pytest.mark.parametrize("range_deg", REQUIRED)
def test_accuracy(measured, range_deg):
    """With room of a fifth."""
    row, (axis, _, center) = measured[range_deg], REQUIRED[range_deg]
    assert row.direction < 1.2 * axis
    assert row.compensated < 1.2 * center
    assert row.angle < 1.2 * REQUIRED_ANGLE


@pytest.mark.slow
def test_compensation_is_what_helps(measured):
    for range_deg, times in ((10.0, 10), (20.0, 5), (45.0, 2), (90.0, 1.2)):
        assert measured[range_deg].biased > times * measured[range_deg].compensated


@pytest.mark.slow
def test_standard_errors_are_honest(measured):
    for name in ("direction", "compensated", "angle"):
        ratios = [getattr(row, name) / getattr(row, f"{name}_said") for row in measured.values()]
        assert 0.85 < np.sqrt(np.mean(np.square(ratios))) < 1.15, name


def correlated(rng, shape, past=0.98):
    """Noise of unit variance that lasts for 50 frames."""
    noise = rng.normal(size=shape)
    for k in range(1, len(noise)):
        noise[k] = past * noise[k - 1] + np.sqrt(1 - past**2) * noise[k]
    return noise


def test_standard_errors_allow_for_slow_noise():
    rng, axes, centers = np.random.default_rng(3), [], []
    angle = np.deg2rad(30) * np.sin(np.linspace(0, 80, 2500))
    for _ in range(20):
        take = turning(angle, places(), rng, noise=0.0)
        markers = take.markers + NOISE * correlated(rng, take.markers.shape)
        axis = axis_of_rotation(markers)
        center = center_of_rotation(markers, AXIS)
        axes.append(np.deg2rad(direction_error(axis.direction)) / axis.standard_error)
        centers.append(distance_error(center.point) / (1000 * center.standard_error))
    assert 0.6 < np.sqrt(np.mean(np.square(axes))) < 1.6
    assert 0.6 < np.sqrt(np.mean(np.square(centers))) < 1.6
