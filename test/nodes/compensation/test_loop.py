"""Two threads act on the control loop: one follows joint states, one watches them."""

import inspect
import threading

import pytest

from dynid_ros.nodes.compensation.loop import CompensationLoop

UNLOCKED = {"has_listener", "follow", "serve", "wake"}
"""They read one value, or lock what they call."""
LOCKED = [name for name in vars(CompensationLoop) if not name.startswith("_") and name not in UNLOCKED] + ["_act_on"]
WAIT_S = 0.05


@pytest.mark.parametrize("name", LOCKED)
def test_one_thread_waits_for_the_other(name):
    """A loop without anything but its lock: who does not wait for it fails at once."""
    loop = CompensationLoop.__new__(CompensationLoop)
    loop.lock = threading.RLock()
    method = getattr(loop, name)
    arguments = [None] * (len(inspect.signature(method).parameters))
    ended = threading.Event()

    def call():
        try:
            method(*arguments)
        except (AttributeError, TypeError):
            ended.set()

    other = threading.Thread(target=call, daemon=True)
    with loop.lock:
        other.start()
        assert not ended.wait(WAIT_S)
    assert ended.wait(5.0)
