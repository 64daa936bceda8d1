"""Recorder and gravity compensation of a seven-joint arm at 1 kHz beside a busy core: losses, latency, CPU, memory.

    python -m benchmarks.node_load [--minutes 1] [--idle-seconds 10] [--no-busy] [--no-relay] [--guide] [--keep FOLDER]

A Panda's joint states and a wrench come at 1 kHz, the pose of a body and 20 markers at 250 Hz, each from a process of
its own, and another process burns a core. The recorder records all of it, and gravity compensation is enabled.

- Lost: numbers in the stamps of the recorded messages against what was published.
- Latency: from the publication of a joint state until the first command that knows of it or of a newer one is
  published, beside a relay, the least node that rclpy can make of the same topics: same stream, same QoS, same time. A
  command tells by its value which state it came from, since all poses of the motion differ. `received` is until the
  controller's process has it.
- CPU: seconds of processor time per second. Memory: slope of the private memory over the last three quarters of the
  run; judged in runs of ten minutes or more.
- Then the other nodes, idle, with the same joint states.

Exit code 1 if a message is lost, the compensation faulted, or memory grew. The latency is printed beside its aim; on
a machine with other work to do it says little. Needs rclpy, Linux and `pip install example-robot-data`.
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

AIM = 1.3
GROWTH = 1000.0
"""KiB in 30 minutes that are none: the recorder keeps the index of the file that it writes, up to half of that."""
LONG = 10.0
"""Minutes from which memory is judged."""
"""The other nodes, with what they cannot do without."""


@dataclass(frozen=True)
class Latency:
    """Times (N,) from joint states to commands, s, until these are published or received; commands per state."""

    published: np.ndarray
    received: np.ndarray
    commands: float


def losses(run: Run) -> dict[str, tuple[int, int]]:
    """Messages recorded, and lost between the start and the stop of the recording, by topic."""
    published = {"joint_states": np.load(run.folder / "joints.npy")}
    published |= dict(np.load(run.folder / "sensors.npz"))
    (bag,) = (run.folder / "bags").iterdir()
    found: dict[str, list[int]] = {topic: [] for topic in RATES}
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            stamp = np.frombuffer(bytes(data[STAMP]), "<u4")
            found[connection.topic.lstrip("/")].append(1000 * int(stamp[0]) + int(stamp[1]) // MILLION)
    result = {}
    for topic, rate in RATES.items():
        numbers = np.array(found[topic], dtype=int) // (1000 // rate)
        meant = 1 + np.flatnonzero((published[topic] > run.started) & (published[topic] < run.stopped))
        result[topic] = (len(numbers), int(np.sum(~np.isin(meant, numbers))))
        if len(numbers) != len(np.unique(numbers)):
            raise SystemExit(f"{topic}: a message was recorded twice")
    return result


def latencies(run: Run) -> dict[str, Latency]:
    """Of the node and of the relay, over the time of the recording.

    Each joint state counts, also one that was passed over for a newer one: until the first command that knows of it.
    """
    commands = np.load(run.folder / "commands.npz")
    published = np.load(run.folder / "joints.npy")
    states = np.flatnonzero((published > run.started) & (published < run.stopped))
    result = {}
    for name, values in (("node", run.torques), ("relay", run.poses[:, MOVING])):
        value, sent, received = (commands[f"{name}_{what}"] for what in ("value", "published", "received"))
        order = np.argsort(values)
        at = order[np.searchsorted(values[order] + 1e-9, value) % len(values)]
        # The motion repeats; a command is the answer to the last of the equal states before it.
        newest = np.searchsorted(published, sent) - 1
        state = newest - (newest - at) % len(values)
        known = (np.abs(values[at] - value) < 1e-9) & (state >= 0)  # a ramp's torques are those of no pose
        state, sent, received = state[known], sent[known], received[known]
        if not len(state):
            continue
        answer = np.searchsorted(np.maximum.accumulate(state), states)
        asked = states[answer < len(state)]
        answer = answer[answer < len(state)]
        result[name] = Latency(
            published=(sent[answer] - published[asked]) * 1e-9,
            received=(received[answer] - published[asked]) * 1e-9,
            commands=len(np.unique(answer)) / len(asked),
        )
    return result


def show_usage(usage: dict[str, Usage]) -> None:
    """Print a table."""
    print(f"{'process':<32}{'CPU s/s':>9}{'RSS MB':>9}{'PSS MB':>9}{'private memory, KiB/min':>28}{'in all, KiB':>13}")
    for name, use in usage.items():
        slope, error, whole = use.growth()
        growth = "too short" if np.isnan(slope) else f"{slope:.1f} ± {2 * error:.1f}"
        numbers = f"{use.cores:>9.3f}{use.resident[-1] / 1024:>9.1f}{use.proportional[-1] / 1024:>9.1f}"
        print(f"{name:<32}{numbers}{growth:>28}{whole:>13.0f}")


def show_latencies(found: dict[str, Latency]) -> None:
    """Print a table."""
    print(f"{'latency, ms':<32}{'median':>9}{'99 %':>9}{'99.9 %':>9}{'worst':>9}{'commands per state':>21}")
    for until in ("published", "received"):
        for name, latency in found.items():
            times = getattr(latency, until)
            numbers = [*np.percentile(times, (50, 99, 99.9)), times.max()]
            line = "".join(f"{1e3 * number:>9.3f}" for number in numbers)
            print(f"{f'{name}, {until}':<32}{line}{latency.commands:>21.4f}")
        if len(found) > 1:
            middle, late = np.divide(*(np.percentile(getattr(found[n], until), (50, 99)) for n in ("node", "relay")))
            verdict = _verdict(max(middle, late) <= AIM)
            print(f"{'node over relay':<32}{middle:>9.2f}{late:>9.2f}   at most {AIM:g}: {verdict}")


def _verdict(good: bool) -> str:
    return "met" if good else "NOT MET"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="0: leave the other nodes out")
    parser.add_argument("--no-busy", action="store_true", help="without the process that burns a core")
    parser.add_argument("--no-relay", action="store_true", help="without the relay, which takes half a core")
    parser.add_argument("--guide", action="store_true", help="with the page of `dynid guide`, which nobody opens")
    parser.add_argument("--keep", type=Path, help="folder for bag and arrays, which are else deleted")
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
        if options.minutes >= LONG:
            grown = [name for name in ("recorder", "gravity_compensation") if usage[name].growth()[0] * 30 > GROWTH]
            print(f"memory grows: {', '.join(grown) or 'nowhere'}")
        if options.idle_seconds:
            print("\nidle, with joint states at 1 kHz", flush=True)
            with running(folder) as run:
                show_usage(run.idle(options.idle_seconds))
    return 1 if any(gone for _, gone in lost.values()) or faults or grown else 0


if __name__ == "__main__":
    sys.exit(main())
