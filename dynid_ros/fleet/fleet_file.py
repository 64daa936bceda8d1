"""The file of a fleet: which arms, which recordings of them, and how they are identified."""

from __future__ import annotations

import argparse
import datetime
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid_ros.errors import DynidError, FleetError
from dynid_ros.files import input_paths, read_yaml, require_name

MAX_FILE_BYTES = 20_000_000
FLEET_SECTIONS = ("defaults", "arms")
RUNS_KEY = "runs"
KIND_KEY = "identification"
JOB_FILE = "job.yaml"
"""File in the folder of each job that was done."""
FLEET_FILES = ("table.csv", "fleet.yaml")
Parse = Callable[[str, Mapping[str, Any], Path], argparse.Namespace]
"""Makes options of `dynid identify` of a kind, its values by key, and the folder of the job."""


@dataclass(frozen=True)
class FleetJob:
    """One identification.

    Attributes:
        arm: name of the arm.
        run: date or name of the run, as written; empty if the arm has one run.
        kind: kind of identification.
        options: options of `dynid identify`, with its command.
        given: the options that differ from their defaults.
    """

    arm: str
    run: str
    kind: str
    options: argparse.Namespace
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.arm} {self.run}".strip()

    @property
    def folder(self) -> Path:
        """Folder of the job's files."""
        return self.options.output

    @property
    def time(self) -> float:
        """Time of the recording in days from an arbitrary day, or the run's number; negative infinity if unknown."""
        try:
            number = float(self.run)
            return number if math.isfinite(number) else -math.inf
        except ValueError:
            pass
        try:
            return datetime.datetime.fromisoformat(self.run).replace(tzinfo=datetime.timezone.utc).timestamp() / 86400.0
        except ValueError:
            return -math.inf


def read_fleet(path: Path, output: Path, parse: Parse) -> list[FleetJob]:
    """Return the jobs of a file; paths in it are relative to it.

    Args:
        path: YAML with `defaults`, and `arms` by name with their differences: `identification`, `recordings`,
            `validate` and options of `dynid identify` by name; or with `runs`, by time or name, which may differ again.
        output: folder of the jobs' folders.
        parse: function that makes options from the entries.

    Raises:
        FleetError: the file cannot be read, has an unknown key or value, two jobs with one folder, or a job whose
            folder holds foreign files; names the entry and the arm.
    """
    try:
        content = read_yaml(path, MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FleetError(f"{path}: {why}; give a YAML file that names arms, each with its recordings") from error
    whole = _mapping(content, str(path))
    if unknown := [str(key) for key in whole if key not in FLEET_SECTIONS]:
        raise FleetError(f"{path}: unknown key '{unknown[0]}'; expected {' and '.join(FLEET_SECTIONS)}")
    defaults = _mapping(whole.get("defaults", {}), f"{path}: defaults")
    arms = _mapping(whole.get("arms"), f"{path}: arms")
    jobs = []
    for arm, content in arms.items():
        where = f"{path}: {arm}"
        own = dict(_mapping(content, where))
        for run, differing in _mapping(own.pop(RUNS_KEY, {"": {}}), f"{where}: {RUNS_KEY}").items():
            at = f"{where}: {_text(run)}" if run else where
            values = {**defaults, **own, **_mapping(differing, at)}
            try:
                jobs.append(_job(_text(arm), _text(run), values, output, parse))
            except DynidError as error:
                raise FleetError(f"{at}: {error}") from error
    if not jobs:
        raise FleetError(f"{path}: there are no arms; name them, each with its recordings")
    for job in jobs:
        for name, value in vars(job.options).items():
            if name != "output":
                setattr(job.options, name, _placed(value, path.parent.resolve()))
    _check_folders(jobs, path, output)
    return jobs


def _check_folders(jobs: Sequence[FleetJob], path: Path, output: Path) -> None:
    """Refuse folders of jobs that two have, that hold each other, or that hold something else: they are replaced."""
    names: dict[Path, str] = {}
    for job in jobs:
        if job.folder in names:
            raise FleetError(
                f"{path}: {names[job.folder]} and {job.name} have one folder, {job.folder.relative_to(output)}, "
                "because their keys differ only in kind, as 1 and '1' do; rename one of them"
            )
        names[job.folder] = job.name
    for job in jobs:
        if job.folder.parent in names:
            raise FleetError(f"{path}: {job.name} is in the folder of {names[job.folder.parent]}; give its run a name")
        if _holds_something_else(job.folder):
            raise FleetError(
                f"{path}: {job.name} would replace {job.folder}, which is no folder of a job; choose another --output"
            )
    folders = {_resolved(folder): name for folder, name in names.items()}
    for job in jobs:
        for source in input_paths(vars(job.options)):
            inside = next((folders[parent] for parent in _resolved(source).parents if parent in folders), None)
            if inside is not None:
                raise FleetError(
                    f"{path}: {job.name} reads {source}, which is in the folder of {inside} and would be replaced; "
                    "choose another --output"
                )


def _resolved(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # no file can have this name
        return path


def _holds_something_else(folder: Path) -> bool:
    try:
        return not (folder / JOB_FILE).is_file() and any(folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:  # a file is there, or it cannot be read
        return True


def _job(arm: str, run: str, values: dict[str, Any], output: Path, parse: Parse) -> FleetJob:
    kind = values.pop(KIND_KEY, None)
    if not isinstance(kind, str):
        raise FleetError(f"{KIND_KEY} is missing; expected a kind of `dynid identify`, such as links")
    for name in (arm, run):
        require_name(name, "an arm or run", FleetError)
        if "/" in name or name.startswith(".") or name in FLEET_FILES:
            raise FleetError(
                f"'{name}' is the name of a folder too; leave out slashes and dots at its start, and the names "
                f"{' and '.join(FLEET_FILES)}"
            )
    return FleetJob(arm, run, kind, parse(kind, values, output / arm / run))


def _placed(value: Any, folder: Path) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_placed(each, folder) for each in value)
    return folder / value if isinstance(value, Path) else value


def _mapping(value: Any, where: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise FleetError(f"{where}: expected keys with values, not {'nothing' if value is None else repr(value)[:40]}")
    return value


def _text(key: Any) -> str:
    return key.isoformat() if isinstance(key, datetime.date) else str(key)
