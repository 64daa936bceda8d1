"""`dynid`: experiments and identification without ROS, and the demo."""

import sys
from collections.abc import Sequence

import dynid_ros.one_thread  # noqa: F401 - before numpy
from dynid_ros import __version__
from dynid_ros.commands import check, demo, excite, identify, validate
from dynid_ros.commands.options import Parser
from dynid_ros.errors import DynidError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends it with one line and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        sys.exit(options.command(options))
    except DynidError as error:
        print(f"dynid: error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _parser() -> Parser:
    parser = Parser(prog="dynid", description="Identify the dynamics of a serial arm from recordings.")
    parser.add_argument("--version", action="version", version=f"dynid_ros {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (demo, excite, check, identify, validate):
        command.add(commands)
    return parser


if __name__ == "__main__":
    main()
