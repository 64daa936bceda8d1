"""Atomic writing, and protection: a reader sees the old file or the new one, and inputs are never overwritten."""

import errno
import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import kind_in_words

OUTPUT = "output"
"""Option whose path is written."""
PARAMETERS_OPTION = "parameters"
"""Option whose file is read, completed and written."""
BAG_SUFFIXES = (".mcap", ".db3", ".zstd", ".parquet")
BAG_METADATA = "metadata.yaml"
_inputs: ContextVar[tuple[Path, ...]] = ContextVar("_inputs", default=())


def input_paths(options: Mapping[str, object]) -> Iterator[Path]:
    """Yield the paths among the values of a command's options, without those that it writes."""
    for name, value in options.items():
        if name not in (OUTPUT, PARAMETERS_OPTION):
            yield from paths_in(value)


def paths_in(value: object) -> Iterator[Path]:
    """Yield the value if it is a path, or the paths in it if it is a list or tuple."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return (entry for entry in values if isinstance(entry, Path))


@contextmanager
def protected(paths: Iterable[Path]) -> Iterator[None]:
    """Refuse, within the block, to write or remove these files and the recorded data in these folders."""
    before = _inputs.set((*_inputs.get(), *paths))
    try:
        yield
    finally:
        _inputs.reset(before)


def require_no_input(path: Path) -> None:
    """Refuse a file that is a protected input, whatever its path and whatever links lead to it.

    Raises:
        DynidError: it is one.
    """
    for source in _inputs.get():
        if _same(path, source) or _is_recorded_in(path, source):
            raise DynidError(
                f"cannot write {path}: it is an input of this command, {source}, and would be overwritten; "
                f"choose another --{OUTPUT}"
            )


def _same(path: Path, source: Path) -> bool:
    try:
        return path.samefile(source)
    except (OSError, ValueError):  # one of them does not exist
        return False


def _is_recorded_in(path: Path, folder: Path) -> bool:
    """Return whether the file exists and is part of the bag or dataset in the folder."""
    recorded = path.suffix in BAG_SUFFIXES or path.name == BAG_METADATA
    return recorded and path.is_file() and folder.is_dir() and path.resolve().is_relative_to(folder.resolve())


def lock(handle: int, *, wait: bool = True) -> bool | None:
    """Lock an open file or folder.

    Returns:
        True; False where another process has locked it; None where the file system has no locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder, if need be, and keep other processes out of it that lock it too.

    Raises:
        DynidError: it cannot be made, or another process has locked it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DynidError(f"cannot write {folder} ({reason}); choose a writable folder with free space") from error
    try:
        if lock(handle, wait=False) is False:
            raise DynidError(f"{folder}: another process writes there now; wait for it, or choose another folder")
        yield
    finally:
        os.close(handle)


MAX_LINKS = 40
"""Links that lead from one to the next, as many as Linux follows."""
MAX_NAME_PART = 50
"""Characters of the file's name that its temporary file repeats; a name has at most 255 bytes."""
PERMISSIONS = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class _Change:
    """Pending replacement or removal of a file.

    Attributes:
        place: path of the file that is replaced or removed.
        temporary: path of the new file; None if the file is removed.
        handle: file descriptor of the new file. It stays open and locked until the change is made, so that no other
            process removes the new file as a leftover of a killed one.
    """

    place: Path
    temporary: Path | None = None
    handle: int | None = None

    def make(self) -> None:
        """Replace or remove the file."""
        if self.temporary is None:
            self.place.unlink(missing_ok=True)
        else:
            self.temporary.replace(_file_behind(self.place))  # something else may be there by now

    def end(self) -> None:
        """Remove the new file if it did not take its place, and close it."""
        if self.temporary is not None:
            self.temporary.unlink(missing_ok=True)
        if self.handle is not None:
            os.close(self.handle)


