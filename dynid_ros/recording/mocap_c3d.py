"""Tracks of markers from C3D files, the binary format of all camera systems; the library c3d reads them."""

import io
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files import read_bytes
from dynid_ros.recording.mocap_text import MAX_FILE_BYTES, MocapText
from dynid_ros.recording.series import PoseSeries

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


class C3dFile(MocapText):
    """Binary file with the options of the caller."""

    def error(self, line: int, problem: str) -> RecordingError:  # noqa: ARG002 - as those of text have it
        """Return the error of this file."""
        return RecordingError(f"{self.path}: {problem}")


def read_c3d(path: Path, unit: str | None, rate: float | None) -> dict[str, PoseSeries]:
    """Read markers by name, with time 0 at frame 1; NaN where a marker was not seen.

    Raises:
        RecordingError: c3d is not installed, the file cannot be read, or it holds no marker.
    """
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
