"""Start a dask cluster of separate processes with `dask scheduler` and `dask worker`."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

WAIT = 90.0
"""Longest time in s until processes have started on a busy machine."""


class Cluster:
    def __init__(self, folder, options=()):
        self.file = folder / "scheduler.json"
        self.processes = []
        self.start("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", self.file, *options)
        self.workers = []
        self.wait_for_scheduler()

    @property
    def address(self):
        return json.loads(self.file.read_text())["address"]

    def start(self, *words, **environment):
        # outside the source folder, which -m would put before PYTHONPATH
        where = self.file.with_name("started")
        where.mkdir(exist_ok=True)
        dask = [sys.executable, "-m", "dask", *map(str, words), "--no-dashboard"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment}
        log = self.file.with_suffix(f".{len(self.processes)}.log").open("w")
        self.processes.append(subprocess.Popen(dask, cwd=where, env=environment, stdout=log, stderr=log))
        return self.processes[-1]

    def add(self, count, **environment):
        for _ in range(count):
            words = ("worker", "--scheduler-file", self.file, "--nthreads", 1, "--no-nanny")
            self.workers.append(self.start(*words, **environment))
        self.wait_for(len(self.workers))

    def wait_for_scheduler(self):
        deadline = time.monotonic() + WAIT
        while not self.file.exists():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.1)

    def wait_for(self, count):
        from distributed import Client  # noqa: PLC0415

        with Client(self.address, timeout=WAIT, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=WAIT)


@contextmanager
def dask_cluster(folder, workers=0, options=()):
    cluster = Cluster(folder, options)
    try:
        if workers:
            cluster.add(workers)
        yield cluster
    finally:
        for process in cluster.processes:
            process.kill()
            process.wait()
