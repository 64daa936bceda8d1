"""`dynid fleet`: many arms and many recordings, as the jobs of `dynid identify`, in one table."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dynid_ros.commands import identify
from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_output, add_scheduler, scheduler_cluster
from dynid_ros.errors import FleetError
from dynid_ros.executors import Processes
from dynid_ros.files import input_paths, locked_folder, protected, writable_folder
from dynid_ros.fleet.fleet_file import FLEET_FILES, FleetJob, read_fleet
from dynid_ros.fleet.fleet_run import run_jobs
from dynid_ros.fleet.fleet_table import FleetTable
from dynid_ros.jobs.kinds import KINDS

OPTIONS = {"recordings": "recording"}
"""Keys that have another name than the option."""
OWN = ("output", "json", "verbose", "help")


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.description = (
        "Identify many arms from many recordings, as `dynid identify` does, and compare them. What is done and has not "
        "changed is not done again; others go on when one fails. Exit code 2: a job could not be done; 1: recordings "
        "do not determine all. See docs/fleet.md."
    )
    parser.add_argument("fleet", type=Path, metavar="FILE", help="YAML: the arms, their recordings and settings")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="jobs at a time; 0: one per core or worker")
    add_scheduler(parser, "address of a scheduler of dask.distributed, whose workers do the jobs")
    add_output(parser, "folder for a folder per job, table.csv and fleet.yaml")
    parser.set_defaults(command=partial(_fleet, _Options(type(parser))))


def _fleet(parse: Callable[..., argparse.Namespace], options: argparse.Namespace) -> Answer:
    if options.workers < 0:
        raise FleetError(f"--workers is {options.workers}; expected zero or more")
    output = options.output.absolute()
    jobs = read_fleet(options.fleet, output, parse)
    inputs = {path for job in jobs for path in input_paths(vars(job.options))}
    with protected(inputs):
        writable_folder(output, *FLEET_FILES)
        with locked_folder(output):
            return _done(options, jobs, output)


def _done(options: argparse.Namespace, jobs: Sequence[FleetJob], output: Path) -> Answer:
    """Do the jobs and compare what they found."""
    if options.scheduler is not None:
        with scheduler_cluster(options) as dask:
            outcomes = run_jobs(jobs, dask.executor, options.workers or dask.workers)
    else:
        workers = options.workers or len(os.sched_getaffinity(0))
        processes = Processes(workers)
        try:
            outcomes = run_jobs(jobs, processes, workers)
        finally:
            processes.shutdown(cancel_futures=True)
    table = FleetTable(outcomes, output)
    table.write()
    return Answer(table.summary(), table.document(), table.files, table.code)


class _Options:
    """Makes options of `dynid identify` of keys and values.

    Args:
        make: class of parsers.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make, self._parsers = make, dict[str, Any]()

    def __call__(self, kind: str, values: Mapping[str, Any], output: Path) -> argparse.Namespace:
        """Raises `DynidError` where one is unknown, missing or has no such value."""
        parser = self._parser(kind)
        words = [f"--output={output}"]
        for key, value in values.items():
            if key in OWN or not isinstance(key, str):
                raise FleetError(f"unknown key '{key}'")
            words += _words(parser, OPTIONS.get(key, key), value)
        options, unknown = parser.parse_known_args(words)
        if unknown:
            name = unknown[0].lstrip("-").partition("=")[0].replace("-", "_")
            raise FleetError(f"unknown key '{name}'; expected recordings, or an option of `dynid identify {kind}`")
        return options

    def _parser(self, kind: str) -> Any:
        kinds = [name for name, known in KINDS.items() if known.purpose]
        if kind not in kinds:
            raise FleetError(f"identification is '{kind}'; expected one of {', '.join(kinds)}")
        if kind not in self._parsers:
            add = partial(identify.add_kind, kind)
            self._parsers[kind] = self._make(prog=f"dynid identify {kind}", add=add)
            self._parsers[kind].build()
        return self._parsers[kind]


def _words(parser: argparse.ArgumentParser, key: str, value: Any) -> list[str]:
    """A key and its value as on the command line; a list stands for an option that is repeated, or takes several."""
    option, default = f"--{key.replace('_', '-')}", parser.get_default(key)
    if isinstance(value, bool):
        return [] if value is default else [option if value else option.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        value = [f"{name}={entry}" for name, entry in value.items()]
    if not isinstance(value, list):
        return [f"{option}={value}"]
    if isinstance(default, list):
        return [f"{option}={entry}" for entry in value]
    return [option, *map(str, value)] if value else []
