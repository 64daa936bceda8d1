"""Makes small mistakes in the sources, one at a time, and looks whether the tests of their room see them.

Operators are reversed, limits moved, checks dropped, one side of a two-sided check forgotten, indices shifted.
Which mutants are made depends on `--seed` and the sources alone: of each kind as many as of every other, as far as a
room has them. A mutant meets the quick tests that run its line, those of its own file and the quickest first; where
none runs it in the tests' own process, all that run its file; with them those that start its nodes as processes; then
the slow tests of its file, or of its room where it has none. What may fail by chance, or as it is, must pass on the
whole sources in between. The demo's nodes are left out: a slow test plays them.

Cosmic Ray and mutmut do not serve: the former has one test command for all mutants, and a room's whole tests for each
take days; the latter runs what it mutates in its own process, where nodes and commands are processes of their own;
neither drops checks or one side of them.

Needs `pip install pytest-cov`. Exit code 1 if fewer than 95 % of the mutants that make a difference are seen.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from coverage import CoverageData

from benchmarks.break_promises import FAILED, LEFT_OUT, ROOT, run
from benchmarks.equivalent_mutants import EQUIVALENT
from benchmarks.mutations import KINDS, Mutation, mutations

ROOMS = {
    "model": ("model",),
    "recording": ("recording",),
    "control": ("control",),
    "identification": ("identification",),
    "excitation": ("design", "excitation"),
    "nodes": ("nodes",),
}
ASKED = 0.95
SLOW = 30.0
"""Time that a slow test may take, s; what it takes is not measured."""
APART = re.compile("node_process|recorder_bench|generate_parameters")
"""Modules by which tests start nodes as processes, or read what they declare."""
BESIDE = {"nodes": ("test/docs/test_generate_parameters.py",)}
"""Tests that see a room from outside."""
FIRST = 25
"""Tests that a mutant meets first; the others are run where these see nothing."""


class Mutant(NamedTuple):
    """One mistake in a file below dynid_ros."""

    room: str
    kind: str
    file: str
    mutation: Mutation

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it whatever its line."""
        return self.file, self.mutation.before.partition("\n")[0], self.mutation.after.partition("\n")[0]

    def __str__(self) -> str:
        file, before, after = self.key
        return f"{file}:{self.mutation.node.lineno} ({self.kind})\n  - {before}\n  + {after}"


class Tests(NamedTuple):
    """What the tests of a room run.

    Attributes:
        by_line: names of quick tests by file and line.
        seconds: that each takes.
        apart: those that start nodes as processes of their own, where no line is traced, with the text of their file.
        slow: the slow ones.
    """

    by_line: Mapping[str, Mapping[int, Collection[str]]]
    seconds: Mapping[str, float]
    apart: Mapping[str, str]
    slow: Sequence[str]

    def of(self, mutant: Mutant) -> list[str]:
        """Names of the tests that the mutant must meet, in order."""
        lines = self.by_line.get(mutant.file, {})
        node = mutant.mutation.node
        traced = {name for line in range(node.lineno, node.end_lineno + 1) for name in lines.get(line, ())}
        traced = traced or {name for names in lines.values() for name in names}
        own = Path(mutant.file).stem

        def place(name: str) -> tuple[object, ...]:
            return own not in name.partition("::")[0], name not in traced, self.seconds.get(name, 0.0), name

        named = re.compile(rf"\b({'|'.join((*nodes_with(mutant.file), 'generate_parameters'))})\b")
        return sorted(traced | {name for name, text in self.apart.items() if named.search(text)}, key=place)


