"""Runs of `dynid` in copies of this process, and the shape of what comes out: what the golden records are made of."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

LONGEST = 60.0
"""Time after which a copy of this process is killed, s; all take a few seconds, on a busy machine more."""
KINDS = {bool: "flag", int: "number", float: "number", str: "text", type(None): "null"}


@dataclass(frozen=True)
class Done:
    """What a copy of this process left: exit code, and what it printed."""

    code: int
    out: str
    err: str


def forked(work: Callable[[], object], folder: Path | None = None) -> Done:
    """Call `work` in a copy of this process, in `folder`; a crash ends the copy alone.

    Args:
        work: to be done; what it raises ends the copy as it would end a program.
        folder: working folder; None: a temporary one.
    """
    with tempfile.TemporaryDirectory() as scratch:
        texts = [Path(scratch) / name for name in ("out", "err")]
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            for number, text in enumerate(texts, start=1):
                os.dup2(os.open(text, os.O_WRONLY | os.O_CREAT), number)
            os.setsid()
            os.chdir(folder or scratch)
            os._exit(_code_of(work))
        status = _awaited(child)
        out, err = (text.read_text(encoding="utf-8", errors="replace") for text in texts)
    return Done(os.waitstatus_to_exitcode(status), out, err)


def _awaited(child: int) -> int:
    """Return the status that a copy ended with; it and what it started are killed after `LONGEST`."""
    end = time.monotonic() + LONGEST
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        time.sleep(0.02)


def _code_of(work: Callable[[], object]) -> int:
    """Exit code of `work`, as the interpreter finds it."""
    code = 0
    try:
        work()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def preload() -> None:
    """Import what most commands do, once for all copies of this process."""
    for room in ("excitation", "identification", "report"):
        import_module(f"dynid_ros.{room}")


def command() -> Callable[[], object]:
    """Return the function behind the console script `dynid`."""
    (script,) = entry_points(group="console_scripts", name="dynid")
    return script.load()


def dynid(*words: object, folder: Path | None = None) -> Done:
    """Run `dynid` with these words in a copy of this process."""
    main = command()

    def work() -> None:
        sys.argv = ["dynid", *map(str, words)]
        main()

    return forked(work, folder)


def plain(value: object) -> object:
    """Return `value` as JSON holds it; numbers that it cannot write become texts."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


@dataclass(frozen=True)
class Shape:
    """Turns nested data into its keys without the values: mappings keep their keys, items of a list are merged.

    Attributes:
        names: patterns of words in keys, and what stands in their places, such as `<joint>`; what keys of the same
            name then have below is merged.
        tables: keys whose mappings have keys that are data, such as labels of parameters; these become `<…>`.
        kept: keys whose values are kept, where these are texts.
        texts: keys of lists of texts for people, which may be empty.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    tables: Collection[str] = ()
    kept: Collection[str] = ()
    texts: Collection[str] = ()

    def of(self, value: object, key: str = "") -> object:
        """Return the keys of `value`, which has the key `key` itself."""
        if isinstance(value, Mapping):
            merged: dict[str, object] = {}
            for below, entry in value.items():
                name = "<…>" if key in self.tables else self.named(str(below))
                inner = self.of(entry, str(below))
                merged[name] = _union([merged[name], inner]) if name in merged else inner
            return merged
        if isinstance(value, (list, tuple)):
            if key in self.texts:
                return "list of texts"
            return {"[]": _union([self.of(entry) for entry in value])} if value else "empty list"
        if key in self.kept and isinstance(value, str):
            return f"'{value}'"
        return KINDS.get(type(value), type(value).__name__)

    def named(self, text: str) -> str:
        """Return a text with names in the places of patterns."""
        for pattern, name in self.names.items():
            text = re.sub(rf"(?<![a-z])({pattern})(?![a-z])", name, text)
        return text


def _union(shapes: list[object]) -> object:
    """Return what all `shapes` have between them; different kinds of leaves stand side by side."""
    trees = [entry for entry in shapes if isinstance(entry, dict)]
    leaves = {kind for entry in shapes if isinstance(entry, str) for kind in entry.split(" or ")}
    if not trees:
        return " or ".join(sorted(leaves))
    merged: dict[str, object] = {}
    for tree in trees:
        for key, entry in tree.items():
            merged[key] = _union([merged[key], entry]) if key in merged else entry
    leaves.discard("empty list")
    return merged | ({"or": " or ".join(sorted(leaves))} if leaves else {})


def write_part(part: object) -> None:
    """Print a part of the record as JSON on the last line of stdout, for the process that started this one."""
    print(f"\n{json.dumps(plain(part), ensure_ascii=False, sort_keys=True)}", flush=True)
