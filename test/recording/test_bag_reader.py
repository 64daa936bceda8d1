import shutil

import numpy as np
import pytest
from bag_files import START, TYPES, float_array, header, joint_state, make, pose, wrench, write_bag
from rosbags.rosbag2 import StoragePlugin, Writer

from dynid_ros.errors import RecordingError
from dynid_ros.recording import EffortConvention, Recording

MS = 1_000_000
STAMP = 5 * 10**9
"""Header stamp of the first sample, far from the times of reception: the two clocks must not be mixed."""
NAMES = ["a", "b"]


def states(n=20, names=NAMES, stamp=STAMP, topic="/joint_states", received=START):
    """n joint states, 10 ms apart; joint k has position i + 100 k at sample i, velocity +1000, effort +2000."""
    for i in range(n):
        position = i + 100.0 * np.array([ord(name[0]) - ord("a") for name in names])
        message = joint_state(stamp + i * 10 * MS if stamp else 0, names, position, position + 1000, position + 2000)
        yield topic, received + i * 10 * MS, message


@pytest.mark.parametrize("storage", StoragePlugin)
def test_joint_states(tmp_path, storage):
    path = write_bag(tmp_path / "bag", states(), storage)
    it = Recording.read(path)
    i = np.arange(20.0)
    assert it.joint_names == ("a", "b")
    assert it.start_time == 5.0
    assert not it.truncated
    np.testing.assert_allclose(it.time, i / 100, atol=1e-12)
    np.testing.assert_array_equal(it.position, np.column_stack([i, i + 100]))
    np.testing.assert_array_equal(it.velocity, it.position + 1000)
    np.testing.assert_array_equal(it.torque, it.position + 2000)


@pytest.mark.parametrize("storage", StoragePlugin)
def test_storage_file_without_its_folder(tmp_path, storage):
    path = write_bag(tmp_path / "bag", states(), storage)
    (file,) = (file for file in path.iterdir() if file.suffix in (".mcap", ".db3"))
    assert Recording.read(file).n_samples == 20
    (path / "metadata.yaml").unlink()
    assert Recording.read(path).n_samples == 20


def test_several_files_without_metadata_come_in_order_of_time(tmp_path):
    folder = tmp_path / "split"
    folder.mkdir()
    for name, first in (("split_10", 0), ("split_9", 1)):
        bag = write_bag(tmp_path / name, states(20, stamp=STAMP + first * 10**9, received=START + first * 10**9))
        shutil.copy(bag / f"{name}.mcap", folder)
    it = Recording.read(folder)
    assert it.n_samples == 40
    assert it.duration == pytest.approx(1.19)


def test_effort_convention_and_joint_names(tmp_path):
    path = write_bag(tmp_path / "bag", states())
    it = Recording.read(path, ["b", "a"], effort_convention=EffortConvention("motor_current", [10.0, -1.0]))
    np.testing.assert_array_equal(it.torque[3], [21030, -2003])
    with pytest.raises(RecordingError, match="gravity is not in the recorded effort"):
        Recording.read(path, effort_convention=EffortConvention("gravity_compensated"))
    with pytest.raises(RecordingError, match=r"no message of /joint_states names joint\(s\) c, d; it has a, b"):
        Recording.read(path, ["a", "c", "d"])


def test_names_may_change_their_order(tmp_path):
    messages = [message for pair in zip(states(20), states(20, names=["b", "a"]), strict=True) for message in pair]
    it = Recording.read(write_bag(tmp_path / "bag", [m for i, m in enumerate(messages) if i % 4 in (0, 3)]))
    np.testing.assert_array_equal(it.position[:, 1], it.position[:, 0] + 100)


def test_joints_of_several_publishers(tmp_path):
    arm, gripper = list(states(20)), list(states(20, names=["finger"], stamp=STAMP + 2 * MS, received=START + 2 * MS))
    path = write_bag(tmp_path / "bag", [message for pair in zip(gripper, arm, strict=True) for message in pair])
    assert Recording.read(path, NAMES).n_samples == 20
    assert Recording.read(path, ["finger"]).joint_names == ("finger",)
    with pytest.raises(RecordingError, match=r"name different joints \(a, b; then finger\); give joint_names"):
        Recording.read(path)
    with pytest.raises(RecordingError, match=r"names all of a, finger at once: they come in separate messages"):
        Recording.read(path, ["a", "finger"])


def test_double_publisher(tmp_path):
    path = write_bag(tmp_path / "bag", [message for message in states() for _ in range(2)])
    with pytest.raises(RecordingError, match=r"bag: /joint_states: time repeats at sample 1: 0\.0+ s.*two publishers"):
        Recording.read(path)


