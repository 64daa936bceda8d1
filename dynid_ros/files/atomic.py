"""Writing files so that a reader never sees half of one, nor half of what belongs together."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import kind_in_words

LONGEST_CHAIN = 40
"""Links that lead from one to the next, as many as Linux follows."""
_open: ContextVar[list[tuple[Path | None, Path]] | None] = ContextVar("_open", default=None)
"""Within `all_or_none`: new files, None for none, and whose places they are to take."""


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """File opened for writing bytes; it takes the place of `path` when the block ends well. Folders are made.

    Whenever the process is killed or the power fails, the old file is there or the new one; at worst a hidden file
    with half of the new one stays beside the old. What a link leads to is replaced, not the link.

    Raises:
        DynidError: the folder cannot be made, is read-only or full; a folder, a device, a pipe or a socket is there.
    """
    with _named_errors(path):
        place = _file_behind(Path(path))
        handle, name = _beside(place)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o644)
            _settle(temporary, place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write text (UTF-8) or bytes in one go; returns the path.

    Raises:
        DynidError: as `atomic_file`.
    """
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def remove(path: str | Path) -> None:
    """Remove a file of an earlier run, where there is one.

    Raises:
        DynidError: it cannot be.
    """
    with _named_errors(path):
        _settle(None, Path(path))


@contextmanager
def all_or_none() -> Iterator[None]:
    """Files that are written or removed in the block are so when it ends well; none is when it fails.

    Raises:
        DynidError: as `atomic_file`.
    """
    files: list[tuple[Path | None, Path]] = []
    before = _open.set(files)
    try:
        try:
            yield
        finally:
            _open.reset(before)
        for temporary, place in files:
            with _named_errors(place):
                _settle(temporary, place)
        files = []  # none is left, or a block around this one has them
    finally:
        for temporary, _ in files:
            if temporary is not None:
                temporary.unlink(missing_ok=True)


def writable_folder(folder: str | Path) -> Path:
    """The folder, if files can be written into it, or it can be made; nothing is left there.

    Raises:
        DynidError: they cannot.
    """
    with _named_errors(folder):
        _require_room(_file_behind(Path(folder) / "report.html"))
    return Path(folder)


def writable_file(path: str | Path) -> Path:
    """The path, if a file can be written there; nothing is left.

    Raises:
        DynidError: none can.
    """
    with _named_errors(path):
        _require_room(_file_behind(Path(path)))
    return Path(path)


@contextmanager
def _named_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise DynidError(f"cannot write {path} ({reason}); choose a writable folder with free space") from error


def _settle(temporary: Path | None, place: Path) -> None:
    """Put the new file, None: none, where it belongs; within `all_or_none` later."""
    files = _open.get()
    if files is not None:
        files.append((temporary, place))
    elif temporary is None:
        place.unlink(missing_ok=True)
    else:
        temporary.replace(_file_behind(place))  # something else may be there by now


def _file_behind(path: Path) -> Path:
    """The place that `path` names, through all links: of a regular file, or of nothing yet.

    Raises:
        OSError: something else is there, which a new file would take away: a device, a pipe, a socket, a folder; or
            it is an open file of a process, as /dev/stdout is; or no file can have this name.
    """
    try:
        place = _followed(path)
        mode = place.stat().st_mode
    except FileNotFoundError:
        return place
    except ValueError as error:  # a zero byte or half a character
        raise OSError(errno.EINVAL, str(error)) from error
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, kind_in_words(mode))
    return place


def _followed(path: Path) -> Path:
    """Where the links end."""
    place = path
    for _ in range(LONGEST_CHAIN):
        place = Path(os.path.realpath(place.parent)) / place.name
        if place.is_relative_to("/proc"):
            raise OSError(errno.EINVAL, "it is an open stream, no file")
        if not place.is_symlink():
            return place
        place = place.parent / place.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _require_room(path: Path) -> None:
    """Write a file without a name into the folder of `path`, or where that would be made."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def _beside(path: Path) -> tuple[int, str]:
    """Handle and name of a new file in the folder of `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
