"""Test Ctrl-C at a terminal: one interrupt ends a command in order, two end it immediately."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import link_experiment
import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording

WAIT = 120.0
"""Timeout in s of the start of a command on a busy machine."""
AT_ONCE = 10.0
"""Timeout in s of an immediate end on a busy machine."""
COMMANDS = {
    "excite": (
        "excite --urdf arm.urdf --acceleration-limits 4 --design-time 300 --workers 2 --output out",
        "best so far",
    ),
    "identify": (
        "identify links --urdf arm.urdf --recording long.npz --output links",
        "identifying links and friction",
    ),
    "check": ("check --urdf arm.urdf --recording long.npz --motion", "looking for faults"),
}
SIZE = struct.pack("HHHH", 30, 120, 0, 0)
"""Size of the terminal in lines and columns."""
CTRL_C = b"\x03"


class Terminal:
    """Command at its own terminal."""

    def __init__(self, arguments, folder):
        self.output = ""
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.chdir(folder)
            fcntl.ioctl(0, termios.TIOCSWINSZ, SIZE)
            os.execv(sys.executable, [sys.executable, "-m", "dynid_ros.cli", *arguments.split()])
        self.code = None
        # Before exec, the child has this process' modules mapped and would forward an interrupt to pytest.
        command = Path(f"/proc/{self.pid}/cmdline")
        deadline = time.monotonic() + WAIT
        while b"dynid_ros.cli" not in command.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def press(self):
        os.write(self._terminal, CTRL_C)

    def read(self, seconds):
        """Read output for some seconds, and return whether the terminal is still open."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        try:
            part = os.read(self._terminal, 65536).decode(errors="replace")
        except OSError:  # closed by the command
            return False
        self.output += part
        return bool(part)

    def wait_for(self, words):
        deadline = time.monotonic() + WAIT
        while words not in self.output:
            assert self.read(0.1), self.output
            assert time.monotonic() < deadline, self.output

    def end(self):
        """Wait until the command and its children have ended, assert a clean output, and return the exit code."""
        deadline = time.monotonic() + AT_ONCE
        while self.code is None and time.monotonic() < deadline:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        assert self.code is not None, f"it goes on: {self.output}"
        while self.members() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not self.members(), "orphans"
        while self.read(0.1) and time.monotonic() < deadline:
            pass
        assert "Traceback" not in self.output, self.output
        assert "Warning" not in self.output, self.output
        return self.code

    def members(self):
        """Return the processes of its session."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(session) == self.pid and state != "Z":
                found.append(int(path.parent.name))
        return found

    def close(self):
        for pid in self.members():
            os.kill(pid, signal.SIGKILL)
        if self.code is None:
            os.waitpid(self.pid, 0)
        os.close(self._terminal)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with an arm and a recording that takes long to check."""
    path = tmp_path_factory.mktemp("interrupts")
    (path / "arm.urdf").write_text(planar_arm.urdf())
    robot, _ = link_experiment.build_planar()
    one = link_experiment.record(robot, 1.3 * robot.parameters, 0)
    count = 40
    span = one.time[-1] + one.time[1] - 2 * one.time[0]
    at = np.concatenate([one.time + k * span for k in range(count)])
    tiled = (np.tile(values, (count, 1)) for values in (one.position, one.velocity, one.torque))
    Recording(one.joint_names, at, *tiled).write_npz(path / "long.npz")
    return path


@pytest.fixture
def start(folder):
    terminals = []

    def make(arguments):
        terminals.append(Terminal(arguments, folder))
        return terminals[-1]

    yield make
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize(
    "name", ["excite", *(pytest.param(name, marks=pytest.mark.slow) for name in ("identify", "check"))]
)
def test_second_interrupt_ends_a_command_immediately(start, name):
    arguments, words = COMMANDS[name]
    terminal = start(arguments)
    terminal.wait_for(words)
    for _ in range(8):  # the kernel merges interrupts that arrive before a process runs
        terminal.press()
        pause = time.monotonic() + 0.3
        while time.monotonic() < pause and terminal.read(0.05):
            pass
        if not terminal.members():
            break
    assert terminal.end() in (130, -signal.SIGINT)


@pytest.mark.parametrize("library", ["numpy", "scipy"])
def test_interrupt_ends_a_starting_command(start, library):
    terminal = start("validate --urdf arm.urdf --model none.yaml --recording long.npz --output out.csv")
    maps = Path(f"/proc/{terminal.pid}/maps")
    deadline = time.monotonic() + WAIT
    while library not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    terminal.press()
    assert terminal.end() in (130, -signal.SIGINT, 2), "2: it had come so far as to miss the model"


def test_interrupt_ends_a_fit_with_a_clean_terminal(start, folder):
    arguments, words = COMMANDS["identify"]
    terminal = start(arguments)
    terminal.wait_for(words)
    terminal.press()
    assert terminal.end() == 130
    assert terminal.output.count("\n") <= 1, "a line of progress is drawn over and taken away"
    assert not (folder / "links" / "identified.yaml").exists()
