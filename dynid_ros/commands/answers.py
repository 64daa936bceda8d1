"""Answer of a command: text for people; with `--json` one document on stdout and the text on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.checks.finding import Finding
from dynid_ros.jobs.screen import Screen

VERSIONS: Mapping[str, int] = {}
"""Versions of documents by the name of their schema, if a key was removed or changed its meaning; the others are 1."""
ERROR_SCHEMA = "error"


@dataclass(frozen=True)
class Answer:
    """Text, data and exit code of a command.

    Attributes:
        screen: lines for people.
        document: data for programs.
        files: written files by name.
        code: exit code; 0: success, 1: the result is incomplete or not good enough, see the screen.
        kind: kind of document of a command with several, added to the name of its schema.
    """

    screen: Screen
    document: Mapping[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)
    code: int = 0
    kind: str = ""

    @classmethod
    def of(cls, job: Any) -> Answer:
        """Return the answer of a job with `files`, `document` and `screen`, or `summary` if that is short.

        The exit code is 1 if the job has `missing` parameters.
        """
        missing = tuple(getattr(job, "missing", ()))
        document = {**job.document(), "missing": list(missing)}
        screen = job.screen() if hasattr(job, "screen") else Screen.from_lines(job.summary())
        return cls(screen, document, job.files, int(bool(missing)))

    def as_json(self, command: str) -> str:
        """Return the document with the keys that all documents have."""
        files = {name: str(path) for name, path in self.files.items()}
        common = {
            "schema": schema(f"{command} {self.kind}"),
            "command": command,
            "exit_code": self.code,
            "files": files,
        }
        return as_json({**common, **self.document})


def error_as_json(command: str, error: BaseException, code: int) -> str:
    """Return the document of a command that failed."""
    text = " ".join(str(error).split()) or type(error).__name__
    common = {"schema": schema(ERROR_SCHEMA), "command": command, "exit_code": code}
    return as_json({**common, "error": text, "kind": type(error).__name__})


def schema(words: str) -> str:
    """Return name and version of the document of a command, such as dynid-identify-links/1."""
    name = "-".join(["dynid", *words.split()])
    return f"{name}/{VERSIONS.get(name, 1)}"


def finding_document(finding: Finding) -> dict[str, str]:
    """Return a finding as plain data."""
    return {name: getattr(finding, name) for name in ("severity", "kind", "where", "message", "fix")}


def as_json(document: object) -> str:
    """Return JSON (RFC 8259); NaN and infinite numbers are null."""
    return json.dumps(_plain(document), ensure_ascii=False, indent=1, allow_nan=False)


@contextmanager
def only_document_on_stdout() -> Iterator[None]:
    """Redirect stdout to stderr, of this process and of its children."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