def test_bag_played_twice_and_the_way_out(tmp_path):
    again = states(received=START + 10**9)
    path = write_bag(tmp_path / "bag", [*states(), *again])
    with pytest.raises(RecordingError, match=r"time goes backward at sample 20: .*receive_time=True"):
        Recording.read(path)
    it = Recording.read(path, receive_time=True)
    assert it.start_time == pytest.approx(START * 1e-9)
    assert it.time[20] == pytest.approx(1.0)


def test_without_stamps_the_time_of_reception_counts(tmp_path):
    it = Recording.read(write_bag(tmp_path / "bag", states(stamp=0)))
    assert it.start_time == pytest.approx(START * 1e-9)
    np.testing.assert_allclose(it.time, np.arange(20) / 100)


def test_empty_fields_are_nan(tmp_path):
    messages = [("/joint_states", START + i, joint_state(STAMP + i, NAMES, [i, i])) for i in range(3)]
    it = Recording.read(write_bag(tmp_path / "bag", messages))
    assert np.isnan(it.velocity).all()
    assert np.isnan(it.torque).all()


@pytest.mark.parametrize(
    ("message", "match"),
    [
        (joint_state(STAMP + 1, NAMES, [1.0]), "message 1 of /joint_states has 1 values of position for 2 names"),
        (joint_state(STAMP + 1, NAMES, [1, 2], effort=[1, 2, 3]), "message 1 .* has 3 values of effort for 2 names"),
        (joint_state(STAMP + 1, NAMES, [1, np.nan]), "position of joint 'b' is nan at sample 1"),
        (joint_state(STAMP + 1, NAMES, []), "position of joint 'a' is nan at sample 1"),
        (joint_state(STAMP + 1, ["a", "b", "a"], [1, 2, 3]), r"message 1 .* names joint\(s\) a more than once"),
    ],
)
def test_bad_messages(tmp_path, message, match):
    good = joint_state(STAMP, NAMES, [1, 2])
    path = write_bag(tmp_path / "bag", [("/joint_states", START, good), ("/joint_states", START + 1, message)])
    with pytest.raises(RecordingError, match=match):
        Recording.read(path)


def test_nameless_messages(tmp_path):
    path = write_bag(tmp_path / "bag", [("/joint_states", START, joint_state(STAMP, [], [1, 2]))])
    with pytest.raises(RecordingError, match="the messages of /joint_states name no joints"):
        Recording.read(path)


def test_choice_of_the_joint_states_topic(tmp_path):
    lone = write_bag(tmp_path / "lone", states(topic="/left/joint_states"))
    assert Recording.read(lone).n_samples == 20
    two = write_bag(tmp_path / "two", [*states(5, topic="/left/joint_states"), *states(6, topic="/right/joint_states")])
    with pytest.raises(RecordingError, match=r"2 topics of type .*\(/left/joint_states, /right/joint_states\); give"):
        Recording.read(two)
    assert Recording.read(two, joint_states_topic="right/joint_states").n_samples == 6
    with pytest.raises(RecordingError, match="has no topic /middle; it has /left/joint_states, /right/joint_states"):
        Recording.read(two, joint_states_topic="/middle")
    default = write_bag(tmp_path / "default", [*states(5, topic="/desired"), *states(6)])
    assert Recording.read(default).n_samples == 6


def torques(n, step, value_of, topic="/torques", stamp=None, received=START):
    for i in range(n):
        values = value_of(i * step)
        at = received + round(i * step * 1e9)
        if stamp is None:
            yield topic, at, float_array(values)
        else:
            yield topic, at, joint_state(stamp + round(i * step * 1e9), ["b", "a"], [], effort=values[::-1])


def ramp(t):
    return np.array([100 * t, -50 * t])


def test_torque_topic_with_the_same_stamps_is_taken_as_it_is(tmp_path):
    steps = iter(np.random.default_rng(0).normal(size=(20, 2)))
    values = list(np.random.default_rng(0).normal(size=(20, 2)))
    late = torques(20, 0.01, lambda _: next(steps), stamp=STAMP, received=START + 700 * MS)
    it = Recording.read(write_bag(tmp_path / "bag", [*states(), *late]), torque_topic="/torques")
    np.testing.assert_array_equal(it.torque, values)


def test_stamped_torque_topic_is_aligned_by_stamps(tmp_path):
    late = torques(40, 0.004, ramp, stamp=STAMP, received=START + 700 * MS)
    it = Recording.read(write_bag(tmp_path / "bag", [*states(), *late]), torque_topic="/torques")
    covered = it.time <= 39 * 0.004
    np.testing.assert_allclose(it.torque[covered], np.column_stack([100 * it.time, -50 * it.time])[covered], atol=1e-9)
    assert np.isnan(it.torque[~covered]).all()
    assert (~covered).sum() == 4


