"""Starts the nodes of the demo as processes, for those who have no `ros2 launch` at hand.

Nodes that read what others identify are started by the coordinator when it is there (`nodes/demonstration/process.py`).
"""

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from dynid_ros.demo.processes import ForkedProcess, ended, stop
from dynid_ros.errors import DynidError
from dynid_ros.files.share import share_path
from dynid_ros.interrupts import INTERRUPTED
from dynid_ros.nodes import import_nodes, module_of

# ROS domains that one process, and those that it starts, have to themselves on this machine.


DOMAINS = range(1, 101)
"""Their ports are below those that Linux gives to any connection (ROS 2, "The ROS_DOMAIN_ID")."""


@contextmanager
def own_domain() -> Iterator[str]:
    """A domain that no process of this package has claimed and on which nothing runs; ours while the block lasts.

    Raises:
        DynidError: there is none.
    """
    for domain in random.sample(DOMAINS, len(DOMAINS)):
        with claim(f"domain {domain}") as ours:
            if ours and not in_use(domain):
                yield str(domain)
                return
    raise DynidError(f"all ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use; wait until one is free")


@contextmanager
def claim(what: str) -> Iterator[bool]:
    """Whether no other process has claimed it; ours while the block lasts, and no longer than this process lives."""
    if sys.platform != "linux":
        yield True
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name:
        try:
            name.bind(f"\0dynid_ros {what}")
        except OSError:
            yield False
        else:
            yield True


LOOKED_AT = 20
"""Participants of a domain whose ports are looked at."""


def in_use(domain: int) -> bool:
    """Whether a participant on this machine has a port of the first ones of a domain (RTPS 2.2, 9.6.1.1).

    The first may have found its port taken by a process that looked here, and have gone on to the next; and a process
    counts its participants through all domains.
    """
    for participant in range(LOOKED_AT):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            try:
                port.bind(("", 7400 + 250 * domain + 10 + 2 * participant))
            except OSError:
                return True
    return False


NODES = (
    "simulator",
    "excitation",
    "recorder",
    "gravity_identification",
    "gravity_compensation",
    "link_identification",
)
OUTPUTS = {
    "recorder": {"output_folder": "bags"},
    "gravity_identification": {"output": "gravity"},
    "gravity_compensation": {"model_file": "gravity/identified.yaml"},
    "link_identification": {"output": "links"},
    "demo": {"output": ""},
}
"""Parameters of the nodes that are paths below the output folder."""
WAYS_OUT = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
"""Variables by which ROS 2 would find other machines, or other domains, all the same."""
POLL = 0.1


def run_demo(output: Path, parameters: Path | None = None, acts: Sequence[str] = (), domain: str = "") -> int:
    """Run all nodes and the coordinator; logs go to `output/logs`. Returns the coordinator's exit code.

    All nodes end with it, also by SIGINT and SIGTERM.

    Args:
        output: folder for bags, models, reports and logs.
        parameters: ROS parameter file; None: `config/demo.yaml`.
        acts: to play; empty: as the file says, all unless given otherwise.
        domain: number of the ROS domain; empty: one that is free.

    Raises:
        DynidError: rclpy or MuJoCo is not installed, the folder cannot be written, another demo is in the way, somebody
            is on the domain, or a node ended.
    """
    output = output.resolve()
    logs = output / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynidError(
            f"{output}: cannot be written ({error.strerror}); choose another folder with --output"
        ) from error
    with alone(output, domain):
        import_nodes((*NODES, "demo"), "the demo")  # once for all: that takes longer than anything else at the start
        arguments = ["--ros-args", "--params-file", str((parameters or share_path("config/demo.yaml")).resolve())]
        chosen = ["-p", f"acts:=[{', '.join(acts)}]"] if acts else []
        nodes = [_node(name, output, arguments, logs / f"{name}.log") for name in NODES]
        return _run(nodes, _node("demo", output, [*arguments, *chosen]), logs)


def _run(nodes: Sequence[ForkedProcess], coordinator: ForkedProcess, logs: Path) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has the first one ignored
        signal.signal(number, signal.default_int_handler)
    started: list[ForkedProcess] = []
    try:
        for process in (*nodes, coordinator):
            process.start()
            started.append(process)
        while (code := coordinator.poll()) is None:
            for process in nodes:
                if process.poll() is not None:
                    raise ended(process.name, process.poll(), logs / f"{process.name}.log")
            time.sleep(POLL)
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        stop(reversed(started))


def _node(name: str, output: Path, arguments: Sequence[str], log: Path | None = None) -> ForkedProcess:
    paths = [
        part for parameter, path in OUTPUTS.get(name, {}).items() for part in ("-p", f"{parameter}:={output / path}")
    ]
    return ForkedProcess(module_of(name), [*arguments, *paths], log)


@contextmanager
def alone(output: Path, domain: str = "") -> Iterator[None]:
    """Keep what this process starts on this machine, on a ROS domain and in a folder that nobody else uses.

    The demo publishes joint states and commands by the names that a robot has. So the domain of the caller, on which a
    driver may be, counts for nothing.

    Args:
        output: the folder.
        domain: number of the domain; empty: one that is free.

    Raises:
        DynidError: another demo is in the way, or somebody is on the domain.
    """
    with claim(f"folder {sha256(str(output).encode()).hexdigest()}") as unused:
        if not unused:
            raise DynidError(f"{output}: another demo writes there now; wait, or choose another folder with --output")
        with _claimed(domain) if domain else own_domain() as number:
            for way_out in WAYS_OUT:
                os.environ.pop(way_out, None)
            os.environ |= {"ROS_DOMAIN_ID": number, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
            yield


@contextmanager
def _claimed(domain: str) -> Iterator[str]:
    """The domain that was asked for."""
    if not domain.isdecimal() or int(domain) not in DOMAINS:
        raise DynidError(f"ROS domain '{domain}': expected a number from {DOMAINS[0]} to {DOMAINS[-1]}")
    with claim(f"domain {domain}") as ours:
        if not ours or in_use(int(domain)):
            raise DynidError(
                f"somebody is on ROS domain {domain} of this machine, perhaps a robot's driver; choose another one "
                "(`ros2 daemon stop` ends what the ros2 commands leave behind)"
            )
        yield domain
