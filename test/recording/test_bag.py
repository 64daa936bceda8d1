import numpy as np
import pytest
from bag_files import MS, NAMES, STAMP, START, float_array, header, joint_state, make, states, write_bag, write_mcap
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording

CHUNK = 50
N = 400

STEP = 10 * MS
STATE = "control_msgs/msg/JointTrajectoryControllerState"
POINT = "trajectory_msgs/JointTrajectoryPoint"


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


def test_file_without_chunks(tmp_path):
    path = tmp_path / "fast.mcap"
    write_mcap(path, messages(), {"/joint_states": 0}, finish=False, use_chunking=False)
    path.write_bytes(path.read_bytes()[:-10])
    it = Recording.read(path)
    assert (it.n_samples, it.truncated) == (N - 1, True)


def point(position, after=0):
    empty, duration = np.zeros(0), make("builtin_interfaces/Duration", *divmod(after, 10**9))
    return make(POINT, np.asarray(position, float), empty, empty, empty, duration)


def trajectory(stamp, names, points):
    return make("trajectory_msgs/JointTrajectory", header(stamp), list(names), points)


def read(tmp_path, messages, **options):
    bag = write_bag(tmp_path / "bag", sorted([*states(), *messages], key=lambda one: one[1]))
    return Recording.read(bag, joint_names=NAMES, command_topic="command", **options).command


def test_a_joint_state_by_name_at_its_own_stamps(tmp_path):
    rows = [(joint_state(STAMP + 3 * MS + k * STEP, ["b", "c", "a"], [k, 7, -k])) for k in range(5)]
    command = read(tmp_path, [("/command", START + k * STEP, row) for k, row in enumerate(rows)])
    np.testing.assert_allclose(command.time, 0.003 + 0.01 * np.arange(5), atol=1e-9)
    np.testing.assert_allclose(command.position, np.outer(np.arange(5), [-1, 1]))


def test_velocities_and_efforts_of_drives_in_mit_mode(tmp_path):
    rows = [joint_state(STAMP + k * STEP, ["b", "a"], [k, -k], [2.0, 3.0], [0.5, np.nan]) for k in range(5)]
    command = read(tmp_path, [("/command", START + k * STEP, row) for k, row in enumerate(rows)])
    np.testing.assert_allclose(command.velocity[0], [3.0, 2.0])
    np.testing.assert_allclose(command.effort[0], [np.nan, 0.5])


def test_floats_in_the_order_of_the_joints_by_reception(tmp_path):
    command = read(tmp_path, [("/command", START + k * STEP + 2 * MS, float_array([k, 2 * k])) for k in range(5)])
    np.testing.assert_allclose(command.time, 0.002 + 0.01 * np.arange(5), atol=1e-9)
    np.testing.assert_allclose(command.position[:, 1], 2 * np.arange(5))


def test_points_of_a_trajectory_until_the_next_message(tmp_path):
    first = trajectory(0, ["a"], [point([1.0]), point([2.0], STEP), point([3.0], 4 * STEP)])
    second = trajectory(0, ["b", "a"], [point([8.0, 9.0], STEP)])
    command = read(tmp_path, [("/command", START + STEP, first), ("/command", START + 3 * STEP, second)])
    np.testing.assert_allclose(command.time, [0.01, 0.02, 0.04], atol=1e-9)
    np.testing.assert_allclose(command.position, [[1.0, np.nan], [2.0, np.nan], [9.0, 8.0]])


@pytest.mark.parametrize("field", ["reference", "desired"])
def test_the_reference_of_a_controller_whose_type_only_the_bag_knows(tmp_path, monkeypatch, field):
    definition = f"std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint {field}\n"
    monkeypatch.setattr("bag_files.TYPES", types := get_typestore(Stores.ROS2_JAZZY))
    types.register(get_types_from_msg(definition, STATE))
    rows = [types.types[STATE](header(STAMP + k * STEP), ["b", "a"], point([k, -k])) for k in range(5)]
    command = read(tmp_path, [("/command", START + k * STEP, row) for k, row in enumerate(rows)])
    np.testing.assert_allclose(command.position, np.outer(np.arange(5), [-1, 1]))


def test_messages_that_cannot_be_commands(tmp_path):
    with pytest.raises(RecordingError, match="message 0 of /command has 3 positions for 2 joints"):
        read(tmp_path / "1", [("/command", START, float_array([1, 2, 3]))])
    with pytest.raises(RecordingError, match="no message of /command has a position for a, b"):
        read(tmp_path / "2", [("/command", START, joint_state(STAMP, ["c"], [1.0]))])
