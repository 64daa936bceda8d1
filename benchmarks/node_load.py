"""Load test of recorder and gravity compensation at 1 kHz with a busy core: losses, latency, CPU, memory.

    python -m benchmarks.node_load [--minutes 1] [--idle-seconds 10] [--no-busy] [--no-relay] [--guide] [--keep FOLDER]

A Panda's joint states and a wrench arrive at 1 kHz, the pose of a body and 20 markers at 250 Hz, each from its own
process, and another process keeps one core busy. The recorder records all topics; gravity compensation is enabled.

- Lost: numbers in the stamps of the recorded messages, compared with the published ones.
- Latency: time from the publication of a joint state to the first command that uses it or a newer one. It is compared
  with a relay, the simplest rclpy node on the same topics with the same QoS at the same time. The value of a command
  identifies its joint state, since all poses of the motion differ. `received` is the latency until the controller's
  process receives the command.
- CPU: processor seconds per second. Memory: slope of the private memory over the last three quarters of the run;
  judged in runs of ten minutes or more.
- Then the other nodes, idle, with the same joint states.

The exit code is 1 if a message is lost, the compensation faults, or memory grows. The latency is printed with its goal;
it is meaningful only on an otherwise idle machine. Needs rclpy, Linux and `pip install example-robot-data`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import Reader

from benchmarks.node_load_peers import MILLION, RATES, STAMP
from benchmarks.node_load_run import MOVING, Run, running
from benchmarks.node_load_usage import Usage

MAX_LATENCY_RATIO = 1.3
MAX_GROWTH_KIB = 1000.0
"""Memory growth in 30 minutes that is accepted: the recorder keeps the index of its file, up to half of that."""
MIN_MEMORY_MINUTES = 10.0
"""Shortest run in which memory growth is judged."""


@dataclass(frozen=True)
class Latency:
    """Times (N,), s, from joint states to published and received commands, and the number of commands per state."""

    published: np.ndarray
    received: np.ndarray
    commands: float


def losses(run: Run) -> dict[str, tuple[int, int]]:
    """Return the numbers of recorded messages, and of lost ones between start and stop, by topic."""
    published = {"joint_states": np.load(run.folder / "joints.npy")}
    published |= dict(np.load(run.folder / "sensors.npz"))
    (bag,) = (run.folder / "bags").iterdir()
    recorded: dict[str, list[int]] = {topic: [] for topic in RATES}
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            stamp = np.frombuffer(bytes(data[STAMP]), "<u4")
            recorded[connection.topic.lstrip("/")].append(1000 * int(stamp[0]) + int(stamp[1]) // MILLION)
    result = {}
    for topic, rate in RATES.items():
        numbers = np.array(recorded[topic], dtype=int) // (1000 // rate)
        expected = 1 + np.flatnonzero((published[topic] > run.started) & (published[topic] < run.stopped))
        result[topic] = (len(numbers), int(np.sum(~np.isin(expected, numbers))))
        if len(numbers) != len(np.unique(numbers)):
            raise SystemExit(f"{topic}: a message was recorded twice")
    return result


def latencies(run: Run) -> dict[str, Latency]:
    """Return the latencies of the node and of the relay during the recording.

    Every joint state counts, including one that is superseded by a newer one: until the first command that uses it.
    """
    commands = np.load(run.folder / "commands.npz")
    published = np.load(run.folder / "joints.npy")
    states = np.flatnonzero((published > run.started) & (published < run.stopped))
    result = {}
    for name, values in (("node", run.torques), ("relay", run.poses[:, MOVING])):
        value, sent, received = (commands[f"{name}_{key}"] for key in ("value", "published", "received"))
        order = np.argsort(values)
        index = order[np.searchsorted(values[order] + 1e-9, value) % len(values)]
        # The motion repeats; a command answers the last of the equal states before it.
        newest = np.searchsorted(published, sent) - 1
        state = newest - (newest - index) % len(values)
        valid = (np.abs(values[index] - value) < 1e-9) & (state >= 0)  # torques during a ramp belong to no pose
        state = state[valid]
        sent = sent[valid]
        received = received[valid]
        if not len(state):
            continue
        answer = np.searchsorted(np.maximum.accumulate(state), states)
        answered = states[answer < len(state)]
        answer = answer[answer < len(state)]
        result[name] = Latency(
            published=(sent[answer] - published[answered]) * 1e-9,
            received=(received[answer] - published[answered]) * 1e-9,
            commands=len(np.unique(answer)) / len(answered),
        )
    return result


def show_usage(usage: dict[str, Usage]) -> None:
    """Print the table of processor time and memory."""
    print(f"{'process':<32}{'CPU s/s':>9}{'RSS MB':>9}{'PSS MB':>9}{'private memory, KiB/min':>28}{'in all, KiB':>13}")
    for name, use in usage.items():
        slope, error, whole = use.growth()
        growth = "too short" if np.isnan(slope) else f"{slope:.1f} ± {2 * error:.1f}"
        numbers = f"{use.cores:>9.3f}{use.resident[-1] / 1024:>9.1f}{use.proportional[-1] / 1024:>9.1f}"
        print(f"{name:<32}{numbers}{growth:>28}{whole:>13.0f}")


def show_latencies(latency_by_name: dict[str, Latency]) -> None:
    """Print the table of latencies."""
    print(f"{'latency, ms':<32}{'median':>9}{'99 %':>9}{'99.9 %':>9}{'worst':>9}{'commands per state':>21}")
    for until in ("published", "received"):
        for name, latency in latency_by_name.items():
            times = getattr(latency, until)
            numbers = [*np.percentile(times, (50, 99, 99.9)), times.max()]
            line = "".join(f"{1e3 * number:>9.3f}" for number in numbers)
            print(f"{f'{name}, {until}':<32}{line}{latency.commands:>21.4f}")
        if len(latency_by_name) > 1:
            middle, late = np.divide(
                *(np.percentile(getattr(latency_by_name[n], until), (50, 99)) for n in ("node", "relay"))
            )
            verdict = _verdict(max(middle, late) <= MAX_LATENCY_RATIO)
            print(f"{'node over relay':<32}{middle:>9.2f}{late:>9.2f}   at most {MAX_LATENCY_RATIO:g}: {verdict}")


def _verdict(good: bool) -> str:
    return "met" if good else "NOT MET"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="duration of the idle test (0: none)")
    parser.add_argument("--no-busy", action="store_true", help="omit the process that keeps a core busy")
    parser.add_argument("--no-relay", action="store_true", help="omit the relay, which takes half a core")
    parser.add_argument("--guide", action="store_true", help="start the page of `dynid guide` without a client")
    parser.add_argument("--keep", type=Path, help="folder for bag and arrays (default: deleted)")
    options = parser.parse_args(arguments)
    seconds = 60.0 * options.minutes
    grown: list[str] = []
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before, ", end="", flush=True)
        with running(folder) as run:
            usage, answer = run.load(
                seconds,
                busy=not options.no_busy,
                relay=not options.no_relay,
                guide=options.guide,
                period=max(0.5, seconds / 300),
            )
            print(f"{os.getloadavg()[0]:.2f} at the end")
            faults = list(run.faults)
        print(answer)
        show_usage(usage)
        show_latencies(latencies(run))
        lost = losses(run)
        print("\n" + ", ".join(f"{topic}: {count} recorded, {gone} lost" for topic, (count, gone) in lost.items()))
        print(f"faults of the compensation: {'; '.join(faults) or 'none'}")
        if options.minutes >= MIN_MEMORY_MINUTES:
            grown = [
                name for name in ("recorder", "gravity_compensation") if usage[name].growth()[0] * 30 > MAX_GROWTH_KIB
            ]
            print(f"memory grows: {', '.join(grown) or 'nowhere'}")
        if options.idle_seconds:
            print("\nidle, with joint states at 1 kHz", flush=True)
            with running(folder) as run:
                show_usage(run.idle(options.idle_seconds))
    return 1 if any(gone for _, gone in lost.values()) or faults or grown else 0


if __name__ == "__main__":
    sys.exit(main())
