"""Truncated bags, and commands in bags."""

import numpy as np
import pytest
from bag_files import MS, NAMES, STAMP, START, float_array, header, joint_state, make, states, write_bag, write_mcap
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording

CHUNK_MESSAGES = 50
N_MESSAGES = 400

STEP = 10 * MS
STATE = "control_msgs/msg/JointTrajectoryControllerState"
POINT = "trajectory_msgs/JointTrajectoryPoint"


def messages():
    for i in range(N_MESSAGES):
        yield "/joint_states", START + i * 10**6, joint_state(START + i * 10**6, ["a", "b"], [i, -i])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the bytes of a bag of N_MESSAGES in chunks of CHUNK_MESSAGES."""
    path = write_bag(tmp_path_factory.mktemp("whole") / "bag", messages(), chunk=CHUNK_MESSAGES)
    return (path / "bag.mcap").read_bytes()


@pytest.mark.parametrize("share", np.linspace(0.2, 0.95, 16))
def test_reads_all_complete_chunks(whole, tmp_path, share):
    cut = int(share * len(whole))
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[:cut])
    recording = Recording.read(path)
    assert recording.truncated
    assert recording.n_samples % CHUNK_MESSAGES == 0
    # The rest after the last chunk that was read is less than a chunk.
    assert recording.n_samples > (share * N_MESSAGES) - 1.5 * CHUNK_MESSAGES
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(recording.n_samples))


def test_reads_all_messages_of_a_bag_without_its_end(whole, tmp_path):
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[:-1])
    recording = Recording.read(path)
    assert (recording.n_samples, recording.truncated) == (N_MESSAGES, True)


def test_reads_a_chunk_at_the_end_of_a_cut_bag(whole, tmp_path):
    """A record has one byte of opcode, eight of length, then its content (MCAP specification); opcode 6 is a chunk."""
    ends = []
    start = 8
    while start < len(whole) - 8:
        length = int.from_bytes(whole[start + 1 : start + 9], "little")
        end = start + 9 + length
        if whole[start] == 6:
            ends.append(end)
        start = end
    path = tmp_path / "cut.mcap"
    for missing, chunks in ((0, 3), (1, 2)):
        path.write_bytes(whole[: ends[2] - missing])
        assert Recording.read(path).n_samples == chunks * CHUNK_MESSAGES


def test_reads_a_bag_that_ends_in_zeros(whole, tmp_path):
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[: len(whole) // 2])
    expected = Recording.read(path)
    path.write_bytes(whole[: len(whole) // 2] + bytes(100_000))
    recording = Recording.read(path)
    assert recording.truncated
    np.testing.assert_array_equal(recording.position, expected.position)


@pytest.mark.parametrize("cut", [4, 8, 60, 3000])
def test_refuses_a_bag_cut_before_its_first_chunk(whole, tmp_path, cut):
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[:cut])
    with pytest.raises(RecordingError, match=r"cannot read .*cut\.mcap.*empty or damaged"):
        Recording.read(path)


def test_reads_a_file_without_chunks(tmp_path):
    path = tmp_path / "fast.mcap"
    write_mcap(path, messages(), {"/joint_states": 0}, finish=False, use_chunking=False)
    path.write_bytes(path.read_bytes()[:-10])
    recording = Recording.read(path)
    assert (recording.n_samples, recording.truncated) == (N_MESSAGES - 1, True)


def point(position, after=0):
    empty = np.zeros(0)
    duration = make("builtin_interfaces/Duration", *divmod(after, 10**9))
    return make(POINT, np.asarray(position, float), empty, empty, empty, duration)


def trajectory(stamp, names, points):
    return make("trajectory_msgs/JointTrajectory", header(stamp), list(names), points)


def read_commands(tmp_path, messages, **options):
    """Return the commands read from a bag with joint states and other messages."""
    bag = write_bag(tmp_path / "bag", sorted([*states(), *messages], key=lambda message: message[1]))
    return Recording.read(bag, joint_names=NAMES, command_topic="command", **options).command


def test_reads_commands_of_joint_states(tmp_path):
    rows = [(joint_state(STAMP + 3 * MS + k * STEP, ["b", "c", "a"], [k, 7, -k])) for k in range(5)]
    command = read_commands(tmp_path, [("/command", START + k * STEP, row) for k, row in enumerate(rows)])
    np.testing.assert_allclose(command.time, 0.003 + 0.01 * np.arange(5), atol=1e-9)
    np.testing.assert_allclose(command.position, np.outer(np.arange(5), [-1, 1]))


def test_reads_velocities_and_efforts_of_commands(tmp_path):
    rows = [joint_state(STAMP + k * STEP, ["b", "a"], [k, -k], [2.0, 3.0], [0.5, np.nan]) for k in range(5)]
    command = read_commands(tmp_path, [("/command", START + k * STEP, row) for k, row in enumerate(rows)])
    np.testing.assert_allclose(command.velocity[0], [3.0, 2.0])
    np.testing.assert_allclose(command.effort[0], [np.nan, 0.5])


def test_reads_commands_of_float_arrays(tmp_path):
    command = read_commands(
        tmp_path, [("/command", START + k * STEP + 2 * MS, float_array([k, 2 * k])) for k in range(5)]
    )
    np.testing.assert_allclose(command.time, 0.002 + 0.01 * np.arange(5), atol=1e-9)
    np.testing.assert_allclose(command.position[:, 1], 2 * np.arange(5))


def test_reads_commands_of_trajectories(tmp_path):
    first = trajectory(0, ["a"], [point([1.0]), point([2.0], STEP), point([3.0], 4 * STEP)])
    second = trajectory(0, ["b", "a"], [point([8.0, 9.0], STEP)])
    command = read_commands(tmp_path, [("/command", START + STEP, first), ("/command", START + 3 * STEP, second)])
    np.testing.assert_allclose(command.time, [0.01, 0.02, 0.04], atol=1e-9)
    np.testing.assert_allclose(command.position, [[1.0, np.nan], [2.0, np.nan], [9.0, 8.0]])


@pytest.mark.parametrize("field", ["reference", "desired"])
def test_reads_references_of_controller_states(tmp_path, monkeypatch, field):
    definition = f"std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint {field}\n"
    monkeypatch.setattr("bag_files.TYPES", types := get_typestore(Stores.ROS2_JAZZY))
    types.register(get_types_from_msg(definition, STATE))
    rows = [types.types[STATE](header(STAMP + k * STEP), ["b", "a"], point([k, -k])) for k in range(5)]
    command = read_commands(tmp_path, [("/command", START + k * STEP, row) for k, row in enumerate(rows)])
    np.testing.assert_allclose(command.position, np.outer(np.arange(5), [-1, 1]))


def test_refuses_messages_that_are_no_commands(tmp_path):
    with pytest.raises(RecordingError, match="message 0 of /command has 3 positions for 2 joints"):
        read_commands(tmp_path / "1", [("/command", START, float_array([1, 2, 3]))])
    with pytest.raises(RecordingError, match="no message of /command has a position for a, b"):
        read_commands(tmp_path / "2", [("/command", START, joint_state(STAMP, ["c"], [1.0]))])
