"""`dynid fleet`: identify many arms from many recordings, and compare them in one table."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dynid_ros.commands import identify
from dynid_ros.commands.options import Answer, add_output, add_scheduler, option_words, scheduler_cluster
from dynid_ros.commands.run import given_options
from dynid_ros.errors import FleetError
from dynid_ros.executors import Processes
from dynid_ros.files import input_paths, locked_folder, protected, writable_folder
from dynid_ros.fleet.fleet_run import FLEET_FILES, FleetJob, read_fleet, run_jobs
from dynid_ros.fleet.fleet_table import FleetTable
from dynid_ros.jobs.kinds import KINDS
from dynid_ros.jobs.screen import Screen

OPTION_NAMES = {"recordings": "recording"}
"""Options by keys of another name."""
REFUSED_KEYS = ("output", "json", "verbose", "help")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Identify many arms from many recordings, as `dynid identify` does, and compare them. Jobs that are done and "
        "whose inputs have not changed are skipped; the others continue when one fails. Exit code 2: a job failed; 1: "
        "recordings do not determine all parameters. See docs/fleet.md."
    )
    parser.add_argument("fleet", type=Path, metavar="FILE", help="YAML file of the arms, their recordings and settings")
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        metavar="N",
        help="number of jobs at a time (default: 0, one per core or worker)",
    )
    add_scheduler(parser, "address of a scheduler of dask.distributed, whose workers do the jobs")
    add_output(parser, "folder for a folder per job, table.csv and fleet.yaml")
    parser.set_defaults(command=partial(_fleet, _Options(type(parser))))


def _fleet(parse: "_Options", options: argparse.Namespace) -> Answer:
    if options.workers < 0:
        raise FleetError(f"--workers is {options.workers}; expected zero or more")
    output = options.output.absolute()
    jobs = [replace(job, given=parse.given(job)) for job in read_fleet(options.fleet, output, parse)]
    inputs = {path for job in jobs for path in input_paths(vars(job.options))}
    with protected(inputs):
        writable_folder(output, *FLEET_FILES)
        with locked_folder(output):
            return _run_and_compare(options, jobs, output)


def _run_and_compare(options: argparse.Namespace, jobs: Sequence[FleetJob], output: Path) -> Answer:
    """Run the jobs and compare their results."""
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
    return Answer(Screen.from_lines(table.summary()), table.document(), table.files, table.code)


class _Options:
    """Converter of keys and values to options of `dynid identify`."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._parsers: dict[str, Any] = {}

    def __call__(self, kind: str, values: Mapping[str, Any], output: Path) -> argparse.Namespace:
        """Return the options; raise `DynidError` if a key is unknown or missing, or has no such value."""
        parser = self._parser(kind)
        words = [f"--output={output}"]
        for key, value in values.items():
            if key in REFUSED_KEYS or not isinstance(key, str):
                raise FleetError(f"unknown key '{key}'")
            words += _words(parser, OPTION_NAMES.get(key, key).replace("-", "_"), value)
        options, unknown = parser.parse_known_args(words)
        if unknown:
            name = unknown[0].lstrip("-").partition("=")[0].replace("-", "_")
            raise FleetError(f"unknown key '{name}'; expected recordings, or an option of `dynid identify {kind}`")
        return options

    def given(self, job: FleetJob) -> dict[str, Any]:
        """Return the options of a job that differ from their defaults."""
        return given_options(self._parser(job.kind), job.options)

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
    """Return a key and its value as on the command line; an unknown key stays, so that the parser refuses it."""
    action = next((action for action in parser._actions if action.dest == key), None)
    if action is None:
        return [f"--{key}"]
    if isinstance(value, Mapping):
        value = [f"{name}={entry}" for name, entry in value.items()]
    return [] if value == [] or (isinstance(value, bool) and value is action.default) else option_words(action, value)
