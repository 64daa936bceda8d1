"""Robustness of readers and nodes against malformed inputs.

    python -m benchmarks.fuzz [--inputs 100000] [--seed 0] [--targets URDF CSV ...] [--keep FOLDER]

Every input must end in a correct result or in a `DynidError` of one clear line: no other exception, at most 2 s of
processor time, at most 300 MB of additional memory, and no invalid input accepted (see test/fuzzing). Inputs are
mutated valid documents: flipped bits, removed, repeated or moved tags, wrong types, NaN, infinite, huge and denormal
numbers, odd names, deep nesting, long lines, truncation; parameters of each node; messages. Hypothesis chooses the
mutations.

Set TMPDIR to a file system in memory, because disks are slow. The column "slowest" is processor time, s. The exit code
is 1 if an input failed; failures are printed, and their inputs are written to `--keep`.

Needs `pip install hypothesis`; targets of nodes need ROS 2. Missing packages are named and their targets skipped.
"""

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from fuzzing import every
from fuzzing.outcome import Tally
from fuzzing.target import BATCH, Target, fuzz

COLUMNS = ("target", "inputs", "accepted", "refused", "failed", "slowest", "minutes")


def main() -> int:
    """Print the table; return 1 if an input failed."""
    parser = argparse.ArgumentParser(description="Robustness of readers and nodes against malformed inputs.")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", help="default: all")
    parser.add_argument("--keep", type=Path, help="folder for inputs that failed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # overflow warnings of NumPy
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen, left_out = every.list_targets(folder)
        print(*left_out, sep="\n", end="\n" if left_out else "")
        if options.targets:
            chosen = [target for target in chosen if target.name in options.targets]
        print("  ".join(f"{column:>14}" for column in COLUMNS), flush=True)
        return int(_all(chosen, options.inputs, options.seed, folder, options.keep))


def _all(targets: list[Target], inputs: int, seed: int, folder: Path, keep: Path | None) -> bool:
    total = sum(target.share for target in targets)
    whole = Tally()
    start = time.monotonic()
    for target in targets:
        tally = Tally()
        began = time.monotonic()
        work = _fresh(folder)
        count = round(inputs * target.share / total)
        for done in tqdm(range(0, count, BATCH), target.name, leave=False, disable=None):
            fuzz(target, min(BATCH, count - done), seed + done, work, tally)
        _row(target.name, tally, began, keep)
        whole.include(tally)
    _row("all", whole, start, None)
    return bool(whole.failures)


def _fresh(folder: Path) -> Path:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    return work


def _row(name: str, tally: Tally, began: float, keep: Path | None) -> None:
    minutes = (time.monotonic() - began) / 60
    failed = sum(tally.failures.values())
    cells = (name, tally.inputs, tally.accepted, tally.refused, failed, f"{tally.slowest:.2f}", f"{minutes:.1f}")
    print("  ".join(f"{cell!s:>14}" for cell in cells), flush=True)
    if name != "all" and failed:
        print(tally.describe_failures(), flush=True)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for i, (data, _) in enumerate(tally.examples.values()):
                content = data if isinstance(data, bytes) else repr(data).encode()
                (keep / f"{name.replace(' ', '_')}_{i}").write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
