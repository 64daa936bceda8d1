"""`dynid demo`: the whole thread on a simulated arm.

All nodes are processes on their own ROS domain and in their own folder. The coordinator starts the nodes that need
results of the others.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from dynid_ros.commands.options import Answer, add_output
from dynid_ros.files.bounded import share_path
from dynid_ros.interrupts import INTERRUPTED
from dynid_ros.jobs.screen import Screen
from dynid_ros.nodes import import_nodes
from dynid_ros.nodes.shared.child_process import NodeProcess, ignore_interrupts, prepare_parent, stop
from dynid_ros.nodes.shared.process import alone

POLL_PERIOD_S = 0.1
NODES = ("simulator", "excitation", "recorder", "gravity_identification", "gravity_compensation", "link_identification")
OUTPUTS = {
    "recorder": {"output_folder": "bags"},
    "gravity_identification": {"output": "gravity"},
    "gravity_compensation": {"model_file": "gravity/identified.yaml"},
    "link_identification": {"output": "links"},
}
"""Parameters of the nodes that are paths below the output folder."""


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
    contents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in played}
    shown = ("title", "passed", "sentences", "seconds")  # all but the pictures
    acts = {name: {key: content.get(key) for key in shown} for name, content in contents.items()}
    report = options.output / "report.html"
    files = {"report": report} if report.exists() else {}
    return Answer(Screen(()), {"passed": code == 0, "acts": acts}, files, code)


def run_demo(output: Path, parameters: Path | None = None, acts: Sequence[str] = (), domain: str = "") -> int:
    """Run all nodes and the coordinator, and return the exit code of the coordinator.

    All nodes end with the coordinator, and by SIGINT and SIGTERM. Logs are in `output/logs`.

    Args:
        output: folder for bags, models, reports and logs.
        parameters: ROS parameter file; None: `config/demo.yaml`.
        acts: names of the acts; empty: those of the file, by default all.
        domain: number of the ROS domain; empty: a free one.
    """
    output = output.resolve()
    prepare_parent(output)
    logs = output / "logs"
    files = [(parameters or share_path("config/demo.yaml")).resolve()]
    with alone(output, domain):
        import_nodes(["simulator"], "the demo")
        processes: list[NodeProcess] = []
        try:
            for name in NODES:
                paths = {parameter: output / path for parameter, path in OUTPUTS.get(name, {}).items()}
                processes.append(NodeProcess(name, paths, logs / f"{name}.log", files=files))
            chosen = {"output": output} | ({"acts": f"[{', '.join(acts)}]"} if acts else {})
            coordinator = NodeProcess("demo", chosen, None, files=files)
            processes.append(coordinator)
            while (code := coordinator.popen.poll()) is None:
                for process in processes[:-1]:
                    process.check()
                time.sleep(POLL_PERIOD_S)
            return code
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            ignore_interrupts()
            stop(process.popen for process in reversed(processes))
