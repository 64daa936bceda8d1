"""Breaks each promise of docs/promises.md once, in a copy of the sources, and sees its test fail.

A test that does not fail then proves nothing; nor does one that fails on the whole copy, so all are run there first.
`--only WORDS` takes those whose test or break holds the words, `--jobs 2` runs two at a time. Exit code 1 if a break
went unseen, or a test fails as it is.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue

from benchmarks.promise_breaks import BREAKS, Break

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".*", "*.egg-info")
FAILED = 1
"""Exit code of pytest when a test failed; others mean that it could not run."""
HUNG = -1
TIMEOUT = 200.0
"""s."""


def main() -> None:
    """Break, look, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="words in the name of the test or in what is broken")
    parser.add_argument("--jobs", type=int, default=1, help="copies that are worked on at once")
    parser.add_argument("--hurry", action="store_true", help="take for granted that the tests pass as they are")
    arguments = parser.parse_args()
    chosen = [broken for broken in BREAKS if arguments.only in f"{broken.test} {broken.what}"]
    with tempfile.TemporaryDirectory(prefix="dynid_promises_") as folder:
        copies: Queue[Path] = Queue()
        for number in range(arguments.jobs):
            copies.put(Path(shutil.copytree(ROOT, Path(folder) / str(number), ignore=LEFT_OUT)))

        def look(broken: Break) -> tuple[str, str]:
            copy = copies.get()
            try:
                return outcome(copy, broken)
            finally:
                copies.put(copy)

        begun = time.monotonic()
        failing = [] if arguments.hurry else fail_as_they_are(Path(folder) / "0", sorted({b.test for b in chosen}))
        with ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = []
            for broken, (found, why) in zip(chosen, pool.map(look, chosen), strict=True):
                print(f"{found:<10} {broken.test}: {broken.what}", f"  {why}", sep="\n" if why else "", flush=True)
                outcomes.append(found)
    for test in failing:
        print(f"fails as it is: {test}")
    seen = outcomes.count("seen")
    print(f"{seen} of {len(chosen)} breaks were seen, in {time.monotonic() - begun:.0f} s")
    sys.exit(seen < len(chosen) or bool(failing))


def fail_as_they_are(copy: Path, tests: list[str]) -> list[str]:
    """Those of the tests that fail on a copy that is whole."""
    _, output = run(copy, [path_of(copy, test) for test in tests], timeout=TIMEOUT + 30.0 * len(tests))
    return re.findall(r"^(?:FAILED|ERROR) \S*?(test_\w+\.py::.*?)(?: - .*)?$", output, flags=re.MULTILINE)


def outcome(copy: Path, broken: Break) -> tuple[str, str]:
    """What became of the test while the copy is broken: seen, NOT SEEN, or why it could not run; and its complaint."""
    with edited(copy, broken):
        code, output = run(copy, ["-x", "--tb=short", path_of(copy, broken.test)])
    complaint = re.search(r"^E +(.*)", output, flags=re.MULTILINE)
    return {0: "NOT SEEN", FAILED: "seen", HUNG: "seen"}.get(code, f"code {code}"), complaint[1] if complaint else ""


def path_of(copy: Path, test: str) -> str:
    """Of a test, for pytest."""
    name, _, rest = test.partition("::")
    (file,) = (copy / "test").rglob(name)
    return f"{file}::{rest}"


def run(copy: Path, arguments: list[str], timeout: float = TIMEOUT) -> tuple[int, str]:
    """Exit code and output of pytest; what it started ends with it."""
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return HUNG, ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def edited(copy: Path, broken: Break) -> Iterator[None]:
    """The copy with the edits; whole again afterwards."""
    paths = {copy / "dynid_ros" / file for file, _, _ in broken.edits}
    before = {path: (path.read_text(), path.stat().st_mtime_ns) for path in paths}
    try:
        for file, old, new in broken.edits:
            path = copy / "dynid_ros" / file
            text = path.read_text()
            assert text.count(old) == 1, f"{file}: {old}"
            path.write_text(text.replace(old, new))
        yield
    finally:
        for path, (text, changed) in before.items():
            path.write_text(text)
            os.utime(path, ns=(changed, changed))  # what is compiled is good again


if __name__ == "__main__":
    main()
