"""`dynid guide`: a page in a browser that leads from a URDF to an arm that floats."""

import argparse
from pathlib import Path

from dynid_ros.commands.options import Answer, add_output, add_repeatable
from dynid_ros.errors import DynidError
from dynid_ros.jobs.screen import Screen
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.nodes import import_nodes

DEFAULT_PORT = 8080
DEFAULT_ACCELERATION_LIMIT = 2.0
"""Limit of all joints that the page proposes, rad/s² or m/s²."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    robot = parser.add_argument_group("robot")
    robot.add_argument("--urdf", type=Path, required=True, metavar="FILE", help="URDF of the robot")
    robot.add_argument("--tip", default="", metavar="LINK", help="link that the chain ends at (default: the flange)")
    robot.add_argument("--namespace", default="", metavar="NAME", help="namespace of the arm's nodes (default: none)")
    add_repeatable(
        robot,
        "params-file",
        "FILE",
        "ROS parameter file with further parameters of the nodes; repeatable (default: none)",
    )
    source = robot.add_mutually_exclusive_group()
    source.add_argument(
        "--simulated", action="store_true", help="simulated arm in place of the driver, on a ROS domain of its own"
    )
    source.add_argument("--recording", type=Path, metavar="R", help="recording for a page without ROS (default: none)")
    robot.add_argument(
        "--domain", default="", metavar="N", help="number of a free ROS domain, with --simulated (default: found)"
    )
    page = parser.add_argument_group("page")
    page.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; another than 127.0.0.1 lets only pages in whose address has the printed token "
        "(default: 127.0.0.1)",
    )
    page.add_argument(
        "--port", type=int, default=DEFAULT_PORT, metavar="N", help=f"port to listen on (default: {DEFAULT_PORT})"
    )
    page.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    add_output(parser, "folder of all files that the page reads and writes (default: guide)", required=False)
    parser.set_defaults(output=Path("guide"))
    parser.set_defaults(command=_guide)


def _guide(options: argparse.Namespace) -> Answer:
    robot, remark = arm_from_urdf(options.urdf, options.tip or None)
    for file in [*options.params_file, *filter(None, [options.recording])]:
        if not file.exists():
            raise DynidError(f"{file}: there is no such file")
    if options.recording is None:
        import_nodes(["excitation", *(["simulator"] if options.simulated else [])], "dynid guide without --recording")
    try:
        from dynid_ros.guide.answers import Answers  # noqa: PLC0415 - needs viser
        from dynid_ros.guide.start import run_guide  # noqa: PLC0415
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("viser", "yourdfpy", "websockets"):
            raise
        raise DynidError(f"dynid guide needs {error.name} (pip install viser yourdfpy)") from error
    if remark:
        print(remark, flush=True)
    namespace = f"/{options.namespace.strip('/')}" if options.namespace.strip("/") else ""
    answers = Answers(
        options.urdf.resolve(),
        options.output.resolve(),
        namespace,
        options.tip,
        # a parameter file has limits of its own, which must not be overridden
        acceleration_limit=0.0 if options.params_file else DEFAULT_ACCELERATION_LIMIT,
        files=tuple(file.resolve() for file in options.params_file),
    )
    run_guide(
        answers,
        robot,
        recording=options.recording,
        simulated=options.simulated,
        domain=options.domain,
        host=options.host,
        port=options.port,
        browser=not options.no_browser,
    )
    return Answer(Screen(["The guide has ended."]), {"output": str(options.output)})
