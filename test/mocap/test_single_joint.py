"""Test the angle of a single joint from markers, with faults of tracker and experiment."""

import numpy as np
import pytest
from hinge_bench import REQUIRED_ANGLE_DEG
from hinge_markers import (
    AXIS,
    NOISE_M,
    POINT,
    direction_error,
    distance_error,
    place_markers,
    record_rotation,
    swing_angle,
)
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap import SingleJoint, joint_angle

N_FRAMES = 2500


def record_joint(range_deg=60.0, body=None, seed=1, noise=NOISE_M):
    body = place_markers() if body is None else body
    return record_rotation(swing_angle(range_deg, N_FRAMES), body, np.random.default_rng(seed), noise)


def fit_joint(record, **options):
    return SingleJoint(towards=AXIS).fit(record.time, record.markers, **options)


def assert_within_errors(result, record, factor=1.0):
    """Assert errors of axis, center and angle (except its zero) within their standard errors."""
    assert result.axis @ AXIS > 0
    assert direction_error(result.axis) < 4 * factor * np.rad2deg(result.axis_estimate.standard_error)
    assert distance_error(result.center) < 4 * factor * 1000 * result.center_estimate.standard_error
    is_known = np.isfinite(result.angle)
    error = (result.angle - record.angle)[is_known]
    allowed = np.hypot(result.standard_errors, result.axis_angle_errors)[is_known]
    assert 0.8 < np.sqrt(np.mean(((error - error.mean()) / allowed) ** 2)) < 1.2 * factor


@pytest.mark.parametrize(
    ("radius", "angles", "required"), [(0.15, (-8, 0, 8), REQUIRED_ANGLE_DEG), (0.25, (0, 80, 190, 280), 0.034)]
)
def test_angle_has_the_required_accuracy(radius, angles, required):
    record = record_joint(body=place_markers(radius, angles))
    result = fit_joint(record, reference=slice(None), reference_angle=record.angle)
    assert np.rad2deg(np.std(result.angle - record.angle)) < 1.1 * required
    assert np.rad2deg(np.mean(result.standard_errors)) == pytest.approx(required, rel=0.05)
    np.testing.assert_allclose(result.radii, radius, atol=1e-3)
    assert_within_errors(result, record)
    assert not result.motion.swapped.any()
    assert not result.motion.outliers.any()
    assert np.isfinite(result.angle).all()
    assert result.remarks == ()
    rms = np.sqrt(np.mean(result.motion.residuals**2))
    assert rms == pytest.approx(NOISE_M * np.sqrt(3 - 1 / len(angles)), rel=0.05)
    assert "standard error" in result.summary()


def test_dropped_frames_and_hidden_markers_are_tolerated():
    record = record_joint()
    record.markers[np.random.default_rng(2).random(record.markers.shape[:2]) < 0.3] = np.nan
    record.markers[:20] = np.nan
    keep = np.random.default_rng(3).random(N_FRAMES) < 0.9
    result = SingleJoint(AXIS).fit(record.time[keep], record.markers[keep])
    assert_within_errors(result, type(record)(record.time[keep], record.markers[keep], record.angle[keep]))
    assert np.isnan(result.angle).sum() == np.isnan(record.markers[keep]).all(axis=(1, 2)).sum()
    assert any("frames are missing" in remark for remark in result.remarks)


def test_exchanges_and_ghosts_are_corrected_together():
    record = record_joint(90.0)
    rng = np.random.default_rng(4)
    exchanged = np.r_[rng.choice(1000, 40, replace=False), 1500:1800]
    record.markers[exchanged[:, None], [[0, 2]]] = record.markers[exchanged[:, None], [[2, 0]]]
    ghosts = rng.choice(np.arange(1000, 1500), 60, replace=False)
    record.markers[ghosts, rng.integers(3, size=60)] += rng.choice([-1, 1], (60, 3)) * rng.uniform(0.02, 1.0, (60, 3))
    record.markers[2000:2100, 1] += [0.4, 0.0, 0.1]
    result = fit_joint(record)
    assert result.motion.swapped.sum() == len(exchanged)
    assert result.motion.outliers.sum() == 160
    assert_within_errors(result, record)


def test_ghosts_that_look_like_resting_markers_are_removed():
    """A few distant ghosts outweigh a short arc in every sum of squares."""
    record = record_joint(10.0, body=place_markers(0.15, (-8, 8)))
    for start in (300, 900, 1600):
        record.markers[start : start + 6] += [0.7, -0.2, 0.1]  # both markers together, which keeps their distance
    result = fit_joint(record)
    assert result.motion.outliers.sum() == 36
    assert_within_errors(result, record)


@pytest.mark.parametrize("heights", [(-0.05, 0.05), (0.0, 0.0)])
def test_two_markers_may_be_exchanged_for_long(heights):
    record = record_joint(body=place_markers(0.15, (-8, 8), heights))
    record.markers[1000:1400] = record.markers[1000:1400, ::-1]
    result = fit_joint(record)
    assert result.motion.swapped.sum() == 400
    assert_within_errors(result, record)


def test_single_marker_is_enough():
    record = record_joint(body=place_markers(0.15, (0,)))
    result = fit_joint(record)
    assert_within_errors(result, record)
    assert any("single marker" in remark for remark in result.remarks)


