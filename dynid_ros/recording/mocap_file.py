"""Tracks of markers and rigid bodies from the text exports of camera systems."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dynid_ros.errors import RecordingError
from dynid_ros.recording.mocap_motive import is_motive, read_motive
from dynid_ros.recording.mocap_plain import is_plain, read_plain
from dynid_ros.recording.mocap_qualisys import is_qualisys, read_qualisys
from dynid_ros.recording.mocap_text import MocapText
from dynid_ros.recording.mocap_trc import is_trc, read_trc
from dynid_ros.recording.mocap_vicon import is_vicon, read_vicon
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.series import PoseSeries

READERS = (
    (is_motive, read_motive),
    (is_trc, read_trc),
    (is_qualisys, read_qualisys),
    (is_vicon, read_vicon),
    (is_plain, read_plain),
)


def read_mocap(path: str | Path, unit: str | None = None, rate: float | None = None) -> dict[str, PoseSeries]:
    """Tracks by name, from a file of OptiTrack Motive, Vicon, Qualisys, TRC, or a plain table; its content tells which.

    Positions are in m in the camera's frame, NaN where not seen, times in s on the camera's own clock: that it is not
    the robot's, `signals.align_clocks` mends. Quaternions are NaN for markers, and for bodies without quaternions in
    the file: angles have a convention of their own in every program.

    Args:
        path: the file.
        unit: of length, m, cm or mm, where the file names none; None: mm for Qualisys, m for a plain table.
        rate: Hz, in place of the file's, for files that count frames.

    Raises:
        RecordingError: no such file, none of these formats, or malformed; names the file, the line and the way out.

    """
    text = MocapText.read(path, unit, rate)
    for is_format, read in READERS:
        if is_format(text):
            return read(text)
    raise text.error(
        0,
        "no file of Motive, Vicon, Qualisys or TRC, and no columns t, x1, y1, z1, … are named; export with the header",
    )


def add_poses(recording: Recording, poses: Mapping[str, PoseSeries]) -> Recording:
    """The recording with these tracks beside its own, on the clock that they have.

    As long as that is the camera's own, do not slice the recording: a slice cuts by the robot's clock.

    Raises:
        RecordingError: it has a track of such a name.

    """
    both = sorted(set(recording.poses) & set(poses))
    if both:
        raise RecordingError(
            f"{recording.source} already has poses of {', '.join(both)}; rename or leave out one of them"
        )
    return replace(recording, poses={**recording.poses, **poses})
