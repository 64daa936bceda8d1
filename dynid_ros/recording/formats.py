"""Which reader takes which file."""

from collections.abc import Sequence
from pathlib import Path

from dynid_ros.errors import RecordingError
from dynid_ros.recording.bag_reader import read_bag
from dynid_ros.recording.csv_file import read_csv, write_csv
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.npz_file import read_npz, write_npz
from dynid_ros.recording.recording import Recording

__all__ = ["read", "write_csv", "write_npz"]

TABLES = {".csv": read_csv, ".npz": read_npz}


def read(
    path: Path,
    joint_names: Sequence[str] | None,
    convention: EffortConvention,
    *,
    torque_topic: str | None,
    joint_states_topic: str | None,
    link_states_topic: str | None,
    receive_time: bool,
) -> Recording:
    """See `Recording.read`."""
    try:
        there = path.exists()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror}); give a folder or file that can") from error
    if not there:
        raise RecordingError(f"{path} does not exist; give a rosbag2 folder, or a .mcap, .db3, .csv or .npz file")
    if convention.gains is not None and joint_names is None:
        raise RecordingError(
            f"{path}: the gains of effort_convention are in the order of joint_names; give joint_names with them"
        )
    if path.is_dir() or path.suffix in (".mcap", ".db3"):
        return read_bag(
            path,
            joint_names,
            convention,
            torque_topic=torque_topic,
            joint_states_topic=joint_states_topic,
            link_states_topic=link_states_topic,
            receive_time=receive_time,
        )
    if path.suffix not in TABLES:
        raise RecordingError(
            f"{path} is no known kind of recording; give a rosbag2 folder, or a .mcap, .db3, .csv or .npz file"
        )
    if torque_topic or joint_states_topic or link_states_topic or receive_time:
        raise RecordingError(
            f"{path}: torque_topic, joint_states_topic, link_states_topic and receive_time are for bags, not for tables"
        )
    return TABLES[path.suffix](path, joint_names, convention)
