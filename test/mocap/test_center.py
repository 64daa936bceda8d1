import numpy as np
import pytest
from hinge_markers import AXIS, NOISE, POINT, distance_error, places, swing, turning

from dynid_ros.errors import MocapError
from dynid_ros.mocap import center_of_rotation


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
