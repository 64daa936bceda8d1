"""`dynid node`: run a ROS 2 node that pip or uv installed, which `ros2 run` does not find."""

import argparse
import sys
from importlib import import_module

import dynid_ros.nodes
from dynid_ros.commands.options import Answer
from dynid_ros.interrupts import uninterruptible
from dynid_ros.jobs.screen import Screen


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = f"Run a node of ROS 2: {', '.join(dynid_ros.nodes.NAMES)}. Its parameters: docs/parameters.md."
    parser.add_argument("name", choices=dynid_ros.nodes.NAMES, metavar="NAME", help="name of the node")
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="arguments for ROS, as in --ros-args --params-file FILE -p acceleration_limits:=[2.0] -r __ns:=/left",
    )
    parser.set_defaults(command=_node)


def _node(options: argparse.Namespace) -> Answer:
    dynid_ros.nodes.import_nodes([options.name], f"node {options.name}")
    sys.argv = [f"dynid node {options.name}", *options.arguments]  # where rclpy looks
    uninterruptible()  # a node shuts down by itself, however many signals it gets
    import_module(dynid_ros.nodes.module_of(options.name)).main()
    return Answer(Screen(()), {})
