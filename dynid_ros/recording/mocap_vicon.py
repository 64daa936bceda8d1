"""CSV exports of Vicon Nexus and Tracker.

Sections one below the other, each with its title (`Trajectories`; `Objects` or `Segments` with rigid bodies), its rate
in Hz, a line with the names, one with `Frame, Sub Frame, X, Y, Z, …` and one with the units, up to a blank line. Cells
of what was not seen are empty. Time is counted from frame 1.
"""

import numpy as np

from dynid_ros.recording.mocap_text import MocapText
from dynid_ros.recording.series import PoseSeries

SECTIONS = ("Trajectories", "Objects", "Segments")
POSITION, ROTATION = (("X", "Y", "Z"), ("TX", "TY", "TZ")), ("RX", "RY", "RZ", "RW")


def is_vicon(text: MocapText) -> bool:
    """Whether a section of tracks is in the file."""
    return any(text.find(section) is not None for section in SECTIONS)


def read_vicon(text: MocapText) -> dict[str, PoseSeries]:
    """Tracks of all sections, by the names in the file ("subject:marker"); orientations only if they are quaternions.

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
    tracks, positions, rotations = [], [], []
    for start, end in zip(starts, [*starts[1:], len(axes)], strict=True):
        at = {axes[i].upper(): i for i in range(start, end)}
        place = next((letters for letters in POSITION if all(x in at for x in letters)), None)
        if place is None:
            raise text.error(title + 3, f"'{names[start]}' has no columns X, Y, Z or TX, TY, TZ; export its position")
        metres = text.metres(title + 4, units[at[place[0]]], "mm")
        tracks.append(names[start])
        positions.append(metres * values[:, [at[x] for x in place]])
        turned = all(x in at for x in ROTATION)
        rotations.append(values[:, [at[x] for x in ROTATION]] if turned else np.full((len(values), 4), np.nan))
    time = (values[:, 0] - 1) / rate
    return text.poses(title + 2, time, tracks, np.array(positions), np.array(rotations))
