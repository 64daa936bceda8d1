"""Test that the methods of the control loop lock it: joint states and the watchdog come from two threads."""

import inspect
import threading

import pytest

from dynid_ros.nodes.compensation.loop import CompensationLoop

UNLOCKED = {"has_listener", "follow", "serve", "wake"}
"""Methods that read one value, or call a method that locks."""
LOCKED = [name for name in vars(CompensationLoop) if not name.startswith("_") and name not in UNLOCKED] + ["_act_on"]
WAIT_S = 0.05


@pytest.mark.parametrize("name", LOCKED)
def test_method_waits_for_the_lock_of_another_thread(name):
    """The loop has no attribute but its lock, so a method that does not wait fails at once."""
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
