"""Marker tracks in TRC files, of Motion Analysis, OpenSim and many others.

A line `PathFileType`, one of keys (`DataRate`, `Units`, …) and one of their values, one with `Frame#`, `Time` and the
names of the markers, one with `X1`, `Y1`, `Z1`, …; all between tabs. A marker that was not seen is empty or at 0, 0, 0.
"""

import re

import numpy as np

from dynid_ros.recording.mocap_text import MocapText
from dynid_ros.recording.series import PoseSeries


def is_trc(text: MocapText) -> bool:
    """Whether the first line says so."""
    return text.first(0).startswith("PathFileType")


def read_trc(text: MocapText) -> dict[str, PoseSeries]:
    """Markers by name.

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
