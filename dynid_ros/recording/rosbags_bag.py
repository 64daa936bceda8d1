"""Reader of bags by the library rosbags, also for bags whose recorder was killed."""

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
RECORD_HEAD_BYTES = 9
"""Size of opcode (1) and length (8) before each record (MCAP specification, "Records")."""
NO_OPCODE = 0
BLOCK_BYTES = 4096
"""Size of a block of the file system. After a power cut, blocks at the end may be allocated but unwritten: zeros."""
MIN_UNWRITTEN_BYTES = 512
"""Smallest number of zeros in unwritten blocks; messages end with fewer zeros."""


class TruncatedMcapReader(McapReader):
    """Reader of all complete records; `McapReader` refuses a file without a footer."""

    def open(self) -> None:
        """Open the file and scan it.

        Raises:
            ReaderError: the file is not a MCAP file, or ends before its first message.
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
        """Yield the messages in the order of the file; sorting by time would need an index."""
        return self.messages_scan(connections, start, stop)


def _end_of_last_complete_record(file: BinaryIO) -> int:
    """Return the offset of the end of the last complete record, and move the file there."""
    size = _written_size(file)
    end = file.seek(len(MAGIC))
    while True:
        head = file.read(RECORD_HEAD_BYTES)
        if len(head) < RECORD_HEAD_BYTES or head[0] == NO_OPCODE:
            return end
        following = end + RECORD_HEAD_BYTES + deserialize_uint64(head[1:])[0]
        if following > size:
            return end
        end = file.seek(following)


def _written_size(file: BinaryIO) -> int:
    """Return the size of the file without the zeros of unwritten blocks."""
    size = end = file.seek(0, 2)
    written = b""
    while end and not written:
        start = max(0, end - BLOCK_BYTES)
        file.seek(start)
        written = file.read(end - start).rstrip(b"\0")
        end = start + len(written)
    return end if size - end >= MIN_UNWRITTEN_BYTES else size


STORAGE_SUFFIXES = (".mcap", ".db3")
METADATA = "metadata.yaml"
MAX_METADATA_BYTES = 10 * MEGABYTE
MAX_TIME_NS = 2**63 - 1
"""Largest time since the epoch, in the year 2262."""


class RosbagsBag(Bag):
    """Bag that the library rosbags reads."""

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
        """Yield messages as `Bag.messages`; types of unknown packages are read from the bag itself."""
        msgtype = self.topics[topic]
        count = 0
        try:
            types = self._types_of(msgtype)
            for reader in self._readers:
                connections = [connection for connection in reader.connections if connection.topic == topic]
                if connections:
                    stored = reader.messages(connections)
                    # counts that are not in the metadata are None
                    total = sum(connection.msgcount or 0 for connection in connections) or None
                    for _, received, raw in tqdm(stored, topic, total, delay=1.0, disable=None, leave=False):
                        if not 0 <= received <= MAX_TIME_NS:
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
        """Return types that include this one: the shared standard types, or types from the bag itself."""
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
    """Return the standard types of ROS, cached because compiling their readers takes time."""
    return get_typestore(Stores.LATEST)


def _open_readers(path: Path) -> list[Reader | TruncatedMcapReader]:
    files = sorted(file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES) if path.is_dir() else [path]
    try:
        for file in files:
            require_file(file)
        if path.is_dir():
            read_yaml(path / METADATA, MAX_METADATA_BYTES)
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
