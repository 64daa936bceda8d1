"""Arrays of long recordings, kept in temporary files instead of memory.

An array above `MIN_DISK_BYTES` is a mapped file without a name, which the system removes with the array. Its pages
count as memory of the program once they are used, so loops over its rows release them again.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from dynid_ros.files.bounded import MEGABYTE

MIN_DISK_BYTES = 8 * MEGABYTE
"""Smallest size of an array that is kept in a file."""
DISK_FOLDER = "/var/tmp"
"""Folder of the files where it exists: /tmp may be kept in memory."""
ROWS_PER_BLOCK = 20_000
"""Number of rows that are processed together."""
PICKED_ROWS_PER_BLOCK = 100
"""Number of rows far from each other that are copied together: each of them brings its neighbourhood into memory."""
MAX_KEPT_BYTES = 4 * MEGABYTE
"""Size of freed arrays that the C library may keep for later ones."""
MAX_FREE_BYTES = 32 * MEGABYTE
"""Size of freed memory that the C library may keep: by default, each block of rows would fault its pages in again."""
M_MMAP_THRESHOLD = -3
M_TRIM_THRESHOLD = -1
"""Numbers of these settings in malloc.h."""
_maps: WeakSet[mmap.mmap] = WeakSet()


def new_array(*shape: int) -> NDArray:
    """Return an array of floats, in a file if it is large and there is space; its content is undefined."""
    size = 8 * math.prod(shape)
    if size < MIN_DISK_BYTES:
        return np.empty(shape)
    try:
        with tempfile.TemporaryFile(dir=_folder()) as file:
            # Without reserved space, writing to a full disk would end the program.
            os.posix_fallocate(file.fileno(), 0, size)
            mapped = mmap.mmap(file.fileno(), size)
    except (OSError, AttributeError):
        return np.empty(shape)
    _maps.add(mapped)
    _return_freed_memory()
    return np.ndarray(shape, dtype=float, buffer=mapped)


@lru_cache(maxsize=1)
def _return_freed_memory() -> None:
    """Let large arrays leave memory with their last use: the C library of Linux keeps those below 32 MB."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, MAX_KEPT_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, MAX_FREE_BYTES)


def release_pages() -> None:
    """Remove the pages of all arrays in files from memory; they are read again when they are used."""
    for mapped in tuple(_maps):
        mapped.madvise(mmap.MADV_DONTNEED)


def row_blocks(n_rows: int, rows_per_block: int = ROWS_PER_BLOCK) -> Iterator[slice]:
    """Yield slices that cover the rows of arrays, and release the pages of each block after its use."""
    for start in range(0, n_rows, rows_per_block):
        yield slice(start, min(start + rows_per_block, n_rows))
        if n_rows > rows_per_block:
            release_pages()


def overlapping_blocks(
    n_rows: int, reach: int, rows_per_block: int = ROWS_PER_BLOCK
) -> Iterator[tuple[slice, slice, slice]]:
    """Yield blocks with `reach` more rows on each side where there are as many.

    Yields:
        Rows of the block, rows of the block with its neighbours, and the place of the first in the second.
    """
    for rows in row_blocks(n_rows, rows_per_block):
        window = slice(max(0, rows.start - reach), min(n_rows, rows.stop + reach))
        yield rows, window, slice(rows.start - window.start, rows.stop - window.start)


def map_blocks(
    function: Callable[[NDArray], NDArray], values: NDArray, reach: int, rows_per_block: int = ROWS_PER_BLOCK
) -> NDArray:
    """Apply a function to values (N, …) block by block; each row of its result depends on `reach` rows on each side."""
    if len(values) <= rows_per_block + 2 * reach:
        return function(values)
    result = new_array(*values.shape)
    for rows, window, inner in overlapping_blocks(len(values), reach, rows_per_block):
        result[rows] = function(values[window])[inner]
    return result


def stack_columns(arrays: Sequence[NDArray]) -> NDArray:
    """Return arrays (N, …) side by side as (N, k)."""
    columns = [array.reshape(len(array), -1) for array in arrays]
    result = new_array(len(columns[0]), sum(part.shape[1] for part in columns))
    for rows in row_blocks(len(result)):
        np.concatenate([part[rows] for part in columns], axis=1, out=result[rows])
    return result


