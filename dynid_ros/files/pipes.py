"""Reading a pipe to its end: `<(xacro arm.xacro)` of a shell, or a FIFO that somebody writes to."""

import errno
import os
import select
from io import FileIO
from pathlib import Path

PATIENCE = 10.0
"""Longest silence of who writes, s."""


def read_pipe(path: str | Path, most: int) -> bytes:
    """What is written into the pipe, to its end or the first `most` bytes.

    Raises:
        OSError: nobody writes to it for `PATIENCE`, or it cannot be read.

    """
    data = bytearray()
    with FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as pipe:  # else it waits for a writer for ever
        while len(data) < most:
            if not select.select([pipe], [], [], PATIENCE)[0]:  # ready: there is something, or the last writer has gone
                raise OSError(errno.ETIMEDOUT, f"it is a pipe, and nobody wrote to it for {PATIENCE:g} s: give a file")
            piece = pipe.read(most - len(data))
            if piece == b"":
                break
            data += piece or b""
    return bytes(data)
