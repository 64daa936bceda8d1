"""Writing files so that a reader never sees half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dynid_ros.errors import DynidError


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """File opened for writing bytes; it takes the place of `path` when the block ends well. Folders are made.

    Whenever the process is killed or the power fails, the old file is there or the new one; at worst a hidden file
    with half of the new one stays beside the old.

    Raises:
        DynidError: the folder cannot be made, is read-only or full.

    """
    path = Path(path)
    try:
        handle, name = _beside(path)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise DynidError(f"cannot write {path} ({reason}); choose a writable folder with free space") from error


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write text (UTF-8) or bytes in one go; returns the path.

    Raises:
        DynidError: as `atomic_file`.

    """
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def _beside(path: Path) -> tuple[int, str]:
    """Handle and name of a new file in the folder of `path`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    except ValueError as error:  # a zero byte or half a character in the name
        raise OSError(str(error)) from error
