"""Executors for long work: processes of this machine or a dask cluster, as `concurrent.futures.Executor`s.

Work is cut into calls that can be repeated, so a call is made again if its worker is lost.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.synchronize import Event
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

from dynid_ros.errors import WorkerError, one_line
from dynid_ros.files import require_file
from dynid_ros.progress import Watch, watching

# Calls that are made again.


MAX_ATTEMPTS = 3
"""Maximum number of attempts of a call whose worker is lost: a call that exhausts one worker's memory exhausts the
next.
"""
K = TypeVar("K")


class _Call(NamedTuple):
    key: Any
    tries: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Calls(Generic[K]):
    """Calls under way at an executor; one that is lost with its worker is made again.

    Args:
        executor: any; functions and arguments must be such that it can send them.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._under_way: dict[Future[Any], _Call] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def make(self, key: K, function: Callable[..., Any], *arguments: Any) -> None:
        """Make a call, which is named by `key`.

        Raises:
            WorkerError: the executor takes none any more.
        """
        self._submit(_Call(key, 1, function, arguments))

    def ended(self, seconds: float) -> Iterator[tuple[K, Future[Any]]]:
        """Return the calls that ended within `seconds`; each future has the value or the error of its call.

        The error is a `WorkerError` if the call was lost `MAX_ATTEMPTS` times.

        Raises:
            WorkerError: the executor accepts no more calls, or a cluster has had no worker for too long.
        """
        done, _ = wait(self._under_way, seconds, FIRST_COMPLETED)
        if not done and isinstance(self._executor, ClusterExecutor):
            self._executor.require_workers()
        for future in done:
            call = self._under_way.pop(future)
            reason = _loss(future)
            if not reason:
                yield call.key, future
            elif call.tries < MAX_ATTEMPTS:
                self._submit(call._replace(tries=call.tries + 1))
            else:
                lost: Future[Any] = Future()
                lost.set_exception(
                    WorkerError(
                        f"a call was lost {MAX_ATTEMPTS} times, with each of its workers ({reason}); do they have "
                        "enough memory? Use fewer workers"
                    )
                )
                yield call.key, lost

    def cancel(self) -> None:
        """Give all up; those that run are not waited for."""
        for future in self._under_way:
            future.cancel()
        self._under_way.clear()

    def _submit(self, call: _Call) -> None:
        try:
            self._under_way[self._executor.submit(call.function, *call.arguments)] = call
        except (BrokenExecutor, RuntimeError) as error:  # RuntimeError: it is shut down
            raise WorkerError(f"the workers are gone ({error}); start them again") from error


def _loss(future: Future[Any]) -> str:
    """Return the reason why a call was lost with its worker; empty if it was not lost."""
    if future.cancelled():
        return "cancelled"
    error = future.exception()
    if isinstance(error, (BrokenExecutor, OSError)) or type(error).__module__.startswith("distributed"):
        return f"{type(error).__name__}: {error}"
    return ""


# Processes of this machine.


WARNING_FILTER = "ignore:resource_tracker:UserWarning"
"""Warning filter for the cleanup process of multiprocessing, which reports false leaks after two Ctrl-C at once."""

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Processes(Executor):
    """Worker processes that load only this package, keep BLAS to one thread and leave Ctrl-C to the parent process.

    If one process dies, the calls of all are lost; the next call starts new processes.

    Args:
        workers: number of processes.
    """

    def __init__(self, workers: int) -> None:
        if WARNING_FILTER not in sys.warnoptions:
            sys.warnoptions.append(WARNING_FILTER)
        self._workers = workers
        self._context = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._pool = self._made()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Submit a call, which `shutdown` can end at its next `progress.advance`."""
        with _without_interrupts(), _without_main(), _one_thread_each():
            try:
                return self._pool.submit(_watched, function, *arguments, **named)
            except BrokenProcessPool:
                self._pool.shutdown()
                self._pool = self._made()
                return self._pool.submit(_watched, function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End; with `cancel_futures`, drop waiting calls and end running ones at their next `progress.advance`."""
        if cancel_futures:
            self._stop.set()
        self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, self._context, _prepare, (self._stop,))


_stop: list[Event] = []
"""Event, one per worker process, that requests the end of its work."""


def _prepare(stop: Event) -> None:
    """Prepare a worker process: ignore interrupts, and end together with the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stop.append(stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _watched(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    with watching(Watch(*_stop)):
        return function(*arguments, **named)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that ignore SIGINT: an interrupt during their start would leave the pool waiting."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not import the program, because a program without a main guard would run again in each.

    Workers need this package only. While a worker ran the program, the parent would wait forever for the worker to read
    its work.
    """
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Start processes that keep BLAS to one thread: with more, the workers would wait for each other."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


# Workers of a dask cluster.


CONNECT_TIMEOUT_S = 10.0
"""Longest time until a scheduler answers, s."""
REMARK_WITHOUT_WORKERS_S = 5.0
MAX_TIME_WITHOUT_WORKERS_S = 60.0
"""Longest time that a cluster may be without a worker before the work is given up, s."""
SAME_VERSION_PACKAGES = ("dask", "distributed", "dynid_ros", "numpy", "scipy")
"""Packages whose versions must be those of this process, on workers; results would differ, or not be understood."""


