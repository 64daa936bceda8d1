"""TSV exports of markers by Qualisys Track Manager.

Lines of a key and its value (`FREQUENCY`, `MARKER_NAMES`, …), perhaps a line with the names of the columns, then three
columns a marker in mm, perhaps behind the frame and the time. A marker that was not seen is at 0, 0, 0 or empty.
"""

import re

import numpy as np

from dynid_ros.recording.mocap_text import MocapText
from dynid_ros.recording.series import PoseSeries

KEY, NUMBER = re.compile(r"[A-Z][A-Z0-9_]+"), re.compile(r"[-+.,eE0-9]*")


def is_qualisys(text: MocapText) -> bool:
    """Whether the first line has one of the keys."""
    return text.first(0) in ("NO_OF_FRAMES", "FILE_VERSION", "NO_OF_CAMERAS")


def read_qualisys(text: MocapText) -> dict[str, PoseSeries]:
    """Markers by name; time as in the file, else from 0 at the frequency.

    Raises:
        RecordingError: no 3D data or no marker names, no frequency (external timebase), or not three columns a marker.

    """
    keys: dict[str, int] = {}
    start = 0
    while KEY.fullmatch(text.first(start)):
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
