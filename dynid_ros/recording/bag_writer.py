"""Writer of a rosbag2 folder (MCAP) that is a complete bag at any time, with type definitions and reception times."""

import io
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import cast

import yaml
from rosbags.interfaces import Connection, Nodetype, Qos
from rosbags.interfaces.typing import FieldDesc
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError
from rosbags.rosbag2.storage_mcap import McapWriter, write_channel, write_schema
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from dynid_ros.errors import RecordingError


def distribution_types() -> Typestore:
    """Return the standard types of the ROS distribution in use (`ROS_DISTRO`), or of the newest known one."""
    name = f"ROS2_{os.environ.get('ROS_DISTRO', '').upper()}"
    return get_typestore(Stores[name] if name in Stores.__members__ else Stores.LATEST)


def learn(types: Typestore, msgtype: str) -> None:
    """Make sure that `types` defines `msgtype` ("package/msg/Name"): from the installed packages if it does not yet."""
    new = {}
    wanted = [msgtype]
    while wanted:
        name = wanted.pop()
        if name in types.fielddefs or name in new:
            continue
        try:
            new.update(get_types_from_msg(_definition_file(name).read_text(), name))
        except (OSError, TypesysError) as error:
            raise RecordingError(f"message type {name}: its definition cannot be read ({error})") from error
        wanted += [field for _, description in new[name][1] for field in _named_types(description)]
    try:
        types.register(new)
    except TypesysError as error:
        raise RecordingError(f"message type {msgtype}: its definition makes no sense ({error})") from error


def _definition_file(msgtype: str) -> Path:
    package, kind, name = msgtype.split("/")
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    for prefix in prefixes:
        file = Path(prefix) / "share" / package / kind / f"{name}.msg"
        if file.is_file():
            return file
    raise RecordingError(
        f"message type {msgtype} is unknown: no {package}/{kind}/{name}.msg under AMENT_PREFIX_PATH; install and "
        "source its package"
    )


def _named_types(description: FieldDesc) -> list[str]:
    """Return the message types that a field contains."""
    if description[0] in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        description = cast(FieldDesc, description[1][0])
    return [str(description[1])] if description[0] == Nodetype.NAME else []


MIN_JUMP_NS = 50_000_000
"""Smallest change by which a clock is set instead of corrected."""


class ReceptionTime:
    """Clock of reception that continues the computer's clock at the start, even if that clock is set later.

    A bag is read in the order of these times. If the clock was set back during a recording, messages would be read in
    the wrong order.
    """

    def __init__(self) -> None:
        self._start = self._now = self._before = _offset()
        self._last: dict[str, int] = {}

    @property
    def jump(self) -> float:
        """Time by which the computer's clock was set since the start, s."""
        return (self._now - self._start) * 1e-9

    def look(self) -> bool:
        """Return whether the clock was set since the last call; call it often."""
        now = _offset()
        if abs(now - self._now) <= MIN_JUMP_NS:
            return False
        self._before = self._now
        self._now = now
        return True

    def of(self, topic: str, received: int) -> int:
        """Return the time of a message, ns, from that of the computer's clock, which may have been set recently."""
        expected = time.monotonic_ns() + self._start
        times = (received - self._now + self._start, received - self._before + self._start)
        nearest = min(times, key=lambda candidate: abs(candidate - expected))
        self._last[topic] = max(nearest, self._last.get(topic, nearest))
        return self._last[topic]


def _offset() -> int:
    """Return the difference of the computer's clock to the monotonic clock, ns; a pause between both lowers it."""
    return max(time.time_ns() - time.monotonic_ns() for _ in range(3))


FILE_BUFFER_BYTES = 4 * 2**20
"""Size of the buffer: more than one second of joint states, so that a flush is a single write to the file."""
CHUNKS_PER_FILE = 1000
"""Number of chunks per file. Each flush rewrites the index of a file, 500 bytes for every chunk, which is also kept in
memory. There is one chunk for each flush, and one for each MiB."""
EMPTY_INTERVAL = 2**63 - 1, 0
"""Times of the first and the last message of an empty file."""
PARTIAL_SUFFIX = ".last"
"""Suffix of metadata that do not list all files yet."""


