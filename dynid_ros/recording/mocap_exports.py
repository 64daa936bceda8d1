"""Tracks of markers and rigid bodies from the exports of camera systems."""

import io
import re
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import read_bytes
from dynid_ros.recording.mocap_text import MAX_FILE_BYTES, MocapText
from dynid_ros.recording.series import PoseSeries
from dynid_ros.recording.tables import TIME_NAMES

LABEL_PARAMETERS = ("LABELS", "LABELS2", "LABELS3", "LABELS4")
NO_MARKERS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS")
"""Parameters with the names of points that are results of a body model instead of markers."""
DAMAGED = (
    struct.error,
    ValueError,
    LookupError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    TypeError,
    EOFError,
    NameError,
)
"""Exceptions that the library raises for damaged files. An unknown processor leaves a name unbound."""

# CSV exports of OptiTrack Motive.
# One line of settings (`Format Version`, …, `Length Units`), then lines with each column's type, name and ID, in
# newer versions its parent, then its quantity (`Rotation`, `Position`, or the name of a quality) and the axis below
# `Frame`. Cells of unseen markers are empty. Columns such as `Rigid Body Marker` contain expected positions of markers,
# which are no measurements and are skipped.


MEASURED = ("marker", "rigid body")
"""Types of columns that were measured; columns such as `Rigid Body Marker` contain expected positions."""


class C3dFile(MocapText):
    """Binary file with the options of the caller."""

    def error(self, line: int, problem: str) -> RecordingError:  # noqa: ARG002 - as those of text have it
        """Return the error of this file."""
        return RecordingError(f"{self.path}: {problem}")


def read_c3d(path: Path, unit: str | None, rate: float | None) -> dict[str, PoseSeries]:
    """Read markers by name, with time 0 at frame 1; NaN where a marker was not seen."""
    try:
        import c3d  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise RecordingError(f"{path}: C3D needs the library c3d: pip install 'c3d>=0.5'") from error
    file = C3dFile(path, [], "", unit, rate)
    try:
        data = io.BytesIO(read_bytes(path, MAX_FILE_BYTES))
    except OSError as error:
        raise RecordingError(f"cannot read {path} ({error.strerror or error}); give a C3D file") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files without analog channels
            reader = c3d.Reader(data)
            frames = list(reader.read_frames())
        labels = [label for key in LABEL_PARAMETERS for label in _words(reader, key)]
        results = {label for key in NO_MARKERS for label in _words(reader, key)}
        units = _words(reader, "UNITS")
        frequency = reader.point_rate
        first = int(reader.first_frame)
        last = int(reader.last_frame)
    except DAMAGED as error:
        raise file.error(0, f"no C3D file, or a damaged one ({error}); export it again") from error
    if not frames or len(frames) != last - first + 1:
        raise file.error(0, f"{len(frames)} frames; expected {last - first + 1}, as its header says: export it again")
    points = np.array([point for _, point, _ in frames], dtype=float).transpose(1, 0, 2)
    points[points[:, :, 3] < 0.0] = np.nan  # residual of a marker that was not seen
    kept = [i for i, label in enumerate(labels[: len(points)]) if label and label not in results]
    metres = file.metres(0, units[0] if units else None, "mm")
    time = (first - 1 + np.arange(len(frames))) / file.number(0, str(rate or frequency), "rate in Hz")
    return file.poses(0, time, [labels[i] for i in kept], metres * points[kept, :, :3])


def _words(reader: Any, key: str) -> list[str]:
    """Return the stripped texts of a parameter of group POINT."""
    parameter = reader.get(f"POINT:{key}")
    if parameter is None:
        return []
    texts = parameter.string_array if len(parameter.dimensions) > 1 else [parameter.string_value]
    return [text.strip() for text in texts]


def is_motive(text: MocapText) -> bool:
    """Return whether the file begins with settings of Motive."""
    return text.first(0).lower() == "format version"


