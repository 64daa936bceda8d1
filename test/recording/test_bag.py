import numpy as np
import pytest
from bag_files import START, TYPES, joint_state, write_bag

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording

CHUNK = 50
N = 400


def messages():
    for i in range(N):
        yield "/joint_states", START + i * 10**6, joint_state(START + i * 10**6, ["a", "b"], [i, -i])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Bytes of a bag of N messages in chunks of CHUNK."""
    path = write_bag(tmp_path_factory.mktemp("whole") / "bag", messages(), chunk=CHUNK)
    return (path / "bag.mcap").read_bytes()


@pytest.mark.parametrize("share", np.linspace(0.2, 0.95, 16))
def test_all_complete_chunks_are_read(whole, tmp_path, share):
    cut = int(share * len(whole))
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[:cut])
    it = Recording.read(path)
    assert it.truncated
    assert it.n_samples % CHUNK == 0
    # What lies beyond the last chunk read is less than a chunk: nothing complete was left out.
    assert it.n_samples > (share * N) - 1.5 * CHUNK
    np.testing.assert_array_equal(it.position[:, 0], np.arange(it.n_samples))


def test_cut_behind_the_data_all_are_read(whole, tmp_path):
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[:-1])
    it = Recording.read(path)
    assert (it.n_samples, it.truncated) == (N, True)


def test_cut_right_behind_a_chunk_keeps_that_chunk(whole, tmp_path):
    """Records are one byte of opcode, eight of length, then as many bytes (MCAP specification); 6 is a chunk."""
    ends, start = [], 8
    while start < len(whole) - 8:
        length = int.from_bytes(whole[start + 1 : start + 9], "little")
        end = start + 9 + length
        ends += [end] * (whole[start] == 6)
        start = end
    path = tmp_path / "cut.mcap"
    for missing, chunks in ((0, 3), (1, 2)):
        path.write_bytes(whole[: ends[2] - missing])
        assert Recording.read(path).n_samples == chunks * CHUNK


def test_end_of_zeros_after_a_power_cut(whole, tmp_path):
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[: len(whole) // 2])
    expected = Recording.read(path)
    path.write_bytes(whole[: len(whole) // 2] + bytes(100_000))
    it = Recording.read(path)
    assert it.truncated
    np.testing.assert_array_equal(it.position, expected.position)


@pytest.mark.parametrize("cut", [4, 8, 60, 3000])
def test_cut_before_the_first_chunk(whole, tmp_path, cut):
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[:cut])
    with pytest.raises(RecordingError, match=r"cannot read .*cut\.mcap.*empty or damaged"):
        Recording.read(path)


def test_folder_of_a_killed_recorder(whole, tmp_path):
    folder = tmp_path / "bag"
    folder.mkdir()
    (folder / "bag_0.mcap").write_bytes(whole[: len(whole) // 2])
    it = Recording.read(folder)
    assert it.truncated
    assert it.n_samples >= 150


def test_file_without_chunks(tmp_path):
    mcap_writer = pytest.importorskip("mcap.writer")
    path = tmp_path / "fast.mcap"
    with path.open("wb") as stream:
        writer = mcap_writer.Writer(stream, use_chunking=False)
        writer.start(profile="ros2", library="test")
        definition, _ = TYPES.generate_msgdef("sensor_msgs/msg/JointState", ros_version=2)
        schema = writer.register_schema("sensor_msgs/msg/JointState", "ros2msg", definition.encode())
        channel = writer.register_channel("/joint_states", "cdr", schema)
        for _, received, message in messages():
            data = bytes(TYPES.serialize_cdr(message, message.__msgtype__))
            writer.add_message(channel, log_time=received, publish_time=received, data=data)
        stream.flush()
    path.write_bytes(path.read_bytes()[:-10])
    it = Recording.read(path)
    assert (it.n_samples, it.truncated) == (N - 1, True)