def test_first_motion_decides_the_sign():
    for sign in (1, -1):
        angle = sign * np.deg2rad(30) * (1 - np.cos(np.linspace(0, 6 * np.pi, N_FRAMES)))
        record = record_rotation(angle, place_markers(), np.random.default_rng(5))
        result = SingleJoint().fit(record.time, record.markers)
        assert sign * (result.axis @ AXIS) > 0.999
        assert result.angle[np.argmax(np.abs(angle))] > 1
        assert result.remarks == ()


def test_ambiguous_sign_is_remarked():
    result = SingleJoint().fit(record_joint().time, record_joint().markers)
    assert any("towards" in remark for remark in result.remarks)


def test_hinge_applies_to_further_records():
    record = record_joint()
    further = record_joint(100.0, seed=6)
    result = fit_joint(record, reference=slice(0, 50), reference_angle=record.angle[:50])
    second = joint_angle(result.hinge, further.markers, result.motion.noise)
    assert abs(np.mean(second.angle - further.angle)) < 5 * result.motion.zero_error
    same = joint_angle(result.hinge, record.markers, result.motion.noise)
    np.testing.assert_allclose(same.angle, result.angle, atol=1e-12)


def move_second_joint(record, amplitude_deg):
    """Return the markers while another joint 0.4 m away also moves."""
    angle = np.deg2rad(amplitude_deg) * np.sin(np.linspace(0, 20, N_FRAMES))
    rotation = Rotation.from_rotvec(angle[:, None] * [0.0, 1.0, 0.0])
    pivot = np.add(POINT, [0.3, 0.0, 0.3])
    return np.stack([rotation.apply(record.markers[:, p] - pivot) + pivot for p in range(3)], axis=1)


def fix_marker_to_base(record):
    markers = record.markers.copy()
    markers[:, 1] = markers[0, 1] + NOISE_M * np.random.default_rng(7).normal(size=(N_FRAMES, 3))
    return markers


def shuffle_markers(record):
    order = np.argsort(np.random.default_rng(8).random((N_FRAMES, 3)), axis=1)
    return np.take_along_axis(record.markers, order[..., None], axis=1) + np.random.default_rng(9).normal(
        size=(N_FRAMES, 3, 3), scale=0.05
    )


@pytest.mark.parametrize(
    ("markers", "message"),
    [
        (lambda record: move_second_joint(record, 3.0), "stay together.*hold the other joints still"),
        (
            lambda record: record.markers + np.linspace(0, 0.3, N_FRAMES)[:, None, None],
            "[Hh]old the other joints still",
        ),
        (fix_marker_to_base, "most of marker 1"),
        (lambda record: record_joint(0.3).markers, "Turn the joint further"),
        (lambda record: record_joint(0.0).markers, "Turn the joint further"),
        (lambda record: record_joint(body=place_markers(0.0)).markers, "Turn the joint further"),
        (lambda record: record_joint(4.0, place_markers(0.15, (0,))).markers, "too (small|short)|Turn the joint"),
        (lambda record: 1000 * record.markers, "in mm"),
        (lambda record: 1000 * record_joint(2.0, noise=1e-5).markers, "in mm"),
        (shuffle_markers, "axis"),
        (lambda record: record.markers[:, :, :2], "shape"),
    ],
)
def test_invalid_markers_are_refused(markers, message):
    record = record_joint()
    with pytest.raises(MocapError, match=message):
        SingleJoint(AXIS).fit(record.time, markers(record))


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (np.arange(10.0), "time has shape"),
        (np.r_[0.0, np.arange(N_FRAMES - 1)], "does not increase at frame 1"),
        (np.r_[np.arange(N_FRAMES - 1), np.nan], "does not increase"),
    ],
)
def test_invalid_time_is_refused(time, message):
    with pytest.raises(MocapError, match=message):
        SingleJoint(AXIS).fit(time, record_joint().markers)


def test_static_poses_may_have_any_order():
    """Only whole turns depend on the order of the frames."""
    record = record_joint()
    order = np.random.default_rng(10).permutation(N_FRAMES)
    result = SingleJoint(AXIS).fit(record.time, record.markers[order])
    assert_within_errors(result, type(record)(record.time, record.markers[order], record.angle[order]))
    with pytest.raises(MocapError, match="hold the other joints still"):
        SingleJoint(AXIS).fit(record.time, move_second_joint(record, 3.0)[order])


def test_loose_marker_is_named():
    record = record_joint()
    record.markers[:, 2] += 0.003 * np.sin(np.linspace(0, 100, N_FRAMES))[:, None]
    assert any("Marker 2 is off" in remark for remark in fit_joint(record).remarks)


def test_small_second_motion_increases_the_errors():
    record = record_joint()
    markers = move_second_joint(record, 0.3)
    result = SingleJoint(AXIS).fit(record.time, markers)
    assert result.axis_estimate.standard_error > 5 * fit_joint(record).axis_estimate.standard_error
    assert direction_error(result.axis) < 4 * np.rad2deg(result.axis_estimate.standard_error)


def test_marker_never_seen_with_others_is_left_out():
    record = record_joint()
    record.markers[: N_FRAMES // 2, 2] = np.nan
    record.markers[N_FRAMES // 2 :, :2] = np.nan
    result = fit_joint(record)
    assert np.isnan(result.radii).tolist() == [False, False, True]
    assert any("Marker 2 is never seen together" in remark for remark in result.remarks)


def test_exact_without_noise():
    record = record_joint(noise=0.0)
    result = fit_joint(record)
    np.testing.assert_allclose(result.angle, record.angle, atol=1e-7)
    assert distance_error(result.center) < 1e-3
