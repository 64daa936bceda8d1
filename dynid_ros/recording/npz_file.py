"""Recordings as NumPy archives.

Keys: `time` (N,) in s; `position`, `velocity`, `torque` (N m), `link_position`, each (N, n); `joint_names` (n,). Other
spellings that are read: `t`; `pos`, `q`; `vel`, `dq`, `qd`; `tau`, `effort`; `current` (A). Without `joint_names` the
caller names the columns. Our own archives carry `start_time`, wrenches and poses as well.
"""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import atomic_file
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.series import PoseSeries, WrenchSeries
from dynid_ros.recording.table import QUANTITIES, TIME_NAMES, Table, joint_names_of_columns

UNREADABLE = (OSError, ValueError, EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error)
SERIES: dict[str, type[WrenchSeries] | type[PoseSeries]] = {"wrenches": WrenchSeries, "poses": PoseSeries}


def read_npz(path: Path, joint_names: Sequence[str] | None, convention: EffortConvention) -> Recording:
    """Recording from an archive as this module describes it.

    Raises:
        RecordingError: not a NPZ archive, pickled objects in it, no time or position, or a key given twice.

    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except UNREADABLE as error:
        raise RecordingError(
            f"cannot read {path} as a NPZ archive of plain arrays ({error}); write it with numpy.savez"
        ) from error
    columns = {quantity: _find(arrays, aliases, path) for quantity, aliases in QUANTITIES.items()}
    found = {quantity: array for quantity, array in columns.items() if array is not None}
    clock = _find(arrays, TIME_NAMES, path)
    if clock is None or "position" not in found:
        raise RecordingError(
            f"{path} has no array {'time' if clock is None else 'position'}; it has {', '.join(arrays) or 'nothing'}; "
            "expected time (or t), position (or q), and velocity, torque, joint_names if recorded"
        )
    if found["position"].ndim == 1:
        found = {quantity: array[:, np.newaxis] for quantity, array in found.items() if array.ndim == 1}
    if found["position"].ndim != 2:
        raise RecordingError(f"{path}: position has shape {found['position'].shape}; expected (N, n)")
    if "joint_names" in arrays:
        names = tuple(str(name) for name in np.atleast_1d(arrays["joint_names"]))
    else:
        names = joint_names_of_columns(found["position"].shape[1], joint_names, str(path))
    recording = Table(str(path), names, clock, found).to_recording(joint_names, convention)
    extra: dict[str, Any] = {kind: _series(arrays, kind, path) for kind in SERIES}
    if "start_time" in arrays:
        extra["start_time"] = recording.start_time + float(arrays["start_time"])
    return replace(recording, truncated=bool(arrays.get("truncated", False)), **extra)


def write_npz(recording: Recording, path: Path) -> None:
    """Write the whole recording; the file appears whole or not at all.

    Raises:
        RecordingError: the folder cannot be written to.

    """
    arrays: dict[str, Any] = {
        "joint_names": np.array(recording.joint_names),
        "time": recording.time,
        "position": recording.position,
        "velocity": recording.velocity,
        "torque": recording.torque,
        "start_time": recording.start_time,
        "truncated": recording.truncated,
    }
    if recording.link_position is not None:
        arrays["link_position"] = recording.link_position
    for kind in SERIES:
        for name, series in getattr(recording, kind).items():
            for field in fields(series):
                arrays[f"{kind}:{name}:{field.name}"] = getattr(series, field.name)
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def _find(arrays: Mapping[str, np.ndarray], aliases: Sequence[str], path: Path) -> np.ndarray | None:
    keys = [alias for alias in aliases if alias in arrays]
    if len(keys) > 1:
        raise RecordingError(f"{path}: arrays {' and '.join(keys)} both give the {aliases[0]}; keep one")
    if not keys:
        return None
    try:
        return np.asarray(arrays[keys[0]], dtype=float)
    except ValueError as error:
        raise RecordingError(f"{path}: array '{keys[0]}' does not hold numbers: {error}") from error


def _series(arrays: Mapping[str, np.ndarray], kind: str, path: Path) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        prefix, _, rest = key.partition(":")
        if prefix == kind:
            name, _, field = rest.rpartition(":")
            parts.setdefault(name, {})[field] = str(array) if field == "frame_id" else array
    try:
        return {name: SERIES[kind](**part) for name, part in parts.items()}
    except TypeError as error:
        raise RecordingError(f"{path}: arrays of {kind} are incomplete: {error}") from error
