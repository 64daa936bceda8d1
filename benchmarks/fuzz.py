"""What readers and nodes make of inputs that nobody means well.

    python -m benchmarks.fuzz [--inputs 100000] [--guided 0.5] [--seed 0] [--targets URDF CSV ...] [--keep FOLDER]

Every input must end in a right result or in one clear line of a `DynidError`: no other exception, at most 2 s of the
processor, at most 300 MB more memory than before, and nothing accepted that cannot be (see test/fuzzing). Inputs are
valid documents, spoiled: bits flipped, tags removed, repeated or moved, other types, NaN, infinite, huge and denormal
numbers, odd names, deep nesting, long lines, cuts; parameters with which each node is made; messages. Of the first part
Hypothesis chooses the mutations; of files, a part `--guided` of all inputs is chosen by Atheris, led by which lines of
this package they reach.

Set TMPDIR to a file system in memory, or most of the time goes by waiting for a disk. "slowest" is in s of the
processor. Exit code 1: something failed; it is printed, and kept in `--keep`.

Needs `pip install hypothesis`; guided inputs `pip install atheris` too (Linux, Python 3.11 to 3.13), and those of nodes
ROS 2; what is missing is said and left out.
"""

import argparse
import importlib.util
import json
import shutil
import subprocess
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

GUIDED = Path(__file__).with_name("fuzz_guided.py")
COLUMNS = ("target", "by", "inputs", "accepted", "refused", "failed", "slowest", "minutes")


def main() -> int:
    """Print the table; 1 if anything failed."""
    parser = argparse.ArgumentParser(description="What readers and nodes make of spoiled inputs.")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--guided", type=float, default=0.5, help="part of the inputs that coverage guides")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", help="default: all")
    parser.add_argument("--keep", type=Path, help="folder for inputs that failed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of NumPy, on numbers beyond all bounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen, left_out = every.targets(folder)
        print(*left_out, sep="\n", end="\n" if left_out else "")
        if options.targets:
            chosen = [target for target in chosen if target.name in options.targets]
        by_coverage = [target for target in chosen if target.seeds]
        if importlib.util.find_spec("atheris") is None:
            print("left out: inputs led by coverage (pip install atheris)")
            by_coverage = []
        led = int(options.inputs * options.guided) if by_coverage else 0
        print("  ".join(f"{column:>14}" for column in COLUMNS), flush=True)
        failed = _all(chosen, options.inputs - led, options.seed, folder, options.keep)
        failed |= _all_guided(by_coverage, led, options.seed, folder, options.keep)
    return int(failed)


def _all(targets: list[Target], inputs: int, seed: int, folder: Path, keep: Path | None) -> bool:
    total = sum(target.share for target in targets)
    whole, start = Tally(), time.monotonic()
    for target in targets:
        tally, began = Tally(), time.monotonic()
        work = _fresh(folder)
        count = round(inputs * target.share / total)
        for done in tqdm(range(0, count, BATCH), target.name, leave=False, disable=None):
            fuzz(target, min(BATCH, count - done), seed + done, work, tally)
        _row(target.name, "Hypothesis", tally, began, keep)
        whole.include(tally)
    _row("all", "Hypothesis", whole, start, None)
    return bool(whole.failures)


def _all_guided(targets: list[Target], inputs: int, seed: int, folder: Path, keep: Path | None) -> bool:
    if not targets:
        return False
    total = sum(target.share for target in targets)
    whole, start = Tally(), time.monotonic()
    counts = json.dumps({target.name: round(inputs * target.share / total) for target in targets})
    command = [sys.executable, GUIDED, str(seed), str(folder), counts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        began = time.monotonic()
        for line in process.stdout:
            name, _, result = line.rstrip().partition("\t")
            tally = Tally()
            if Path(result).is_file():
                tally = Tally(**json.loads(Path(result).read_text()))
            if tally.inputs < json.loads(counts)[name]:
                tally.failures[f"ended early, see {Path(result).parent}/libfuzzer.txt"] += 1
            _row(name, "Atheris", tally, began, keep)
            whole.include(tally)
            began = time.monotonic()
    _row("all", "Atheris", whole, start, None)
    return bool(whole.failures) or process.returncode != 0


def _fresh(folder: Path) -> Path:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    return work


def _row(name: str, by: str, tally: Tally, began: float, keep: Path | None) -> None:
    minutes = (time.monotonic() - began) / 60
    failed = sum(tally.failures.values())
    cells = (name, by, tally.inputs, tally.accepted, tally.refused, failed, f"{tally.slowest:.2f}", f"{minutes:.1f}")
    print("  ".join(f"{cell!s:>14}" for cell in cells), flush=True)
    if name != "all" and failed:
        print(tally.told(), flush=True)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for i, (data, _) in enumerate(tally.examples.values()):
                content = data if isinstance(data, bytes) else repr(data).encode()
                (keep / f"{name.replace(' ', '_')}_{by}_{i}").write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
