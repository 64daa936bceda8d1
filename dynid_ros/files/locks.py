"""Locks that hold as long as a process has a file or folder open, and end with it however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynid_ros.errors import DynidError


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
