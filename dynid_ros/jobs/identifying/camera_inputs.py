"""What cameras saw of the links, from recordings, files and what a user says of the markers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dynid_ros.errors import MocapError
from dynid_ros.recording import Recording
from dynid_ros.recording.mocap_exports import read_mocap
from dynid_ros.recording.recording import add_poses


class CameraFiles(NamedTuple):
    """Exports of a camera system.

    Attributes:
        paths: one for each recording, in the same order.
        unit: of length, where a file names none.
        rate: Hz, in place of a file's.

    """

    paths: Sequence[Path]
    unit: str | None = None
    rate: float | None = None


def with_camera_files(recordings: Sequence[Recording], files: CameraFiles) -> list[Recording]:
    """The recordings with what the files hold.

    Raises:
        MocapError: not one file for each recording.
        RecordingError: a file cannot be read.

    """
    if len(files.paths) != len(recordings):
        raise MocapError(
            f"{len(files.paths)} files of the camera for {len(recordings)} recordings; give one for each, in the same "
            "order"
        )
    tracks = [read_mocap(path, files.unit, files.rate) for path in files.paths]
    return [add_poses(recording, poses) for recording, poses in zip(recordings, tracks, strict=True)]


def marker_links(texts: Sequence[str]) -> dict[str, str | None] | None:
    """Links by marker or body, from texts such as "/hand/pose=link_6"; without a link: to be found. None: no texts.

    Raises:
        MocapError: a text without a name, or a name that stands twice.

    """
    found: dict[str, str | None] = {}
    for text in texts:
        name, _, link = text.partition("=")
        if not name or name in found:
            raise MocapError(f"markers: '{text}' {'names nothing' if not name else 'comes twice'}; expected TOPIC=LINK")
        found[name] = link or None
    return found or None
