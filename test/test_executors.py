"""Test that lost calls are repeated by each executor, and that unsuitable clusters are refused."""

import os
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from dask_cluster import dask_cluster
from worker_calls import die, for_ever, square, square_once_dead

from dynid_ros import executors
from dynid_ros.errors import WorkerError
from dynid_ros.executors import Calls, Processes, cluster
from dynid_ros.progress import Cancelled


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gather(calls):
    results = {}
    while calls:
        results.update((key, future.result()) for key, future in calls.ended(1.0))
    return results


@pytest.fixture
def processes():
    made = Processes(2)
    yield made
    made.shutdown(cancel_futures=True)


def test_calls_of_a_killed_process_are_repeated(processes, tmp_path):
    calls = Calls(processes)
    for number in range(4):
        calls.make(number, square, number)
    calls.make("dead", square_once_dead, 9, tmp_path / "mark")
    assert gather(calls) == {0: 0, 1: 1, 2: 4, 3: 9, "dead": 81}


def test_call_that_kills_each_process_is_an_error(processes):
    calls = Calls(processes)
    calls.make("dead", die, 0)
    with pytest.raises(WorkerError, match="lost 3 times"):
        gather(calls)
    calls.make("next", square, 3)
    assert gather(calls) == {"next": 9}


def test_calls_are_cancelled(processes):
    future = processes.submit(for_ever)
    while not future.running():
        time.sleep(0.05)
    processes.shutdown(cancel_futures=True)
    assert isinstance(future.exception(), Cancelled)


@pytest.mark.slow
def test_processes_end_with_their_parent(tmp_path):
    program = (
        "import os, signal; from worker_calls import for_ever; from dynid_ros.executors import Processes\n"
        "processes = Processes(1); print(processes.submit(os.getpid).result())\n"
        "processes.submit(for_ever); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", program], env=path, capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    deadline = time.monotonic() + 20.0
    while runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_missing_dask_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkerError, match=r"not installed: pip install 'distributed"), cluster("tcp://a:1"):
        pass


@pytest.mark.parametrize("who", ["nobody", "no scheduler", "no address"])
def test_missing_scheduler_is_an_error(who, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "CONNECT_TIMEOUT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if who == "nobody":
            server.close()
        address = "somewhere://else" if who == "no address" else address
        with (
            pytest.raises(WorkerError, match=f"no scheduler of dask answers at {address} ") as refused,
            cluster(address),
        ):
            pass
    assert "\n" not in str(refused.value)


def test_invalid_address_is_an_error_without_traceback(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "fleet.yaml").write_text("arms: {a: {identification: gravity, urdf: a.urdf, recordings: run.csv}}")
    words = ("-m", "dynid_ros", "fleet", "fleet.yaml", "--output", "out", "--scheduler", "nonsense")
    began = time.monotonic()
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert time.monotonic() - began < 15.0


class WorkerlessClient:
    """Dask client with a changing number of workers."""

    def __init__(self):
        self.workers = {}

    def nthreads(self):
        return self.workers

    def get_executor(self, pure):
        return ThreadPoolExecutor(1)


def test_cluster_without_workers_is_reported_and_an_error(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(executors.time, "monotonic", lambda: now[0])
    client = WorkerlessClient()
    executor = executors.ClusterExecutor(client, "tcp://a:1")

    def wait(seconds):
        now[0] += seconds
        executor.require_workers()
        return capsys.readouterr().err

    assert wait(0.0) == ""
    assert "the last worker of tcp://a:1 is gone" in wait(10.0)
    assert wait(10.0) == ""
    client.workers = {"tcp://b:1": 1}
    assert wait(100.0) == ""
    client.workers = {}
    assert wait(0.0) == ""
    assert "is gone" in wait(10.0)
    with pytest.raises(WorkerError, match="has had no worker for 70 s"):
        wait(60.0)


def test_calls_check_for_workers(monkeypatch):
    monkeypatch.setattr(executors, "MAX_TIME_WITHOUT_WORKERS_S", 0.0)
    calls = Calls(executors.ClusterExecutor(WorkerlessClient(), "tcp://a:1"))
    calls.make(0, time.sleep, 0.5)
    assert not list(calls.ended(0.01))
    with pytest.raises(WorkerError, match="no worker"):
        list(calls.ended(0.01))


@pytest.mark.parametrize(("address", "tls"), [("tcp://a:1", True), ("tls://a:1", False)])
def test_certificates_require_a_matching_address(address, tls, tmp_path):
    pytest.importorskip("distributed")
    files = executors.TlsFiles(*(tmp_path / name for name in "abc")) if tls else None
    with pytest.raises(WorkerError, match="tls://"), cluster(address, files):
        pass


def test_missing_certificates_are_an_error(tmp_path):
    pytest.importorskip("distributed")
    files = executors.TlsFiles(*(tmp_path / name for name in "abc"))
    with pytest.raises(WorkerError, match=r"/a: the certificate or key cannot be read"), cluster("tls://a:1", files):
        pass


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_cluster_with_certificates(tmp_path):
    pytest.importorskip("distributed")
    words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=127.0.0.1"
    subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    files = executors.TlsFiles(tmp_path / "cert.pem", tmp_path / "cert.pem", tmp_path / "key.pem")
    options = ("--tls-ca-file", files.ca, "--tls-cert", files.certificate, "--tls-key", files.key)
    with dask_cluster(tmp_path, options=("--protocol", "tls", *options)) as dask:
        dask.start("worker", dask.address, "--nthreads", 1, "--no-nanny", *options)
        for _ in range(60):
            with suppress(WorkerError), cluster(dask.address, files) as workers:  # until the worker has started
                assert workers.executor.submit(pow, 2, 3).result(30.0) == 8
                return
            time.sleep(1.0)
    raise AssertionError("the worker did not come")


@pytest.mark.slow
def test_unsuitable_clusters_are_refused(tmp_path):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path) as dask:
        with (
            pytest.raises(WorkerError, match="has no workers; start some with `dask worker tcp://"),
            cluster(dask.address),
        ):
            pass
        dask.add(2)
        with cluster(dask.address) as workers:
            assert workers.workers == 2
            calls = Calls(workers.executor)
            for number in range(5):
                calls.make(number, pow, number, 2)
            assert gather(calls) == {number: number**2 for number in range(5)}
        for version, refusal in (
            ('__version__ = "0.0.9"', r"worker tcp://\S+ has dynid_ros 0.0.9, and here is \S+; install the same there"),
            (
                "raise ImportError('none')",
                r"worker tcp://\S+ cannot load dynid_ros \S+ \((ImportError\(')?none('\))?\); install the same there",
            ),
        ):
            shutil.rmtree(tmp_path / "dynid_ros", ignore_errors=True)
            shutil.copytree(Path(executors.__file__).parent, tmp_path / "dynid_ros")
            (tmp_path / "dynid_ros" / "__init__.py").write_text(version)
            dask.add(1, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
            with pytest.raises(WorkerError, match=refusal), cluster(dask.address):
                pass
            dask.workers.pop().terminate()
            time.sleep(2.0)
