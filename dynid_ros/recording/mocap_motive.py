"""CSV exports of OptiTrack Motive.

One line of settings (`Format Version`, …, `Length Units`), then lines with each column's type, name and ID, in newer
versions its parent, then what it holds (`Rotation`, `Position`, or the name of a quality) and the axis below `Frame`.
Cells of what was not seen are empty. Columns `Rigid Body Marker` and the like hold where a marker is expected to be,
seen or not: they are no measurement and passed over.
"""

import numpy as np

from dynid_ros.recording.mocap_text import MocapText
from dynid_ros.recording.series import PoseSeries

MEASURED = ("marker", "rigid body")


def is_motive(text: MocapText) -> bool:
    """Whether the settings of Motive come first."""
    return text.first(0).lower() == "format version"


def read_motive(text: MocapText) -> dict[str, PoseSeries]:
    """Markers and rigid bodies; orientations only if exported as quaternions.

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

    def taken(content: str, letters: str) -> np.ndarray:
        """(P, N, len(letters))."""
        return np.array(
            [
                np.column_stack([values[:, of[content + x]] if content + x in of else nothing for x in letters])
                for of in columns.values()
            ]
        )

    rotations = taken("Rotation", "XYZW") if quaternion else None
    return text.poses(axes, values[:, 1], list(columns), metres * taken("Position", "XYZ"), rotations)