@cache
def nodes_with(file: str) -> tuple[str, ...]:
    """Names of the nodes that import a file below dynid_ros, itself or through others."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "dynid_ros").rglob("*.py")}
    found, before = {ROOT / "dynid_ros" / file}, set()
    while found != before:
        before = set(found)
        names = [re.escape(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in found]
        imports = re.compile(rf"^\s*from ({'|'.join(names)}) import", re.MULTILINE)
        found |= {path for path, text in texts.items() if imports.search(text)}
    return tuple(path.stem for path in found if path.parent == ROOT / "dynid_ros" / "nodes")


def main() -> None:
    """Mutate, look, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="mutants in all, the same number in each room")
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="copies that are worked on at once")
    arguments = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dynid_mutants_") as folder:
        copies: Queue[Path] = Queue()
        for number in range(arguments.jobs):
            copies.put(Path(shutil.copytree(ROOT, Path(folder) / str(number), ignore=LEFT_OUT)))
        found: Counter[tuple[str, str]] = Counter()
        for room in arguments.rooms:
            share = -(-arguments.count // len(arguments.rooms))
            mutants = drawn(room, share, random.Random(f"{arguments.seed} {room}"))
            copy = copies.get()
            tests = traced(copy, room, arguments.jobs)
            copies.put(copy)
            print(
                f"{room}: {len(mutants)} mutants, {len(tests.seconds)} tests, {time.monotonic() - begun:.0f} s",
                flush=True,
            )
            with ThreadPoolExecutor(arguments.jobs) as pool:
                for mutant, outcome in zip(mutants, pool.map(partial(met, copies, tests), mutants), strict=True):
                    found[room, outcome] += 1
                    if outcome != "seen":
                        print(f"{outcome}: {mutant}", flush=True)
    sys.exit(report(arguments.rooms, found, time.monotonic() - begun))


def report(rooms: Sequence[str], found: Counter[tuple[str, str]], seconds: float) -> bool:
    """Print the table; True if too few were seen."""
    outcomes = ("seen", "equivalent", "NOT SEEN")
    print("\n| room | mutants | " + " | ".join(outcomes) + " |\n|" + "---|" * 5)
    for room in [*rooms, "all"]:
        counts = [sum(n for (r, o), n in found.items() if o == name and room in (r, "all")) for name in outcomes]
        print(f"| {room} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |")
    seen, equivalent, _ = counts
    share = seen / (sum(counts) - equivalent)
    print(f"\n{share:.1%} of those that make a difference were seen (asked {ASKED:.0%}), in {seconds:.0f} s")
    return share < ASKED


def drawn(room: str, count: int, rng: random.Random) -> list[Mutant]:
    """Mutants of a room, of each kind as many as of every other, one a line at most."""
    waiting: dict[str, list[tuple[Path, Mutation]]] = {kind: [] for kind in KINDS}
    for path in sorted(path for name in ROOMS[room] for path in (ROOT / "dynid_ros" / name).rglob("*.py")):
        if "demo" in str(path.relative_to(ROOT)):
            continue
        for kind, made in mutations(path.read_text(encoding="utf-8")).items():
            waiting[kind] += [(path, mutation) for mutation in made]
    for places in waiting.values():
        rng.shuffle(places)
    mutants: list[Mutant] = []
    lines: set[tuple[Path, int]] = set()
    while len(mutants) < count and any(waiting.values()):
        for kind, places in waiting.items():
            while places:
                path, mutation = places.pop()
                if (path, mutation.node.lineno) not in lines:
                    lines.add((path, mutation.node.lineno))
                    mutants.append(Mutant(room, kind, str(path.relative_to(ROOT / "dynid_ros")), mutation))
                    break
    return mutants[:count]


def traced(copy: Path, room: str, jobs: int) -> Tests:
    """Run the quick tests of a room once, on the whole sources."""
    folders = [*(f"test/{name}" for name in ROOMS[room]), *BESIDE.get(room, ())]
    spread = ["--numprocesses", str(jobs), "--dist", "loadfile"]
    traces = ["--cov=dynid_ros", "--cov-context=test", "--cov-report=", "--durations=0", "--durations-min=0", "-vv"]
    (copy / ".coveragerc").write_text("[run]\nconcurrency = thread\n")
    _, output = run(copy, [*spread, *traces, "--cov-config=.coveragerc", "-m", "not slow", *folders], timeout=3600.0)
    if failed := re.findall(r"^(?:FAILED|ERROR) .*", output, flags=re.MULTILINE):
        print("fail as they are, and are left out:", *failed, sep="\n  ")
    broken = {re.split(" - ", line.partition(" ")[2])[0] for line in failed}
    seconds: dict[str, float] = defaultdict(float)
    for duration, name in re.findall(r"^([\d.]+)s (?:call|setup|teardown)\s+(test/\S.*)$", output, flags=re.MULTILINE):
        if name not in broken:
            seconds[name] += float(duration)
    data = CoverageData(str(copy / ".coverage"))
    data.read()
    by_file: dict[str, set[str]] = defaultdict(set)
    for name in seconds:
        by_file[name.partition("::")[0]].add(name)

    def names(context: str) -> set[str]:
        """The test; all of its file if it ran in a fixture, which is made for the first that asks and serves others."""
        name, _, phase = context.rpartition("|")
        beside = by_file.get(name.partition("::")[0], set())
        return beside if phase == "setup" else beside & {name}

    by_line = {}
    for path in data.measured_files():
        lines = data.contexts_by_lineno(path)
        by_line[str(Path(path).relative_to(copy / "dynid_ros"))] = {
            line: set().union(*map(names, contexts)) for line, contexts in lines.items()
        }
    _, output = run(copy, ["--collect-only", "-m", "slow", *folders])
    slow = re.findall(r"^test/\S+\.py::.*$", output, flags=re.MULTILINE)
    texts = {name: (copy / name.partition("::")[0]).read_text(encoding="utf-8") for name in seconds}
    apart = {name: text for name, text in texts.items() if APART.search(text)}
    return Tests(by_line, seconds, apart, slow)


def met(copies: Queue[Path], tests: Tests, mutant: Mutant) -> str:
    """What became of a mutant: seen, equivalent, NOT SEEN."""
    copy = copies.get()
    path = copy / "dynid_ros" / mutant.file
    whole = path.read_text(encoding="utf-8")
    try:
        if mutant.key in EQUIVALENT or (mutant.file, *_lines(mutant, whole)) in EQUIVALENT:
            return "equivalent"
        names = tests.of(mutant)
        nodes = mutant.room == "nodes"
        sees = partial(_sees, copy, path, mutant.mutation.applied(whole), tests)
        seen = any(sees(batch, twice=nodes) for batch in (names[:FIRST], names[FIRST:]))
        return "seen" if seen or (not nodes and sees(_slow(mutant, tests), twice=True)) else "NOT SEEN"
    finally:
        path.write_text(whole, encoding="utf-8")
        copies.put(copy)


def _sees(copy: Path, path: Path, applied: str, tests: Tests, names: Sequence[str], *, twice: bool) -> bool:
    """Whether the tests see what is put into the file.

    `twice`: they may fail by chance, or as they are. A failure then counts if the test passes with the whole file
    and fails again without; else the others are run.
    """
    whole = path.read_text(encoding="utf-8")

    def outcome(names: Sequence[str], text: str) -> tuple[int, str]:
        path.write_text(text, encoding="utf-8")
        try:
            return _run(copy, names, tests)
        finally:
            path.write_text(whole, encoding="utf-8")

    while names:
        code, output = outcome(names, applied)
        if code == 0 or not twice:
            return code != 0
        failing = [name for name in names if re.search(rf"^(FAILED|ERROR) {re.escape(name)}( - |$)", output, re.M)]
        if code != FAILED or not failing:
            return outcome(names, whole)[0] != code
        if outcome(failing, whole)[0] == 0 and outcome(failing, applied)[0] != 0:
            return True
        names = [name for name in names if name not in failing]
    return False


def _lines(mutant: Mutant, whole: str) -> tuple[str, str]:
    """The line that it changes first, before and after."""
    pairs = zip(whole.splitlines(), mutant.mutation.applied(whole).splitlines(), strict=False)
    before, after = next(pair for pair in pairs if pair[0] != pair[1])
    return before.strip(), after.strip()


def _slow(mutant: Mutant, tests: Tests) -> list[str]:
    """The slow tests of a mutant's file; else those of its room."""
    own = [name for name in tests.slow if f"/test_{Path(mutant.file).stem}.py::" in name]
    return own or list(tests.slow)


def _run(copy: Path, names: Sequence[str], tests: Tests) -> tuple[int, str]:
    (copy / "chosen").write_text("\n".join(names))
    seconds = sum(tests.seconds.get(name, SLOW) for name in names)
    return run(copy, ["-x", "--tb=no", "@chosen"], timeout=60.0 + 6.0 * seconds)


if __name__ == "__main__":
    main()