def read_motive(text: MocapText) -> dict[str, PoseSeries]:
    """Read markers and rigid bodies, with orientations only if they are quaternions.

    Raises:
        RecordingError: header lines are missing, or the unit is unknown.
    """
    first = text.cells(0)
    settings = dict(zip(first[::2], first[1::2], strict=False))
    metres = text.metres(0, settings.get("Length Units"))
    axes = text.find("Frame")
    if axes is None or axes < 4:
        raise text.error(0, "no line 'Frame, Time (Seconds), X, Y, Z, …' below; export with the header")
    types = next(line for line in range(1, axes + 1) if any(text.cells(line)))
    width = max(len(text.cells(line)) for line in range(types, axes + 1))
    kind, name, contents, axis = (text.cells(line, width) for line in (types, types + 1, axes - 1, axes))
    values = text.table(axes + 1, width)
    columns: dict[str, dict[str, int]] = {}
    for i in range(2, width):
        if kind[i].lower() in MEASURED and contents[i] in ("Position", "Rotation"):
            columns.setdefault(name[i], {})[contents[i] + axis[i]] = i
    quaternion = settings.get("Rotation Type", "Quaternion") == "Quaternion"
    nothing = np.full(len(values), np.nan)

    def columns_of(content: str, letters: str) -> np.ndarray:
        """Return the columns (P, N, len(letters)) of all tracks."""
        return np.array(
            [
                np.column_stack([values[:, of[content + x]] if content + x in of else nothing for x in letters])
                for of in columns.values()
            ]
        )

    rotations = columns_of("Rotation", "XYZW") if quaternion else None
    return text.poses(axes, values[:, 1], list(columns), metres * columns_of("Position", "XYZ"), rotations)


# Marker tracks as plain tables: `t` (s), then `x1`, `y1`, `z1`, … or `<name>_x`, `<name>_y`, `<name>_z`.
# Rigid bodies have `<name>_qx`, `<name>_qy`, `<name>_qz`, `<name>_qw` too. Lengths are in m or in the given unit;
# cells of unseen markers are empty or nan. Other columns are skipped.


_COLUMN = re.compile(r"(?P<name>.+)_(?P<axis>x|y|z|qx|qy|qz|qw)|(?P<letter>[xyz])_?(?P<number>\d+)", re.IGNORECASE)


def is_plain(text: MocapText) -> bool:
    """Return whether the first line names a time and a position."""
    names = [name.lower() for name in text.cells(0)]
    return any(name in TIME_NAMES for name in names) and any(_COLUMN.fullmatch(name) for name in names)


def read_plain(text: MocapText) -> dict[str, PoseSeries]:
    """Read tracks by name; numbered tracks are named "marker1" and so on.

    Raises:
        RecordingError: a track lacks an axis, or a cell is not a number.
    """
    header = text.cells(0)
    clock = next(i for i, name in enumerate(header) if name.lower() in TIME_NAMES)
    columns: dict[str, dict[str, int]] = {}
    for i, cell in enumerate(header):
        match = _COLUMN.fullmatch(cell)
        if match:
            name = match["name"] or f"marker{match['number']}"
            columns.setdefault(name, {})[(match["axis"] or match["letter"]).lower()] = i
    for name, of in columns.items():
        lacking = [axis for axis in "xyz" if axis not in of]
        if lacking:
            raise text.error(0, f"'{name}' has no column {', '.join(lacking)}; expected x, y and z of every marker")
    values = text.table(1, len(header))
    nothing = np.full((len(values), 4), np.nan)
    turned = ("qx", "qy", "qz", "qw")
    positions = np.array([values[:, [of[axis] for axis in "xyz"]] for of in columns.values()])
    rotations = [
        values[:, [of[x] for x in turned]] if all(x in of for x in turned) else nothing for of in columns.values()
    ]
    metres = text.metres(0, None, "m")
    return text.poses(0, values[:, clock], list(columns), metres * positions, np.array(rotations))


# TSV exports of markers by Qualisys Track Manager.
# Lines of a key and its value (`FREQUENCY`, `MARKER_NAMES`, …), perhaps a line with the names of the columns, then
# three columns a marker in mm, perhaps behind the frame and the time. A marker that was not seen is at 0, 0, 0 or
# empty.


HEADER_KEY = re.compile(r"[A-Z][A-Z0-9_]+")
NUMBER = re.compile(r"[-+.,eE0-9]*")


