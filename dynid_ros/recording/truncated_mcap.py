"""MCAP files whose writer was killed."""

from collections.abc import Collection, Generator
from typing import BinaryIO

from rosbags.interfaces import Connection
from rosbags.rosbag2.errors import ReaderError
from rosbags.rosbag2.storage_mcap import McapReader, deserialize_uint64

MAGIC = b"\x89MCAP0\r\n"
RECORD_HEAD = 9
"""One byte of opcode and eight of length stand before each record (MCAP specification, "Records")."""
NO_OPCODE = 0
BLOCK = 4096
"""What a file system allots; after a power cut, blocks at the end may be allotted but never written: zeros."""
UNWRITTEN = 512
"""More zeros than stand at the end of a message."""


class TruncatedMcapReader(McapReader):
    """Reads all records up to the last complete one; `McapReader` refuses a file without a footer."""

    def open(self) -> None:
        """Open the file and look through it.

        Raises:
            ReaderError: the file is no MCAP file, or is cut off before its first message.

        """
        self.bio = self.path.open("rb")
        if self.bio.read(len(MAGIC)) != MAGIC:
            self.bio.close()
            raise ReaderError("File magic is invalid.")
        self.data_start = len(MAGIC)
        self.data_end = _end_of_last_complete_record(self.bio)
        self.meta_scan()
        assert self.statistics is not None
        counts = self.statistics.channel_message_counts
        self.connections = [
            connection._replace(msgcount=counts.get(connection.id, 0)) for connection in self.connections
        ]
        if not self.statistics.message_count:
            self.close()
            raise ReaderError("The file is cut off before its first complete chunk of messages.")
        self.metadata = self.metadata._replace(start_time=self.statistics.start_time)

    def messages(
        self, connections: Collection[Connection], start: int | None = None, stop: int | None = None
    ) -> Generator[tuple[Connection, int, bytes], None, None]:
        """Messages in the order of the file: without an index nothing sorts several topics by time."""
        return self.messages_scan(connections, start, stop)


def _end_of_last_complete_record(file: BinaryIO) -> int:
    """Offset at which the last record ends that the file holds whole; leaves the file there."""
    size = _written_size(file)
    end = file.seek(len(MAGIC))
    while True:
        head = file.read(RECORD_HEAD)
        if len(head) < RECORD_HEAD or head[0] == NO_OPCODE:
            return end
        following = end + RECORD_HEAD + deserialize_uint64(head[1:])[0]
        if following > size:
            return end
        end = file.seek(following)


def _written_size(file: BinaryIO) -> int:
    """Size of the file without the zeros of blocks that were never written."""
    size = end = file.seek(0, 2)
    written = b""
    while end and not written:
        start = max(0, end - BLOCK)
        file.seek(start)
        written = file.read(end - start).rstrip(b"\0")
        end = start + len(written)
    return end if size - end >= UNWRITTEN else size
