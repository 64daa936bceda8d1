"""Unused ROS domains of this machine, for programs that start a simulated arm.

Such a program publishes joint states and commands by the names that a robot has, so it must not use the domain of the
caller, which may be that of a driver.
"""

import os
import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from dynid_ros.errors import DynidError

DOMAINS = range(1, 101)
"""Domains whose ports are below those that Linux gives to any connection (ROS 2, "The ROS_DOMAIN_ID")."""
N_PARTICIPANTS = 20
"""Participants of a domain whose ports are checked."""
DISCOVERY_VARIABLES = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
"""Environment variables that let ROS 2 find other machines or domains."""


@contextmanager
def alone(output: Path, domain: str = "") -> Iterator[None]:
    """Keep started processes on this machine, on an unused ROS domain and in an unused folder.

    Args:
        output: folder.
        domain: number of the domain; empty: a free one.
    """
    with claim(f"folder {sha256(str(output).encode()).hexdigest()}") as is_unused:
        if not is_unused:
            text = f"{output}: another demo or guide writes there now; wait, or choose another folder with --output"
            raise DynidError(text)
        with _claim_domain(domain) if domain else own_domain() as number:
            for variable in DISCOVERY_VARIABLES:
                os.environ.pop(variable, None)
            os.environ |= {"ROS_DOMAIN_ID": number, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
            yield


@contextmanager
def own_domain() -> Iterator[str]:
    """Claim a domain on which nothing runs for the block."""
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
