"""Recordings as CSV tables and NumPy archives with named columns.

CSV tables: the first line names the columns: `t` (s), then `<joint>_position`, `<joint>_velocity`, `<joint>_torque`
(N m), `<joint>_link_position` of a second encoder, and the commanded position `<joint>_command`. Drives in MIT mode
also receive `<joint>_command_velocity`, `<joint>_command_torque`, `<joint>_stiffness` and `<joint>_damping`. Other
accepted spellings: `time`, `timestamp`, `__time`; `pos`, `q`; `vel`, `dq`, `qd`; `tau`, `effort`; `current` (A); `kp`;
`kd`; these words as prefixes, as in `q_<joint>`, `tau_<joint>` or `actual_q_0` (RTDE of Universal Robots); and series
of PlotJuggler, `/joint_states/<joint>/position`. If the joints are numbered (`q1`, `tau_1`), the caller names them.
Other columns are skipped; an empty cell is a value that was not recorded. Commas, semicolons, tabs or spaces separate
the columns, and the first line may begin with `#`.

Archives: keys are `time` (N,) in s; `position`, `velocity`, `torque` (N m), `link_position`, `command`, each (N, n);
and `joint_names` (n,); commands at other times are (K, n), with `command_time` (K,) in s. Of drives in MIT mode,
`command_velocity`, `command_torque`, `stiffness` and `damping` have the shape of `command`. Other accepted spellings:
`t`; `pos`, `q`; `vel`, `dq`, `qd`; `tau`, `effort`; `current` (A). Without `joint_names` the caller names the columns.
Archives of this package also contain `start_time`, wrenches, poses and positions of other joints.
"""

from __future__ import annotations

import csv
import re
import warnings
from array import array as packed_array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, atomic_file, csv_line, require_file
from dynid_ros.files.disk_arrays import ROWS_PER_BLOCK, collect_rows, new_array, read_arrays, row_blocks, take_columns
from dynid_ros.recording.effort import IMPEDANCE, EffortConvention
from dynid_ros.recording.series import CommandSeries, ImuSeries, PoseSeries, WrenchSeries

if TYPE_CHECKING:
    from dynid_ros.recording.recording import Recording