class BagWriter:
    """Writer of a bag in a new folder, named after the time; existing bags are never changed.

    Each `flush` closes the chunk of messages, and writes index, end of file and metadata.yaml after it, which the next
    chunk replaces. A process that is killed thus leaves a bag that every tool opens, with all messages up to its last
    flush. Later messages are in memory only: flush once a second. When the disk is full, the bag is restored to the
    last flush, and nothing more can be written.

    A long recording continues in further files of the folder, `<name>_1.mcap` and so on, as of `ros2 bag record` with
    --max-bag-size, so that neither memory nor the time of a flush grows with its length.

    Args:
        folder: parent folder, which is created if necessary.
        prefix: start of the bag's name.

    Raises:
        RecordingError: the folder cannot be created or written to.
    """

    def __init__(self, folder: str | Path, prefix: str = "recording") -> None:
        self.path = Path(folder).expanduser().absolute() / f"{prefix}_{time.strftime('%Y_%m_%d-%H_%M_%S')}"
        self.counts: dict[str, int] = {}
        self._types = distribution_types()
        self._connections: dict[str, Connection] = {}
        self._broken: RecordingError | None = None
        try:
            self._writer = _open_writer(self.path)
            self.path = self._writer.path
            self._storage = cast(McapWriter, self._writer.storage)
            self._file = _take_over_file(self._storage)
            self._head = self._storage.path.read_bytes()
        except (OSError, WriterError) as error:
            raise self._reason(error) from error
        self._metadata = self._writer.metapath
        self._full: list[dict] = []  # complete files, as metadata.yaml lists them
        self._is_listed = False
        self.flush()

    @property
    def is_broken(self) -> bool:
        """Whether the disk is full or removed, so that nothing more can be written."""
        return self._broken is not None

    def add_topic(self, topic: str, msgtype: str, offered_qos: Sequence[Qos] = ()) -> None:
        """Announce a topic and its type ("package/msg/Name") before its first message.

        Raises:
            RecordingError: the definition of the type is missing or invalid, and the bag continues without the topic;
                or the disk is full or removed.
        """
        self._check()
        learn(self._types, msgtype)
        try:
            self._connections[topic] = self._writer.add_connection(
                topic, msgtype, typestore=self._types, offered_qos_profiles=offered_qos
            )
        except (TypesysError, WriterError) as error:
            raise RecordingError(f"message type {msgtype}: its definition makes no sense ({error})") from error
        except OSError as error:
            raise self._failure(error) from error
        self.counts[topic] = 0

    def write(self, topic: str, received: int, data: bytes) -> None:
        """Add a serialised (CDR) message with its time of reception, ns since the epoch.

        Raises:
            RecordingError: the disk is full or removed.
        """
        self._check()
        try:
            self._writer.write(self._connections[topic], received, data)
        except OSError as error:
            raise self._failure(error) from error
        self.counts[topic] += 1

    def flush(self) -> None:
        """Write all messages so far, so that they survive the end of this process.

        Raises:
            RecordingError: the disk is full or removed.
        """
        self._complete()
        if len(self._storage.chunks) >= CHUNKS_PER_FILE:
            try:
                self._begin_file()
            except OSError as error:
                raise self._failure(error) from error

    def close(self) -> None:
        """Complete and close the bag.

        Raises:
            RecordingError: the disk is full or removed.
        """
        try:
            self._complete()
        finally:
            with suppress(OSError):
                self._file.release()

    def __enter__(self) -> "BagWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _complete(self) -> None:
        """Write index, end and metadata of the bag."""
        self._check()
        try:
            if self._storage.chunk.bio.tell():
                self._storage.close_chunk()
            self._file.begin_end()
            self._writer.close()
            self._file.complete()
            if self._full:
                self._list_files()
            self._is_listed = True
        except OSError as error:
            raise self._failure(error) from error
        finally:
            self._writer.storage = self._storage

    def _begin_file(self) -> None:
        """Continue in another file with the same topics."""
        storage = self._storage
        path = self.path / f"{self.path.name}_{len(self._full) + 1}.mcap"
        file = _BagFile(io.FileIO(path, "x+"), FILE_BUFFER_BYTES)
        self._full.append(self._listed())
        self._file.release()
        self._file = storage.bio = file
        self._is_listed = False
        storage.path = path
        storage.chunks = []
        storage.message_start_time, storage.message_end_time = EMPTY_INTERVAL
        storage.channel_stats = dict.fromkeys(storage.channel_stats, 0)
        file.write(self._head)
        for schema in storage.schemas:
            write_schema(file, schema)
        for channel in storage.channels:
            write_channel(file, channel, storage.schemas)
        self._writer.metapath = self._metadata.with_suffix(PARTIAL_SUFFIX)

    def _listed(self) -> dict:
        """Return the entry of the current file in metadata.yaml."""
        storage = self._storage
        start = storage.message_start_time
        end = storage.message_end_time
        return {
            "path": storage.path.name,
            "starting_time": {"nanoseconds_since_epoch": start},
            "duration": {"nanoseconds": max(0, end - start)},
            "message_count": sum(storage.channel_stats.values()),
        }

    def _list_files(self) -> None:
        """List all files in the metadata; the library lists the last one only."""
        path = self._writer.metapath
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        information = document["rosbag2_bagfile_information"]
        information["files"] = [*self._full, self._listed()]
        information["relative_file_paths"] = [file["path"] for file in information["files"]]
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        path.replace(self._metadata)

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _failure(self, error: Exception) -> RecordingError:
        """Restore the bag to the last flush, and return the error to raise."""
        with suppress(OSError):
            self._file.restore()
        remains = [self._metadata.with_suffix(half_written) for half_written in (".yaml.tmp", PARTIAL_SUFFIX)]
        for path in remains if self._is_listed else [*remains, self._storage.path]:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._broken = self._reason(error)
        return self._broken

    def _reason(self, error: Exception) -> RecordingError:
        reason = getattr(error, "strerror", None) or error
        return RecordingError(f"cannot write bag {self.path} ({reason}); choose a writable folder with free space")


