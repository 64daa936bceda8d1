"""`dynid`: experiments and identification without ROS, the demo, and the nodes."""

import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from itertools import takewhile

import dynid_ros.one_thread  # noqa: F401 - before numpy
from dynid_ros import __version__
from dynid_ros.errors import DynidError
from dynid_ros.processes import INTERRUPTED, interruptible

COMMANDS = ("demo", "excite", "check", "identify", "validate", "report", "node")
BAD_INPUT, BROKEN = 2, 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends it with one line and exit code 2, Ctrl-C with code 130."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = " ".join(takewhile(lambda word: not word.startswith("-"), given))
    as_json = "--json" in given
    try:
        with interruptible() as started:
            options = _parser().parse_args(given or ["--help"])
            # imported here: Ctrl-C ends that too, which takes seconds
            only_document_on_stdout = import_module("dynid_ros.commands.answers").only_document_on_stdout
            started()
            with only_document_on_stdout() if as_json else nullcontext():
                answer = options.command(options)
    except DynidError as error:
        print(f"dynid: error: {' '.join(str(error).split())}", file=sys.stderr)
        _end(words, error, BAD_INPUT, as_json)
    except BaseException as error:
        if any(isinstance(part, KeyboardInterrupt) for part in _causes(error)):
            _end(words, KeyboardInterrupt(), INTERRUPTED, as_json)
        if not (as_json and isinstance(error, Exception)):
            raise
        traceback.print_exc()
        _end(words, error, BROKEN, as_json)
    else:
        if answer.text:
            print(answer.text, file=sys.stderr if as_json else sys.stdout)
        if as_json:
            print(answer.as_json(words))
        sys.exit(answer.code)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those during which it was raised: a library makes another one of an interrupt."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _end(command: str, error: BaseException, code: int, as_json: bool) -> None:
    if as_json:
        print(import_module("dynid_ros.commands.answers").error_as_json(command, error, code))
    sys.exit(code)


def _parser() -> ArgumentParser:
    parser: ArgumentParser = import_module("dynid_ros.commands.options").Parser(
        prog="dynid", description="Identify the dynamics of a serial arm from recordings."
    )
    parser.add_argument("--version", action="version", version=f"dynid_ros {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name in COMMANDS:
        import_module(f"dynid_ros.commands.{name}").add(commands)
    return parser


if __name__ == "__main__":
    main()
