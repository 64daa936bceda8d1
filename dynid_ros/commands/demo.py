"""`dynid demo`: the whole thread on a simulated arm."""

import argparse
from pathlib import Path

from dynid_ros.demo import run_demo


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    parser = commands.add_parser("demo", help="a simulated arm: excite, record, identify, compensate, over real ROS 2")
    parser.add_argument("--output", type=Path, default=Path("demo_results"), help="folder for bag, model and report")
    parser.add_argument("--parameters", type=Path, help="ROS parameter file of all nodes; default: config/demo.yaml")
    parser.add_argument(
        "--acts",
        nargs="+",
        default=[],
        help="of gravity, links, load, torque_sensors, flexible_joint; load and torque_sensors need files "
        "that the ones before write; default: all",
    )
    parser.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> int:
    return run_demo(options.output, options.parameters, options.acts)
