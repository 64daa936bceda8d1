"""Jobs of a fleet: read from its file, and executed one after the other or in parallel."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import io
import math
import os
import secrets
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from dynid_ros import __version__
from dynid_ros.errors import DynidError, FleetError, one_line
from dynid_ros.executors import Calls
from dynid_ros.files import input_paths, read_yaml, require_name, write_atomically
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.run_file import RUN_FILE, RunFile, digests, plain_values
from dynid_ros.jobs.screen import progress

MAX_FLEET_FILE_BYTES = 20_000_000
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
        run: date or name of the run, as written; empty if the arm has one run.
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
        content = read_yaml(path, MAX_FLEET_FILE_BYTES)
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


MAX_JOB_FILE_BYTES = 1_000_000
POLL_PERIOD_S = 0.5


@dataclass(frozen=True)
class JobOutcome:
    """Outcome of a job.

    Attributes:
        error: why it failed; empty if it succeeded.
        missing: parameters that its recordings do not determine.
        warnings: of the checks.
        anew: whether it was executed in this run.
    """

    job: FleetJob
    error: str = ""
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    anew: bool = True


def run_jobs(jobs: Sequence[FleetJob], executor: Executor, workers: int) -> list[JobOutcome]:
    """Execute the jobs that are not done yet, `workers` at a time.

    Each folder is written whole or not at all; an interrupt drops the running jobs. A job that fails does not stop the
    others, and is tried again next time.
    """
    outcomes: dict[int, JobOutcome] = {}
    failed = 0
    with progress(len(jobs)) as step, closing(_outcomes(jobs, executor, workers)) as ended:
        for number, outcome in ended:
            outcomes[number] = outcome
            failed += bool(outcome.error)
            step(f"{outcome.job.name} is done" + (f", {failed} failed" if failed else ""))
    return [outcomes[number] for number in range(len(jobs))]


def _outcomes(
    jobs: Sequence[FleetJob], executor: Executor, workers: int
) -> Generator[tuple[int, JobOutcome], None, None]:
    calls: Calls[int] = Calls(executor)
    waiting = iter(enumerate(jobs))
    try:
        while True:
            while len(calls) < workers and (entry := next(waiting, None)) is not None:
                number, job = entry
                try:
                    inputs = fingerprint(job)
                except OSError as unreadable:
                    yield number, JobOutcome(job, f"its inputs cannot be read ({unreadable})")
                    continue
                if (known := _done(job, inputs)) is not None:
                    yield number, known
                else:
                    calls.make(number, do_job, job, inputs)
            if not calls:
                return
            for number, future in calls.ended(POLL_PERIOD_S):
                error = future.exception()
                if isinstance(error, DynidError):
                    yield number, JobOutcome(jobs[number], str(error))
                elif isinstance(error, Exception):
                    yield number, _unexpected(jobs[number], error)
                else:
                    yield number, future.result()
    finally:
        calls.cancel()


def do_job(job: FleetJob, inputs: str) -> JobOutcome:
    """Execute a job in a temporary folder, which then replaces the old folder."""
    final = job.folder
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        for left in final.parent.iterdir():  # by a process that was killed
            if left.name.startswith(_prefix(final)):
                shutil.rmtree(left, ignore_errors=True)
        new = _new_folder(final)
    except OSError as error:
        return JobOutcome(job, f"cannot write {final} ({error.strerror}); choose a writable folder with free space")
    try:
        options = type(job.options)(**vars(job.options) | {"output": new})
        try:
            with redirect_stderr(io.StringIO()):  # lines of progress, and which tip was taken: of each job the same
                answer = options.command(options)
        except DynidError as error:
            return JobOutcome(job, str(error))
        except Exception as error:
            return _unexpected(job, error)
        document = answer.document
        outcome = JobOutcome(job, "", tuple(document.get("missing", ())), tuple(document.get("warnings", ())))
        record = {"inputs": inputs, "missing": [*outcome.missing], "warnings": [*outcome.warnings]}
        write_atomically(new / JOB_FILE, yaml.safe_dump(record, sort_keys=False, allow_unicode=True))
        _run_file(job, new, answer.files.values()).save(new / RUN_FILE)
        try:
            _replace(new, final)
        except OSError as error:
            return JobOutcome(job, f"cannot replace {final} ({error.strerror}); choose a writable folder")
        return outcome
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _run_file(job: FleetJob, new: Path, files: Iterable[Path]) -> RunFile:
    """Return the run file of a job whose files are in a temporary folder; the paths of a fleet are absolute."""
    results = {str(job.folder / Path(name).relative_to(new)): digest for name, digest in digests(files).items()}
    inputs = digests(input_paths(vars(job.options)))
    return RunFile(f"identify {job.kind}", plain_values(job.given), Path(), inputs, results)


def _replace(new: Path, final: Path) -> None:
    """Put a folder in the place of another; who is killed in between has to do the job again."""
    old = _new_folder(final)
    if final.exists():
        final.replace(old)
    new.replace(final)
    shutil.rmtree(old, ignore_errors=True)


def _new_folder(final: Path) -> Path:
    """Make a temporary folder next to the final one, with the permissions that the umask leaves."""
    new = final.parent / f"{_prefix(final)}{secrets.token_hex(8)}"
    new.mkdir()
    return new


def _unexpected(job: FleetJob, error: Exception) -> JobOutcome:
    return JobOutcome(job, one_line(f"unexpected {type(error).__name__}: {error}"))


def _prefix(final: Path) -> str:
    return f".{final.name}-unfinished-"


def _done(job: FleetJob, inputs: str) -> JobOutcome | None:
    """Return the outcome of an earlier execution with the same inputs; None without one."""
    try:
        record = read_yaml(job.folder / JOB_FILE, MAX_JOB_FILE_BYTES)
        load_identified(job.folder / "identified.yaml")
    except (OSError, ValueError, DynidError):
        return None
    if not isinstance(record, Mapping) or record.get("inputs") != inputs:
        return None
    missing, warnings = (record.get(name) for name in ("missing", "warnings"))
    if not (_are_texts(missing) and _are_texts(warnings)):  # the file was edited
        return None
    return JobOutcome(job, "", tuple(missing), tuple(warnings), anew=False)


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def fingerprint(job: FleetJob) -> str:
    """Return the inputs of a job: version, settings, and path, size and modification time of each file."""
    lines = [__version__, job.kind]
    for name, value in sorted(vars(job.options).items()):
        if name not in ("command", "output"):
            lines += [f"{name} {value!r}", *map(_state, _files(input_paths({name: value})))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths, and of a folder all files in it."""
    for path in paths:
        yield path
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.is_file())


def _state(path: Path) -> str:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return f"{path} is not there"
    return f"{path} {status.st_size} {status.st_mtime_ns}"
