import numpy as np
import pytest
from hinge_markers import AXIS, direction_error, places, swing, turning

from dynid_ros.errors import MocapError
from dynid_ros.mocap import axis_of_rotation


def record(range_deg=60.0, body=None, seed=1, noise=3e-4):
    return turning(swing(range_deg), places() if body is None else body, np.random.default_rng(seed), noise)


def test_exact_without_noise():
    found = axis_of_rotation(record(noise=0.0).markers, towards=AXIS)
    np.testing.assert_allclose(found.direction, AXIS, atol=1e-9)
    assert found.standard_error < 1e-6


def test_markers_come_and_go():
    markers = record().markers
    markers[np.random.default_rng(2).random(markers.shape[:2]) < 0.4] = np.nan
    found = axis_of_rotation(markers)
    assert direction_error(found.direction) < 3 * np.rad2deg(found.standard_error) < 0.2
    assert found.noise == pytest.approx(3e-4, rel=0.05)


def test_one_marker_is_enough_for_a_long_arc():
    found = axis_of_rotation(record(body=places(0.15, (0,))).markers)
    assert direction_error(found.direction) < 3 * np.rad2deg(found.standard_error) < 0.5


def test_sign():
    markers = record().markers
    for sign in (1, -1):
        assert axis_of_rotation(markers, towards=sign * np.add(AXIS, [0.3, 0, 0])).direction @ AXIS * sign > 0.999
    assert np.max(axis_of_rotation(markers).direction) > 0.6


def test_standard_error_is_that_of_many_records():
    found = [axis_of_rotation(record(30.0, seed=seed).markers) for seed in range(60)]
    off = [np.deg2rad(direction_error(f.direction)) / f.standard_error for f in found]
    assert 0.8 < np.sqrt(np.mean(np.square(off))) < 1.2


@pytest.mark.parametrize(
    ("range_deg", "body"),
    [(0.0, places()), (0.3, places()), (60.0, places(0.0))],
    ids=["still", "hardly moved", "on the axis"],
)
def test_what_noise_hides_is_refused(range_deg, body):
    with pytest.raises(MocapError, match="Turn the joint"):
        axis_of_rotation(record(range_deg, body).markers)


def test_the_same_small_motion_is_enough_with_less_noise():
    found = axis_of_rotation(record(0.3, noise=3e-7).markers)
    assert direction_error(found.direction) < 1


@pytest.mark.parametrize("towards", [[0, 0, 0], [1, 2], np.cross(AXIS, [0, 0, 1])])
def test_useless_approximate_axis(towards):
    with pytest.raises(MocapError, match="axis"):
        axis_of_rotation(record().markers, towards)
