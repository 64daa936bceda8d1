"""Angles of a hinge: the minimum of eq. 13, and markers whose names or positions are wrong."""

import numpy as np
import pytest
from hinge_markers import AXIS, NOISE, POINT, places, swing, turning
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap import joint_angle, start_hinge
from dynid_ros.mocap.rotation_axis import Hinge

RNG = np.random.default_rng(1)
RECORD = turning(swing(60.0), places(), RNG)
HINGE = start_hinge(RECORD.markers, AXIS, POINT)


def test_clean_markers_are_left_alone():
    found = joint_angle(HINGE, RECORD.markers, NOISE)
    np.testing.assert_array_equal(found.markers, RECORD.markers)
    assert not found.swapped.any()
    assert not found.outliers.any()


@pytest.mark.parametrize("exchange", [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
def test_exchanged_markers_are_put_back(exchange):
    mixed = RECORD.markers.copy()
    mixed[100:130] = mixed[100:130][:, exchange]
    found = joint_angle(HINGE, mixed, NOISE)
    np.testing.assert_array_equal(found.markers, RECORD.markers)
    assert np.flatnonzero(found.swapped).tolist() == list(range(100, 130))
    assert not found.outliers.any()


def test_a_marker_under_the_name_of_a_hidden_one():
    mixed = RECORD.markers.copy()
    mixed[100, 0], mixed[100, 1] = mixed[100, 1], np.nan
    found = joint_angle(HINGE, mixed, NOISE)
    np.testing.assert_array_equal(found.markers[100], [[np.nan] * 3, *RECORD.markers[100, 1:]])
    assert found.swapped.sum() == 1


def test_ghosts_are_dropped_and_the_rest_is_kept():
    mixed = RECORD.markers.copy()
    ghost = np.random.default_rng(2).random(mixed.shape[:2]) < 0.05
    ghost[ghost.all(axis=1)] = [True, False, False]
    mixed[ghost] += 0.02 * np.array([0.6, 0.48, 0.64])
    found = joint_angle(HINGE, mixed, NOISE)
    np.testing.assert_array_equal(found.outliers, ghost)
    np.testing.assert_array_equal(found.markers[~ghost], RECORD.markers[~ghost])
    assert np.isnan(found.markers[ghost]).all()


def test_a_ghost_that_is_alone():
    mixed = RECORD.markers.copy()
    mixed[100, :2] = np.nan
    mixed[100, 2] += 0.02
    found = joint_angle(HINGE, mixed, NOISE)
    assert np.isnan(found.markers[100]).all()
    assert found.outliers.sum() == 1


BODY = places(0.25, (0, 80, 190, 280))


def record(angle, seed=1, noise=NOISE):
    return turning(angle, BODY, np.random.default_rng(seed), noise)


def hinge():
    return start_hinge(record(swing(60.0)).markers, AXIS, POINT)


def test_minimum_of_eq_13():
    """The closed form is what an optimiser finds over one angle, in each of some frames."""
    seen = record(swing(120.0, 40), noise=0.02)  # large noise, so that a wrong minimum would show
    known = hinge()
    found = known.angles(known.to_local(seen.markers))
    places_at_zero = known.center + known.template @ known.frame.T

    def residual(angle, k):
        turned = Rotation.from_rotvec(angle[0] * known.axis).apply(places_at_zero - known.center) + known.center
        return (seen.markers[k] - turned).ravel()

    for k in range(40):
        best = least_squares(residual, [found[k] + 0.1], args=(k,), xtol=1e-12, ftol=1e-14, gtol=1e-12).x[0]
        assert found[k] == pytest.approx(best, abs=1e-6)


def test_many_turns_without_jumps():
    angle = np.linspace(0.0, 40.0, 3000)
    found = joint_angle(hinge(), record(angle).markers, NOISE, reference=slice(None), reference_angle=angle)
    assert np.max(np.abs(found.angle - angle)) < 0.005


def test_standard_error_follows_the_markers_seen():
    seen = record(swing(60.0))
    hidden = np.random.default_rng(2).random((2500, 4)) < 0.5
    seen.markers[hidden] = np.nan
    found = joint_angle(hinge(), seen.markers, NOISE, slice(None), seen.angle)
    np.testing.assert_array_equal(np.isnan(found.angle), hidden.all(axis=1))
    for count in (1, 2, 3, 4):
        rows = (~hidden).sum(axis=1) == count
        assert found.standard_errors[rows] == pytest.approx(NOISE / (0.25 * np.sqrt(count)), rel=0.01)
        scores = (found.angle - seen.angle)[rows] / found.standard_errors[rows]
        assert 0.85 < np.sqrt(np.mean(scores**2)) < 1.15


def test_residuals_are_those_of_the_noise():
    found = joint_angle(hinge(), record(swing(60.0)).markers)
    assert found.residuals.shape == (2500, 4)
    assert found.noise == pytest.approx(NOISE, rel=0.1)
    # Of 12 coordinates, one is taken by the angle.
    assert np.sqrt(np.mean(found.residuals**2)) == pytest.approx(NOISE * np.sqrt(3 * 11 / 12), rel=0.05)


@pytest.mark.parametrize("reference", [slice(0, 250), np.arange(250), np.arange(2500) < 250])
def test_zero_at_the_reference(reference):
    angle = np.concatenate([np.zeros(250), swing(60.0, 2250)])
    found = joint_angle(hinge(), record(angle).markers, NOISE, reference, 0.3)
    assert np.mean(found.angle[:250]) == pytest.approx(0.3, abs=1e-12)
    assert found.zero_error == pytest.approx(NOISE / (0.5 * np.sqrt(250)), rel=0.01)
    assert abs(np.mean(found.angle[250:]) - 0.3) < 5 * found.zero_error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": 2500}, "not within the 2500 frames"),
        ({"reference": np.zeros(2500, dtype=bool)}, "no reference frame"),
        ({"reference": slice(0, 10), "reference_angle": [1.0, 2.0]}, "10 reference frames"),
        ({"reference": 0, "reference_angle": np.nan}, "finite"),
        ({"reference": slice(0, 5)}, "no marker is seen in the reference frames"),
    ],
)
def test_useless_reference(options, message):
    markers = record(swing(60.0)).markers
    markers[:5] = np.nan
    with pytest.raises(MocapError, match=message):
        joint_angle(hinge(), markers, NOISE, **options)


def test_other_markers():
    with pytest.raises(MocapError, match="3 markers for a hinge of 4"):
        joint_angle(hinge(), record(swing(60.0)).markers[:, :3])


def test_reversed_hinge_turns_the_other_way():
    known, markers = hinge(), record(swing(60.0)).markers
    back = known.reversed()
    assert np.linalg.det(back.frame) == pytest.approx(1.0)
    np.testing.assert_allclose(back.angles(back.to_local(markers)), -known.angles(known.to_local(markers)), atol=1e-12)


def test_reset_moves_the_zero():
    known, markers = hinge(), record(swing(60.0)).markers
    moved = known.with_zero_at(0.4)
    assert isinstance(moved, Hinge)
    shifted = moved.angles(moved.to_local(markers))
    np.testing.assert_allclose(shifted, known.angles(known.to_local(markers)) - 0.4, atol=1e-12)
