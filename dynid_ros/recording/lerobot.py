"""Episodes of LeRobot datasets, version 2 and 3: what servos were told and where they were; read by pyarrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, read_bytes
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.series import CommandSeries

POSITION, COMMAND = "observation.state", "action"
LARGEST_INFO = 10 * MEGABYTE


def read_lerobot(dataset: str | Path, episode: int, *, degrees: bool = False) -> Recording:
    """Positions and commands of one episode; velocities and torques, which such datasets lack, are NaN.

    Args:
        dataset: its folder, with `meta/info.json` and `data/`.
        episode: its number.
        degrees: whether positions are in degrees, as newer arms of LeRobot have them; else rad. Positions that were
            normalised to the range of the joint, -100 to 100, cannot be read: their unit is not in the dataset.

    Raises:
        RecordingError: pyarrow is not installed, there is no such dataset or episode, or it has no positions of joints.
    """
    folder = Path(dataset)
    try:
        import pyarrow  # noqa: PLC0415 - an optional extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise RecordingError(f"{folder}: LeRobot needs pyarrow ({error}): pip install 'dynid_ros[lerobot]'") from error
    try:
        info = json.loads(read_bytes(folder / "meta" / "info.json", LARGEST_INFO))
        joints = _joints(info["features"][POSITION]["names"])
        commanded = _joints(info["features"].get(COMMAND, {}).get("names"))
        wanted = ["timestamp", POSITION, *([COMMAND] if commanded else [])]
        chosen = [("episode_index", "=", episode)]
        files = sorted((folder / "data").rglob("*.parquet"))
        tables = [parquet.read_table(path, columns=wanted, filters=chosen) for path in files]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pyarrow.ArrowException) as error:
        raise RecordingError(f"{folder} is no LeRobot dataset of joints, or a damaged one ({error})") from error
    tables = [table for table in tables if table.num_rows]
    if not tables:
        raise RecordingError(f"{folder}: no episode {episode}; there are {info.get('total_episodes', 'others')}")
    time, position, *command = (
        np.array([row for table in tables for row in table[name].to_pylist()], dtype=float) for name in wanted
    )
    if position.ndim != 2 or position.shape[1] != len(joints):
        raise RecordingError(f"{folder}: {POSITION} has shape {position.shape}; expected (N, {len(joints)}), as named")
    unit = np.pi / 180.0 if degrees else 1.0
    told = None
    if command and set(joints) <= set(commanded):
        columns = [commanded.index(joint) for joint in joints]
        told = CommandSeries(time - time[0], unit * command[0][:, columns])
    unknown = np.full(position.shape, np.nan)
    return Recording(
        joint_names=joints,
        time=time - time[0],
        position=unit * position,
        velocity=unknown,
        torque=unknown,
        command=told,
        source=f"{folder}, episode {episode}",
    )


def _joints(names: Any) -> tuple[str, ...]:
    """Of a list, or a dictionary of one, as `shoulder_pan` or `shoulder_pan.pos`."""
    if isinstance(names, dict):
        names = next(iter(names.values()), [])
    return tuple(str(name).removesuffix(".pos") for name in names or ())
