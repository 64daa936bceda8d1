"""Child processes are ended, and end with the process that started them."""

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
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {WAIT}"
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "dynid_ros.nodes.shared.child_process", "waiting"])
print(child.pid, flush=True)
time.sleep(60)
"""


def python(program):
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def test_all_end_when_told_and_those_that_do_not_are_killed():
    deaf, good, over = python(STUBBORN), python(WAIT), python("")
    assert deaf.stdout.readline() == "deaf\n"
    over.wait()
    stop([deaf, good, over], timeout=0.5)
    assert (deaf.poll(), good.poll(), over.poll()) == (-signal.SIGKILL, -signal.SIGTERM, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells children of their parent's end")
def test_a_module_goes_with_its_parent_even_if_that_is_killed(tmp_path, monkeypatch):
    ready = tmp_path / "ready"
    (tmp_path / "waiting.py").write_text(f"def main():\n    open({str(ready)!r}, 'w').close(); {WAIT}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path.cwd())]))
    parent = python(PARENT)
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


def test_a_node_that_ends_shows_the_end_of_its_log(tmp_path, capsys, monkeypatch):
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


def test_the_end_of_the_nodes_is_not_interrupted(tmp_path):
    """`ros2 launch` sends SIGTERM 5 s after SIGINT; a program that then left its nodes could not wait for their end."""
    program = (
        "import time; from pathlib import Path; from dynid_ros.nodes.shared import child_process as shared\n"
        f"shared.prepare_parent(Path({str(tmp_path / 'output')!r}))\n"
        "try:\n    print('begins', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    shared.ignore_interrupts(); print('ends', flush=True)\n"
        "    time.sleep(0.5); print('ended')"
    )
    parent = python(program)
    assert parent.stdout.readline() == "begins\n"
    parent.send_signal(signal.SIGINT)
    assert parent.stdout.readline() == "ends\n"
    parent.send_signal(signal.SIGTERM)
    assert parent.communicate(timeout=30)[0] == "ended\n"
    assert parent.returncode == 0
    assert (tmp_path / "output").is_dir()