TIME_NAMES = ("t", "time", "timestamp", "__time")
MAX_START_S = 1e6
"""Largest time of the first nonzero sample, s; if it is larger, zeros before it are missing time stamps."""
QUANTITIES = {
    "position": ("position", "pos", "q"),
    "velocity": ("velocity", "vel", "dq", "qd"),
    "torque": ("torque", "tau", "effort"),
    "current": ("current",),
    "link_position": ("link_position",),
    "command": ("command", "command_position"),
    "command_velocity": ("command_velocity",),
    "command_torque": ("command_torque", "command_effort"),
    "stiffness": ("stiffness", "kp"),
    "damping": ("damping", "kd"),
}
"""Accepted spellings of each quantity."""
COMMAND_FIELDS = {
    "command_velocity": "velocity",
    "command_torque": "effort",
    "stiffness": "stiffness",
    "damping": "damping",
}
"""Further fields of a `CommandSeries`, in addition to its position, by quantity."""
SERIES_TYPES: dict[str, type[WrenchSeries] | type[PoseSeries] | type[ImuSeries]] = {
    "wrenches": WrenchSeries,
    "poses": PoseSeries,
    "imus": ImuSeries,
}
OTHER_PREFIX = "other_position:"
"""Prefix of the keys of other recorded joints in an archive."""
ENCODING = "utf-8-sig"  # spreadsheets write a byte order mark
MAX_FILE_BYTES = 4_000 * MEGABYTE
MAX_LINE_CHARACTERS = MEGABYTE
MAX_COLUMNS = 2_000
QUANTITY_OF = {alias: quantity for quantity, aliases in QUANTITIES.items() for alias in aliases}
_WORDS = "|".join(sorted(QUANTITY_OF, key=len, reverse=True))
_SUFFIXED = re.compile(rf"(?P<joint>.+?)_(?P<word>{_WORDS})")
_SERIES = re.compile(rf"(.*/)?(?P<joint>[^/]+)/(?P<word>{_WORDS})")
_PREFIXED = re.compile(rf"(actual_)?(?P<word>{_WORDS})(_(?P<joint>.+)|(?P<number>\d+))")
DELIMITERS = ",;\t "
"""Characters between cells; the first one that the first line contains counts."""
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Table:
    """Columns of a table.

    Attributes:
        source: name of the file.
        joint_names: names of the n joints.
        clock: (N,) times, s.
        columns: (N, n) values of all joints by quantity, a key of `QUANTITIES`.
        command_time: (K,) times of the commands, s; None: those of the samples.
    """

    source: str
    joint_names: tuple[str, ...]
    clock: np.ndarray
    columns: dict[str, np.ndarray]
    command_time: np.ndarray | None = None

    def fields(self, convention: EffortConvention) -> dict[str, Any]:
        """Return the fields of a `Recording`, with efforts as recorded; its time 0 is the first time of the table."""
        if self.clock.ndim != 1:
            raise RecordingError(f"{self.source}: time has shape {self.clock.shape}; expected one column, (N,)")
        unstamped = _leading_zeros(self.clock)
        if unstamped:
            with_own_time = () if self.command_time is None else ("command", *COMMAND_FIELDS)
            kept = replace(
                self,
                clock=self.clock[unstamped:],
                columns={
                    name: array if name in with_own_time else array[unstamped:] for name, array in self.columns.items()
                },
            )
            remark = f"its first {unstamped} samples have the time 0, long before all others, and are left out"
            return {**kept.fields(convention), "clock_remark": remark}
        not_recorded = np.broadcast_to(np.nan, self.columns["position"].shape)
        return {
            "joint_names": self.joint_names,
            "time": self.clock - self.clock[:1],
            "position": self.columns["position"],
            "velocity": self.columns.get("velocity", not_recorded),
            "torque": self._effort(convention, not_recorded),
            "start_time": float(self.clock[0]) if self.clock.size else 0.0,
            "link_position": self.columns.get("link_position"),
            "command": self._command(),
            "source": self.source,
        }

    def _command(self) -> CommandSeries | None:
        """Return the commands, at the times of the samples or at separate times of an archive."""
        position = self.columns.get("command")
        if position is None:
            return None
        time = self.clock if self.command_time is None else self.command_time
        further = {field: self.columns[name] for name, field in COMMAND_FIELDS.items() if name in self.columns}
        try:
            return CommandSeries(time - self.clock[:1], position, **further)
        except RecordingError as error:
            raise RecordingError(f"{self.source}: {error}") from error

    def _effort(self, convention: EffortConvention, not_recorded: np.ndarray) -> np.ndarray:
        """Return the torques or motor currents (N, n) that the convention needs; `not_recorded` without any."""
        if convention.kind == "motor_current" and "current" in self.columns:
            return self.columns["current"]
        if "torque" not in self.columns and "current" in self.columns and convention.kind != IMPEDANCE:
            raise RecordingError(
                f"{self.source} has motor currents and no torques; give effort_convention 'motor_current' with gains "
                "(N m / A, one per joint)"
            )
        return self.columns.get("torque", not_recorded)


def _leading_zeros(clock: np.ndarray) -> int:
    """Return the number of samples without a time stamp at the begin; their time 0 would make a recording of years."""
    stamped = np.flatnonzero(clock)
    first = int(stamped[0]) if stamped.size else 0
    return first if first and clock[first] > MAX_START_S else 0


def joint_names_of_columns(count: int, joint_names: Sequence[str] | None, source: str) -> tuple[str, ...]:
    """Return the caller's names for unnamed columns, in column order."""
    if joint_names is None:
        raise RecordingError(f"{source} does not name its {count} joints; give joint_names in the order of its columns")
    if len(joint_names) != count:
        raise RecordingError(
            f"{source} has {count} columns of position, but {len(joint_names)} joint_names were given "
            f"({', '.join(joint_names)}); the file does not name its joints, so there must be one name per column"
        )
    return tuple(joint_names)


