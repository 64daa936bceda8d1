"""Check the simulated camera: projection of markers, and each defect by its statistics."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dynid_ros.errors import DynidError
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.recording import Recording
from dynid_ros.simulation import Camera, CameraView, SimulatedArm, body_poses, marker_poses, scattered_markers
from dynid_ros.simulation.sensors import body_pose


def test_scattered_markers_of_each_link_are_not_collinear(demo_robot):
    markers = scattered_markers(demo_robot, 4, 0.15, np.random.default_rng(0))
    assert markers.size == 24
    assert markers.names[4:6] == ("link_2 0", "link_2 1")
    assert markers.links.tolist() == np.repeat(np.arange(6), 4).tolist()
    assert np.linalg.norm(markers.places, axis=1) == pytest.approx(np.full(24, 0.15))
    for link in range(6):
        places = markers.places[markers.links == link]
        assert np.linalg.svd(places - places.mean(axis=0), compute_uv=False)[1] > 0.05


@pytest.mark.parametrize(("number", "radius"), [(2, 0.1), (3, 0.0), (3, np.inf)])
def test_refuses_markers_that_do_not_determine_rotation(demo_robot, number, radius):
    with pytest.raises(DynidError, match="markers per link"):
        scattered_markers(demo_robot, number, radius, np.random.default_rng(0))


def test_marker_positions_match_the_kinematics(demo_robot):
    """Markers lie on links and on the base, which may be attached to the world by a fixed joint."""
    rng = np.random.default_rng(1)
    links = [*demo_robot.link_names, demo_robot.base]
    markers = MarkerSet.on_links(demo_robot, links, rng.standard_normal((7, 3)))
    q = rng.uniform(-2.0, 2.0, (20, 6))
    poses = demo_robot.forward_kinematics(q)
    expected = np.einsum("npij,pj->npi", poses[..., :3, :3], markers.places[:6]) + poses[..., :3, 3]
    computed = SimulatedArm(demo_robot).truth.marker_positions(q, markers)
    assert computed[:, :6] == pytest.approx(expected, abs=1e-12)
    assert computed[:, 6] == pytest.approx(np.tile(markers.places[6], (20, 1)))


PLACES = np.array([[0.1, 0.0, 0.0], [0.0, 0.12, 0.0], [0.0, 0.0, 0.15], [0.1, 0.1, 0.1]])
FRAMES = 4000


def film_still(camera, n=FRAMES, seed=0):
    """Return `n` frames of resting markers, an array (n, m, 3)."""
    view = CameraView(camera, np.random.default_rng(seed))
    return np.array([view.frame(PLACES) for _ in range(n)])


def homogeneous_transform(rpy, xyz):
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
    matrix[:3, 3] = xyz
    return matrix


@pytest.fixture(scope="module")
def arm(demo_robot):
    return SimulatedArm(demo_robot)


@pytest.fixture(scope="module")
def motion(demo_robot):
    """Return a motion of 4 s where links oscillate relative to their motors."""
    time = np.arange(1001) / 250.0
    motors = 0.8 * np.sin(time[:, None] * np.linspace(1.0, 3.0, 6))
    links = motors + 0.02 * np.sin(40.0 * time[:, None] + np.arange(6))
    nothing = np.zeros_like(motors)
    return Recording(demo_robot.joint_names, time, motors, nothing, nothing, link_position=links)


def test_returns_positions_in_the_camera_frame():
    base = homogeneous_transform([0.3, -0.4, 2.0], [1.0, 2.0, 3.0])
    positions = film_still(Camera(base=base, noise=0.0), 2)
    assert positions[1] == pytest.approx(PLACES @ base[:3, :3].T + base[:3, 3])


def test_noise_has_the_configured_deviation_on_each_camera_axis():
    base = homogeneous_transform([0.3, -0.4, 2.0], [0.0, 0.0, 0.0])
    positions = film_still(Camera(base=base, noise=[1e-4, 2e-4, 5e-4])) - PLACES @ base[:3, :3].T
    assert positions.std(axis=(0, 1)) == pytest.approx([1e-4, 2e-4, 5e-4], rel=0.03)
    assert positions.mean(axis=(0, 1)) == pytest.approx(np.zeros(3), abs=2e-5)


@pytest.mark.parametrize(("burst", "length"), [(0.0, 1.0), (0.2, 20.0)])
def test_occlusion_has_the_configured_share_and_burst_length(burst, length):
    hidden = np.isnan(film_still(Camera(occlusion=0.2, burst=burst), 20000)).all(axis=2)
    assert hidden.mean() == pytest.approx(0.2, rel=0.15)
    beginnings = (np.diff(hidden.astype(int), axis=0) > 0).sum()
    assert hidden.sum() / beginnings == pytest.approx(length, rel=0.1)


def test_swaps_exchange_two_markers_for_a_burst():
    positions = film_still(Camera(noise=0.0, swaps=1.0, burst=0.1), 20000)
    wrong = np.abs(positions - PLACES).max(axis=2) > 0.01
    assert np.allclose(np.sort(positions, axis=1), np.sort(PLACES, axis=0))
    swapped = wrong.any(axis=1)
    assert swapped.mean() == pytest.approx(0.1, rel=0.25)
    assert wrong.any(axis=0).all()


def test_appends_ghosts_after_the_markers():
    positions = film_still(Camera(ghosts=0.1))
    assert positions.shape == (FRAMES, 5, 3)
    visible = np.isfinite(positions[:, 4]).all(axis=1)
    assert visible.mean() == pytest.approx(0.1, rel=0.2)
    assert positions[visible, 4].std(axis=0) == pytest.approx([0.3] * 3, rel=0.15)
    assert np.allclose(positions[:, :4], PLACES, atol=0.002)


def test_clock_model_has_offset_and_drift():
    """The clock model robot_time = camera_time + offset + drift (camera_time - middle) inverts exactly."""
    camera = Camera(clock_offset=0.7, clock_drift=1e-3)
    time = np.linspace(0.0, 20.0, 11)
    stamps = camera.camera_time(time, 10.0)
    assert time == pytest.approx(stamps + 0.7 + 1e-3 * (stamps - stamps[5]), abs=1e-12)
    assert camera.robot_time(stamps, 10.0) == pytest.approx(time)


def test_films_links_at_the_exposure_time_of_each_frame(arm, motion):
    camera = Camera(rate=97.0, noise=0.0, clock_offset=-0.3, clock_drift=2e-3, latency=0.02)
    markers = MarkerSet.on_links(arm.robot, ["link_3", "link_6", "base_link"], PLACES[:3])
    stamps, positions = camera.film(motion, arm.truth, markers, np.random.default_rng(0))
    exposure = stamps - 0.02
    middle = 2.0 + 0.3
    robot_time = exposure - 0.3 + 2e-3 * (exposure - middle)
    assert robot_time[0] == pytest.approx(0.0, abs=1e-9)
    assert 4.0 - 1.01 / 97.0 < robot_time[-1] <= 4.0
    assert np.diff(stamps) == pytest.approx(np.full(len(stamps) - 1, 1.0 / 97.0))
    motors = 0.8 * np.sin(robot_time[:, None] * np.linspace(1.0, 3.0, 6))
    links = motors + 0.02 * np.sin(40.0 * robot_time[:, None] + np.arange(6))
    poses = arm.robot.forward_kinematics(links)
    for column, link in enumerate([2, 5]):
        expected = poses[:, link, :3, :3] @ PLACES[column] + poses[:, link, :3, 3]
        assert positions[:, column] == pytest.approx(expected, abs=2e-5)
    assert positions[:, 2] == pytest.approx(np.tile(PLACES[2], (len(positions), 1)))


def test_refuses_to_film_without_link_positions(arm, motion):
    with pytest.raises(DynidError, match="no positions of the links"):
        Camera().film(
            replace(motion, link_position=None),
            arm.truth,
            MarkerSet.on_links(arm.robot, ["link_1"]),
            np.random.default_rng(0),
        )


def test_converts_markers_to_marker_and_body_poses(arm, motion, demo_robot):
    markers = MarkerSet.on_links(demo_robot, ["link_2"] * 4 + ["link_5"] * 3, np.vstack([PLACES, PLACES[:3]]))
    camera = Camera(rate=50.0, base=homogeneous_transform([0.1, 0.2, 0.3], [1.0, 0.0, 0.5]), noise=1e-5, occlusion=0.1)
    stamps, positions = camera.film(motion, arm.truth, markers, np.random.default_rng(2))
    poses = marker_poses(stamps, positions, "/m") | body_poses(stamps, positions, markers, arm.robot, "/mocap")
    assert set(poses) == {*(f"/m[{i}]" for i in range(7)), "/mocap/link_2/pose", "/mocap/link_5/pose"}
    body = poses["/mocap/link_5/pose"]
    marker = poses["/m[4]"]
    assert body.time == pytest.approx(motion.time[::5])
    links = demo_robot.forward_kinematics(motion.link_position[::5])
    for k in np.flatnonzero(np.isfinite(body.position).all(axis=1))[::10]:
        expected = camera.base @ links[k, 4]
        assert body.position[k] == pytest.approx(expected[:3, 3], abs=1e-4)
        assert Rotation.from_quat(body.quaternion[k]).as_matrix() == pytest.approx(expected[:3, :3], abs=1e-3)
    hidden = np.isnan(marker.position).any(axis=1)
    assert 0.05 < hidden.mean() < 0.15
    assert np.isnan(body.position[hidden]).all(), "two markers do not determine an orientation"
    assert np.isnan(marker.quaternion[hidden]).all()
    assert marker.quaternion[~hidden][0].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_body_pose_is_the_least_squares_fit_of_its_markers():
    """The reference is SciPy's fit; three of four markers suffice, two do not."""
    transform = homogeneous_transform([0.5, -0.2, 1.0], [0.3, -0.2, 0.9])
    positions = np.tile(PLACES @ transform[:3, :3].T + transform[:3, 3], (3, 1, 1))
    positions += 0.01 * np.random.default_rng(0).standard_normal(positions.shape)
    positions[1:, 1] = positions[2, 0] = np.nan
    position, quaternion = body_pose(positions, PLACES)
    for frame, good in ((0, [0, 1, 2, 3]), (1, [0, 2, 3])):
        middle = positions[frame, good].mean(axis=0)
        places = PLACES[good] - PLACES[good].mean(axis=0)
        expected, _ = Rotation.align_vectors(positions[frame, good] - middle, places)
        assert Rotation.from_quat(quaternion[frame]).as_matrix() == pytest.approx(expected.as_matrix())
        assert position[frame] == pytest.approx(middle - expected.apply(PLACES[good].mean(axis=0)))
    assert np.isnan(position[2]).all()
    assert np.isnan(quaternion[2]).all()


def test_omits_body_poses_of_links_with_fewer_than_three_markers(demo_robot):
    links = ["link_2"] * 2 + ["link_4"] * 3
    markers = MarkerSet.on_links(demo_robot, links, PLACES[[0, 1, 0, 1, 2]])
    positions = np.tile(markers.places, (3, 1, 1))
    assert list(body_poses(np.arange(3.0), positions, markers, demo_robot, "/mocap")) == ["/mocap/link_4/pose"]
    assert list(marker_poses(np.arange(3.0), positions, "/m")) == [f"/m[{i}]" for i in range(5)]


@pytest.mark.parametrize(
    "settings", [{"rate": 0.0}, {"noise": -1.0}, {"occlusion": 1.0}, {"base": np.zeros((4, 4))}, {"latency": -0.1},
            {"clock_drift": 1.5}, {"rate": 1e9}, {"clock_offset": 1e17}, {"latency": 1e17}, {"noise": 1e300},
            {"ghosts": 2.0}, {"noise": [1.0, 2.0]}]
)  # fmt: skip
def test_refuses_invalid_camera_settings(settings):
    with pytest.raises(DynidError, match=f"{next(iter(settings))} of the camera is"):
        Camera(**settings)
