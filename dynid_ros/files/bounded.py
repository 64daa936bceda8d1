"""Bounded reading of untrusted paths: folders, pipes without a writer, endless devices, huge files.

All functions raise `OSError` with the reason in `strerror`; callers put the name of the file before it.
"""

import errno
import os
import select
import stat
from io import FileIO
from pathlib import Path

# Pipes come from process substitution, such as `<(xacro arm.xacro)`, or from named pipes.


PIPE_TIMEOUT_S = 10.0
"""Longest silence of who writes, s."""


def read_pipe(path: str | Path, most: int) -> bytes:
    """Return the content of a pipe up to its end, or its first `most` bytes.

    Raises:
        OSError: nothing was written for `PIPE_TIMEOUT_S`, or the pipe cannot be read.
    """
    data = bytearray()
    with FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as pipe:  # else it waits for a writer for ever
        while len(data) < most:
            if not select.select([pipe], [], [], PIPE_TIMEOUT_S)[0]:  # ready after data or the end
                raise OSError(errno.ETIMEDOUT, f"no data came from the pipe for {PIPE_TIMEOUT_S:g} s: give a file")
            piece = pipe.read(most - len(data))
            if piece == b"":
                break
            data += piece or b""
    return bytes(data)


MEGABYTE = 1_000_000
_KINDS = {
    stat.S_IFDIR: "it is a folder",
    stat.S_IFIFO: "it is a pipe, no file",
    stat.S_IFCHR: "it is a device, no file",
    stat.S_IFBLK: "it is a device, no file",
    stat.S_IFSOCK: "it is a socket, no file",
}


def require_file(path: str | Path, largest: int | None = None) -> None:
    """Refuse everything but a regular file of at most `largest` bytes; links are followed.

    Raises:
        OSError: the path is something else, or does not exist.
    """
    try:
        status = Path(path).stat()
    except ValueError as error:  # a zero byte or half a character in the name
        raise OSError(errno.EINVAL, f"no file can have this name: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        way_out = ", and may never end: write its content to a file first" if stat.S_ISFIFO(status.st_mode) else ""
        raise OSError(errno.EINVAL, kind_in_words(status.st_mode) + way_out)
    if largest is not None and status.st_size > largest:
        raise _too_large(largest)


def kind_in_words(mode: int) -> str:
    """Describe the kind of a path that is not a regular file, from its `st_mode`."""
    return _KINDS.get(stat.S_IFMT(mode), "it is no regular file")


def read_bytes(path: str | Path, largest: int, pipes: bool = False) -> bytes:
    """Content of a regular file, or with `pipes` of a pipe too, of at most `largest` bytes.

    Raises:
        OSError: as `require_file`, or it cannot be read.
    """
    if pipes and Path(path).is_fifo():
        data = read_pipe(path, largest + 1)
    else:
        require_file(path, largest)
        with Path(path).open("rb") as file:
            data = file.read(largest + 1)  # the file may grow meanwhile, and kernel files have no size
    if len(data) > largest:
        raise _too_large(largest)
    return data


def read_text(path: str | Path, largest: int) -> str:
    """Text of a regular file of at most `largest` bytes, UTF-8 with or without a byte order mark.

    Raises:
        OSError: as `read_bytes`, or it is not UTF-8.
    """
    try:
        return read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OSError(errno.EILSEQ, f"not UTF-8 at byte {error.start}: save it as UTF-8") from error


def _too_large(largest: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {largest / MEGABYTE:g} MB, is it the right file?")
