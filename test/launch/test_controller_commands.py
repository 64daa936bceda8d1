"""Test that the commands of docs/controllers.md work with the real ros2_control, if it is installed."""

import re
import shutil
import signal
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path

import demo_arm_model
import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

from helpers.controller_stack import TRAJECTORY, ControllerStack, missing_packages

from dynid_ros.nodes.shared.process import own_domain

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "controllers.md").read_text(encoding="utf-8")
ENDLESS = ("ros2 launch", "ros2 topic echo")
SECTIONS = {"effort": "Effort alone", "feedforward": "With a position controller", "trajectory": "In trajectories"}


def read_blocks(heading: str) -> list[list[str]]:
    """Return the commands of each code block of a section, without comments."""
    (section,) = re.findall(rf"^## {heading}$(.*?)^##", PAGE, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    lines = [block.replace("\\\n", " ").splitlines() for block in blocks]
    return [[re.sub(r"\s+#.*", "", line) for line in block] for block in lines]


class Terminals:
    """Terminals in one folder; commands that do not end by themselves get their own."""

    def __init__(self, stack: ControllerStack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder
        self.launched: list[subprocess.Popen] = []

    def type(self, command: str) -> None:
        """Run a command, which must succeed, and wait until a launched node is ready."""
        if command.startswith(ENDLESS):
            with (self.folder / "launch.log").open("ab") as log:
                self.launched.append(
                    subprocess.Popen(
                        ["bash", "-c", command], cwd=self.folder, stdout=log, stderr=log, start_new_session=True
                    )
                )
            self.stack.spin_until(lambda: self.stack.states.get("gravity_compensation") == "disabled", command)
            return
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.stack.spin_until(lambda: process.poll() is not None, command)
        output, _ = process.communicate()
        assert process.returncode == 0, f"{command}\n{output}"
        assert "success=False" not in output, f"{command}\n{output}"

    def close(self) -> None:
        """End the launched commands."""
        for process in self.launched:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20.0)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(name="terminals", params=list(SECTIONS))
def fixture_terminals(request, monkeypatch, tmp_path):
    pytest.importorskip("ros2cli", reason="ros2cli is not installed")
    absent = missing_packages()
    if absent:
        pytest.skip(f"ros2_control is incomplete: not installed are {', '.join(absent)}")
    for name in SECTIONS:
        shutil.copy(ROOT / "config" / "controllers" / f"{name}.yaml", tmp_path)
    (tmp_path / "results").mkdir()
    demo_arm_model.write(tmp_path / "results" / "identified.yaml")
    with ExitStack() as contexts:
        monkeypatch.setenv("ROS_DOMAIN_ID", contexts.enter_context(own_domain()))
        rclpy.init()
        contexts.callback(rclpy.shutdown)
        opened = ControllerStack(tmp_path, request.param)
        stack = contexts.enter_context(closing(opened))
        if request.param != "trajectory":
            stack.spawn(TRAJECTORY, tmp_path / "feedforward.yaml")
        yield contexts.enter_context(closing(Terminals(stack, tmp_path)))


@pytest.mark.parametrize("route", SECTIONS)
def test_page_has_commands_for_each_route(route):
    commands = [command for block in read_blocks(SECTIONS[route]) for command in block]
    assert sum(f"route:={route}" in command for command in commands) == 1


@pytest.mark.slow
def test_commands_of_a_route_work_as_documented(terminals):
    stack = terminals.stack
    pose = np.array(stack.position[-1])
    blocks = read_blocks(SECTIONS[stack.route])
    launch_blocks = [block for block in blocks if any("ros2 launch" in line for line in block)]
    assert launch_blocks
    assert len(blocks) <= 2
    for block in [*launch_blocks, *(other for other in blocks if other not in launch_blocks)]:
        for command in block:
            terminals.type(command)
        stack.spin(1.0)
        if stack.route != "effort":  # a scale of 0.2 holds no arm
            assert np.abs(stack.position[-1] - pose).max() < 0.1
    if stack.route == "effort":
        assert stack.states["gravity_compensation"] == "disabled"
    assert np.abs(np.diff(stack.position[-100:], axis=0)).max() < 1e-3, "the arm rests at the end"
