import numpy as np
import pytest
from hinge_bench import REQUIRED_ANGLE
from hinge_markers import AXIS, NOISE, POINT, direction_error, distance_error, places, swing, turning
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap import SingleJoint, joint_angle

N_FRAMES = 2500


def record(range_deg=60.0, body=None, seed=1, noise=NOISE):
    body = places() if body is None else body
    return turning(swing(range_deg, N_FRAMES), body, np.random.default_rng(seed), noise)


def fit(seen, **options):
    return SingleJoint(towards=AXIS).fit(seen.time, seen.markers, **options)


def require_true(found, seen, stretch=1.0):
    """Within what the standard errors allow, but for the angle's zero."""
    assert found.axis @ AXIS > 0
    assert direction_error(found.axis) < 4 * stretch * np.rad2deg(found.axis_estimate.standard_error)
    assert distance_error(found.center) < 4 * stretch * 1000 * found.center_estimate.standard_error
    known = np.isfinite(found.angle)
    off = (found.angle - seen.angle)[known]
    allowed = np.hypot(found.standard_errors, found.axis_angle_errors)[known]
    assert 0.8 < np.sqrt(np.mean(((off - off.mean()) / allowed) ** 2)) < 1.2 * stretch


@pytest.mark.parametrize(
    ("radius", "angles", "required"), [(0.15, (-8, 0, 8), REQUIRED_ANGLE), (0.25, (0, 80, 190, 280), 0.034)]
)
def test_link_angle(radius, angles, required):
    seen = record(body=places(radius, angles))
    found = fit(seen, reference=slice(None), reference_angle=seen.angle)
    assert np.rad2deg(np.std(found.angle - seen.angle)) < 1.1 * required
    assert np.rad2deg(np.mean(found.standard_errors)) == pytest.approx(required, rel=0.05)
    np.testing.assert_allclose(found.radii, radius, atol=1e-3)
    require_true(found, seen)
    assert not found.motion.swapped.any()
    assert not found.motion.outliers.any()
    assert np.isfinite(found.angle).all()
    assert found.remarks == ()
    rms = np.sqrt(np.mean(found.motion.residuals**2))
    assert rms == pytest.approx(NOISE * np.sqrt(3 - 1 / len(angles)), rel=0.05)
    assert "standard error" in found.summary()


def test_dropped_frames_hidden_markers_and_late_start():
    seen = record()
    seen.markers[np.random.default_rng(2).random(seen.markers.shape[:2]) < 0.3] = np.nan
    seen.markers[:20] = np.nan
    keep = np.random.default_rng(3).random(N_FRAMES) < 0.9
    found = SingleJoint(AXIS).fit(seen.time[keep], seen.markers[keep])
    require_true(found, type(seen)(seen.time[keep], seen.markers[keep], seen.angle[keep]))
    assert np.isnan(found.angle).sum() == np.isnan(seen.markers[keep]).all(axis=(1, 2)).sum()
    assert any("frames are missing" in remark for remark in found.remarks)


def test_all_faults_at_once():
    seen = record(90.0)
    rng = np.random.default_rng(4)
    exchanged = np.r_[rng.choice(1000, 40, replace=False), 1500:1800]
    seen.markers[exchanged[:, None], [[0, 2]]] = seen.markers[exchanged[:, None], [[2, 0]]]
    ghosts = rng.choice(np.arange(1000, 1500), 60, replace=False)
    seen.markers[ghosts, rng.integers(3, size=60)] += rng.choice([-1, 1], (60, 3)) * rng.uniform(0.02, 1.0, (60, 3))
    seen.markers[2000:2100, 1] += [0.4, 0.0, 0.1]
    found = fit(seen)
    assert found.motion.swapped.sum() == len(exchanged)
    assert found.motion.outliers.sum() == 160
    require_true(found, seen)


def test_gross_errors_that_pass_for_a_marker_at_rest():
    """A few far ghosts, each for so long that it looks steady, outweigh a short arc in every sum of squares."""
    seen = record(10.0, body=places(0.15, (-8, 8)))
    for start in (300, 900, 1600):
        seen.markers[start : start + 6] += [0.7, -0.2, 0.1]  # both together, so that their distance is right
    found = fit(seen)
    assert found.motion.outliers.sum() == 36
    require_true(found, seen)


@pytest.mark.parametrize("heights", [(-0.05, 0.05), (0.0, 0.0)])
def test_two_markers_exchanged_for_long(heights):
    seen = record(body=places(0.15, (-8, 8), heights))
    seen.markers[1000:1400] = seen.markers[1000:1400, ::-1]
    found = fit(seen)
    assert found.motion.swapped.sum() == 400
    require_true(found, seen)


def test_one_marker():
    seen = record(body=places(0.15, (0,)))
    found = fit(seen)
    require_true(found, seen)
    assert any("single marker" in remark for remark in found.remarks)


def test_sign_without_an_approximate_axis():
    for sign in (1, -1):
        angle = sign * np.deg2rad(30) * (1 - np.cos(np.linspace(0, 6 * np.pi, N_FRAMES)))
        seen = turning(angle, places(), np.random.default_rng(5))
        found = SingleJoint().fit(seen.time, seen.markers)
        assert sign * (found.axis @ AXIS) > 0.999
        assert found.angle[np.argmax(np.abs(angle))] > 1
        assert found.remarks == ()