def is_qualisys(text: MocapText) -> bool:
    """Return whether the first line has one of the keys."""
    return text.first(0) in ("NO_OF_FRAMES", "FILE_VERSION", "NO_OF_CAMERAS")


def read_qualisys(text: MocapText) -> dict[str, PoseSeries]:
    """Read markers by name, with time from the file, or from 0 at the frequency.

    Raises:
        RecordingError: no 3D data or no marker names, no frequency (external timebase), or not three columns a marker.
    """
    keys: dict[str, int] = {}
    start = 0
    while HEADER_KEY.fullmatch(text.first(start)):
        keys.setdefault(text.first(start), start)
        start += 1
    names_line = keys.get("MARKER_NAMES")
    if names_line is None:
        raise text.error(start - 1, "no line MARKER_NAMES above; export 3D data with the header")
    names = [name for name in text.cells(names_line)[1:] if name]
    if not NUMBER.fullmatch(text.first(start)):  # names of the columns
        start += 1
    # A line may end with a tab.
    more = len(text.cells(start, 1, "samples")) - 3 * len(names)
    if more not in (0, 1, 2, 3):
        raise text.error(
            start,
            f"{more + 3 * len(names)} columns for {len(names)} markers; expected {3 * len(names)}, or 2 more with "
            "frame and time: export 3D data",
        )
    extra = more // 2 * 2
    values = text.table(start, extra + 3 * len(names))
    time = values[:, 1] if extra else np.arange(len(values)) / _rate(text, keys)
    tracks = values[:, extra:].reshape(len(values), len(names), 3)
    tracks[np.all(tracks == 0, axis=2)] = np.nan
    metres = text.metres(names_line, None, "mm")
    return text.poses(names_line, time, names, metres * tracks.transpose(1, 0, 2))


def _rate(text: MocapText, keys: dict[str, int]) -> float:
    if text.rate is not None:
        return text.rate
    line = keys.get("FREQUENCY", 0)
    frequency = text.cells(line, 2)[1]
    if "FREQUENCY" not in keys or frequency.upper() == "EXT":
        raise text.error(line, "neither times nor a frequency; export with the time, or give the rate")
    return text.number(line, frequency, "frequency in Hz")


# Marker tracks in TRC files, of Motion Analysis, OpenSim and many others.
# A line `PathFileType`, one of keys (`DataRate`, `Units`, …) and one of their values, one with `Frame#`, `Time` and
# the names of the markers, one with `X1`, `Y1`, `Z1`, …; all between tabs. A marker that was not seen is empty or at
# 0, 0, 0.


def is_trc(text: MocapText) -> bool:
    """Return whether the first line begins with `PathFileType`."""
    return text.first(0).startswith("PathFileType")


def read_trc(text: MocapText) -> dict[str, PoseSeries]:
    """Read markers by name.

    Raises:
        RecordingError: header lines are missing, or the unit is unknown.
    """
    keys, values = (text.cells(line, 1, "keys and values of the header") for line in (1, 2))
    units = dict(zip(keys, values, strict=False)).get("Units")
    labels = text.cells(3, 2, "the names of the markers")
    if not re.fullmatch(r"Frame#?", labels[0]) or labels[1].lower() != "time":
        raise text.error(3, f"'{labels[0]}', '{labels[1]}'; expected 'Frame#', 'Time', then the names of the markers")
    names = [name for name in labels[2:] if name]
    axes = [cell for cell in text.cells(4, 1, "the line X1, Y1, Z1, …") if cell]
    if len(axes) != 3 * len(names):
        raise text.error(4, f"{len(axes)} axes of {len(names)} markers; expected three of each")
    table = text.table(5, 2 + 3 * len(names))
    tracks = table[:, 2:].reshape(len(table), len(names), 3)
    tracks[np.all(tracks == 0, axis=2)] = np.nan
    metres = text.metres(2, units, "mm")
    return text.poses(3, table[:, 1], names, metres * tracks.transpose(1, 0, 2))


# CSV exports of Vicon Nexus and Tracker.
# Sections one below the other, each with its title (`Trajectories`; `Objects` or `Segments` with rigid bodies), its
# rate in Hz, a line with the names, one with `Frame, Sub Frame, X, Y, Z, …` and one with the units, up to a blank
# line. Cells of unseen markers are empty. Time is counted from frame 1.


