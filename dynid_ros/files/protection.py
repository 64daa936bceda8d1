"""Protection of files: commands do not overwrite their inputs, and a folder is locked while a process writes there."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from dynid_ros.errors import DynidError

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
