"""Execution of a fleet's jobs, one after the other or in parallel; finished jobs with unchanged inputs are skipped."""

from __future__ import annotations

import hashlib
import io
import secrets
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from dynid_ros import __version__
from dynid_ros.errors import DynidError, one_line
from dynid_ros.executors import Calls
from dynid_ros.files import input_paths, read_yaml, write_atomically
from dynid_ros.fleet.fleet_file import JOB_FILE, FleetJob
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.run_file import RUN_FILE, RunFile, digests, plain_values
from dynid_ros.jobs.screen import progress

MAX_FILE_BYTES = 1_000_000
POLL_PERIOD_S = 0.5


@dataclass(frozen=True)
class JobOutcome:
    """Outcome of a job.

    Attributes:
        job: the job.
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
        record = read_yaml(job.folder / JOB_FILE, MAX_FILE_BYTES)
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
