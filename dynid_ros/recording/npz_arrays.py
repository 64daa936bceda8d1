"""Arrays of NumPy archives (.npz), read within bounds of memory."""

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from dynid_ros.files import MEGABYTE
from dynid_ros.files.disk_arrays import MIN_DISK_BYTES, new_array, row_blocks

MAX_ARRAY_BYTES = 8_000 * MEGABYTE
"""Largest size of all arrays together."""
MIN_COMPARED_BYTES = 100 * MEGABYTE
"""Size of the arrays from which it is compared with the size of the archive."""
MAX_COMPRESSION = 300
"""Largest ratio of the two sizes; only arrays made for this purpose have a larger one."""


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an archive by name; large ones are kept in files.

    Raises:
        ValueError: the arrays are larger than the archive can hold, or contain pickled objects.
        OSError: the archive cannot be read.
        BadZipFile: it is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > MAX_ARRAY_BYTES or (size > MIN_COMPARED_BYTES and size > MAX_COMPRESSION * path.stat().st_size):
            raise ValueError(f"{path.stat().st_size} bytes hold {size / MEGABYTE:.0f} MB")
        for member in members:
            _require_size(archive, member)
        large = {member.filename: _read_large(archive, member) for member in members if _is_large(archive, member)}
    with np.load(path, allow_pickle=False) as archive:
        return {key: large[f"{key}.npy"] if f"{key}.npy" in large else archive[key] for key in archive.files}


def _is_large(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Return whether a member holds so many floats that the array is kept in a file."""
    if member.file_size < MIN_DISK_BYTES:
        return False
    with archive.open(member) as file:
        shape, is_by_columns, kind = _read_header(file)
        return kind == np.dtype(float) and not is_by_columns and len(shape) == 2


def _read_large(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        shape, _, _ = _read_header(file)
        array = new_array(*shape)
        for rows in row_blocks(len(array)):
            part = array[rows]
            if file.readinto(part.data.cast("B")) < part.nbytes:  # type: ignore[attr-defined]
                raise ValueError(f"{member.filename} is shorter than an array of shape {shape}")
    return array


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, whether columns are contiguous, and kind of numbers of an array in a file."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def _require_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array whose header has a larger size than the member: NumPy allocates that memory at once."""
    with archive.open(member) as file:
        shape, _, kind = _read_header(file)
        if math.prod(shape) * max(kind.itemsize, 1) > member.file_size:  # entries of no size take memory when converted
            raise ValueError(f"{member.filename} is shorter than an array of shape {shape}")