def test_unstamped_torque_topic_is_aligned_by_reception(tmp_path):
    path = write_bag(tmp_path / "bag", [*states(), *torques(60, 0.004, ramp)])
    it = Recording.read(path, NAMES, torque_topic="torques")
    np.testing.assert_allclose(it.torque, np.column_stack([100 * it.time, -50 * it.time]), atol=1e-9)
    with pytest.raises(RecordingError, match=r"the values on /torques .* have no names; give joint_names"):
        Recording.read(path, torque_topic="/torques")
    with pytest.raises(RecordingError, match="message 0 of /torques has 2 values for 1 joints"):
        Recording.read(path, ["a"], torque_topic="/torques")


def test_torques_are_not_invented_in_a_gap(tmp_path):
    gappy = [message for i, message in enumerate(torques(60, 0.004, ramp)) if not 10 < i < 25]
    it = Recording.read(write_bag(tmp_path / "bag", [*states(), *gappy]), NAMES, torque_topic="/torques")
    unknown = (it.time > 0.0401) & (it.time < 0.0999)
    np.testing.assert_array_equal(np.isnan(it.torque[:, 0]), unknown)


@pytest.mark.parametrize(
    ("topic", "match"),
    [
        ("/none", "has no topic /none; it has /joint_states, /wrench"),
        ("/wrench", "topic /wrench has messages of type geometry_msgs/msg/WrenchStamped; expected sensor_msgs"),
    ],
)
def test_wrong_torque_topic(tmp_path, topic, match):
    path = write_bag(tmp_path / "bag", [*states(), ("/wrench", START, wrench(STAMP, [1, 2, 3], [4, 5, 6]))])
    with pytest.raises(RecordingError, match=match):
        Recording.read(path, torque_topic=topic)


def test_wrenches_by_topic_on_the_clock_of_the_joints(tmp_path):
    stamped = [("/ft", START + i, wrench(STAMP + i * 10 * MS, [i, 1, 2], [3, 4, 5])) for i in range(-2, 3)]
    unstamped = [("/ft2", START + i * 20 * MS, wrench(0, [i, 0, 0], [0, 0, i], "wrist")) for i in range(3)]
    it = Recording.read(write_bag(tmp_path / "bag", [*stamped, *states(), *unstamped]))
    np.testing.assert_allclose(it.wrenches["/ft"].time, [-0.02, -0.01, 0, 0.01, 0.02])
    np.testing.assert_array_equal(it.wrenches["/ft"].force[:, 0], range(-2, 3))
    np.testing.assert_array_equal(it.wrenches["/ft"].torque, [[3, 4, 5]] * 5)
    np.testing.assert_allclose(it.wrenches["/ft2"].time, [0, 0.02, 0.04])
    assert it.wrenches["/ft2"].frame_id == "wrist"


def test_bodies_and_markers(tmp_path):
    body = [
        ("/tool/pose", START, make("geometry_msgs/PoseStamped", header(STAMP + i * MS, "world"), pose([i, 0, 0])))
        for i in range(3)
    ]
    seen = [[pose([1, 0, 0]), pose([2, 0, 0])], [pose([1, 1, 0])], []]
    markers = [
        ("/markers", START, make("geometry_msgs/PoseArray", header(STAMP + i * MS, "world"), poses))
        for i, poses in enumerate(seen)
    ]
    it = Recording.read(write_bag(tmp_path / "bag", [*states(), *body, *markers]))
    assert sorted(it.poses) == ["/markers[0]", "/markers[1]", "/tool/pose"]
    np.testing.assert_array_equal(it.poses["/tool/pose"].position[:, 0], [0, 1, 2])
    np.testing.assert_array_equal(it.poses["/tool/pose"].quaternion, [[0, 0, 0, 1]] * 3)
    assert it.poses["/tool/pose"].frame_id == "world"
    np.testing.assert_array_equal(it.poses["/markers[0]"].position[:, 1], [0, 1, np.nan])
    np.testing.assert_array_equal(it.poses["/markers[1]"].position[:, 0], [2, np.nan, np.nan])


def test_empty_bag(tmp_path):
    with pytest.raises(
        RecordingError, match=r"bag has 0 topics of type .*\(no topics at all\); record the joint states"
    ):
        Recording.read(write_bag(tmp_path / "bag", []))


def test_topic_without_messages(tmp_path):
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=TYPES)
        writer.add_connection("/tool/pose", "geometry_msgs/msg/PoseStamped", typestore=TYPES)
    with pytest.raises(RecordingError, match="topic /joint_states has no messages"):
        Recording.read(tmp_path / "bag")


