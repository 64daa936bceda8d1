"""`dynid demo`: the whole thread on a simulated arm."""

import argparse
import json
import time
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_output
from dynid_ros.demo.start import run_demo


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("--parameters", type=Path, help="ROS parameter file of all nodes; default: config/demo.yaml")
    parser.add_argument(
        "--acts",
        nargs="+",
        default=[],
        help="of gravity, hand_guiding, links, load, torque_sensors, flexible_joint; hand_guiding, load and "
        "torque_sensors need files that the ones before write; default: all",
    )
    parser.add_argument(
        "--domain", default="", help="number of a ROS domain that nobody is on; default: one that is free"
    )
    add_output(parser, "folder for bag, model and report (default: demo_results)", required=False)
    parser.set_defaults(output=Path("demo_results"))
    parser.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> Answer:
    began = time.time()
    code = run_demo(options.output, options.parameters, options.acts, options.domain)
    # What was played before stays in the folder.
    played = sorted(path for path in (options.output / "acts").glob("*.json") if path.stat().st_mtime >= began)
    acts = {path.stem: _told(path) for path in played}
    report = options.output / "report.html"
    files = {"report": report} if report.exists() else {}
    return Answer("", {"passed": code == 0, "acts": acts}, files, code)


def _told(act: Path) -> dict[str, object]:
    """What a program wants to know of an act; pictures are in the report."""
    kept = json.loads(act.read_text(encoding="utf-8"))
    return {name: kept.get(name) for name in ("title", "passed", "sentences", "seconds")}
