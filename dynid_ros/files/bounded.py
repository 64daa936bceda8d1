"""Reading of files with limits of size and time, and the files that come with the package.

A path from a user may be a folder, a pipe without a writer, an endless device such as /dev/zero, or a huge file. All
functions raise `OSError` with the reason in `strerror`, without the path: callers put the path before it.
"""

import errno
import os
import select
import stat
from io import FileIO
from pathlib import Path

from dynid_ros.errors import DynidError


def share_path(name: str) -> Path:
    """Return the path of a file such as `config/simulator.yaml`, in the source tree or in `share/dynid_ros`.

    The prefix is searched above this file, so that pip, colcon (merged or not) and Debian packages work, and a
    second installation on AMENT_PREFIX_PATH is not confused with this one.

    Raises:
        DynidError: the installation lacks that file.
    """
    package = Path(__file__).resolve().parents[1]
    folders = [package.parent, *(parent / "share" / "dynid_ros" for parent in package.parents)]
    for folder in folders:
        if (folder / "package.xml").is_file() and (folder / name).exists():
            return folder / name
    raise DynidError(
        f"{name} was not found beside {package} nor in share/dynid_ros above it; install the package again"
    )


PIPE_TIMEOUT_S = 10.0
"""Longest wait for the next data from the writer of a pipe."""
MEGABYTE = 1_000_000
_KINDS = {
    stat.S_IFDIR: "it is a folder",
    stat.S_IFIFO: "it is a pipe, no file",
    stat.S_IFCHR: "it is a device, no file",
    stat.S_IFBLK: "it is a device, no file",
    stat.S_IFSOCK: "it is a socket, no file",
}


def read_pipe(path: str | Path, most: int) -> bytes:
    """Return the content of a pipe up to its end, but at most the first `most` bytes.

    Pipes come from process substitution, such as `<(xacro arm.xacro)`, or from `mkfifo`.

    Raises:
        OSError: no data arrived for `PIPE_TIMEOUT_S`, or the pipe cannot be read.
    """
    data = bytearray()
    # Without O_NONBLOCK, opening a pipe that has no writer would block for ever.
    with FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as pipe:
        while len(data) < most:
            is_readable = bool(select.select([pipe], [], [], PIPE_TIMEOUT_S)[0])  # there is data, or the writer closed
            if not is_readable:
                raise OSError(
                    errno.ETIMEDOUT,
                    f"no data came from the pipe for {PIPE_TIMEOUT_S:g} s: write its content to a file first",
                )
            piece = pipe.read(most - len(data))
            if piece == b"":  # end of the pipe
                break
            data += piece or b""  # None: no data after all
    return bytes(data)


def require_file(path: str | Path, largest: int | None = None) -> None:
    """Check that a path is a regular file of at most `largest` bytes, or a symbolic link to one.

    Args:
        path: path to check.
        largest: largest size of the file, bytes; None: any size.

    Raises:
        OSError: the path does not exist or is not a regular file, or the file is too large.
    """
    try:
        status = Path(path).stat()
    except ValueError as error:  # the name contains a NUL byte or half of a surrogate pair
        raise OSError(errno.EINVAL, f"no file can have this name: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        advice = ", and may never end: write its content to a file first" if stat.S_ISFIFO(status.st_mode) else ""
        raise OSError(errno.EINVAL, kind_in_words(status.st_mode) + advice)
    if largest is not None and status.st_size > largest:
        raise _too_large(largest)


def kind_in_words(mode: int) -> str:
    """Return a phrase for the kind of a path that is not a regular file, from the `st_mode` of its status."""
    return _KINDS.get(stat.S_IFMT(mode), "it is not a regular file")


def read_bytes(path: str | Path, largest: int, pipes: bool = False) -> bytes:
    """Return the content of a regular file of at most `largest` bytes.

    Args:
        path: path of the file.
        largest: largest size of the content, bytes.
        pipes: whether a pipe is accepted too.

    Raises:
        OSError: `require_file` refuses the path, the content is too large, or it cannot be read.
    """
    if pipes and Path(path).is_fifo():
        data = read_pipe(path, largest + 1)  # one byte more shows that the content is too large
    else:
        require_file(path, largest)
        with Path(path).open("rb") as file:
            data = file.read(largest + 1)  # the file may have grown, and files in /proc report a size of 0
    if len(data) > largest:
        raise _too_large(largest)
    return data


def read_text(path: str | Path, largest: int) -> str:
    """Return the text of a regular file of at most `largest` bytes, UTF-8 with or without a byte order mark.

    Raises:
        OSError: `read_bytes` refuses the file, or its content is not UTF-8.
    """
    try:
        return read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OSError(errno.EILSEQ, f"not UTF-8 at byte {error.start}: save it as UTF-8") from error


def _too_large(largest: int) -> OSError:
    """Return the error for a file of more than `largest` bytes."""
    return OSError(errno.EFBIG, f"it has more than {largest / MEGABYTE:g} MB, is it the right file?")