_open: ContextVar[list[_Change] | None] = ContextVar("_open", default=None)
"""Changes that are made at the end of the block `all_or_none`."""


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing bytes; it replaces `path` when the block ends without an error. Folders are made.

    If the process is killed or the power fails, either the old file or the new one exists; at worst a hidden temporary
    file remains until the next write. A link is followed: its target is replaced. The new file gets the permissions
    of the old one, else those that the umask leaves.

    Raises:
        DynidError: the folder cannot be made, is read-only or full; `path` is a folder, a device, a pipe or a socket;
            the file is an input of the command.
    """
    with _named_errors(path):
        place = _file_behind(Path(path))
        require_no_input(place)
        permissions = place.stat().st_mode & PERMISSIONS if place.exists() else None
        change = _create_beside(place, private=permissions is not None)
        assert change.handle is not None
        try:
            with os.fdopen(change.handle, "wb", closefd=False) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if permissions is not None:
                os.fchmod(change.handle, permissions)
            _settle(change)
        except BaseException:
            change.end()
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
    require_no_input(Path(path))
    with _named_errors(path):
        _settle(_Change(Path(path)))


@contextmanager
def all_or_none() -> Iterator[None]:
    """Files that are written or removed in the block are so when it ends well; none is when it fails.

    Raises:
        DynidError: as `atomic_file`.
    """
    changes: list[_Change] = []
    before = _open.set(changes)
    try:
        try:
            yield
        finally:
            _open.reset(before)
        while changes:
            with _named_errors(changes[0].place):
                _settle(changes[0])
            changes.pop(0)  # it is made, or a block around this one has it
    finally:
        for change in changes:
            change.end()


def writable_folder(folder: str | Path, *names: str) -> Path:
    """Return the folder, if files of these names can be written into it, or it can be made; nothing is left there.

    Raises:
        DynidError: they cannot.
    """
    for name in names or ("report.html",):
        writable_file(Path(folder) / name)
    return Path(folder)


def writable_file(path: str | Path) -> Path:
    """Return the path, if a file can be written there; nothing is left.

    Raises:
        DynidError: none can, or it is an input of the command.
    """
    with _named_errors(path):
        place = _file_behind(Path(path))
        _require_room(place)
    require_no_input(place)
    return Path(path)


@contextmanager
def _named_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise DynidError(f"cannot write {path} ({reason}); choose a writable folder with free space") from error


def _settle(change: _Change) -> None:
    """Make the change; within `all_or_none` later."""
    changes = _open.get()
    if changes is not None:
        changes.append(change)
    else:
        change.make()
        change.end()


def _file_behind(path: Path) -> Path:
    """Return the file that `path` names after all links: a regular file, or one that does not exist yet.

    Raises:
        OSError: the path is a device, a pipe, a socket, a folder or an open file of a process such as /dev/stdout; or
            the name is invalid.
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
    """Return the end of a chain of links."""
    place = path
    for _ in range(MAX_LINKS):
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


def _create_beside(place: Path, *, private: bool) -> _Change:
    """Create and lock the temporary file in the folder of the old file, and remove leftovers of killed processes.

    Args:
        place: path of the old file.
        private: only the user may read the temporary file.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    start = f".{place.name[:MAX_NAME_PART]}."
    _remove_unlocked(place.parent, re.compile(rf"{re.escape(start)}[0-9a-f]{{16}}\.part"))
    while True:
        temporary = place.parent / f"{start}{secrets.token_hex(8)}.part"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666)
        change = _Change(place, temporary, handle)
        lock(handle)
        if os.fstat(handle).st_nlink:  # else another process removed it before it was locked
            return change
        change.end()


def _remove_unlocked(folder: Path, pattern: re.Pattern[str]) -> None:
    for path in folder.iterdir():
        if pattern.fullmatch(path.name):
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:  # it is gone, or another user owns it
                continue
            if lock(handle, wait=False):
                path.unlink(missing_ok=True)
            os.close(handle)