def take_columns(array: NDArray, columns: Sequence[int]) -> NDArray:
    """Return some columns of an array (N, n) in this order; without a change, the array itself."""
    if list(columns) == list(range(array.shape[1])):
        return array
    result = new_array(len(array), len(columns))
    for rows in row_blocks(len(array)):
        result[rows] = array[rows][:, columns]
    return result


def take_rows(array: NDArray, chosen: NDArray) -> NDArray:
    """Return the chosen rows of an array (N, …), by a mask (N,); without a change, the array itself."""
    if chosen.all():
        return array
    result = new_array(int(np.count_nonzero(chosen)), *array.shape[1:])
    end = 0
    for rows in row_blocks(len(array)):
        part = array[rows][chosen[rows]]
        result[end : end + len(part)] = part
        end += len(part)
    return result


def read_column(array: NDArray, column: int) -> NDArray:
    """Return a column (N,) of an array (N, n); of an array on disk, only this column is held in memory."""
    if array.nbytes < MIN_DISK_BYTES:
        return array[:, column]
    result = np.empty(len(array))
    for rows in row_blocks(len(array)):
        result[rows] = array[rows, column]
    return result


def pick_rows(array: NDArray, rows: slice | NDArray) -> NDArray:
    """Return a copy of some rows of an array (N, …), by a slice or increasing indices, in memory."""
    if array.nbytes < MIN_DISK_BYTES:
        return array[rows]
    chosen = np.arange(*rows.indices(len(array))) if isinstance(rows, slice) else rows
    result = np.empty((len(chosen), *array.shape[1:]))
    span = int(chosen[-1] - chosen[0]) + 1 if len(chosen) else 1
    together = max(PICKED_ROWS_PER_BLOCK, ROWS_PER_BLOCK * len(chosen) // span)
    for block in row_blocks(len(chosen), together):
        result[block] = array[chosen[block]]
    if span > ROWS_PER_BLOCK:
        release_pages()
    return result


def column_ranges(array: NDArray) -> tuple[NDArray, NDArray]:
    """Return the smallest and largest value (n,) of each column of an array (N, n); NaN where all are NaN."""
    lows, highs = [], []
    for rows in row_blocks(len(array)):
        columns = np.ascontiguousarray(array[rows].T)  # reduced five times as fast as columns with strides
        lows.append(np.fmin.reduce(columns, axis=-1).T)
        highs.append(np.fmax.reduce(columns, axis=-1).T)
    return np.fmin.reduce(lows), np.fmax.reduce(highs)


class RowBuffer:
    """Rows (k,) of floats that arrive one after the other, in a file if they are many.

    Args:
        n_columns: number k of columns.
    """

    def __init__(self, n_columns: int):
        self._n_columns = n_columns
        self._kept = bytearray()
        self._file: IO[bytes] | None = None

    def append(self, rows: NDArray) -> None:
        """Add a row (k,) or several rows (M, k).

        Raises:
            OSError: there is no space for the file.
        """
        self._kept += np.ascontiguousarray(rows, dtype=float).data.cast("B")
        if len(self._kept) >= MIN_DISK_BYTES:
            self._write()

    def array(self) -> NDArray:
        """Return all rows (N, k); the buffer is then empty.

        Raises:
            OSError: there is no space for the file.
        """
        if self._file is None:
            return np.frombuffer(self._kept).reshape(-1, self._n_columns)
        with self._file as file:
            self._write()
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0)
        _maps.add(mapped)
        return np.frombuffer(mapped).reshape(-1, self._n_columns)

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115 - `array` closes it
        self._file.write(self._kept)
        self._kept.clear()


def collect_rows(parts: Iterable[NDArray], n_columns: int) -> NDArray:
    """Return parts (M, k) below each other, in a file if they are large.

    Raises:
        OSError: there is no space for the file.
    """
    buffer = RowBuffer(n_columns)
    for part in parts:
        buffer.append(part)
    return buffer.array()


def _folder() -> str | None:
    """Return the folder of the files; None: the default of the system."""
    return DISK_FOLDER if os.access(DISK_FOLDER, os.W_OK) else None


MAX_ARRAY_BYTES = 8_000 * MEGABYTE
"""Largest size of all arrays together."""
MIN_COMPARED_BYTES = 100 * MEGABYTE
"""Smallest size of the arrays whose compression is checked against `MAX_COMPRESSION`."""
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
