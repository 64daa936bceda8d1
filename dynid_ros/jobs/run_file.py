"""The file `experiment.yaml` beside results: command, settings, version and digests of all inputs and results."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

from dynid_ros import __version__
from dynid_ros.errors import DynidError
from dynid_ros.files import MEGABYTE, input_paths, read_yaml, write_atomically

RUN_FILE = "experiment.yaml"
RUN_FORMAT = "dynid-experiment/1"
MAX_RUN_FILE_BYTES = MEGABYTE
HASH_BLOCK_BYTES = 1 << 20
MAX_SHOWN_CHARACTERS = 60


class RunFileError(DynidError):
    """A run file that is unreadable, of another version, or whose inputs have changed."""


@dataclass(frozen=True)
class RunFile:
    """Description of one command that reproduces its results.

    Attributes:
        command: words of the command, such as "identify links".
        options: values that were given, by the name of the option, as plain data.
        folder: working directory of the command, to which paths are relative.
        inputs: SHA-256 of each input file by its path; a folder is listed by its files.
        results: SHA-256 of each written file by its path.
    """

    command: str
    options: Mapping[str, Any]
    folder: Path
    inputs: Mapping[str, str]
    results: Mapping[str, str]
    version: str = __version__

    def save(self, path: Path) -> Path:
        """Write the file; a file of that name that is no run file stays.

        Raises:
            RunFileError: another file has this name.
        """
        if path.exists():
            read_run_file(path)
        content = {
            "format": RUN_FORMAT,
            "version": self.version,
            "command": self.command,
            "folder": str(self.folder),
            "options": dict(self.options),
            "inputs": dict(self.inputs),
            "results": dict(self.results),
        }
        return write_atomically(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))

    def check_inputs(self, path: Path) -> None:
        """Refuse a run file of another version, or with an input that is not there or has changed.

        Raises:
            RunFileError: names the file, and says what to do.
        """
        if self.version != __version__:
            raise RunFileError(
                f"{path}: written by dynid_ros {self.version}, this is {__version__}; install that version to get the "
                f"same result, or run `dynid {self.command}` again"
            )
        for name, digest in self.inputs.items():
            found = digest_of(self.folder / name)
            if found != digest:
                problem = "is not there" if found is None else "has changed since"
                raise RunFileError(
                    f"{path}: input {name} {problem}; restore it (SHA-256 {digest[:16]}…), or run "
                    f"`dynid {self.command}` again"
                )


def write_run_file(command: str, options: Mapping[str, Any], results: Iterable[Path]) -> Path:
    """Write the run file beside the results of a command: in the folder `output`, or beside a file of that name.

    Args:
        command: words of the command, such as "identify links".
        options: values that were given, by the name of the option; paths are relative to the working directory.
        results: written files.

    Raises:
        RunFileError: another file has the name of the run file.
    """
    output = Path(options["output"])
    path = output / RUN_FILE if output.is_dir() else output.with_name(f"{output.stem}.{RUN_FILE}")
    folder = Path(os.path.relpath(Path.cwd(), path.parent))
    inputs = digests(input_paths(options))
    return RunFile(command, plain_values(options), folder, inputs, digests(results)).save(path)


def read_run_file(path: Path) -> RunFile:
    """Read a run file.

    Raises:
        RunFileError: it is unreadable, or no run file.
    """
    try:
        content = read_yaml(path, MAX_RUN_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunFileError(f"{path}: cannot be read ({reason}); give an {RUN_FILE} that a command wrote") from error
    mappings = ("options", "inputs", "results")
    if (
        not isinstance(content, dict)
        or content.get("format") != RUN_FORMAT
        or not all(isinstance(content.get(key), str) for key in ("version", "command", "folder"))
        or not all(isinstance(content.get(key), dict) for key in mappings)
        or not all(isinstance(digest, str) for key in mappings[1:] for digest in content[key].values())
    ):
        raise RunFileError(f"{path}: no run file of format {RUN_FORMAT}; give an {RUN_FILE} that a command wrote")
    return RunFile(
        command=content["command"],
        options=content["options"],
        folder=Path(path).parent / content["folder"],
        inputs={str(name): digest for name, digest in content["inputs"].items()},
        results={str(name): digest for name, digest in content["results"].items()},
        version=content["version"],
    )


def plain_values(value: Any) -> Any:
    """Return values of options as plain data for YAML."""
    if isinstance(value, Mapping):
        return {name: plain_values(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def digests(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of each file by its path, and of all files in each folder; pipes are left out."""
    found = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if (digest := digest_of(file)) is not None:
                found[str(file)] = digest
    return found


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 of a regular file; None: there is no such file."""
    if not path.is_file():
        return None
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def first_difference(old: Path, new: Path) -> str:
    """Return the number and the content of the first line that differs between two text files."""
    lines = (path.read_text(encoding="utf-8", errors="replace").splitlines() for path in (old, new))
    for number, (before, after) in enumerate(zip_longest(*lines, fillvalue="end of file"), 1):
        if before != after:
            return f"line {number}: {_shown(after)}, was {_shown(before)}"
    return "other ends of lines"


def _shown(line: str) -> str:
    text = line.strip()
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