def read_csv(path: Path, joint_names: Sequence[str] | None, convention: EffortConvention) -> dict[str, Any]:
    """Read the fields of a `Recording` of all joints, with efforts as recorded, from a CSV table."""
    try:
        require_file(path, MAX_FILE_BYTES)
        with path.open(encoding=ENCODING, newline="") as file:
            layout = _Layout.from_first_line(next(_lines(file, path), ""))
        clock, cells = _find_columns(layout.header, str(path))
        used = sorted({clock, *cells.values()})
        values = _read_values(path, layout, used)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"cannot read {path} as a CSV table ({reason}); expected UTF-8 text, a sample a line"
        ) from error
    joints = list(dict.fromkeys(joint for quantity, joint in cells if quantity == "position"))
    columns = {}
    for quantity in QUANTITIES:
        if any((quantity, joint) in cells for joint in joints):
            places = [(i, used.index(cells[quantity, j])) for i, j in enumerate(joints) if (quantity, j) in cells]
            columns[quantity] = new_array(len(values), len(joints))
            for rows in row_blocks(len(values)):
                columns[quantity][rows] = np.nan
                for i, column in places:
                    columns[quantity][rows, i] = values[rows, column]
    if all(joint.isdigit() for joint in joints):  # as in q1: the caller's names are in the order of the numbers
        order = sorted(range(len(joints)), key=lambda i: int(joints[i]))
        columns = {quantity: take_columns(array, order) for quantity, array in columns.items()}
        joints = list(joint_names_of_columns(len(joints), joint_names, str(path)))
    return Table(str(path), tuple(joints), values[:, used.index(clock)].copy(), columns).fields(convention)


def write_csv(recording: Recording, path: Path) -> None:
    """Write time and joint data with 12 digits; the file appears complete or not at all.

    Commands at other times than the samples are omitted.

    Raises:
        RecordingError: the folder cannot be written to.
    """
    names = ["t"]
    columns = [recording.time]
    for quantity in ("position", "velocity", "torque", "link_position"):
        array = getattr(recording, quantity)
        if array is not None and not np.all(np.isnan(array)):
            names += [f"{joint}_{quantity}" for joint in recording.joint_names]
            columns += list(array.T)
    command = recording.command
    if command is not None and np.array_equal(command.time, recording.time):
        for quantity, values in {"command": command.position, **_command_fields(command)}.items():
            names += [f"{joint}_{quantity}" for joint in recording.joint_names]
            columns += list(values.T)
    with atomic_file(path) as file:
        write_columns(file, names, np.column_stack(columns))


def _command_fields(command: CommandSeries) -> dict[str, np.ndarray]:
    """Return the fields (K, n) of the commands except their positions, by quantity."""
    return {name: command.further[field] for name, field in COMMAND_FIELDS.items() if field in command.further}


def write_columns(file: BinaryIO, names: Sequence[str], values: np.ndarray) -> None:
    """Write a line of column names, then a line for each row of values (N, n) with 12 digits."""
    file.write(f"{csv_line(names)}\n".encode())
    for rows in row_blocks(len(values)):
        np.savetxt(file, values[rows], fmt="%.12g", delimiter=",", encoding="utf-8")


class _Layout(NamedTuple):
    """Names of the columns of a table, and the character between its cells."""

    header: list[str]
    delimiter: str

    @classmethod
    def from_first_line(cls, line: str) -> _Layout:
        """Return the layout of a table, whose first line may begin with `#`."""
        text = line.lstrip("# ").rstrip()
        delimiter = next((delimiter for delimiter in DELIMITERS if delimiter in text), ",")
        header = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])
        return cls([name.strip() for name in header], delimiter)


