"""Test that the commands of docs/first_hour.md are few and lead the simulated arm to floating."""

import re
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.cli import _parser

PAGE = (Path(__file__).resolve().parents[2] / "docs/first_hour.md").read_text(encoding="utf-8")
REHEARSAL = "Rehearsal on the simulated arm"
STEPS = ("1. URDF", "2. What", "3. The motion", "4. Record", "5. Does", "6. Compensate")
MAX_COMMANDS = 20
SHORT_MOTIONS = {"point_rate: 10.0": "point_rate: 10.0, steps: 3, dwell: 0.4, count: 6"}
"""Replacements that make the motions of the page shorter."""
EFFORT_MODE = "ros2 service call /simulator/effort_mode std_srvs/srv/SetBool '{{data: {}}}'"
TIMEOUT_S = 420.0
OBSERVATION_S = 10.0
FLOATING_S = 10.0
MAX_DRIFT_RAD = 0.02


def read_blocks(heading, language=""):
    """Return the code blocks of a section."""
    (section,) = re.findall(rf"^## {re.escape(heading)}.*?$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [text for kind, text in blocks if kind == language]


def list_commands(*headings):
    """Return the commands of sections, in the order of the page."""
    return [line for heading in headings for block in read_blocks(heading) for line in block.splitlines()]


def list_rehearsal_commands():
    """Return the commands on the simulated arm, with the differences that the page names."""
    commands = [*list_commands(REHEARSAL), *list_commands("1. URDF", "3. The motion", "4. Record", "5. Does")]
    launch, enable, switch, _, full_scale, back = list_commands("6. Compensate")
    assert ("spawn:=true" in launch, "'[1.0]'" in full_scale) == (True, True)
    assert all("switch_controllers" in command for command in (switch, back))
    commands += [launch, full_scale, enable, EFFORT_MODE.format("true"), EFFORT_MODE.format("false")]
    replacements = {"--tip tool0": "--tip tool", " --obstacles table.yaml": "", " spawn:=true": ""}
    return [re.sub("|".join(replacements), lambda match: replacements[match[0]], command) for command in commands]


def test_first_hour_takes_twenty_commands_and_one_file():
    assert len(list_commands(*STEPS)) <= MAX_COMMANDS
    assert len(list_rehearsal_commands()) <= MAX_COMMANDS
    assert [command.split()[0] for command in list_rehearsal_commands()[:3]] == ["cp", "ros2", "dynid"]
    assert not [block for heading in STEPS for block in read_blocks(heading, "yaml")]
    assert len(read_blocks(REHEARSAL, "yaml")) == 1
    for command in list_commands(*STEPS):
        if command.startswith("dynid "):
            _parser().parse_args(shlex.split(command)[1:])


class Terminals:
    """Terminals in one folder: a launch runs with a log until its file is launched again."""

    def __init__(self, folder):
        self.folder = folder
        self._launched = {}

    def type(self, command):
        """Run a command, which must succeed; one that ends by itself returns its output."""
        if command.startswith("ros2 launch"):
            self._launch(command)
            return ""
        output = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        output_text = output.stdout + output.stderr
        assert output.returncode == 0, f"{command}\n{output_text}"
        assert "success=False" not in output_text, f"{command}\n{output_text}"
        return output_text

    def wait_for(self, text, times):
        """Wait until the logs of the launches contain a text so many times."""
        deadline = time.monotonic() + TIMEOUT_S
        while sum(log.read_text().count(text) for log in self.folder.glob("*.log")) < times:
            assert time.monotonic() < deadline, text
            time.sleep(0.2)

    def _launch(self, command):
        name = command.split()[3]
        self._end(name)
        with (self.folder / f"{len(list(self.folder.glob('*.log')))}.log").open("w") as log:
            words = shlex.split(command)
            self._launched[name] = subprocess.Popen(
                words, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def _end(self, name):
        if (process := self._launched.pop(name, None)) is not None:
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT_S)

    def close(self):
        """End all launches, the simulator last."""
        for name in [*self._launched][::-1]:
            self._end(name)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_commands_lead_the_simulated_arm_to_floating(tmp_path, monkeypatch):
    rclpy = pytest.importorskip("rclpy")
    pytest.importorskip("mujoco")
    if shutil.which("ros2") is None:
        pytest.skip("ros2cli is not installed")
    from sensor_msgs.msg import JointState  # noqa: PLC0415 - with rclpy

    from dynid_ros.nodes.shared.process import own_domain  # noqa: PLC0415

    (text,) = read_blocks(REHEARSAL, "yaml")
    for old, new in SHORT_MOTIONS.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "arm.yaml").write_text(text)
    with own_domain() as domain, closing(Terminals(tmp_path)) as terminals:
        monkeypatch.setenv("ROS_DOMAIN_ID", domain)
        rclpy.init()
        node = rclpy.create_node("observer")
        positions = []
        node.create_subscription(JointState, "joint_states", lambda state: positions.append(state.position), 10)
        started = time.monotonic()
        n_bags = 0
        for command in list_rehearsal_commands():
            bags = sorted(map(str, (tmp_path / "recordings").glob("*")))[-2:]
            names = dict(zip(("recordings/recording_1", "recordings/recording_2"), bags, strict=False))
            if command.startswith("dynid identify"):
                command = re.sub("|".join(names), lambda match, names=names: names[match[0]], command)  # noqa: PLW2901
            if "/excitation/stop" in command:
                time.sleep(OBSERVATION_S)
            if command == EFFORT_MODE.format("false"):  # the previous command made the arm float
                print(f"from the first command to a floating arm: {time.monotonic() - started:.0f} s")
                first = read_position(rclpy, node, positions)
                time.sleep(FLOATING_S)
                assert np.abs(np.subtract(read_position(rclpy, node, positions), first)).max() < MAX_DRIFT_RAD
            terminals.type(command)
            if "controller_stack" in command:
                terminals.wait_for("[gravity_compensation]: disabled", 1)
            if "/excitation/start" in command or "/excitation/stop" in command:
                n_bags += "/excitation/stop" in command or n_bags > 0
                terminals.wait_for("The recorder wrote", n_bags)
        rclpy.shutdown()
    assert (tmp_path / "results/identified.yaml").is_file()


def read_position(rclpy, node, positions):
    """Return the newest joint positions."""
    positions.clear()
    while not positions:
        rclpy.spin_once(node)
    return positions[-1]