def test_a_sign_that_is_chance_is_remarked():
    found = SingleJoint().fit(record().time, record().markers)
    assert any("towards" in remark for remark in found.remarks)


def test_hinge_gives_the_same_angle_in_further_records():
    seen, further = record(), record(100.0, seed=6)
    found = fit(seen, reference=slice(0, 50), reference_angle=seen.angle[:50])
    again = joint_angle(found.hinge, further.markers, found.motion.noise)
    assert abs(np.mean(again.angle - further.angle)) < 5 * found.motion.zero_error
    same = joint_angle(found.hinge, seen.markers, found.motion.noise)
    np.testing.assert_allclose(same.angle, found.angle, atol=1e-12)


def second_joint(seen, amplitude_deg):
    """The same markers, while another joint 0.4 m away moves, too."""
    angle = np.deg2rad(amplitude_deg) * np.sin(np.linspace(0, 20, N_FRAMES))
    rotation, pivot = Rotation.from_rotvec(angle[:, None] * [0.0, 1.0, 0.0]), np.add(POINT, [0.3, 0.0, 0.3])
    return np.stack([rotation.apply(seen.markers[:, p] - pivot) + pivot for p in range(3)], axis=1)


def marker_on_base(seen):
    markers = seen.markers.copy()
    markers[:, 1] = markers[0, 1] + NOISE * np.random.default_rng(7).normal(size=(N_FRAMES, 3))
    return markers


def names_at_random(seen):
    order = np.argsort(np.random.default_rng(8).random((N_FRAMES, 3)), axis=1)
    return np.take_along_axis(seen.markers, order[..., None], axis=1) + np.random.default_rng(9).normal(
        size=(N_FRAMES, 3, 3), scale=0.05
    )


@pytest.mark.parametrize(
    ("markers", "message"),
    [
        (lambda seen: second_joint(seen, 3.0), "stay together.*hold the other joints still"),
        (lambda seen: seen.markers + np.linspace(0, 0.3, N_FRAMES)[:, None, None], "[Hh]old the other joints still"),
        (marker_on_base, "most of marker 1"),
        (lambda seen: record(0.3).markers, "Turn the joint further"),
        (lambda seen: record(0.0).markers, "Turn the joint further"),
        (lambda seen: record(body=places(0.0)).markers, "Turn the joint further"),
        (lambda seen: record(4.0, places(0.15, (0,))).markers, "too (small|short)|Turn the joint"),
        (lambda seen: 1000 * seen.markers, "in mm"),
        (lambda seen: 1000 * record(2.0, noise=1e-5).markers, "in mm"),
        (names_at_random, "axis"),
        (lambda seen: seen.markers[:, :, :2], "shape"),
    ],
)
def test_refused(markers, message):
    seen = record()
    with pytest.raises(MocapError, match=message):
        SingleJoint(AXIS).fit(seen.time, markers(seen))


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (np.arange(10.0), "time has shape"),
        (np.r_[0.0, np.arange(N_FRAMES - 1)], "does not increase at frame 1"),
        (np.r_[np.arange(N_FRAMES - 1), np.nan], "does not increase"),
    ],
)
def test_time_that_is_none(time, message):
    with pytest.raises(MocapError, match=message):
        SingleJoint(AXIS).fit(time, record().markers)


def test_poses_that_do_not_follow_each_other():
    """Static poses in any order: nothing rests on the course of the motion but whole turns."""
    seen, order = record(), np.random.default_rng(10).permutation(N_FRAMES)
    found = SingleJoint(AXIS).fit(seen.time, seen.markers[order])
    require_true(found, type(seen)(seen.time, seen.markers[order], seen.angle[order]))
    with pytest.raises(MocapError, match="hold the other joints still"):
        SingleJoint(AXIS).fit(seen.time, second_joint(seen, 3.0)[order])


def test_a_loose_marker_is_named():
    seen = record()
    seen.markers[:, 2] += 0.003 * np.sin(np.linspace(0, 100, N_FRAMES))[:, None]
    assert any("Marker 2 is off" in remark for remark in fit(seen).remarks)


def test_a_small_second_motion_is_remarked_and_widens_the_errors():
    seen = record()
    markers = second_joint(seen, 0.3)
    found = SingleJoint(AXIS).fit(seen.time, markers)
    assert found.axis_estimate.standard_error > 5 * fit(seen).axis_estimate.standard_error
    assert direction_error(found.axis) < 4 * np.rad2deg(found.axis_estimate.standard_error)


def test_a_marker_never_with_others_is_left_out():
    seen = record()
    seen.markers[: N_FRAMES // 2, 2] = np.nan
    seen.markers[N_FRAMES // 2 :, :2] = np.nan
    found = fit(seen)
    assert np.isnan(found.radii).tolist() == [False, False, True]
    assert any("Marker 2 is never seen together" in remark for remark in found.remarks)


def test_exact_without_noise():
    seen = record(noise=0.0)
    found = fit(seen)
    np.testing.assert_allclose(found.angle, seen.angle, atol=1e-7)
    assert distance_error(found.center) < 1e-3
