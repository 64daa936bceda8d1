"""`dynid run`: repeat the command of an `experiment.yaml`, or check that it gives the same files."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from dynid_ros.commands.options import Answer, add_output, option_words
from dynid_ros.jobs.run_file import (
    RUN_FILE,
    RunFile,
    RunFileError,
    digest_of,
    digests,
    first_difference,
    read_run_file,
    write_run_file,
)
from dynid_ros.jobs.screen import Screen

NOT_RECORDED = ("help", "json", "verbose", "parameters")
"""Options that do not change a result."""
RECORDED_COMMANDS = ("excite", "export", "identify", "rehearse", "report", "validate")
"""Commands that write results; a fleet has its own file."""
MakeParser = Callable[..., Any]
"""Class of parsers of the command line."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        f"Repeat the command of an {RUN_FILE}, which each command writes beside its results. The same inputs, settings "
        "and version give the same files."
    )
    parser.add_argument("experiment", type=Path, metavar="FILE", help=f"{RUN_FILE} beside the results of a command")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write no results, but compare them with those of the file; exit code 1: they differ",
    )
    add_output(parser, "folder or file of the results (default: as in FILE)", required=False)
    parser.set_defaults(command=partial(_run, type(parser)))


def _run(make: MakeParser, options: argparse.Namespace) -> Answer:
    described = read_run_file(options.experiment)
    described.check_inputs(options.experiment)
    place = Path(str(described.options.get("output")))
    output = place if options.output is None else options.output.absolute()
    words = _words(make, described, options.experiment)
    with _working_directory(described.folder), tempfile.TemporaryDirectory() as folder:
        if options.check:
            output = Path(folder, place.name)
        repeated = _parser(make, described.command).parse_args([*words, f"--output={output}"])
        given = argparse.Namespace(**vars(repeated))
        answer = repeated.command(repeated)
        if options.check:
            return _compare(described, answer, place, output)
        save_run_file(make, described.command, given, answer)
        document = {"repeated": described.command, "differences": {}}
        return Answer(answer.screen, document, answer.files, answer.code)


def _compare(described: RunFile, answer: Answer, place: Path, output: Path) -> Answer:
    """Return whether the files have the content of the run file, and where each other one differs first."""
    differences = dict.fromkeys(described.results, "not written any more")
    for name, digest in digests(answer.files.values()).items():
        new = Path(name)
        old = place if new == output else place / new.relative_to(output)
        expected = described.results.get(str(old))
        differences.pop(str(old), None)
        if digest != expected:
            is_kept = expected is not None and digest_of(old) == expected
            differences[str(old)] = first_difference(old, new) if is_kept else "differs; the old file is not there"
    count = len(described.results)
    same = sum(name not in differences for name in described.results)
    verdict = f"dynid {described.command}: {same} of {count} files are the same as those of {RUN_FILE}"
    rows = [f"{name}: {difference}" for name, difference in differences.items()]
    document = {"repeated": described.command, "differences": differences}
    return Answer(Screen([verdict], rows), document, code=1 if differences else 0)


def save_run_file(make: MakeParser, command: str, options: argparse.Namespace, answer: Answer) -> Path | None:
    """Write the run file beside the results of a command.

    Returns:
        The file; None: the command writes no results, or another file has this name, which stderr says.
    """
    writes_results = command.partition(" ")[0] in RECORDED_COMMANDS and bool(answer.files)
    if not writes_results or getattr(options, "output", None) is None:
        return None
    try:
        return write_run_file(command, given_options(_parser(make, command), options), answer.files.values())
    except RunFileError as error:
        print(f"dynid: no run file was written: {error}", file=sys.stderr)
        return None


def given_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of options that change a result and differ from their defaults."""
    return {
        action.dest: value
        for action in parser._actions
        if action.dest not in NOT_RECORDED and (value := getattr(options, action.dest)) != action.default
    }


def _parser(make: MakeParser, command: str) -> Any:
    """Return the parser of a command such as "identify links", with all options."""
    first, *words = command.split()
    parser = make(prog=f"dynid {first}", module=f"dynid_ros.commands.{first}")
    parser.build()
    for word in words:
        (below,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = below.choices[word]
        parser.build()
    return parser


def _words(make: MakeParser, described: RunFile, path: Path) -> list[str]:
    """Return the options of a run file as on the command line, without the output."""
    first = described.command.partition(" ")[0]
    try:
        if first not in RECORDED_COMMANDS:
            raise KeyError(described.command)
        actions = {action.dest: action for action in _parser(make, described.command)._actions}
        given = {name: value for name, value in described.options.items() if name != "output"}
        return [word for name, value in given.items() for word in option_words(actions[name], value)]
    except (KeyError, ValueError) as error:
        raise RunFileError(f"{path}: unknown command or option {error}; run the command again by hand") from error


@contextmanager
def _working_directory(folder: Path) -> Iterator[None]:
    """Work in a folder, to which the paths of a run file are relative."""
    before = Path.cwd()
    try:
        os.chdir(folder)
    except OSError as error:
        raise RunFileError(f"{folder}: no folder to run the command in; correct `folder` in {RUN_FILE}") from error
    try:
        yield
    finally:
        os.chdir(before)
