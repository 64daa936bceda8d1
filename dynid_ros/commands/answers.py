"""What a command answers: text for people; with `--json` one document on stdout for programs, the text on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dynid_ros.checks.finding import Finding

VERSIONS: Mapping[str, int] = {}
"""Versions of documents, by the name of their schema, where a key went or means something else; the others are 1."""
ERROR = "error"


class Job(Protocol):
    """What is done."""

    @property
    def files(self) -> Mapping[str, Path]:
        """That were written, by what they are."""

    def summary(self) -> str:
        """Lines of text."""

    def document(self) -> dict:
        """Plain data."""


@dataclass(frozen=True)
class Answer:
    """Text, data and exit code of a command.

    Attributes:
        text: lines for people.
        document: for programs.
        files: that were written, by what they are.
        code: exit code; 0: all is well, 1: it is not, and the text says what.
        details: all lines, for `--verbose`; empty: `text` has all.
        kind: of document, where a command has several; added to the name of its schema.
    """

    text: str
    document: Mapping[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)
    code: int = 0
    kind: str = ""
    details: str = ""

    @classmethod
    def of(cls, job: Job) -> Answer:
        """What a job left; all is not well where it did not find all that it should."""
        missing = tuple(getattr(job, "missing", ()))
        return cls(job.summary(), {**job.document(), "missing": list(missing)}, job.files, int(bool(missing)))

    def as_json(self, command: str) -> str:
        """The document, with what all documents have."""
        files = {name: str(path) for name, path in self.files.items()}
        common = {
            "schema": schema(f"{command} {self.kind}"),
            "command": command,
            "exit_code": self.code,
            "files": files,
        }
        return as_json({**common, **self.document})


def error_as_json(command: str, error: BaseException, code: int) -> str:
    """The document of a command that failed."""
    text = " ".join(str(error).split()) or type(error).__name__
    common = {"schema": schema(ERROR), "command": command, "exit_code": code}
    return as_json({**common, "error": text, "kind": type(error).__name__})


def schema(words: str) -> str:
    """Name and version of the document of a command, such as dynid-identify-links/1."""
    name = "-".join(["dynid", *words.split()])
    return f"{name}/{VERSIONS.get(name, 1)}"


def finding_document(finding: Finding) -> dict[str, str]:
    """A finding as data."""
    return {name: getattr(finding, name) for name in ("severity", "kind", "where", "message", "fix")}


def as_json(document: object) -> str:
    """JSON (RFC 8259): numbers that it cannot write, infinite or none, are null."""
    return json.dumps(_plain(document), ensure_ascii=False, indent=1, allow_nan=False)


@contextmanager
def only_document_on_stdout() -> Iterator[None]:
    """Send what is printed meanwhile to stderr, by other processes too."""
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
