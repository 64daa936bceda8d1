"""Processor time and memory of processes over time, from /proc (Linux)."""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

WARM_UP_FRACTION = 0.25
"""Initial fraction of the run that is excluded from memory growth: buffers fill, code is compiled and cached."""


@dataclass
class Usage:
    """Samples of one process: time, s; processor time, s; resident and private memory, KiB."""

    time: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    proportional: list[float] = field(default_factory=list)
    private: list[float] = field(default_factory=list)

    @property
    def cores(self) -> float:
        """Processor seconds per second."""
        return (self.processor[-1] - self.processor[0]) / (self.time[-1] - self.time[0])

    def growth(self) -> tuple[float, float, float]:
        """Return slope, standard error and total of the growth of private memory: KiB/min, KiB/min and KiB.

        The standard error is that of differences between quarters of the run after the warm-up, since memory grows in
        steps and neighbouring samples are not independent.
        """
        time = np.array(self.time) / 60.0
        late = time >= time[0] + WARM_UP_FRACTION * (time[-1] - time[0])
        time, private = time[late], np.array(self.private)[late]
        if len(time) < 8:
            return np.nan, np.nan, np.nan
        slopes = [
            np.polyfit(t, p, 1)[0] for t, p in zip(np.array_split(time, 4), np.array_split(private, 4), strict=True)
        ]
        return np.polyfit(time, private, 1)[0], np.std(slopes, ddof=1) / 2.0, private[-1] - private[0]


class UsageSampler:
    """Samples the usage of processes in a thread, every `period` s, during its block."""

    def __init__(self, processes: Mapping[str, int], period: float) -> None:
        self.usage = {name: Usage() for name in processes}
        self._processes = dict(processes)
        self._period = period
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "UsageSampler":
        self._take_sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._take_sample()

    def _run(self) -> None:
        while not self._end.wait(self._period):
            self._take_sample()

    def _take_sample(self) -> None:
        for name, number in self._processes.items():
            usage = self.usage[name]
            memory = _memory(number)
            usage.processor.append(_processor_time(number))
            usage.time.append(time.monotonic())
            usage.resident.append(memory["Rss"])
            usage.proportional.append(memory["Pss"])
            usage.private.append(memory["Private_Clean"] + memory["Private_Dirty"])


def _processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(process: int) -> dict[str, float]:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: float(line.split()[1]) for line in lines}
