"""Recordings as CSV tables.

The first line names the columns: `t` (s), then `<joint>_position`, `<joint>_velocity`, `<joint>_torque` (N m) and, of a
second encoder, `<joint>_link_position`. Other spellings that are read: `time`; `pos`, `q`; `vel`, `dq`, `qd`; `tau`,
`effort`; `current` (A); and these words in front, as in `q_<joint>` or `tau_<joint>`. Where only numbers stand for the
joints (`q1`, `tau_1`), the caller names them. Columns that fit none of this are passed over; an empty cell is a value
that was not recorded.
"""

import csv
import re
import warnings
from array import array as packed_array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, atomic_file, require_file
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.table import QUANTITIES, TIME_NAMES, Table, joint_names_of_columns

if TYPE_CHECKING:
    from dynid_ros.recording.recording import Recording

ENCODING = "utf-8-sig"  # spreadsheets put a byte order mark in front
LARGEST_FILE = 4_000 * MEGABYTE
LONGEST_LINE = MEGABYTE
MOST_COLUMNS = 2_000
QUANTITY_OF = {alias: quantity for quantity, aliases in QUANTITIES.items() for alias in aliases}
_WORDS = "|".join(sorted(QUANTITY_OF, key=len, reverse=True))
_SUFFIXED = re.compile(rf"(?P<joint>.+?)_(?P<word>{_WORDS})")
_PREFIXED = re.compile(rf"(?P<word>{_WORDS})(_(?P<joint>.+)|(?P<number>\d+))")


def read_csv(path: Path, joint_names: Sequence[str] | None, convention: EffortConvention) -> dict[str, Any]:
    """Fields of a `Recording` of all joints, efforts as recorded, from a table as this module describes it.

    Raises:
        RecordingError: no time column, no position column, two columns for one thing, or a cell that is no number.

    """
    try:
        require_file(path, LARGEST_FILE)
        with path.open(encoding=ENCODING, newline="") as file:
            header = [name.strip() for name in next(csv.reader(_lines(file, path)), [])]
        clock, cells = _find_columns(header, str(path))
        used = sorted({clock, *cells.values()})
        values = _read_values(path, header, used)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"cannot read {path} as a CSV table ({reason}); expected UTF-8 text with commas"
        ) from error
    joints = list(dict.fromkeys(joint for quantity, joint in cells if quantity == "position"))
    columns = {}
    for quantity in QUANTITIES:
        if any((quantity, joint) in cells for joint in joints):
            columns[quantity] = np.full((len(values), len(joints)), np.nan)
            for i, joint in enumerate(joints):
                if (quantity, joint) in cells:
                    columns[quantity][:, i] = values[:, used.index(cells[quantity, joint])]
    if all(joint.isdigit() for joint in joints):
        order = sorted(range(len(joints)), key=lambda i: int(joints[i]))
        columns = {quantity: array[:, order] for quantity, array in columns.items()}
        joints = list(joint_names_of_columns(len(joints), joint_names, str(path)))
    return Table(str(path), tuple(joints), values[:, used.index(clock)], columns).fields(convention)


def write_csv(recording: "Recording", path: Path) -> None:
    """Write time and what was recorded of the joints, 12 digits; the file appears whole or not at all.

    Raises:
        RecordingError: the folder cannot be written to.

    """
    names, columns = ["t"], [recording.time]
    for quantity in ("position", "velocity", "torque", "link_position"):
        array = getattr(recording, quantity)
        if array is not None and not np.all(np.isnan(array)):
            names += [f"{joint}_{quantity}" for joint in recording.joint_names]
            columns += list(array.T)
    with atomic_file(path) as file:
        np.savetxt(file, np.column_stack(columns), fmt="%.12g", delimiter=",", header=",".join(names), comments="")


def _find_columns(header: list[str], source: str) -> tuple[int, dict[tuple[str, str], int]]:
    """Index of the time column, and of each (quantity, joint)."""
    if len(header) > MOST_COLUMNS:
        raise RecordingError(f"{source}: the first line names {len(header)} columns; keep at most {MOST_COLUMNS}")
    clocks = [i for i, name in enumerate(header) if name.lower() in TIME_NAMES]
    if len(clocks) != 1:
        found = ", ".join(header) or "nothing"
        raise RecordingError(
            f"{source}: the first line must name one column 't' (s), and '<joint>_position', '<joint>_velocity', "
            f"'<joint>_torque'; it has {found}"
        )
    cells: dict[tuple[str, str], int] = {}
    for i, name in enumerate(header):
        match = _SUFFIXED.fullmatch(name) or _PREFIXED.fullmatch(name)
        if match is None:
            continue
        joint = match["joint"] or match["number"]
        key = QUANTITY_OF[match["word"]], joint
        if key in cells:
            raise RecordingError(
                f"{source}: columns '{header[cells[key]]}' and '{name}' both give the {key[0]} of joint '{joint}'; "
                "remove one"
            )
        cells[key] = i
    if not any(quantity == "position" for quantity, _ in cells):
        raise RecordingError(f"{source}: no column '<joint>_position' among {', '.join(header)}")
    return clocks[0], cells


def _read_values(path: Path, header: list[str], used: list[int]) -> np.ndarray:
    """Columns `used` as (N, len(used))."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*no data.*")
            with path.open(encoding=ENCODING, newline="") as file:
                values = np.loadtxt(_lines(file, path), delimiter=",", skiprows=1, comments=None, ndmin=2)
        if values.shape[1] == len(header):
            return values[:, used]
    except ValueError:
        pass
    # Ten times slower, but it knows empty cells and columns of text, and tells where a wrong cell is.
    cells = packed_array("d")
    for row in _parsed_rows(path, header, used):
        cells.extend(row)
    return np.array(cells).reshape(-1, len(used))


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Lines of a table; a file without ends of lines is none, and would fill the memory."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), ""), start=1):
        if len(line) > LONGEST_LINE:
            raise RecordingError(
                f"{path}, line {number}: it does not end within {LONGEST_LINE} characters; expected one sample a line"
            )
        yield line


def _parsed_rows(path: Path, header: list[str], used: list[int]) -> Iterator[list[float]]:
    with path.open(encoding=ENCODING, newline="") as file:
        rows = csv.reader(_lines(file, path))
        next(rows)
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise RecordingError(
                    f"{path}, line {rows.line_num}: {len(row)} cells; expected {len(header)} as in the first line"
                )
            values = []
            for column in used:
                cell = row[column].strip()
                try:
                    values.append(float(cell or "nan"))
                except ValueError as error:
                    raise RecordingError(
                        f"{path}, line {rows.line_num}, column '{header[column]}': '{cell}' is not a number; "
                        "mend or remove the line"
                    ) from error
            yield values
