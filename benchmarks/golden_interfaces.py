"""Golden record of the interfaces: `python -m benchmarks.golden_interfaces [--write]`.

What others rely on, as it is, in benchmarks/golden/interfaces.json: public names and signatures, commands and
options, exit codes, scripts, launch and config files, nodes with parameters, topics, QoS and services, keys of files
and of `--json`. Without an option what is now is compared with the record: a line for each difference (path, was, is)
and exit code 1. `--write` writes the record anew; which changes are meant is said in benchmarks/golden/changes.yaml.

Everything is reached through doors that stay: package faces, the console script, nodes by their names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "golden" / "interfaces.json"
PARTS = {
    "names": "benchmarks.golden_names",
    "commands": "benchmarks.golden_commands",
    "installed": "benchmarks.golden_installed",
    "nodes": "benchmarks.golden_nodes",
    "files": "benchmarks.golden_files",
}
"""Modules that print a part of the record, each in a process of its own."""
LONGEST = 900.0
"""Time for one part, s; all together take less than a minute of a processor."""
MISSING = "(nothing)"


def interfaces(parts: Sequence[str] = tuple(PARTS)) -> dict:
    """Return the interfaces as they are: nested mappings with sorted text keys, lists, texts, numbers.

    Args:
        parts: of `PARTS`; that of the nodes needs rclpy and MuJoCo.

    Raises:
        RuntimeError: a part could not be made; the message has what it printed.
    """
    return {part: _made(PARTS[part]) for part in sorted(parts)}


def _made(module: str) -> dict:
    """Return what a module prints on its last line."""
    # one thread: what is null where a matrix is singular must not depend on rounding
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    if done.returncode:
        raise RuntimeError(f"{module}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def recorded() -> dict:
    """Return the record."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def write(found: dict) -> None:
    """Write the record."""
    RECORD.parent.mkdir(exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
    RECORD.write_text(f"{text}\n", encoding="utf-8")


def differences(was: object, now: object, path: str = "") -> Iterator[str]:
    """Yield a line for each leaf that differs: its path, what it was and what it is.

    Items of lists are compared as sets of texts where all are texts: what is in only one of them.
    """
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            yield from differences(was.get(key, MISSING), now.get(key, MISSING), f"{path}/{key}" if path else key)
    elif was != now and _texts(was) and _texts(now) and set(was) != set(now):
        yield from (f"{path}: was {item}, is {MISSING}" for item in was if item not in now)
        yield from (f"{path}: was {MISSING}, is {item}" for item in now if item not in was)
    elif was != now:
        yield f"{path}: was {_short(was)}, is {_short(now)}"


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def main(words: Sequence[str]) -> int:
    """Compare or write; return the exit code."""
    unknown = set(words) - {"--write", *PARTS}
    if unknown:
        print(f"{', '.join(sorted(unknown))}: expected --write, or some of {', '.join(PARTS)}", file=sys.stderr)
        return 2
    parts = [part for part in PARTS if part in words] or list(PARTS)
    found = interfaces(parts)
    before = recorded() if RECORD.exists() else {}
    if "--write" in words:
        write(before | found)
        return 0
    lines = list(differences({part: before.get(part, MISSING) for part in parts}, found))
    print("\n".join(lines) or f"as recorded: {', '.join(parts)}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
