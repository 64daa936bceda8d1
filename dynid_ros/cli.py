# PYTHON_ARGCOMPLETE_OK
"""`dynid`: experiments and identification without ROS, the demo, and the nodes."""

import os
import re
import sys
import traceback
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from itertools import takewhile
from typing import Any, NoReturn

import dynid_ros.one_thread  # noqa: F401 - before numpy
from dynid_ros import __version__
from dynid_ros.errors import DynidError
from dynid_ros.interrupts import INTERRUPTED, interruptible

COMMANDS = {
    "demo": "demonstrate all on a simulated arm: excite, record, identify, compensate, over ROS 2",
    "guide": "lead from a URDF to an arm that floats, by a page in the browser",
    "rehearse": "try an experiment on a simulation of the arm, and say what it will reach",
    "excite": "design the motion to record, or judge one",
    "check": "look for faults in a recording before anything is fitted to it",
    "identify": "identify parameters from recordings: identified.yaml and report.html",
    "fleet": "identify many arms from many recordings, and compare them",
    "export": "write the identified arm for other programs: C, URDF, MJCF, SDF, Isaac Lab",
    "validate": "compare measured and predicted torque, or torsion, of every recorded sample",
    "run": "repeat a command from the experiment.yaml beside its results, or check that it gives the same",
    "view": "show a recording in the viewer of Rerun, with predicted torque",
    "report": "write report.html from an identified.yaml",
    "node": "run a node of ROS 2, as `ros2 run dynid_ros` does",
}
"""Purposes of the modules of `dynid_ros.commands`; listing them imports none."""
EXIT_BAD_INPUT = 2
EXIT_BROKEN = 1
EXIT_OUTPUT_CLOSED = 141
"""Exit code of a process that SIGPIPE ended, as shells have it."""


class UsageError(DynidError):
    """Options that do not exist, are missing, or have a wrong value."""


class Parser(ArgumentParser):
    """Parser with errors of one line, whose options are added when its command is chosen.

    Args:
        arguments: arguments of `ArgumentParser`.
        module: module whose `add` adds the options; "": `add` does.
        add: function that adds the options and may import numerics; None: they are added by hand.
        settings: keywords of `ArgumentParser`.
    """

    def __init__(
        self, *arguments: Any, module: str = "", add: Callable[["Parser"], None] | None = None, **settings: Any
    ) -> None:
        settings.setdefault("allow_abbrev", False)  # a half-typed option is a mistake
        super().__init__(*arguments, **settings)
        self._add = (lambda parser: import_module(module).add(parser)) if module else add
        # Lists such as -1,-2 are values, as -1 is, not options.
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf)")

    def build(self) -> None:
        """Add the options, once."""
        add = self._add
        self._add = None
        if add:
            add(self)

    def parse_known_args(self, *arguments: Any, **settings: Any) -> Any:  # type: ignore[override]
        """Parse, with all options."""
        self.build()
        return super().parse_known_args(*arguments, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise an error of one line."""
        raise UsageError(f"{message}; see {self.prog} --help")


@contextmanager
def _output_may_close() -> Iterator[None]:
    """End quietly where the reader of stdout has ended, as in `dynid check … | head`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        sys.exit(EXIT_OUTPUT_CLOSED)


@_output_may_close()
def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends it with one line and exit code 2, Ctrl-C with code 130."""
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = " ".join(takewhile(lambda word: not word.startswith("-"), given))
    as_json = "--json" in given
    try:
        with interruptible() as started:
            options = _parser().parse_args(given or ["--help"])
            # Imported here: Ctrl-C also ends the import, which takes seconds.
            only_document_on_stdout = import_module("dynid_ros.commands.options").only_document_on_stdout
            started()
            files = import_module("dynid_ros.files")
            with (
                only_document_on_stdout() if as_json else nullcontext(),
                files.protected(files.input_paths(vars(options))),
            ):
                given_options = Namespace(**vars(options))  # a command completes its own
                answer = options.command(options)
                import_module("dynid_ros.commands.run").save_run_file(Parser, words, given_options, answer)
    except DynidError as error:
        print(f"dynid: error: {' '.join(str(error).split())}", file=sys.stderr)
        _end(words, error, EXIT_BAD_INPUT, as_json)
    except BaseException as error:
        if any(isinstance(part, KeyboardInterrupt) for part in _causes(error)):
            _end(words, KeyboardInterrupt(), INTERRUPTED, as_json)
        if not (as_json and isinstance(error, Exception)):
            raise
        traceback.print_exc()
        _end(words, error, EXIT_BROKEN, as_json)
    else:
        if text := answer.screen.full() if getattr(options, "verbose", False) else answer.screen.text():
            print(text, file=sys.stderr if as_json else sys.stdout)
        if as_json:
            print(answer.as_json(words))
        sys.exit(answer.code)


def _complete() -> None:
    """Complete the command line for the shell and end; without the library argcomplete do nothing."""
    try:
        argcomplete = import_module("argcomplete")
    except ModuleNotFoundError:
        return
    parser = whole = _parser()
    for word in os.environ.get("COMP_LINE", "").split()[1:]:
        commands = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
        if commands and word in commands[0].choices:
            parser = commands[0].choices[word]
            parser.build()  # its options must be there before the library looks at them
    argcomplete.autocomplete(whole)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes: a library may turn an interrupt into another error."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _end(command: str, error: BaseException, code: int, as_json: bool) -> None:
    if as_json:
        print(import_module("dynid_ros.commands.options").error_as_json(command, error, code))
    sys.exit(code)


def _parser() -> Parser:
    parser = Parser(prog="dynid", description="Identify the dynamics of a serial arm from recordings.")
    parser.add_argument("--version", action="version", version=f"dynid_ros {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, purpose in COMMANDS.items():
        commands.add_parser(name, help=purpose, module=f"dynid_ros.commands.{name}")
    return parser


if __name__ == "__main__":
    main()
