"""Test angles of a hinge: least-squares minimum, exchanged markers, ghosts and references."""

import numpy as np
import pytest
from hinge_markers import AXIS, NOISE_M, POINT, place_markers, record_rotation, swing_angle
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap import joint_angle, start_hinge
from dynid_ros.mocap.rotation_axis import Hinge

RNG = np.random.default_rng(1)
RECORD = record_rotation(swing_angle(60.0), place_markers(), RNG)
HINGE = start_hinge(RECORD.markers, AXIS, POINT)


def test_correct_markers_stay_unchanged():
    motion = joint_angle(HINGE, RECORD.markers, NOISE_M)
    np.testing.assert_array_equal(motion.markers, RECORD.markers)
    assert not motion.swapped.any()
    assert not motion.outliers.any()


@pytest.mark.parametrize("exchange", [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
def test_exchanged_markers_are_restored(exchange):
    mixed = RECORD.markers.copy()
    mixed[100:130] = mixed[100:130][:, exchange]
    motion = joint_angle(HINGE, mixed, NOISE_M)
    np.testing.assert_array_equal(motion.markers, RECORD.markers)
    assert np.flatnonzero(motion.swapped).tolist() == list(range(100, 130))
    assert not motion.outliers.any()


def test_marker_with_the_name_of_a_hidden_one_is_restored():
    mixed = RECORD.markers.copy()
    mixed[100, 0] = mixed[100, 1]
    mixed[100, 1] = np.nan
    motion = joint_angle(HINGE, mixed, NOISE_M)
    np.testing.assert_array_equal(motion.markers[100], [[np.nan] * 3, *RECORD.markers[100, 1:]])
    assert motion.swapped.sum() == 1


def test_only_ghosts_are_removed():
    mixed = RECORD.markers.copy()
    is_ghost = np.random.default_rng(2).random(mixed.shape[:2]) < 0.05
    is_ghost[is_ghost.all(axis=1)] = [True, False, False]
    mixed[is_ghost] += 0.02 * np.array([0.6, 0.48, 0.64])
    motion = joint_angle(HINGE, mixed, NOISE_M)
    np.testing.assert_array_equal(motion.outliers, is_ghost)
    np.testing.assert_array_equal(motion.markers[~is_ghost], RECORD.markers[~is_ghost])
    assert np.isnan(motion.markers[is_ghost]).all()


def test_single_visible_ghost_is_removed():
    mixed = RECORD.markers.copy()
    mixed[100, :2] = np.nan
    mixed[100, 2] += 0.02
    motion = joint_angle(HINGE, mixed, NOISE_M)
    assert np.isnan(motion.markers[100]).all()
    assert motion.outliers.sum() == 1


BODY = place_markers(0.25, (0, 80, 190, 280))


def record_swing(angle, seed=1, noise=NOISE_M):
    return record_rotation(angle, BODY, np.random.default_rng(seed), noise)


def make_hinge():
    return start_hinge(record_swing(swing_angle(60.0)).markers, AXIS, POINT)


def test_angle_is_the_least_squares_minimum():
    """The closed form (eq. 13) agrees with an optimizer over the angle of each frame."""
    record = record_swing(swing_angle(120.0, 40), noise=0.02)  # large noise reveals a wrong minimum
    hinge = make_hinge()
    angles = hinge.angles(hinge.to_local(record.markers))
    places_at_zero = hinge.center + hinge.template @ hinge.frame.T

    def residual(angle, k):
        rotated = Rotation.from_rotvec(angle[0] * hinge.axis).apply(places_at_zero - hinge.center) + hinge.center
        return (record.markers[k] - rotated).ravel()

    for k in range(40):
        best = least_squares(residual, [angles[k] + 0.1], args=(k,), xtol=1e-12, ftol=1e-14, gtol=1e-12).x[0]
        assert angles[k] == pytest.approx(best, abs=1e-6)


def test_angle_is_continuous_over_many_turns():
    angle = np.linspace(0.0, 40.0, 3000)
    motion = joint_angle(
        make_hinge(), record_swing(angle).markers, NOISE_M, reference=slice(None), reference_angle=angle
    )
    assert np.max(np.abs(motion.angle - angle)) < 0.005


def test_standard_error_depends_on_the_number_of_visible_markers():
    record = record_swing(swing_angle(60.0))
    hidden = np.random.default_rng(2).random((2500, 4)) < 0.5
    record.markers[hidden] = np.nan
    motion = joint_angle(make_hinge(), record.markers, NOISE_M, slice(None), record.angle)
    np.testing.assert_array_equal(np.isnan(motion.angle), hidden.all(axis=1))
    for count in (1, 2, 3, 4):
        rows = (~hidden).sum(axis=1) == count
        assert motion.standard_errors[rows] == pytest.approx(NOISE_M / (0.25 * np.sqrt(count)), rel=0.01)
        scores = (motion.angle - record.angle)[rows] / motion.standard_errors[rows]
        assert 0.85 < np.sqrt(np.mean(scores**2)) < 1.15


def test_residuals_agree_with_the_noise():
    motion = joint_angle(make_hinge(), record_swing(swing_angle(60.0)).markers)
    assert motion.residuals.shape == (2500, 4)
    assert motion.noise == pytest.approx(NOISE_M, rel=0.1)
    # One of the 12 coordinates determines the angle.
    assert np.sqrt(np.mean(motion.residuals**2)) == pytest.approx(NOISE_M * np.sqrt(3 * 11 / 12), rel=0.05)


@pytest.mark.parametrize("reference", [slice(0, 250), np.arange(250), np.arange(2500) < 250])
def test_mean_angle_at_the_reference_is_given(reference):
    angle = np.concatenate([np.zeros(250), swing_angle(60.0, 2250)])
    motion = joint_angle(make_hinge(), record_swing(angle).markers, NOISE_M, reference, 0.3)
    assert np.mean(motion.angle[:250]) == pytest.approx(0.3, abs=1e-12)
    assert motion.zero_error == pytest.approx(NOISE_M / (0.5 * np.sqrt(250)), rel=0.01)
    assert abs(np.mean(motion.angle[250:]) - 0.3) < 5 * motion.zero_error


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
def test_invalid_reference_is_refused(options, message):
    markers = record_swing(swing_angle(60.0)).markers
    markers[:5] = np.nan
    with pytest.raises(MocapError, match=message):
        joint_angle(make_hinge(), markers, NOISE_M, **options)


def test_other_number_of_markers_is_refused():
    with pytest.raises(MocapError, match="3 markers for a hinge of 4"):
        joint_angle(make_hinge(), record_swing(swing_angle(60.0)).markers[:, :3])


def test_reversed_hinge_changes_the_sign():
    hinge = make_hinge()
    markers = record_swing(swing_angle(60.0)).markers
    reversed_hinge = hinge.reversed()
    assert np.linalg.det(reversed_hinge.frame) == pytest.approx(1.0)
    np.testing.assert_allclose(
        reversed_hinge.angles(reversed_hinge.to_local(markers)), -hinge.angles(hinge.to_local(markers)), atol=1e-12
    )


def test_new_zero_shifts_the_angles():
    hinge = make_hinge()
    markers = record_swing(swing_angle(60.0)).markers
    moved = hinge.with_zero_at(0.4)
    assert isinstance(moved, Hinge)
    shifted = moved.angles(moved.to_local(markers))
    np.testing.assert_allclose(shifted, hinge.angles(hinge.to_local(markers)) - 0.4, atol=1e-12)