SECTIONS = ("Trajectories", "Objects", "Segments")
POSITION_AXES = (("X", "Y", "Z"), ("TX", "TY", "TZ"))
ROTATION_AXES = ("RX", "RY", "RZ", "RW")


def is_vicon(text: MocapText) -> bool:
    """Return whether the file has a section of tracks."""
    return any(text.find(section) is not None for section in SECTIONS)


def read_vicon(text: MocapText) -> dict[str, PoseSeries]:
    """Read the tracks of all sections by name ("subject:marker"), with orientations only if they are quaternions.

    Raises:
        RecordingError: a section is cut off, or its unit is unknown.
    """
    poses: dict[str, PoseSeries] = {}
    for section in SECTIONS:
        title = text.find(section)
        if title is not None:
            poses |= _read_section(text, title)
    return poses


def _read_section(text: MocapText, title: int) -> dict[str, PoseSeries]:
    rate = text.rate or text.number(title + 1, text.cells(title + 1, 1, "the rate")[0], "rate in Hz")
    axes = text.cells(title + 3, 2, "the line 'Frame, Sub Frame, X, Y, Z, …'")
    if axes[0].lower() != "frame":
        raise text.error(title + 3, f"'{axes[0]}'; expected 'Frame', 'Sub Frame', 'X', 'Y', 'Z', …: export again")
    names, units = (text.cells(title + k, len(axes), what) for k, what in ((2, "the names"), (4, "the units")))
    starts = [i for i, name in enumerate(names) if name and i > 1]
    if not starts or starts[-1] >= len(axes):
        raise text.error(
            title + 2,
            f"{len(starts)} names for {len(axes)} columns; expected one above the first of each: export again",
        )
    values = text.table(title + 5, len(axes), until_blank=True)
    tracks = []
    positions = []
    rotations = []
    for start, end in zip(starts, [*starts[1:], len(axes)], strict=True):
        at = {axes[i].upper(): i for i in range(start, end)}
        place = next((letters for letters in POSITION_AXES if all(x in at for x in letters)), None)
        if place is None:
            raise text.error(title + 3, f"'{names[start]}' has no columns X, Y, Z or TX, TY, TZ; export its position")
        metres = text.metres(title + 4, units[at[place[0]]], "mm")
        tracks.append(names[start])
        positions.append(metres * values[:, [at[x] for x in place]])
        turned = all(x in at for x in ROTATION_AXES)
        rotations.append(values[:, [at[x] for x in ROTATION_AXES]] if turned else np.full((len(values), 4), np.nan))
    time = (values[:, 0] - 1) / rate
    return text.poses(title + 2, time, tracks, np.array(positions), np.array(rotations))


READERS = (
    (is_motive, read_motive),
    (is_trc, read_trc),
    (is_qualisys, read_qualisys),
    (is_vicon, read_vicon),
    (is_plain, read_plain),
)


def read_mocap(path: str | Path, unit: str | None = None, rate: float | None = None) -> dict[str, PoseSeries]:
    """Read tracks by name from a file of C3D, Motive, Vicon, Qualisys, TRC or a plain table.

    Positions are in m in the camera's frame, NaN where unseen. Times are in s on the camera's clock, which
    `signals.align_clocks` relates to the robot's. Quaternions are NaN for markers, and for bodies without quaternions
    in the file, because the convention of angles differs between programs.

    Args:
        path: file, recognised by its ending or content.
        unit: unit of length, m, cm or mm, if the file names none; None: mm for Qualisys, m for a plain table.
        rate: frame rate, Hz, instead of the file's, for files that count frames.

    Raises:
        RecordingError: the file is missing, malformed or of another format; the message has file, line and remedy.
    """
    if Path(path).suffix.lower() == ".c3d":
        return read_c3d(Path(path), unit, rate)
    text = MocapText.read(path, unit, rate)
    for is_format, read in READERS:
        if is_format(text):
            return read(text)
    raise text.error(
        0,
        "no file of Motive, Vicon, Qualisys or TRC, and no columns t, x1, y1, z1, … are named; export with the header",
    )