def _find_columns(header: list[str], source: str) -> tuple[int, dict[tuple[str, str], int]]:
    """Return the index of the time column, and the index of the column of each (quantity, joint)."""
    if len(header) > MAX_COLUMNS:
        raise RecordingError(f"{source}: the first line names {len(header)} columns; keep at most {MAX_COLUMNS}")
    clocks = [i for i, name in enumerate(header) if name.lower() in TIME_NAMES]
    if len(clocks) != 1:
        listed = ", ".join(header) or "nothing"
        raise RecordingError(
            f"{source}: the first line must name one column 't' (s), and '<joint>_position', '<joint>_velocity', "
            f"'<joint>_torque'; it has {listed}"
        )
    cells: dict[tuple[str, str], int] = {}
    for i, name in enumerate(header):
        match = _SUFFIXED.fullmatch(name) or _SERIES.fullmatch(name) or _PREFIXED.fullmatch(name)
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


def _read_values(path: Path, layout: _Layout, used: list[int]) -> np.ndarray:
    """Return the used columns (N, len(used))."""
    try:
        return collect_rows(_plain_rows(path, layout, used), len(used))
    except ValueError:
        pass
    # This reader is ten times slower, but accepts empty cells and columns of text, and finds a wrong cell.
    return collect_rows(_parsed_rows(path, layout, used), len(used))


def _plain_rows(path: Path, layout: _Layout, used: list[int]) -> Iterator[np.ndarray]:
    """Yield blocks (M, len(used)) of a table that contains numbers only.

    Raises:
        ValueError: a cell is empty or no number, or a line has another number of cells.
    """
    with path.open(encoding=ENCODING, newline="") as file:
        lines = _lines(file, path)
        next(lines)
        while block := list(islice(lines, ROWS_PER_BLOCK)):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*no data.*")
                values = np.loadtxt(block, delimiter=layout.delimiter.strip() or None, comments=None, ndmin=2)
            if values.size and values.shape[1] != len(layout.header):
                raise ValueError(f"{values.shape[1]} cells")
            if values.size:
                yield values[:, used]


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a table, and refuse long lines: a file without line ends would fill the memory."""
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_CHARACTERS + 1), ""), start=1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise RecordingError(
                f"{path}, line {number}: it does not end within {MAX_LINE_CHARACTERS} characters; "
                "expected one sample a line"
            )
        yield line


def _parsed_rows(path: Path, layout: _Layout, used: list[int]) -> Iterator[np.ndarray]:
    """Yield blocks (M, len(used)) of a table in which cells may be empty."""
    rows = _parsed_cells(path, layout, used)
    while cells := packed_array("d", chain.from_iterable(islice(rows, ROWS_PER_BLOCK))):
        yield np.array(cells).reshape(-1, len(used))


def _parsed_cells(path: Path, layout: _Layout, used: list[int]) -> Iterator[list[float]]:
    """Yield the used cells of each line."""
    with path.open(encoding=ENCODING, newline="") as file:
        rows = csv.reader(_lines(file, path), delimiter=layout.delimiter, skipinitialspace=True)
        next(rows)
        for row in rows:
            if not row:
                continue
            if len(row) != len(layout.header):
                expected = len(layout.header)
                raise RecordingError(
                    f"{path}, line {rows.line_num}: {len(row)} cells; expected {expected} as in the first line"
                )
            values = []
            for column in used:
                cell = row[column].strip()
                try:
                    values.append(float(cell or "nan"))
                except ValueError as error:
                    raise RecordingError(
                        f"{path}, line {rows.line_num}, column '{layout.header[column]}': '{cell}' is not a number; "
                        "correct or remove the line"
                    ) from error
            yield values


def read_npz(path: Path, joint_names: Sequence[str] | None, convention: EffortConvention) -> dict[str, Any]:
    """Read the fields of a `Recording` of all joints, with efforts as recorded, from a NPZ archive."""
    try:
        require_file(path)
        arrays = read_arrays(path)
    except Exception as error:  # zipfile, its decompressors and NumPy raise a dozen kinds
        reason = getattr(error, "strerror", None) or error or type(error).__name__
        raise RecordingError(
            f"cannot read {path} as a NPZ archive of plain arrays ({reason}); write it with numpy.savez"
        ) from error
    columns = {quantity: _find(arrays, aliases, path) for quantity, aliases in QUANTITIES.items()}
    recorded = {quantity: array for quantity, array in columns.items() if array is not None}
    clock = _find(arrays, TIME_NAMES, path)
    if clock is None or "position" not in recorded:
        raise RecordingError(
            f"{path} has no array {'time' if clock is None else 'position'}; it has {', '.join(arrays) or 'nothing'}; "
            "expected time (or t), position (or q), and velocity, torque, joint_names if recorded"
        )
    if recorded["position"].ndim == 1:  # one joint
        recorded = {quantity: array[:, np.newaxis] for quantity, array in recorded.items() if array.ndim == 1}
    if recorded["position"].ndim != 2:
        raise RecordingError(f"{path}: position has shape {recorded['position'].shape}; expected (N, n)")
    if "joint_names" in arrays:
        names = tuple(str(name) for name in np.atleast_1d(arrays["joint_names"]))
    else:
        names = joint_names_of_columns(recorded["position"].shape[1], joint_names, str(path))
    values = Table(str(path), names, clock, recorded, _find(arrays, ("command_time",), path)).fields(convention)
    values |= {kind: _series(arrays, kind, path) for kind in SERIES_TYPES}
    values["others"] = _others(arrays, path)
    values["start_time"] += _single(arrays, "start_time", path)
    values["truncated"] = bool(_single(arrays, "truncated", path))
    return values


def write_npz(recording: Recording, path: Path) -> None:
    """Write the whole recording; the file appears complete or not at all.

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
    if recording.command is not None:
        arrays |= {"command_time": recording.command.time, "command": recording.command.position}
        arrays |= _command_fields(recording.command)
    arrays |= {f"{OTHER_PREFIX}{name}": position for name, position in recording.others.items()}
    for kind in SERIES_TYPES:
        for name, series in getattr(recording, kind).items():
            for field in fields(series):
                arrays[f"{kind}:{name}:{field.name}"] = getattr(series, field.name)
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def _single(arrays: Mapping[str, np.ndarray], key: str, path: Path) -> float:
    """Return a single number of the archive; 0 if the archive does not contain it."""
    try:
        value = np.asarray(arrays.get(key, 0.0), dtype=float).item()
    except (TypeError, ValueError) as error:
        raise RecordingError(f"{path}: array '{key}' is no single number: {error}") from error
    if not np.isfinite(value):
        raise RecordingError(f"{path}: array '{key}' is {value}; expected a finite number")
    return value


