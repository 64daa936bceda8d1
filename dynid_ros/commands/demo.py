"""`dynid demo`: the whole thread on a simulated arm."""

import argparse
import json
import time
from pathlib import Path

from dynid_ros.commands.options import Answer, add_output
from dynid_ros.demo.start import run_demo
from dynid_ros.jobs.screen import Screen


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--parameters", type=Path, metavar="FILE", help="ROS parameter file of all nodes (default: config/demo.yaml)"
    )
    parser.add_argument(
        "--acts",
        nargs="+",
        default=[],
        help="acts to play: gravity, hand_guiding, links, load, torque_sensors, flexible_joint; hand_guiding, load and "
        "torque_sensors need files that earlier acts write (default: all)",
    )
    parser.add_argument("--domain", default="", metavar="N", help="number of a free ROS domain (default: found)")
    add_output(parser, "folder for bag, model and report (default: demo_results)", required=False)
    parser.set_defaults(output=Path("demo_results"))
    parser.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> Answer:
    began = time.time()
    code = run_demo(options.output, options.parameters, options.acts, options.domain)
    # Acts of earlier runs stay in the folder.
    played = sorted(path for path in (options.output / "acts").glob("*.json") if path.stat().st_mtime >= began)
    acts = {path.stem: _read_act(path) for path in played}
    report = options.output / "report.html"
    files = {"report": report} if report.exists() else {}
    return Answer(Screen(()), {"passed": code == 0, "acts": acts}, files, code)


def _read_act(act: Path) -> dict[str, object]:
    """Read the data of an act, without its pictures."""
    content = json.loads(act.read_text(encoding="utf-8"))
    return {name: content.get(name) for name in ("title", "passed", "sentences", "seconds")}
