"""Start the demo: all nodes as processes, on their own ROS domain and in their own folder.

The coordinator starts the nodes that need results of the others.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from dynid_ros.files.bounded import share_path
from dynid_ros.interrupts import INTERRUPTED
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
