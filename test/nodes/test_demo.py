"""Test the whole demo with all nodes as processes, and how it ends on a signal or after a failed node."""

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


def environment_without_domain():
    """Return the environment of a process that does not share the ROS domain of the tests."""
    return {name: value for name, value in os.environ.items() if name != "ROS_DOMAIN_ID"}


def list_processes(output):
    """Return the processes whose command line names an output folder."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{output}" in command:
            processes.append(f"{path.parent.name}: {command}")
    return processes


class Running:
    """Demo in a process and on a ROS domain of its own."""

    def __init__(self, output):
        self.output = output
        self.log = output.with_suffix(".txt")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*DEMO, output], stdout=log, stderr=subprocess.STDOUT, env=environment_without_domain()
            )

    def wait_for(self, text, timeout=200.0):
        deadline = time.monotonic() + timeout
        while text not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def first_node(self):
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def wait_for_end(self):
        """Wait until all processes have ended; return exit code and output."""
        code = self.process.wait(timeout=100.0)
        # A node that a killed coordinator had just started ends by itself.
        wait(lambda: not list_processes(self.output))
        return code, self.log.read_text()


@pytest.mark.parametrize(
    ("acts", "message"),
    [
        ("[links, load]", r"act load needs .*/identified.yaml, which act gravity writes"),
        ("[lode]", r"no act 'lode'; the acts are gravity, hand_guiding, links, load, torque_sensors, flexible_joint"),
    ],
)
def test_unknown_acts_and_missing_inputs_are_refused(tmp_path, acts, message):
    with NodeProcess("demo", {"acts": acts, "output": tmp_path}) as wait_for_end:
        assert wait_for_end.wait() == 2, wait_for_end.output
        assert re.search(f"error: .*{message}", wait_for_end.output)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_parallel_demos_end_with_all_their_processes(tmp_path):
    interrupted = Running(tmp_path / "interrupted")
    failing = Running(tmp_path / "failing")
    try:
        interrupted.wait_for("1/15")
        failing.wait_for("1/15")
        second = subprocess.run([*DEMO, interrupted.output], capture_output=True, text=True, timeout=100, check=False)
        assert second.returncode == 2
        assert "another demo or guide writes there now" in second.stderr
        interrupted.process.send_signal(signal.SIGINT)
        os.kill(failing.first_node(), signal.SIGKILL)
        assert interrupted.wait_for_end()[0] == 130
        code, printed = failing.wait_for_end()
        assert code == 2
        assert "node simulator ended with exit code -9; see" in printed
        assert f"The last lines of {failing.output}/logs/simulator.log:" in printed
    finally:
        for demo in (interrupted, failing):
            demo.process.kill()
            demo.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_demo_passes(tmp_path):
    output = tmp_path / "out"
    wait_for_end = subprocess.run(
        [*DEMO, output], capture_output=True, text=True, timeout=880, env=environment_without_domain(), check=False
    )
    assert wait_for_end.returncode == 0, wait_for_end.stdout + wait_for_end.stderr
    assert not list_processes(output)
    for title in TITLES:
        assert f"PASSED: {title}" in wait_for_end.stdout
    assert "live: " in wait_for_end.stdout
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
