"""Recordings as NumPy archives.

Keys: `time` (N,) in s; `position`, `velocity`, `torque` (N m), `link_position`, each (N, n); `joint_names` (n,). Other
spellings that are read: `t`; `pos`, `q`; `vel`, `dq`, `qd`; `tau`, `effort`; `current` (A). Without `joint_names` the
caller names the columns. Our own archives carry `start_time`, wrenches, poses and where other joints were as well.
"""

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, atomic_file, require_file
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.series import PoseSeries, WrenchSeries
from dynid_ros.recording.table import QUANTITIES, TIME_NAMES, Table, joint_names_of_columns

if TYPE_CHECKING:
    from dynid_ros.recording.recording import Recording

LARGEST = 8_000 * MEGABYTE
"""Bytes of all arrays together, and …"""
UNSUSPICIOUS = 100 * MEGABYTE
"""… from which they are compared with the size of the archive: …"""
TIGHTEST = 300
"""… only arrays made to be so are this many times smaller when compressed."""
SERIES: dict[str, type[WrenchSeries] | type[PoseSeries]] = {"wrenches": WrenchSeries, "poses": PoseSeries}
OTHER = "other_position:"
"""Begins the keys of joints that were recorded too."""


def read_npz(path: Path, joint_names: Sequence[str] | None, convention: EffortConvention) -> dict[str, Any]:
    """Fields of a `Recording` of all joints, efforts as recorded, from an archive as this module describes it.

    Raises:
        RecordingError: not a NPZ archive, pickled objects in it, no time or position, or a key given twice.

    """
    try:
        require_file(path)
        arrays = _read_arrays(path)
    except Exception as error:  # a dozen kinds by zipfile, its decompressors and NumPy
        reason = getattr(error, "strerror", None) or error or type(error).__name__
        raise RecordingError(
            f"cannot read {path} as a NPZ archive of plain arrays ({reason}); write it with numpy.savez"
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
    given = Table(str(path), names, clock, found).fields(convention)
    given |= {kind: _series(arrays, kind, path) for kind in SERIES}
    given["others"] = _others(arrays, path)
    given["start_time"] += _single(arrays, "start_time", path)
    given["truncated"] = bool(_single(arrays, "truncated", path))
    return given


def write_npz(recording: "Recording", path: Path) -> None:
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
    arrays |= {f"{OTHER}{name}": position for name, position in recording.others.items()}
    for kind in SERIES:
        for name, series in getattr(recording, kind).items():
            for field in fields(series):
                arrays[f"{kind}:{name}:{field.name}"] = getattr(series, field.name)
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > LARGEST or (size > UNSUSPICIOUS and size > TIGHTEST * path.stat().st_size):
            raise ValueError(f"{path.stat().st_size} bytes hold {size / MEGABYTE:.0f} MB")
        for member in members:
            _require_its_size(archive, member)
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def _require_its_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array whose header promises more than the member holds: the memory for it is taken at once."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read_header(file)
        if math.prod(shape) * kind.itemsize > member.file_size:
            raise ValueError(f"{member.filename} is shorter than an array of shape {shape}")


def _single(arrays: Mapping[str, np.ndarray], key: str, path: Path) -> float:
    """A number that an archive of ours has; 0 in others."""
    try:
        value = np.asarray(arrays.get(key, 0.0), dtype=float).item()
    except (TypeError, ValueError) as error:
        raise RecordingError(f"{path}: array '{key}' is no single number: {error}") from error
    if not np.isfinite(value):
        raise RecordingError(f"{path}: array '{key}' is {value}; expected a finite number")
    return value


def _find(arrays: Mapping[str, np.ndarray], aliases: Sequence[str], path: Path) -> np.ndarray | None:
    keys = [alias for alias in aliases if alias in arrays]
    if len(keys) > 1:
        raise RecordingError(f"{path}: arrays {' and '.join(keys)} both give the {aliases[0]}; keep one")
    if not keys:
        return None
    try:
        if np.iscomplexobj(arrays[keys[0]]):
            raise ValueError("they are complex")
        return np.asarray(arrays[keys[0]], dtype=float)
    except (TypeError, ValueError) as error:
        raise RecordingError(f"{path}: array '{keys[0]}' does not hold numbers: {error}") from error


def _others(arrays: Mapping[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """Positions of joints that were recorded beside the arm's."""
    found = {}
    for key in arrays:
        if key.startswith(OTHER):
            positions = _find(arrays, (key,), path)
            if positions is None or positions.ndim != 1 or not np.isfinite(positions).all():
                raise RecordingError(f"{path}: array '{key}' does not hold one finite position a sample")
            found[key.removeprefix(OTHER)] = positions
    return found


def _series(arrays: Mapping[str, np.ndarray], kind: str, path: Path) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = {}
    for key, values in arrays.items():
        prefix, _, rest = key.partition(":")
        if prefix == kind:
            name, _, field = rest.rpartition(":")
            parts.setdefault(name, {})[field] = str(values) if field == "frame_id" else values
    wanted = {field.name for field in fields(SERIES[kind])}
    series = {}
    for name, part in parts.items():
        if set(part) != wanted:
            keys = ", ".join(f"{kind}:{name}:{field}" for field in sorted(wanted))
            raise RecordingError(f"{path}: arrays of {kind} are incomplete, or too many: expected {keys}")
        try:
            series[name] = SERIES[kind](**part)
        except RecordingError as error:
            raise RecordingError(f"{path}: {kind} of '{name}': {error}") from error
    return series
