"""Breaks each promise of docs/promises.md once, in a copy of the sources, and sees its test fail.

A test that does not fail then proves nothing; nor does one that fails on the whole copy, so all are run there first.
`--only WORDS` takes those whose test or break holds the words, `--jobs 2` runs two at a time. Exit code 1 if a break
went unseen, or a test fails as it is.
"""

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
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


def locate(package: Path, symbol: str, text: str) -> tuple[Path, int]:
    """File that defines a symbol, and where a text begins that the symbol's source has once.

    Args:
        package: folder of the sources.
        symbol: dotted name of a function, class or constant, as in `Recorder.start`; with its file in front, as in
            `recorder:main`, where several files have it.
        text: is to be in it.
    """
    stem, _, name = symbol.rpartition(":")
    files = [path for path in _definitions(package)[name] if stem in ("", path.stem)]
    assert len(files) == 1, f"{symbol} is defined {len(files)} times"
    source = files[0].read_text(encoding="utf-8")
    first, end = next(span for other, *span in _all_symbols(source) if other == name)
    lines = source.splitlines(keepends=True)
    start = len("".join(lines[:first]))
    part = source[start : len("".join(lines[:end]))]
    assert part.count(text) == 1, f"{symbol} has this {part.count(text)} times: {text}"
    return files[0], start + part.index(text)


@cache
def _definitions(package: Path) -> dict[str, list[Path]]:
    """Files that define a dotted name."""
    found = defaultdict(list)
    for path in package.rglob("*.py"):
        for name, *_ in _all_symbols(path.read_text(encoding="utf-8")):
            found[name].append(path)
    return found


@cache
def _all_symbols(source: str) -> list[tuple[str, int, int]]:
    """As `_symbols`, of a whole file."""
    return list(_symbols(ast.parse(source).body))


def _symbols(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Dotted names that a body defines, first line, counted from 0, and line after the last."""
    for node in body:
        end = node.end_lineno or node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield prefix + node.name, first - 1, end
            if isinstance(node, ast.ClassDef):
                yield from _symbols(node.body, f"{prefix}{node.name}.")
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        yield from ((prefix + target.id, node.lineno - 1, end) for target in targets if isinstance(target, ast.Name))


@contextmanager
def edited(copy: Path, broken: Break) -> Iterator[None]:
    """The copy with the edits; whole again afterwards."""
    before = {}
    try:
        for symbol, old, new in broken.edits:
            path, at = locate(copy / "dynid_ros", symbol, old)
            text = path.read_text()
            before.setdefault(path, (text, path.stat().st_mtime_ns))
            path.write_text(text[:at] + new + text[at + len(old) :])
        yield
    finally:
        for path, (text, changed) in before.items():
            path.write_text(text)
            os.utime(path, ns=(changed, changed))  # what is compiled is good again


if __name__ == "__main__":
    main()
