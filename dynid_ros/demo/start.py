"""Start the demo: all nodes as processes, on their own ROS domain and in their own folder.

The coordinator starts the nodes that need results of the others.
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

from dynid_ros.demo.processes import DemoProcess, stop
from dynid_ros.errors import DynidError
from dynid_ros.files.share import share_path
from dynid_ros.interrupts import INTERRUPTED
from dynid_ros.nodes import import_nodes

DOMAINS = range(1, 101)
"""Domains whose ports are below those that Linux gives to any connection (ROS 2, "The ROS_DOMAIN_ID")."""
N_PARTICIPANTS = 20
"""Participants of a domain whose ports are checked."""
POLL_PERIOD_S = 0.1
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
}
"""Parameters of the nodes that are paths below the output folder."""
DISCOVERY_VARIABLES = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
"""Environment variables that let ROS 2 find other machines or domains."""


@contextmanager
def own_domain() -> Iterator[str]:
    """Claim a domain on which nothing runs for the block.

    Raises:
        DynidError: all domains are in use.
    """
    for domain in random.sample(DOMAINS, len(DOMAINS)):
        with claim(f"domain {domain}") as ours:
            if ours and not in_use(domain):
                yield str(domain)
                return
    raise DynidError(f"all ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use; wait until one is free")


@contextmanager
def claim(what: str) -> Iterator[bool]:
    """Claim a name for the block, at most for the life of this process; yields whether no other process has it."""
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


def in_use(domain: int) -> bool:
    """Return whether a participant on this machine has one of the first ports of a domain (RTPS 2.2, 9.6.1.1).

    Several ports are checked: a process counts its participants through all domains, and a participant takes the next
    port if a process that checks here holds the first one.
    """
    for participant in range(N_PARTICIPANTS):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            try:
                port.bind(("", 7400 + 250 * domain + 10 + 2 * participant))
            except OSError:
                return True
    return False


def run_demo(output: Path, parameters: Path | None = None, acts: Sequence[str] = (), domain: str = "") -> int:
    """Run all nodes and the coordinator, and return the exit code of the coordinator.

    All nodes end with the coordinator, and by SIGINT and SIGTERM. Logs are in `output/logs`.

    Args:
        output: folder for bags, models, reports and logs.
        parameters: ROS parameter file; None: `config/demo.yaml`.
        acts: names of the acts; empty: those of the file, by default all.
        domain: number of the ROS domain; empty: a free one.

    Raises:
        DynidError: rclpy or MuJoCo is not installed, the folder cannot be written, another demo runs there, the domain
            is in use, or a node ended.
    """
    output = output.resolve()
    logs = output / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynidError(
            f"{output}: cannot be written ({error.strerror}); choose another folder with --output"
        ) from error
    files = [(parameters or share_path("config/demo.yaml")).resolve()]
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    with alone(output, domain):
        import_nodes(["simulator"], "the demo")
        processes: list[DemoProcess] = []
        try:
            for name in NODES:
                paths = {parameter: output / path for parameter, path in OUTPUTS.get(name, {}).items()}
                processes.append(DemoProcess(name, paths, logs / f"{name}.log", files=files))
            chosen = {"output": output} | ({"acts": f"[{', '.join(acts)}]"} if acts else {})
            coordinator = DemoProcess("demo", chosen, None, files=files)
            processes.append(coordinator)
            while (code := coordinator.popen.poll()) is None:
                for process in processes[:-1]:
                    process.check()
                time.sleep(POLL_PERIOD_S)
            return code
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            stop(process.popen for process in reversed(processes))


@contextmanager
def alone(output: Path, domain: str = "") -> Iterator[None]:
    """Keep started processes on this machine, on an unused ROS domain and in an unused folder.

    The demo publishes joint states and commands by the names that a robot has, so the domain of the caller, which may
    be that of a driver, is not used.

    Args:
        output: folder.
        domain: number of the domain; empty: a free one.

    Raises:
        DynidError: another demo runs in the folder, or the domain is in use.
    """
    with claim(f"folder {sha256(str(output).encode()).hexdigest()}") as is_unused:
        if not is_unused:
            raise DynidError(f"{output}: another demo writes there now; wait, or choose another folder with --output")
        with _claim_domain(domain) if domain else own_domain() as number:
            for variable in DISCOVERY_VARIABLES:
                os.environ.pop(variable, None)
            os.environ |= {"ROS_DOMAIN_ID": number, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
            yield


@contextmanager
def _claim_domain(domain: str) -> Iterator[str]:
    """Claim the domain with a number for the block."""
    if not domain.isdecimal() or int(domain) not in DOMAINS:
        raise DynidError(f"ROS domain '{domain}': expected a number from {DOMAINS[0]} to {DOMAINS[-1]}")
    with claim(f"domain {domain}") as is_ours:
        if not is_ours or in_use(int(domain)):
            raise DynidError(
                f"somebody is on ROS domain {domain} of this machine, perhaps a robot's driver; choose another one "
                "(`ros2 daemon stop` ends what the ros2 commands leave behind)"
            )
        yield domain
