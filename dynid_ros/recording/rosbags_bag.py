"""Bags by rosbags, also those whose recorder was killed."""

from collections.abc import Collection, Generator, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.errors import ReaderError
from rosbags.rosbag2.storage_mcap import McapReader, deserialize_uint64
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore
from tqdm import tqdm

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, read_yaml, require_file
from dynid_ros.recording.bag import Bag

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


STORAGE_SUFFIXES = (".mcap", ".db3")
METADATA = "metadata.yaml"
LARGEST_METADATA = 10 * MEGABYTE
LATEST = 2**63 - 1
"""ns since the epoch, in the year 2262."""


class RosbagsBag(Bag):
    """A bag that rosbags reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._readers = _open_readers(path)
        self.truncated = any(isinstance(reader, TruncatedMcapReader) for reader in self._readers)
        self._own_types: Typestore | None = None
        self._definitions: dict[str, str] = {}
        try:
            self._read_topics()
        except RecordingError:
            self.close()
            raise

    def _read_topics(self) -> None:
        for connection in (connection for reader in self._readers for connection in reader.connections):
            if not isinstance(connection.topic, str) or not isinstance(connection.msgtype, str):
                raise RecordingError(
                    f"{self.path}: a topic is named {connection.topic!r} and has type {connection.msgtype!r}; expected "
                    f"names: mend {METADATA}, or remove it"
                )
            known = self.topics.setdefault(connection.topic, connection.msgtype)
            self._definitions.setdefault(known, connection.msgdef.data)
            if known != connection.msgtype:
                raise RecordingError(
                    f"{self.path}: topic {connection.topic} has messages of two types, {known} and "
                    f"{connection.msgtype}; record each under a name of its own"
                )

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        """See `Bag.messages`; types of packages that are not known are read from the bag itself."""
        msgtype = self.topics[topic]
        count = 0
        try:
            types = self._types_of(msgtype)
            for reader in self._readers:
                connections = [connection for connection in reader.connections if connection.topic == topic]
                if connections:
                    stored = reader.messages(connections)
                    # what metadata does not hold is None
                    total = sum(connection.msgcount or 0 for connection in connections) or None
                    for _, received, raw in tqdm(stored, topic, total, delay=1.0, disable=None, leave=False):
                        if not 0 <= received <= LATEST:
                            raise ValueError(f"it was received at {received} ns")
                        yield received, types.deserialize_cdr(raw, msgtype)
                        count += 1
        except RecordingError:
            raise
        except Exception as error:
            raise RecordingError(
                f"{self.path} is damaged after message {count} of {topic} ({_text(error)}); take another copy, "
                "or record again"
            ) from error

    def _types_of(self, msgtype: str) -> Typestore:
        """Return types with this one: those that all bags share, or for packages such as control_msgs the bag's own."""
        if msgtype in _types().fielddefs:
            return _types()
        if self._own_types is None:
            self._own_types = get_typestore(Stores.LATEST)
        known = self._own_types.fielddefs
        read = get_types_from_msg(self._definitions[msgtype], msgtype)
        self._own_types.register({name: read[name] for name in read if name not in known})
        return self._own_types

    def close(self) -> None:
        """Close the files."""
        for reader in self._readers:
            reader.close()


@lru_cache(maxsize=1)
def _types() -> Typestore:
    """Return the types of ROS itself; to learn how to read one takes a while, so it is learnt once."""
    return get_typestore(Stores.LATEST)


def _open_readers(path: Path) -> list[Reader | TruncatedMcapReader]:
    files = sorted(file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES) if path.is_dir() else [path]
    try:
        for file in files:
            require_file(file)
        if path.is_dir():
            read_yaml(path / METADATA, LARGEST_METADATA)
        return [_opened(Reader(path))]
    except Exception as error:
        reason = error
    if not files:
        raise RecordingError(
            f"{path} holds no bag ({_text(reason)}); expected a rosbag2 folder, with .mcap or .db3 files in it"
        ) from reason
    readers: list[Reader | TruncatedMcapReader] = []
    try:
        for file in files:
            readers.append(_open_file(file))
    except BaseException:
        for reader in readers:
            reader.close()
        raise
    return sorted(readers, key=_start_time)


def _open_file(file: Path) -> Reader | TruncatedMcapReader:
    try:
        require_file(file)
        return _opened(Reader(file))
    except Exception as error:
        reason = error
    try:
        require_file(file)
        if file.suffix != ".mcap":
            raise reason
        return _opened(TruncatedMcapReader(file))
    except Exception as error:
        raise RecordingError(
            f"cannot read {file} ({_text(error)}); the bag is empty or damaged: take another copy, or record again"
        ) from error


def _opened(reader: Any) -> Any:
    reader.open()
    return reader


def _start_time(reader: Reader | TruncatedMcapReader) -> int:
    return reader.metadata.start_time if isinstance(reader, TruncatedMcapReader) else reader.start_time


def _text(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error).strip().rstrip(".") or type(error).__name__