def test_bag_without_joint_states(tmp_path):
    path = write_bag(tmp_path / "bag", [("/ft", START, wrench(STAMP, [1, 2, 3], [4, 5, 6]))])
    with pytest.raises(RecordingError, match=r"has 0 topics of type sensor_msgs/msg/JointState.*\(/ft\)"):
        Recording.read(path)


def test_folder_that_is_no_bag(tmp_path):
    with pytest.raises(RecordingError, match=r"holds no bag.*expected a rosbag2 folder"):
        Recording.read(tmp_path)


def test_topic_of_two_types(tmp_path):
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=TYPES)
        writer.add_connection("/joint_states", "std_msgs/msg/String", typestore=TYPES)
    with pytest.raises(RecordingError, match="topic /joint_states has messages of two types"):
        Recording.read(tmp_path / "bag")


@pytest.mark.parametrize("suffix", [".mcap", ".db3"])
@pytest.mark.parametrize("content", [b"", b"not a bag" * 100], ids=["empty", "garbage"])
def test_file_that_is_no_bag(tmp_path, suffix, content):
    path = tmp_path / f"run{suffix}"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=rf"run{suffix}.* empty or damaged|run{suffix} has 0 topics"):
        Recording.read(path)


def test_missing_storage_file(tmp_path):
    path = write_bag(tmp_path / "bag", states())
    (path / "bag.mcap").unlink()
    with pytest.raises(RecordingError, match=r"holds no bag \(Some database files are missing"):
        Recording.read(path)


def test_truncated_database(tmp_path):
    path = write_bag(tmp_path / "bag", states(2000), StoragePlugin.SQLITE3)
    file = path / "bag.db3"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(RecordingError, match=r"bag.* damaged"):
        Recording.read(path)


def test_damaged_message(tmp_path):
    path = write_bag(tmp_path / "bag", states())
    file = path / "bag.mcap"
    content = bytearray(file.read_bytes())
    length_of_name = content.index(b"a\x00\x00\x00\x02\x00\x00\x00b\x00") - 4
    content[length_of_name : length_of_name + 4] = b"\xff" * 4
    file.write_bytes(content)
    with pytest.raises(RecordingError, match="bag is damaged after message 0 of /joint_states"):
        Recording.read(path)


def test_compressed_and_unsorted_bag_of_another_writer(tmp_path):
    mcap_writer = pytest.importorskip("mcap.writer")
    file = tmp_path / "other.mcap"
    with file.open("wb") as stream:
        writer = mcap_writer.Writer(stream, chunk_size=2000, compression=mcap_writer.CompressionType.ZSTD)
        writer.start(profile="ros2", library="test")
        definition, _ = TYPES.generate_msgdef("sensor_msgs/msg/JointState", ros_version=2)
        schema = writer.register_schema("sensor_msgs/msg/JointState", "ros2msg", definition.encode())
        channels = [writer.register_channel(topic, "cdr", schema) for topic in ("/other", "/joint_states")]
        for _, received, message in states(100):
            data = bytes(TYPES.serialize_cdr(message, message.__msgtype__))
            for channel, delay in zip(channels, (5 * MS, 0), strict=True):
                writer.add_message(channel, log_time=received + delay, publish_time=received, data=data)
        writer.finish()
    it = Recording.read(file)
    np.testing.assert_array_equal(it.position[:, 0], np.arange(100))


def links_behind(offset, delay, names=("b", "a")):
    """Joint states of links, in another order, at other times; each position is that of the motor, and an offset."""
    for i in range(20):
        at = i + delay / (10 * MS)
        yield (
            "/link_states",
            START + i * 10 * MS + delay,
            joint_state(STAMP + i * 10 * MS + delay, names, [at + offset + 100.0 * (name == "b") for name in names]),
        )


@pytest.mark.parametrize("delay", [0, 3 * MS])
def test_links_of_another_topic(tmp_path, delay):
    both = [m for pair in zip(states(), links_behind(0.5, delay), strict=True) for m in pair]
    path = write_bag(tmp_path / "bag", both)
    assert Recording.read(path).link_position is None
    it = Recording.read(path, link_states_topic="link_states")
    known = slice(1 if delay else 0, None)
    np.testing.assert_allclose(it.link_position[known], it.position[known] + 0.5, atol=1e-9)
    assert np.isnan(it.link_position[0]).all() == bool(delay)
    with pytest.raises(RecordingError, match="has no topic /links; it has /joint_states, /link_states"):
        Recording.read(path, link_states_topic="links")


def test_links_of_other_joints_are_refused(tmp_path):
    both = [*states(), *links_behind(0.0, 0, names=("c", "d"))]
    path = write_bag(tmp_path / "bag", both)
    with pytest.raises(RecordingError, match=r"no message of /link_states names joint\(s\) a, b; it has c, d"):
        Recording.read(path, link_states_topic="/link_states")
