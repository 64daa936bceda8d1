"""Calls that are lost are made again, wherever they are made; a cluster that does not fit is refused in one line."""

import os
import shutil
import socket
import subprocess
import sys
import time
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
    found = {}
    while calls:
        found.update((key, future.result()) for key, future in calls.ended(1.0))
    return found


@pytest.fixture
def processes():
    made = Processes(2)
    yield made
    made.shutdown(cancel_futures=True)


def test_a_killed_process_costs_what_was_under_way_which_is_done_again(processes, tmp_path):
    calls = Calls(processes)
    for number in range(4):
        calls.make(number, square, number)
    calls.make("dead", square_once_dead, 9, tmp_path / "mark")
    assert gather(calls) == {0: 0, 1: 1, 2: 4, 3: 9, "dead": 81}


def test_what_kills_each_process_is_given_up_in_one_line(processes):
    calls = Calls(processes)
    calls.make("dead", die, 0)
    with pytest.raises(WorkerError, match="a piece of work was lost 3 times, with each of its workers"):
        gather(calls)
    calls.make("next", square, 3)
    assert gather(calls) == {"next": 9}


def test_what_is_under_way_ends_when_told_to(processes):
    future = processes.submit(for_ever)
    while not future.running():
        time.sleep(0.05)
    processes.shutdown(cancel_futures=True)
    assert isinstance(future.exception(), Cancelled)


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path):
    program = (
        "import os, signal; from worker_calls import for_ever; from dynid_ros.executors import Processes\n"
        "processes = Processes(1); print(processes.submit(os.getpid).result())\n"
        "processes.submit(for_ever); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", program], env=path, capture_output=True, text=True, check=False)
    pid, deadline = int(done.stdout), time.monotonic() + 20.0
    while runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_without_dask_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkerError, match=r"not installed: pip install 'dynid_ros\[cluster\]'"), cluster("tcp://a:1"):
        pass


@pytest.mark.parametrize("who", ["nobody", "no scheduler", "no address"])
def test_a_scheduler_that_is_not_there_is_one_line(who, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "CONNECT", 1.0)
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


@pytest.mark.slow
def test_clusters_that_do_not_fit_are_refused_and_one_that_does_is_used(tmp_path):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path) as dask:
        with (
            pytest.raises(WorkerError, match="has no workers; start some with `dask worker tcp://"),
            cluster(dask.address),
        ):
            pass
        dask.add(2)
        with cluster(dask.address) as found:
            assert found.workers == 2
            calls = Calls(found.executor)
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
