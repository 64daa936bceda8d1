"""Marker tracks as plain tables: `t` (s), then `x1`, `y1`, `z1`, … or `<name>_x`, `<name>_y`, `<name>_z`.

Rigid bodies have `<name>_qx`, `<name>_qy`, `<name>_qz`, `<name>_qw` too. Lengths are in m, or as the caller says; cells
of what was not seen are empty or nan. Other columns are passed over.
"""

import re

import numpy as np

from dynid_ros.recording.mocap_text import MocapText
from dynid_ros.recording.series import PoseSeries
from dynid_ros.recording.table import TIME_NAMES

_COLUMN = re.compile(r"(?P<name>.+)_(?P<axis>x|y|z|qx|qy|qz|qw)|(?P<letter>[xyz])_?(?P<number>\d+)", re.IGNORECASE)


def is_plain(text: MocapText) -> bool:
    """Whether the first line names a time and a position."""
    names = [name.lower() for name in text.cells(0)]
    return any(name in TIME_NAMES for name in names) and any(_COLUMN.fullmatch(name) for name in names)


def read_plain(text: MocapText) -> dict[str, PoseSeries]:
    """Tracks by name, those with numbers as "marker1" and so on.

    Raises:
        RecordingError: a track lacks an axis, or a cell is no number.

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
