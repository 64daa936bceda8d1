"""Test how child processes end, by themselves and with their parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.child_process import N_LOG_LINES, NodeProcess, stop

WAIT = "import time; time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('stubborn', flush=True); {WAIT}"
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "dynid_ros.nodes.shared.child_process", "waiting"])
print(child.pid, flush=True)
time.sleep(60)
"""


def start_python(program):
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def test_stop_terminates_processes_and_kills_stubborn_ones():
    stubborn = start_python(STUBBORN)
    waiting = start_python(WAIT)
    finished = start_python("")
    assert stubborn.stdout.readline() == "stubborn\n"
    finished.wait()
    stop([stubborn, waiting, finished], timeout=0.5)
    assert (stubborn.poll(), waiting.poll(), finished.poll()) == (-signal.SIGKILL, -signal.SIGTERM, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the parent's death to a child")
def test_child_ends_with_its_killed_parent(tmp_path, monkeypatch):
    ready = tmp_path / "ready"
    (tmp_path / "waiting.py").write_text(f"def main():\n    open({str(ready)!r}, 'w').close(); {WAIT}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path.cwd())]))
    parent = start_python(PARENT)
    child = Path("/proc") / parent.stdout.readline().strip()
    deadline = time.monotonic() + 30.0
    while not ready.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    while child.exists() and " Z " not in (child / "stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_failed_node_shows_the_end_of_its_log(tmp_path, capsys, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "def main():\n    for k in range(20): print('line', k)\n    raise SystemExit(3)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path.cwd())]))
    monkeypatch.setattr("dynid_ros.nodes.shared.child_process.module_of", lambda name: name)
    log = tmp_path / "logs" / "failing.log"
    process = NodeProcess("failing", {"gain": 2.0}, log, namespace="/a", good=(0,), files=[Path("a.yaml")])
    process.popen.wait()
    assert process.popen.args[-7:] == ["--ros-args", "--params-file", "a.yaml", "-p", "gain:=2.0", "-r", "__ns:=/a"]
    with pytest.raises(DynidError, match=f"node failing ended with exit code 3; see {log}"):
        process.check()
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == N_LOG_LINES + 1
    assert printed[-1] == "  line 19"


def test_shutdown_of_nodes_is_not_interrupted(tmp_path):
    """`ros2 launch` sends SIGTERM 5 s after SIGINT, while the parent still waits for its nodes."""
    program = (
        "import time; from pathlib import Path; from dynid_ros.nodes.shared import child_process as shared\n"
        f"shared.prepare_parent(Path({str(tmp_path / 'output')!r}))\n"
        "try:\n    print('begins', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    shared.ignore_interrupts(); print('ends', flush=True)\n"
        "    time.sleep(0.5); print('ended')"
    )
    parent = start_python(program)
    assert parent.stdout.readline() == "begins\n"
    parent.send_signal(signal.SIGINT)
    assert parent.stdout.readline() == "ends\n"
    parent.send_signal(signal.SIGTERM)
    assert parent.communicate(timeout=30)[0] == "ended\n"
    assert parent.returncode == 0
    assert (tmp_path / "output").is_dir()
