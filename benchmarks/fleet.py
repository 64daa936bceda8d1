"""A fleet of simulated arms, killed in the middle and resumed; arms reported as unlike or changing, truly and falsely.

    python -m benchmarks.fleet [--arms 200] [--workers 2] [--seed 1000] [--fleets 200]

Planar arms of three joints whose links differ by 2 % from arm to arm, 10 s of motion each. Of `UNLIKE` the last link is
30 % heavier than that of the others; `CHANGING` have two further runs, of 60 and 30 days before, and half of them a
last link that becomes heavier by 10 % a run. `dynid fleet` identifies all, is killed when 40 % are done, and resumed.

Then thousands of fleets of numbers alone, from seeds on which the threshold was not tuned: normal parameters, arms and
standard errors as in `NUMBERS`, nothing unlike. How many fleets report anything is the rate of false alarms. And how
often an arm is found that is off by `DISTANCES` spreads in one parameter and known as well as the best.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.fleet.fleet_table import FALSE_ALARM, Entry, compare

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
import link_experiment
import planar_arm

UNLIKE, CHANGING = 6, 10
SPREAD, HEAVIER, GROWTH = 0.02, 1.3, 0.1
DAYS = ("2026-01-01", "2026-01-31", "2026-03-02")
KILLED = 0.4
NUMBERS = (  # arms, parameters, spread, powers of ten of the standard errors
    (20, 40, 0.3, (-1.3, 0.0)),
    (20, 40, 0.3, (-1.8, 0.0)),
    (20, 40, 0.3, (-2.0, -1.9)),
    (30, 25, 0.3, (-2.0, 1.0)),
    (60, 10, 0.3, (-1.3, 0.0)),
    (60, 10, 0.0, (-1.3, 0.0)),
    (200, 40, 0.3, (-1.3, 0.0)),
)
DISTANCES = (4, 5, 6, 7, 8)
DEFAULTS = {
    "urdf": "arm.urdf",
    "identification": "links",
    "friction": "coulomb,viscous,offset",
    "prior_weight": 1,
}


def write_fleet(folder: Path, arms: int, seed: int) -> int:
    """Recordings and the file of the fleet; returns the number of jobs."""
    robot, links = link_experiment.planar()
    (folder / "arm.urdf").write_text(planar_arm.urdf())
    rng, listed, jobs = np.random.default_rng(seed), {}, 0
    for number in range(arms):
        own = links.reshape(3, 10) * (1.0 + SPREAD * rng.standard_normal((3, 1)))
        if number < UNLIKE:
            own[2] *= HEAVIER
        runs = {}
        for run, day in enumerate(DAYS if UNLIKE <= number < UNLIKE + CHANGING else DAYS[-1:]):
            truth = own.copy()
            if UNLIKE <= number < UNLIKE + CHANGING // 2:
                truth[2] *= 1.0 + GROWTH * (run - len(DAYS) + 1)  # its last run is like the others'
            name = f"arm_{number}_{run}.npz"
            noise = int(rng.integers(2**31))
            link_experiment.record(robot, truth.ravel(), seed=1, noise_seed=noise).write_npz(folder / name)
            runs[day] = {"recordings": [name]}
            jobs += 1
        listed[f"arm_{number}"] = {"runs": runs}
    (folder / "fleet.yaml").write_text(json.dumps({"defaults": DEFAULTS, "arms": listed}))
    return jobs


def done(output: Path) -> dict[Path, int]:
    """Files of jobs that are done, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in output.rglob("job.yaml") if "-unfinished-" not in str(path)}


def interrupted(folder: Path, jobs: int, workers: int) -> None:
    """Identify the fleet, killed in the middle and resumed, and print what came of it."""
    output = folder / "out"
    words = [sys.executable, "-m", "dynid_ros.cli", "fleet", str(folder / "fleet.yaml"), f"--output={output}"]
    words += [f"--workers={workers}", "--json"]
    start = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(done(output)) < KILLED * jobs and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(5.0)  # its processes end with it
    before, killed = done(output), time.monotonic()
    print(f"{jobs} jobs: {len(before)} done in {killed - start:.0f} s, then killed", flush=True)
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    after, answer = done(output), json.loads(again.stdout)
    anew = sum(before.get(path) != written for path, written in after.items())
    print(
        f"resumed: {anew} of {len(after)} made now in {time.monotonic() - killed:.0f} s, exit code {again.returncode}"
    )
    print(f"made twice: {sum(after.get(path) != written for path, written in before.items())}")
    print(f"left over of what was killed: {sum(1 for _ in output.rglob('.*-unfinished-*'))}")
    _print_found("unlike", answer["outliers"], range(UNLIKE))
    changing = range(UNLIKE, UNLIKE + CHANGING // 2)
    _print_found("changing", [each for each in answer["drift"] if each["sure"]], changing)


def _print_found(what: str, reported: Sequence[dict], injected: range) -> None:
    arms = {each["arm"] for each in reported}
    true = {f"arm_{number}" for number in injected}
    print(f"{what}: {len(arms & true)} of {len(true)} arms found; falsely reported: {sorted(arms - true) or 'none'}")


def numbers(rng: np.random.Generator, arms: int, names: int, spread: float, powers: tuple[float, float]) -> list[Entry]:
    """Entries of a fleet in which nothing is unlike."""
    entries = []
    for name in range(names):
        for arm in range(arms):
            std = 10.0 ** rng.uniform(*powers)
            value = 5.0 + spread * rng.standard_normal() + std * rng.standard_normal()
            entries.append(Entry(("links", "same"), f"arm_{arm}", "", -np.inf, f"p{name}", value, std))
    return entries


def found(kind: tuple, distance: float, seed: tuple[int, int]) -> bool:
    """Whether an arm is reported that is so many spreads off in one parameter."""
    rng = np.random.default_rng(seed)
    entries, (_, _, spread, powers) = numbers(rng, *kind), kind
    which, std = int(rng.integers(len(entries))), 10.0 ** powers[0]
    off = entries[which]._replace(value=5.0 + distance * spread + std * rng.standard_normal(), std=std)
    entries[which] = off
    return any(one.unlike and one.entry == off for one in compare(entries))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--fleets", type=int, default=200, help="of numbers, of each kind")
    parser.add_argument("--found", type=int, default=40, help="fleets of each distance")
    options = parser.parse_args()
    if options.arms:
        with tempfile.TemporaryDirectory() as name:
            jobs = write_fleet(Path(name), options.arms, options.seed)
            interrupted(Path(name), jobs, options.workers)
    total = 0
    for kind in NUMBERS if options.fleets else ():
        reporting = sum(
            any(one.unlike for one in compare(numbers(np.random.default_rng((options.seed, k)), *kind)))
            for k in range(options.fleets)
        )
        total += reporting
        arms, names, spread, powers = kind
        rate = reporting / options.fleets
        print(
            f"{arms} arms, {names} parameters, spread {spread}, errors 10^{powers[0]} to 10^{powers[1]}: {rate:.1%} of "
            f"fleets report something (asked: {FALSE_ALARM:.0%})",
            flush=True,
        )
    print(f"all kinds: {total} of {len(NUMBERS) * options.fleets} fleets", flush=True)
    for kind in (NUMBERS[2], NUMBERS[0], NUMBERS[4]) if options.found else ():
        seeds = [(options.seed, k) for k in range(options.found)]
        shares = [f"{np.mean([found(kind, size, seed) for seed in seeds]):.0%} at {size}" for size in DISTANCES]
        print(f"{kind[0]} arms, errors from 10^{kind[3][0]}: found {', '.join(shares)} spreads", flush=True)


if __name__ == "__main__":
    main()