class TlsFiles(NamedTuple):
    """Certificates of a cluster whose processes trust each other by TLS.

    Attributes:
        ca: file with the certificate of the authority.
        certificate: file with the certificate of this process.
        key: file with its private key.
    """

    ca: Path
    certificate: Path
    key: Path


class ClusterExecutor(Executor):
    """The workers of a dask cluster, for as long as there are some.

    Args:
        client: of dask.distributed.
        address: of its scheduler, for messages.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._executor: Executor = client.get_executor(pure=False)
        self._alone_since: float | None = None
        self._said = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Make a call."""
        return self._executor.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)

    def require_workers(self) -> None:
        """Say on stderr that the last worker is gone, and give up after `MAX_TIME_WITHOUT_WORKERS_S`.

        Raises:
            WorkerError: no worker came in that time.
        """
        if self._client.nthreads():
            self._alone_since = None
            self._said = False
            return
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        alone = now - self._alone_since
        start = f"start some with `dask worker {self._address}`"
        if alone > MAX_TIME_WITHOUT_WORKERS_S:
            raise WorkerError(
                f"the scheduler {self._address} has had no worker for {alone:.0f} s; {start}, and run again"
            )
        if alone > REMARK_WITHOUT_WORKERS_S and not self._said:
            print(
                f"dynid: the last worker of {self._address} is gone: waiting {MAX_TIME_WITHOUT_WORKERS_S:g} s for "
                f"another; {start}",
                file=sys.stderr,
            )
            self._said = True


class Cluster(NamedTuple):
    """A dask cluster.

    Attributes:
        executor: makes calls on it.
        workers: threads of its workers.
    """

    executor: Executor
    workers: int


@contextmanager
def cluster(address: str, tls: TlsFiles | None = None) -> Iterator[Cluster]:
    """Yield an executor for the workers of a dask.distributed scheduler; the end of the block drops running calls.

    Without certificates the traffic is not encrypted and no identity is checked: anyone with access to the scheduler or
    to a worker can run any code there.

    Args:
        address: such as tcp://10.0.0.1:8786, or with certificates tls://10.0.0.1:8786.
        tls: certificates; None for none.

    Raises:
        WorkerError: dask is not installed; no scheduler answers; there is no worker; a worker has other versions of the
            relevant packages or lacks this package; the certificates cannot be read.
    """
    try:
        from distributed import Client, Security  # noqa: PLC0415  # optional, and slow to import
    except ImportError as error:
        raise WorkerError(
            "a scheduler needs dask.distributed, which is not installed: pip install 'distributed>=2023.5'"
        ) from error
    if (tls is not None) != address.startswith("tls://"):
        raise WorkerError(f"{address}: certificates are for an address that begins with tls://, which needs all three")
    security = None
    if tls is not None:
        for path in tls:
            try:
                require_file(path)
            except OSError as error:
                raise WorkerError(f"{path}: the certificate or key cannot be read ({error.strerror})") from error
        security = Security(
            tls_ca_file=str(tls.ca),
            tls_client_cert=str(tls.certificate),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )

    class ClosedByHand(Client):
        """A client that was never connected would wait 20 s for itself when it is forgotten, and print a traceback."""

        def __del__(self) -> None:
            pass

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the error message replaces dask's log
    connected: Future[Client] = Future()

    def connect() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions, which are compared below
            try:
                client = ClosedByHand(
                    address, timeout=CONNECT_TIMEOUT_S, set_as_default=False, name="dynid", security=security
                )
                connected.set_result(client)
            except BaseException as error:  # whatever a stranger at that address answers
                connected.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()  # a handshake without an answer would never end
    try:
        client = connected.result(2.0 * CONNECT_TIMEOUT_S)
    except Exception as error:
        reason = one_line(str(error)) or type(error).__name__
        raise WorkerError(
            f"no scheduler of dask answers at {address} ({reason}); start one with `dask scheduler`, and workers with "
            f"`dask worker {address}`, of the same version as here"
        ) from error
    try:
        scheduler = client.get_versions()["scheduler"]["packages"]  # type: ignore[index]
        _check_versions(f"the scheduler {address}", {name: scheduler[name] for name in SAME_VERSION_PACKAGES[:2]})
        workers = client.run(_versions, on_error="return")
        if not workers:
            raise WorkerError(f"the scheduler {address} has no workers; start some with `dask worker {address}`")
        for name, versions in workers.items():
            _check_versions(f"worker {name}", versions)
        yield Cluster(ClusterExecutor(client, address), sum(client.nthreads().values()))
    finally:
        client.close(timeout=CONNECT_TIMEOUT_S)


def _check_versions(who: str, versions: dict[str, str] | Exception) -> None:
    own = _versions()
    if isinstance(versions, Exception):  # the worker did not answer
        raise WorkerError(f"{who} cannot load dynid_ros {own['dynid_ros']} ({versions}); install the same there")
    for name, its in versions.items():
        if its != own[name]:
            raise WorkerError(f"{who} has {name} {its}, and here is {own[name]}; install the same there")


def _versions() -> dict[str, str]:
    """Return the versions of the relevant packages and the major and minor version of Python."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {name: import_module(name).__version__ for name in SAME_VERSION_PACKAGES} | {"python": python}
