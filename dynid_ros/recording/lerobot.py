"""Episodes of LeRobot datasets, version 2 and 3: commands and positions of servos, read by pyarrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, read_bytes
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.series import CommandSeries
from dynid_ros.recording.tables import QUANTITY_OF

POSITION = "observation.state"
COMMAND = "action"
MAX_INFO_BYTES = 10 * MEGABYTE


def read_lerobot(dataset: str | Path, episode: int, *, degrees: bool = False) -> Recording:
    """Read positions, commands and, if recorded, velocities and torques of one episode.

    Features of states and of actions are named as `elbow` or `elbow.pos`, `elbow.vel` (rad/s, or degrees per s with
    `degrees`) and `elbow.torque` (N m). Quantities that an arm does not report are NaN, and other features are skipped.

    Args:
        dataset: folder of the dataset, with `meta/info.json` and `data/`.
        episode: number of the episode.
        degrees: whether positions are in degrees, as of newer arms of LeRobot, instead of rad. Positions that were
            normalised to the range of the joint, -100 to 100, cannot be read: the dataset does not contain their unit.

    Raises:
        RecordingError: pyarrow is not installed, the dataset or episode is missing, or has no positions of joints.
    """
    folder = Path(dataset)
    try:
        import pyarrow  # noqa: PLC0415 - an optional extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise RecordingError(f"{folder}: LeRobot needs pyarrow ({error}): pip install pyarrow") from error
    try:
        info = json.loads(read_bytes(folder / "meta" / "info.json", MAX_INFO_BYTES))
        names = info["features"][POSITION]["names"]
        columns = _columns(names)
        count = sum(len(part) for part in names.values()) if isinstance(names, dict) else len(names)
        commanded = _columns(info["features"].get(COMMAND, {}).get("names"))
        wanted = ["timestamp", POSITION, *([COMMAND] if "position" in commanded else [])]
        chosen = [("episode_index", "=", episode)]
        files = sorted((folder / "data").rglob("*.parquet"))
        tables = [parquet.read_table(path, columns=wanted, filters=chosen) for path in files]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pyarrow.ArrowException) as error:
        raise RecordingError(f"{folder} is no LeRobot dataset of joints, or a damaged one ({error})") from error
    tables = [table for table in tables if table.num_rows]
    if not tables:
        raise RecordingError(f"{folder}: no episode {episode}; there are {info.get('total_episodes', 'others')}")
    time, states, *command = (
        np.array([row for table in tables for row in table[name].to_pylist()], dtype=float) for name in wanted
    )
    joints = tuple(columns.get("position", ()))
    if states.ndim != 2 or states.shape[1] != count or not joints:
        raise RecordingError(
            f"{folder}: {POSITION} has shape {states.shape} and positions of {len(joints)} joints; expected "
            f"(N, {count}), as named"
        )
    unit = np.pi / 180.0 if degrees else 1.0
    commands = None
    if command and set(joints) & set(commanded["position"]):
        told = {name: _by_joint(command[0], columns, joints) for name, columns in commanded.items()}
        commands = CommandSeries(
            time - time[0],
            unit * told["position"],
            velocity=unit * told["velocity"] if "velocity" in told else None,
            effort=told.get("torque"),
        )
    channels = {name: _by_joint(states, columns.get(name, {}), joints) for name in ("position", "velocity", "torque")}
    return Recording(
        joint_names=joints,
        time=time - time[0],
        position=unit * channels["position"],
        velocity=unit * channels["velocity"],
        torque=channels["torque"],
        command=commands,
        source=f"{folder}, episode {episode}",
    )


def _columns(names: Any) -> dict[str, dict[str, int]]:
    """Return the column of each joint by quantity, from names such as `elbow`, `elbow.pos` or `elbow.torque`."""
    if isinstance(names, dict):
        names = next(iter(names.values()), [])
    columns: dict[str, dict[str, int]] = {}
    for column, name in enumerate(str(name) for name in names or ()):
        joint, dot, word = name.rpartition(".")
        quantity = QUANTITY_OF.get(word) if dot else "position"
        if quantity is not None:
            columns.setdefault(quantity, {})[joint if dot else name] = column
    return columns


def _by_joint(rows: NDArray, columns: Mapping[str, int], joints: Sequence[str]) -> NDArray:
    """Return the columns of the joints (N, n), NaN for a joint without a column."""
    values = np.full((len(rows), len(joints)), np.nan)
    for place, joint in enumerate(joints):
        if joint in columns:
            values[:, place] = rows[:, columns[joint]]
    return values
