"""Reader of LeRobot datasets, which pyarrow writes here."""

import json
import sys

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, read_lerobot

JOINTS = ["shoulder_pan", "elbow"]


@pytest.fixture
def dataset(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write_dataset(files, names=("shoulder_pan.pos", "elbow.pos"), action_names=("elbow.pos", "shoulder_pan.pos")):
        (tmp_path / "meta").mkdir()
        (tmp_path / "data/chunk-000").mkdir(parents=True)
        features = {"observation.state": {"names": names}, "action": {"names": action_names}}
        (tmp_path / "meta/info.json").write_text(json.dumps({"total_episodes": 3, "features": features}))
        for file, episodes in enumerate(files):
            rows = [
                {
                    "timestamp": np.float32(0.02 * k),
                    "observation.state": [10.0 * episode + k, 2.0],
                    "action": [3.0, 10.0 * episode + k + 1],
                    "episode_index": episode,
                }
                for episode in episodes
                for k in range(4)
            ]
            parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"data/chunk-000/file-{file:03}.parquet")
        return tmp_path

    return write_dataset


@pytest.mark.parametrize("files", [[[0], [1], [2]], [[0, 1, 2]]], ids=["an episode a file", "several in a file"])
def test_reads_positions_and_commands_of_an_episode(dataset, files, tmp_path):
    recording = read_lerobot(dataset(files), 1, degrees=True)
    assert recording.joint_names == tuple(JOINTS)
    np.testing.assert_allclose(np.degrees(recording.position), [[10.0 + k, 2.0] for k in range(4)])
    np.testing.assert_allclose(np.degrees(recording.command.position), [[11.0 + k, 3.0] for k in range(4)])
    np.testing.assert_allclose(recording.time, 0.02 * np.arange(4), atol=1e-6)
    assert np.isnan(recording.torque).all()
    recording.write_npz(tmp_path / "run.npz")
    np.testing.assert_array_equal(Recording.read(tmp_path / "run.npz").position, recording.position)


def test_reads_named_groups_and_ignores_other_actions(dataset):
    recording = read_lerobot(dataset([[0]], {"motors": JOINTS}, {"axes": ["x", "y"]}), 0)
    assert recording.joint_names == tuple(JOINTS)
    assert recording.position[3, 0] == 3.0
    assert recording.command is None


def test_refuses_missing_datasets_and_episodes(dataset, tmp_path):
    with pytest.raises(RecordingError, match="no LeRobot dataset"):
        read_lerobot(tmp_path, 0)
    folder = dataset([[0, 1, 2]])
    with pytest.raises(RecordingError, match="no episode 7; there are 3"):
        read_lerobot(folder, 7)
    (folder / "data/chunk-000/file-000.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordingError, match="damaged"):
        read_lerobot(folder, 0)


def test_refuses_another_number_of_joints_than_names(dataset):
    with pytest.raises(RecordingError, match=r"\(N, 1\), as named"):
        read_lerobot(dataset([[0]], ["elbow"]), 0)


def test_refuses_a_missing_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RecordingError, match="pip install pyarrow"):
        read_lerobot(tmp_path, 0)


def test_reads_velocities_and_torques(dataset):
    """The channels are those of OpenArm: three per joint and one for a gripper; commands are positions."""
    folder = dataset([[0]], ["elbow.pos", "elbow.torque"], ["elbow.vel", "elbow.pos"])
    recording = read_lerobot(folder, 0, degrees=True)
    assert recording.joint_names == ("elbow",)
    np.testing.assert_allclose(np.degrees(recording.position[:, 0]), [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(recording.torque[:, 0], 2.0)
    np.testing.assert_allclose(np.degrees(recording.command.position[:, 0]), [1.0, 2.0, 3.0, 4.0])
    assert np.isnan(recording.velocity).all()


def test_velocities_have_the_unit_of_the_positions(dataset):
    recording = read_lerobot(dataset([[0]], ["elbow.vel", "elbow.pos"]), 0, degrees=True)
    np.testing.assert_allclose(np.degrees(recording.velocity[:, 0]), [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.degrees(recording.position[:, 0]), 2.0)


def test_reads_velocities_and_torques_of_actions(dataset):
    recording = read_lerobot(dataset([[0]], ["elbow.pos", "elbow.vel"], ["elbow.torque", "elbow.pos"]), 0, degrees=True)
    np.testing.assert_array_equal(recording.command.effort[:, 0], 3.0)
    assert recording.command.velocity is None
