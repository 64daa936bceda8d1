"""The whole demo as it is: every node a process, over DDS; and how it ends when it is told to, or a node fails."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.node_process import NodeProcess
from helpers.waiting import wait

pytest.importorskip("mujoco")

TITLES = (
    "Gravity: the arm floats",
    "Hand guiding: the arm is led, and stays where it is left",
    "Links: masses, inertias and friction",
    "A load: weighed in motion, and carried",
    "Torque sensors: calibrated in place",
    "Flexible joints: springs, seen by a camera",
)
FILES = (
    "gravity/identified.yaml",
    "gravity/report.html",
    "gravity/drop.png",
    "links/identified.yaml",
    "links/identified.urdf",
    "links/report.html",
    "load/identified.yaml",
    "load/report.html",
    "load/drivers",
    "torque_sensors/identified.yaml",
    "torque_sensors/report.html",
    "flexible_joint/identified.yaml",
    "flexible_joint/report.html",
)
DEMO = [sys.executable, "-m", "dynid_ros.cli", "demo", "--output"]


def elsewhere():
    """Environment of a process that is not on the domain of these tests."""
    return {name: value for name, value in os.environ.items() if name != "ROS_DOMAIN_ID"}


def left_over(output):
    """Processes that have to do with an output folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{output}" in command:
            found.append(f"{path.parent.name}: {command}")
    return found


class Running:
    """A demo in a process of its own, on a domain of its own choice."""

    def __init__(self, output):
        self.output, self.log = output, output.with_suffix(".txt")
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*DEMO, output], stdout=log, stderr=subprocess.STDOUT, env=elsewhere())

    def wait_for(self, text, timeout=200.0):
        deadline = time.monotonic() + timeout
        while text not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def first_node(self):
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def ended(self):
        """Exit code, and what was printed; all its processes are gone."""
        code = self.process.wait(timeout=100.0)
        # what its coordinator had just started, on a busy machine, ends by itself when that is killed
        wait(lambda: not left_over(self.output))
        return code, self.log.read_text()


@pytest.mark.parametrize(
    ("acts", "said"),
    [
        ("[links, load]", r"act load needs .*/identified.yaml, which act gravity writes"),
        ("[lode]", r"no act 'lode'; the acts are gravity, hand_guiding, links, load, torque_sensors, flexible_joint"),
    ],
)
def test_acts_that_cannot_be_played_are_refused(tmp_path, acts, said):
    with NodeProcess("demo", {"acts": acts, "output": tmp_path}) as ended:
        assert ended.wait() == 2, ended.output
        assert re.search(f"error: .*{said}", ended.output)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_demos_side_by_side_each_end_with_all_their_processes(tmp_path):
    told, failing = Running(tmp_path / "told"), Running(tmp_path / "failing")
    try:
        told.wait_for("1/15")
        failing.wait_for("1/15")
        again = subprocess.run([*DEMO, told.output], capture_output=True, text=True, timeout=100, check=False)
        assert again.returncode == 2
        assert "another demo or guide writes there now" in again.stderr
        told.process.send_signal(signal.SIGINT)
        os.kill(failing.first_node(), signal.SIGKILL)
        assert told.ended()[0] == 130
        code, printed = failing.ended()
        assert code == 2
        assert "node simulator ended with exit code -9; see" in printed
        assert f"The last lines of {failing.output}/logs/simulator.log:" in printed
    finally:
        for demo in (told, failing):
            demo.process.kill()
            demo.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_demo_passes(tmp_path):
    output = tmp_path / "out"
    ended = subprocess.run([*DEMO, output], capture_output=True, text=True, timeout=880, env=elsewhere(), check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert not left_over(output)
    for title in TITLES:
        assert f"PASSED: {title}" in ended.stdout
    assert "live: " in ended.stdout
    page = (output / "report.html").read_text()
    assert "All 6 acts passed" in page
    for file in FILES:
        assert (output / file).exists(), file
    for file in re.findall(r'href="([^"#]+)"', page):
        assert (output / file).exists(), file
    assert page.count("<svg") >= 8
    assert not [
        f"{log.name}: {line}"
        for log in (output / "logs").iterdir()
        for line in log.read_text().splitlines()
        if "Traceback" in line
    ]