def _find(arrays: Mapping[str, np.ndarray], aliases: Sequence[str], path: Path) -> np.ndarray | None:
    """Return the numbers under the one key of `aliases` that the archive contains; None if it contains none."""
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
    """Return the positions (K,) of other recorded joints by name."""
    others = {}
    for key in arrays:
        if key.startswith(OTHER_PREFIX):
            positions = _find(arrays, (key,), path)
            if positions is None or positions.ndim != 1 or not np.isfinite(positions).all():
                raise RecordingError(f"{path}: array '{key}' does not hold one finite position a sample")
            others[key.removeprefix(OTHER_PREFIX)] = positions
    return others


def _series(arrays: Mapping[str, np.ndarray], kind: str, path: Path) -> dict[str, Any]:
    """Return the series of a kind, a key of `SERIES_TYPES`, from arrays with keys `<kind>:<name>:<field>`."""
    parts: dict[str, dict[str, Any]] = {}
    for key, values in arrays.items():
        prefix, _, rest = key.partition(":")
        if prefix == kind:
            name, _, field = rest.rpartition(":")
            parts.setdefault(name, {})[field] = str(values) if field == "frame_id" else values
    expected = {field.name for field in fields(SERIES_TYPES[kind])}
    series = {}
    for name, part in parts.items():
        if set(part) != expected:
            keys = ", ".join(f"{kind}:{name}:{field}" for field in sorted(expected))
            raise RecordingError(f"{path}: arrays of {kind} are incomplete, or too many: expected {keys}")
        try:
            series[name] = SERIES_TYPES[kind](**part)
        except RecordingError as error:
            raise RecordingError(f"{path}: {kind} of '{name}': {error}") from error
    return series
