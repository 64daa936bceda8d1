"""ROS domains that one process, and those that it starts, have to themselves on this machine."""

import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dynid_ros.errors import DynidError

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


def in_use(domain: int) -> bool:
    """Whether a participant on this machine has the port that the first one of a domain has (RTPS 2.2, 9.6.1.1)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        try:
            port.bind(("", 7400 + 250 * domain + 10))
        except OSError:
            return True
    return False
