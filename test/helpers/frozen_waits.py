"""Freeze the waits of the middleware of a process, as after the computer's clock was set back.

    python test/frozen_waits.py MODULE never|back --ros-args …

runs `main` of a module. From SIGUSR1 on, no wait for messages ends by its timeout or a timer. With `back`, a wait ends
with another event, as in reality; with `never`, it does not end.
"""

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from threading import Event

from rclpy.impl.implementation_singleton import rclpy_implementation

from dynid_ros.nodes import module_of

PERIOD_S = 0.002
"""Period in s with which a frozen wait looks for events."""
KINDS = ("subscription", "guard_condition", "client", "service")
frozen = Event()


class FrozenWaitSet(rclpy_implementation.WaitSet):
    """Wait set that stores its entities, because a wait forgets those that were not ready."""

    never = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._added = []
        self._timers = []

    def clear_entities(self):
        self._added.clear()
        self._timers.clear()
        super().clear_entities()

    def wait(self, timeout):
        if timeout == 0 or not frozen.is_set():
            super().wait(timeout)
        while timeout != 0 and frozen.is_set():
            super().clear_entities()
            for add, arguments in self._added:
                add(self, *arguments)
            super().wait(0)
            if not self.never and any(super(FrozenWaitSet, self).get_ready_entities(kind) for kind in KINDS):
                return
            time.sleep(PERIOD_S)

    def get_ready_entities(self, kind):
        if frozen.is_set() and kind == "timer":
            return [timer.pointer for timer in self._timers if timer.is_timer_ready()]
        return super().get_ready_entities(kind)

    def add_timer(self, timer):
        self._timers.append(timer)
        if not frozen.is_set():
            super().add_timer(timer)


def store_entity(name):
    original = getattr(rclpy_implementation.WaitSet, name)

    def add(self, *arguments):
        self._added.append((original, arguments))
        return original(self, *arguments)

    return add


for name in ("add_subscription", "add_client", "add_service", "add_guard_condition"):
    setattr(FrozenWaitSet, name, store_entity(name))


class FrozenProcess:
    """Node as a process whose waits can be frozen."""

    def __init__(self, name, mode, parameters, *words):
        assignments = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        arguments = [module_of(name), mode, "--ros-args", *words, *assignments]
        self._process = subprocess.Popen([sys.executable, __file__, *arguments])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def freeze(self):
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.3)

    def end(self, seconds):
        """Send SIGTERM; return the exit code, or None if the process does not end within `seconds`."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


if __name__ == "__main__":
    module, mode = sys.argv[1:3]
    FrozenWaitSet.never = mode == "never"
    rclpy_implementation.WaitSet = FrozenWaitSet
    signal.signal(signal.SIGUSR1, lambda *_: frozen.set())
    sys.argv = [module, *sys.argv[3:]]
    import_module(module).main()
    os._exit(0)
