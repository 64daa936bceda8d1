"""Nodes that the demo starts later than the others, as what they read is not there before."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

STOP_TIMEOUT = 10.0


@contextmanager
def node_process(name: str, parameters: Mapping[str, object], log: Path, namespace: str = "") -> Iterator[None]:
    """A node of this package, from start to end.

    Args:
        name: of its module and of the node.
        parameters: on top of the files of parameters that this process was given.
        log: file for what it prints.
        namespace: of the node; empty: none.

    """
    command = [sys.executable, "-m", f"dynid_ros.nodes.{name}", "--ros-args"]
    for option, file in pairwise(sys.argv):
        if option == "--params-file":
            command += [option, file]
    for parameter, value in parameters.items():
        command += ["-p", f"{parameter}:={value}"]
    if namespace:
        command += ["-r", f"__ns:={namespace}"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        # rclpy ends its work at SIGTERM; SIGINT raises in the middle of it too.
        process.terminate()
        try:
            process.wait(timeout=STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
