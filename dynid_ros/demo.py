"""Starts the nodes of the demo as processes, for those who have no `ros2 launch` at hand.

Two nodes that read what others identify are started by the coordinator when it is there (`nodes/demo_process.py`).
"""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from dynid_ros.errors import DynidError
from dynid_ros.share import share_path

NODES = (
    "simulator",
    "excitation",
    "recorder",
    "gravity_identification",
    "gravity_compensation",
    "link_identification",
)
STOP_TIMEOUT = 10.0


def run_demo(output: Path, parameters: Path | None = None, acts: Sequence[str] = ()) -> int:
    """Run all nodes and the coordinator; logs go to `output/logs`. Returns the coordinator's exit code.

    Args:
        output: folder for bag, model, report and logs.
        parameters: ROS parameter file; None: `config/demo.yaml`.
        acts: to play; empty: as the file says, all unless told otherwise.

    Raises:
        DynidError: rclpy or MuJoCo is not installed, or the folder cannot be written.

    """
    _require("rclpy", "ROS 2 (source it, or install the wheels as `make demo` does)")
    _require("mujoco", "MuJoCo (pip install mujoco)")
    output = output.resolve()
    logs = output / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynidError(
            f"{output}: cannot be written ({error.strerror}); choose another folder with --output"
        ) from error
    parameters = (parameters or share_path("config/demo.yaml")).resolve()
    processes = [_start(name, output, parameters, (logs / f"{name}.log").open("w")) for name in NODES]
    arguments = ["-p", f"acts:=[{', '.join(acts)}]"] if acts else []
    coordinator = _start("demo", output, parameters, arguments=arguments)
    try:
        while (code := _wait(coordinator)) is None:
            for name, process in zip(NODES, processes, strict=True):
                if process.poll() not in (None, 0):
                    _stop([coordinator])
                    raise DynidError(
                        f"node {name} ended with exit code {process.returncode}; see {logs / f'{name}.log'}"
                    )
        return code
    except KeyboardInterrupt:
        return 130
    finally:
        _stop([coordinator, *processes])


def _require(module: str, what: str) -> None:
    probe = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    if probe.returncode:
        raise DynidError(f"the demo needs {what}")


def _start(
    name: str, output: Path, parameters: Path, log: IO[str] | None = None, arguments: Sequence[str] = ()
) -> subprocess.Popen:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    environment.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    environment.setdefault("ROS_DOMAIN_ID", str(_DOMAIN))
    environment.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    command = [sys.executable, "-m", f"dynid_ros.nodes.{name}", "--ros-args"]
    command += ["--params-file", str(parameters)]
    for parameter, value in OUTPUTS.get(name, {}).items():
        command += ["-p", f"{parameter}:={output / value}"]
    command += arguments
    return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT if log else None)


_DOMAIN = random.randint(1, 100)
OUTPUTS = {
    "recorder": {"output_folder": "bags"},
    "gravity_identification": {"output": ""},
    "gravity_compensation": {"model_file": "identified.yaml"},
    "link_identification": {"output": "links"},
    "demo": {"output": ""},
}
"""Parameters of the nodes that are paths below the output folder."""


def _wait(process: subprocess.Popen) -> int | None:
    try:
        return process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        return None


def _stop(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in processes:
        try:
            process.wait(timeout=STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
