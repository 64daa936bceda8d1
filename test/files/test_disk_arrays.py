"""Test arrays on disk for long recordings: memory use, and equality with arrays in memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.files import disk_arrays
from dynid_ros.files.disk_arrays import (
    collect_rows,
    map_blocks,
    new_array,
    pick_rows,
    read_column,
    release_pages,
    row_blocks,
    stack_columns,
    take_rows,
)

N_ROWS = 50_000


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(disk_arrays, "MIN_DISK_BYTES", 1000)
    return np.random.default_rng(0).normal(size=(N_ROWS, 3))


def read_resident_kilobytes():
    """Return the file-backed resident memory of this process in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))


def test_released_pages_leave_memory_and_keep_their_content(rows):
    array = new_array(4_000_000, 3)
    array[:] = 7.0
    before = read_resident_kilobytes()
    release_pages()
    assert read_resident_kilobytes() < before - 80_000
    assert (array[::100_000] == 7.0).all()


@pytest.mark.parametrize(
    "read",
    [lambda array: pick_rows(array, slice(None, None, 5000)), lambda array: read_column(array, 1)],
    ids=["picked rows", "column"],
)
def test_reading_parts_releases_the_other_pages(read):
    array = new_array(4_000_000, 3)
    for rows in row_blocks(len(array)):
        array[rows] = 7.0
    before = read_resident_kilobytes()
    assert (read(array) == 7.0).all()
    assert read_resident_kilobytes() < before + 10_000


def test_picking_rows_does_not_copy_the_others():
    array = new_array(4_000_000, 3)
    tracemalloc.start()
    for rows in (slice(1000, 1100), np.arange(1000, 1100)):
        assert pick_rows(array, rows).shape == (100, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_falls_back_to_memory_without_a_writable_folder(rows, monkeypatch):
    monkeypatch.setattr(disk_arrays, "DISK_FOLDER", "/proc")
    monkeypatch.setattr(disk_arrays.tempfile, "tempdir", "/nowhere")
    assert new_array(N_ROWS, 3).base is None


def test_blockwise_mapping_equals_mapping_of_the_whole_array(rows):
    def smooth(values):
        padded = np.pad(values, ((2, 2), (0, 0)))
        return sum(padded[k : k + len(values)] for k in range(5))

    assert np.array_equal(map_blocks(smooth, rows, reach=2, rows_per_block=7000), smooth(rows))


def test_collected_and_stacked_rows_equal_those_in_memory(rows):
    parts = np.array_split(rows, 7)
    assert np.array_equal(collect_rows(iter(parts), 3), rows)
    assert np.array_equal(stack_columns([rows, rows[:, 0]]), np.column_stack([rows, rows[:, 0]]))


def test_takes_rows_in_order_and_without_needless_copies(rows):
    chosen = rows[:, 0] > 0
    assert np.array_equal(take_rows(rows, chosen), rows[chosen])
    assert take_rows(rows, np.ones(N_ROWS, bool)) is rows