def _open_writer(path: Path) -> Writer:
    """Open a new bag at `path` or, if it exists, at the first of `path_1`, `path_2`, … that does not exist."""
    numbered = (path.with_name(f"{path.name}_{i}") for i in count(1))
    for candidate in chain([path], numbered):
        if candidate.exists():
            continue
        try:
            writer = Writer(candidate, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP)
            writer.open()
        except WriterError:
            if not candidate.exists():  # else another process has made it meanwhile
                raise
        else:
            return writer
    raise AssertionError("numbers do not end")


def _take_over_file(storage: McapWriter) -> "_BagFile":
    storage.bio.close()
    file = _BagFile(io.FileIO(storage.path, "r+"), FILE_BUFFER_BYTES)
    file.seek(0, io.SEEK_END)
    storage.bio = file
    return file


class _BagFile(io.BufferedWriter):
    """File that stays open when the library closes it after the end of the bag, which the next chunk replaces."""

    _position, _end = 0, b""  # start and content of the end of the last complete bag
    _new_position = 0
    _new_end: bytearray | None = None

    def begin_end(self) -> None:
        """Note that the end of the bag follows: index, statistics, footer."""
        self._new_position = self.tell()
        self._new_end = bytearray()

    def complete(self) -> None:
        """Note that the bag is complete; the next write replaces its end.

        The next write is longer than that end and reaches the file at once, so that one end or the other is complete.
        """
        assert self._new_end is not None
        self._position = self._new_position
        self._end = bytes(self._new_end)
        self._new_end = None
        self.truncate()
        self.seek(self._position)

    def write(self, data, /) -> int:
        if self._new_end is not None:
            self._new_end += data
        return super().write(data)

    def close(self) -> None:
        self.flush()

    def release(self) -> None:
        """Close the file."""
        super().close()

    def restore(self) -> None:
        """Restore the last complete bag without the content of the buffer, and close the file."""
        file = cast(io.FileIO, self.raw)
        try:
            file.truncate(self._position)
            file.seek(self._position)
            file.write(self._end)
        finally:
            file.close()
