"""Torques, link positions, wrenches and poses on other topics than the joint states."""

import numpy as np
import pytest
from bag_files import MS, NAMES, STAMP, START, float_array, header, joint_state, make, pose, states, wrench, write_bag

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording


def torques(n, step, value_of, topic="/torques", stamp=None, received=START):
    for i in range(n):
        values = value_of(i * step)
        time = received + round(i * step * 1e9)
        if stamp is None:
            yield topic, time, float_array(values)
        else:
            yield topic, time, joint_state(stamp + round(i * step * 1e9), ["b", "a"], [], effort=values[::-1])


def ramp(t):
    return np.array([100 * t, -50 * t])


def test_torque_topic_with_equal_stamps_is_not_interpolated(tmp_path):
    steps = iter(np.random.default_rng(0).normal(size=(20, 2)))
    values = list(np.random.default_rng(0).normal(size=(20, 2)))
    late = torques(20, 0.01, lambda _: next(steps), stamp=STAMP, received=START + 700 * MS)
    recording = Recording.read(write_bag(tmp_path / "bag", [*states(), *late]), torque_topic="/torques")
    np.testing.assert_array_equal(recording.torque, values)


def test_stamped_torque_topic_is_aligned_by_stamps(tmp_path):
    late = torques(40, 0.004, ramp, stamp=STAMP, received=START + 700 * MS)
    recording = Recording.read(write_bag(tmp_path / "bag", [*states(), *late]), torque_topic="/torques")
    covered = recording.time <= 39 * 0.004
    np.testing.assert_allclose(
        recording.torque[covered], np.column_stack([100 * recording.time, -50 * recording.time])[covered], atol=1e-9
    )
    assert np.isnan(recording.torque[~covered]).all()
    assert (~covered).sum() == 4


def test_unstamped_torque_topic_is_aligned_by_reception(tmp_path):
    path = write_bag(tmp_path / "bag", [*states(), *torques(60, 0.004, ramp)])
    recording = Recording.read(path, NAMES, torque_topic="torques")
    np.testing.assert_allclose(
        recording.torque, np.column_stack([100 * recording.time, -50 * recording.time]), atol=1e-9
    )
    with pytest.raises(RecordingError, match=r"the values on /torques .* have no names; give joint_names"):
        Recording.read(path, torque_topic="/torques")
    with pytest.raises(RecordingError, match="message 0 of /torques has 2 values for 1 joints"):
        Recording.read(path, ["a"], torque_topic="/torques")


def test_torques_in_a_gap_are_nan(tmp_path):
    gappy = [message for i, message in enumerate(torques(60, 0.004, ramp)) if not 10 < i < 25]
    recording = Recording.read(write_bag(tmp_path / "bag", [*states(), *gappy]), NAMES, torque_topic="/torques")
    unknown = (recording.time > 0.0401) & (recording.time < 0.0999)
    np.testing.assert_array_equal(np.isnan(recording.torque[:, 0]), unknown)


@pytest.mark.parametrize(
    ("topic", "match"),
    [
        ("/none", "has no topic /none; it has /joint_states, /wrench"),
        ("/wrench", "topic /wrench has messages of type geometry_msgs/msg/WrenchStamped; expected sensor_msgs"),
    ],
)
def test_refuses_a_wrong_torque_topic(tmp_path, topic, match):
    path = write_bag(tmp_path / "bag", [*states(), ("/wrench", START, wrench(STAMP, [1, 2, 3], [4, 5, 6]))])
    with pytest.raises(RecordingError, match=match):
        Recording.read(path, torque_topic=topic)


def test_reads_wrenches_on_the_clock_of_the_joints(tmp_path):
    stamped = [("/ft", START + i, wrench(STAMP + i * 10 * MS, [i, 1, 2], [3, 4, 5])) for i in range(-2, 3)]
    unstamped = [("/ft2", START + i * 20 * MS, wrench(0, [i, 0, 0], [0, 0, i], "wrist")) for i in range(3)]
    recording = Recording.read(write_bag(tmp_path / "bag", [*stamped, *states(), *unstamped]))
    np.testing.assert_allclose(recording.wrenches["/ft"].time, [-0.02, -0.01, 0, 0.01, 0.02])
    np.testing.assert_array_equal(recording.wrenches["/ft"].force[:, 0], range(-2, 3))
    np.testing.assert_array_equal(recording.wrenches["/ft"].torque, [[3, 4, 5]] * 5)
    np.testing.assert_allclose(recording.wrenches["/ft2"].time, [0, 0.02, 0.04])
    assert recording.wrenches["/ft2"].frame_id == "wrist"


def test_reads_poses_of_bodies_and_markers(tmp_path):
    body = [
        ("/tool/pose", START, make("geometry_msgs/PoseStamped", header(STAMP + i * MS, "world"), pose([i, 0, 0])))
        for i in range(3)
    ]
    frames = [[pose([1, 0, 0]), pose([2, 0, 0])], [pose([1, 1, 0])], []]
    markers = [
        ("/markers", START, make("geometry_msgs/PoseArray", header(STAMP + i * MS, "world"), poses))
        for i, poses in enumerate(frames)
    ]
    recording = Recording.read(write_bag(tmp_path / "bag", [*states(), *body, *markers]))
    assert sorted(recording.poses) == ["/markers[0]", "/markers[1]", "/tool/pose"]
    np.testing.assert_array_equal(recording.poses["/tool/pose"].position[:, 0], [0, 1, 2])
    np.testing.assert_array_equal(recording.poses["/tool/pose"].quaternion, [[0, 0, 0, 1]] * 3)
    assert recording.poses["/tool/pose"].frame_id == "world"
    np.testing.assert_array_equal(recording.poses["/markers[0]"].position[:, 1], [0, 1, np.nan])
    np.testing.assert_array_equal(recording.poses["/markers[1]"].position[:, 0], [2, np.nan, np.nan])


def links_behind(offset, delay, names=("b", "a")):
    """Yield joint states of links, joints reversed and stamps late; positions are those of the motors plus offset."""
    for i in range(20):
        index = i + delay / (10 * MS)
        yield (
            "/link_states",
            START + i * 10 * MS + delay,
            joint_state(STAMP + i * 10 * MS + delay, names, [index + offset + 100.0 * (name == "b") for name in names]),
        )


@pytest.mark.parametrize("delay", [0, 3 * MS])
def test_reads_link_positions_of_another_topic(tmp_path, delay):
    messages = [m for pair in zip(states(), links_behind(0.5, delay), strict=True) for m in pair]
    path = write_bag(tmp_path / "bag", messages)
    assert Recording.read(path).link_position is None
    recording = Recording.read(path, link_states_topic="link_states")
    covered = slice(1 if delay else 0, None)
    np.testing.assert_allclose(recording.link_position[covered], recording.position[covered] + 0.5, atol=1e-9)
    assert np.isnan(recording.link_position[0]).all() == bool(delay)
    with pytest.raises(RecordingError, match="has no topic /links; it has /joint_states, /link_states"):
        Recording.read(path, link_states_topic="links")


def test_refuses_link_positions_of_other_joints(tmp_path):
    messages = [*states(), *links_behind(0.0, 0, names=("c", "d"))]
    path = write_bag(tmp_path / "bag", messages)
    with pytest.raises(RecordingError, match=r"no message of /link_states names joint\(s\) a, b; it has c, d"):
        Recording.read(path, link_states_topic="/link_states")
