"""Run file `experiment.yaml` in the folder of the results: command, options, version, digests of inputs and results."""

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
        options: values of the options that were set, by name, as plain data.
        folder: working directory of the command, to which paths are relative.
        inputs: SHA-256 of each input file by its path; a folder is listed by its files.
        results: SHA-256 of each written file by its path.
        version: version of dynid_ros that ran the command.
    """

    command: str
    options: Mapping[str, Any]
    folder: Path
    inputs: Mapping[str, str]
    results: Mapping[str, str]
    version: str = __version__

    def save(self, path: Path) -> Path:
        """Write the file and return its path; only an earlier run file is replaced.

        Raises:
            RunFileError: a file that is no run file has this name.
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
        """Check that the version of dynid_ros and all inputs are those of the run.

        Args:
            path: run file, for messages.

        Raises:
            RunFileError: the version differs, or an input is missing or has changed.
        """
        if self.version != __version__:
            raise RunFileError(
                f"{path}: written by dynid_ros {self.version}, this is {__version__}; install that version to get the "
                f"same result, or run `dynid {self.command}` again"
            )
        for name, digest in self.inputs.items():
            present = digest_of(self.folder / name)
            if present != digest:
                problem = "is not there" if present is None else "has changed since"
                raise RunFileError(
                    f"{path}: input {name} {problem}; restore it (SHA-256 {digest[:16]}…), or run "
                    f"`dynid {self.command}` again"
                )


def write_run_file(command: str, options: Mapping[str, Any], results: Iterable[Path]) -> Path:
    """Write the run file of a command and return its path: in the folder `output`, or next to the file `output`.

    Args:
        command: words of the command, such as "identify links".
        options: values of the options that were set, by name; paths are relative to the working directory.
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
        RunFileError: the file is unreadable, or no run file.
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
    result = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if (digest := digest_of(file)) is not None:
                result[str(file)] = digest
    return result


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
    """Describe the first line that differs between two text files, by its number and both contents."""
    lines = (path.read_text(encoding="utf-8", errors="replace").splitlines() for path in (old, new))
    for number, (before, after) in enumerate(zip_longest(*lines, fillvalue="end of file"), 1):
        if before != after:
            return f"line {number}: {_shown(after)}, was {_shown(before)}"
    return "different line ends"


def _shown(line: str) -> str:
    """Return a line without white space at its ends, shortened for a message."""
    text = line.strip()
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
