"""`dynid`: experiments and identification without ROS, the demo, and the nodes."""

import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import takewhile

import dynid_ros.one_thread  # noqa: F401 - before numpy
from dynid_ros import __version__
from dynid_ros.commands import check, demo, excite, identify, node, report, validate
from dynid_ros.commands.answers import error_as_json, only_document_on_stdout
from dynid_ros.commands.options import Parser
from dynid_ros.errors import DynidError
from dynid_ros.processes import INTERRUPTED, interruptible

BAD_INPUT, BROKEN = 2, 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends it with one line and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = " ".join(takewhile(lambda word: not word.startswith("-"), given))
    as_json = "--json" in given
    try:
        options = _parser().parse_args(given or ["--help"])
        with interruptible(), only_document_on_stdout() if as_json else nullcontext():
            answer = options.command(options)
    except DynidError as error:
        print(f"dynid: error: {' '.join(str(error).split())}", file=sys.stderr)
        _end(words, error, BAD_INPUT, as_json)
    except KeyboardInterrupt as error:
        _end(words, error, INTERRUPTED, as_json)
    except Exception as error:
        if not as_json:
            raise
        traceback.print_exc()
        _end(words, error, BROKEN, as_json)
    else:
        if answer.text:
            print(answer.text, file=sys.stderr if as_json else sys.stdout)
        if as_json:
            print(answer.as_json(words))
        sys.exit(answer.code)


def _end(command: str, error: BaseException, code: int, as_json: bool) -> None:
    if as_json:
        print(error_as_json(command, error, code))
    sys.exit(code)


def _parser() -> Parser:
    parser = Parser(prog="dynid", description="Identify the dynamics of a serial arm from recordings.")
    parser.add_argument("--version", action="version", version=f"dynid_ros {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (demo, excite, check, identify, validate, report, node):
        command.add(commands)
    return parser


if __name__ == "__main__":
    main()
