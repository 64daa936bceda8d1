"""docs/controllers.md typed in as it stands, beside the real ros2_control; skips where that is not installed."""

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


def blocks(heading: str) -> list[list[str]]:
    """Commands of each block of code between this heading and the next, without their comments."""
    (section,) = re.findall(rf"^## {heading}$(.*?)^##", PAGE, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    lines = [block.replace("\\\n", " ").splitlines() for block in found]
    return [[re.sub(r"\s+#.*", "", line) for line in block] for block in lines]


class Terminals:
    """Runs commands in one folder; those that do not end by themselves in a terminal of their own."""

    def __init__(self, stack: ControllerStack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.launched: list[subprocess.Popen] = []

    def type(self, command: str) -> None:
        """Run it; it must succeed, and whatever it starts must be ready."""
        if command.startswith(ENDLESS):
            with (self.folder / "launch.log").open("ab") as log:
                self.launched.append(
                    subprocess.Popen(
                        ["bash", "-c", command], cwd=self.folder, stdout=log, stderr=log, start_new_session=True
                    )
                )
            self.stack.until(lambda: self.stack.said.get("gravity_compensation") == "disabled", command)
            return
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.stack.until(lambda: process.poll() is not None, command)
        said, _ = process.communicate()
        assert process.returncode == 0, f"{command}\n{said}"
        assert "success=False" not in said, f"{command}\n{said}"

    def close(self) -> None:
        """End what was launched."""
        for process in self.launched:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20.0)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(name="terminals", params=list(SECTIONS))
def fixture_terminals(request, monkeypatch, tmp_path):
    pytest.importorskip("ros2cli", reason="ros2cli is not installed")
    if absent := missing_packages():
        pytest.skip(f"ros2_control is not all there: not installed are {', '.join(absent)}")
    for name in SECTIONS:
        shutil.copy(ROOT / "config" / "controllers" / f"{name}.yaml", tmp_path)
    (tmp_path / "results").mkdir()
    demo_arm_model.write(tmp_path / "results" / "identified.yaml")
    with ExitStack() as entered:
        monkeypatch.setenv("ROS_DOMAIN_ID", entered.enter_context(own_domain()))
        rclpy.init()
        entered.callback(rclpy.shutdown)
        made = ControllerStack(tmp_path, request.param)
        stack = entered.enter_context(closing(made))
        if request.param != "trajectory":
            stack.spawn(TRAJECTORY, tmp_path / "feedforward.yaml")
        yield entered.enter_context(closing(Terminals(stack, tmp_path)))


@pytest.mark.parametrize("route", SECTIONS)
def test_the_page_has_commands_for_each_route(route):
    typed = [command for block in blocks(SECTIONS[route]) for command in block]
    assert sum(f"route:={route}" in command for command in typed) == 1


@pytest.mark.slow
def test_each_command_of_a_route_does_what_the_page_says(terminals):
    stack = terminals.stack
    pose = np.array(stack.position[-1])
    found = blocks(SECTIONS[stack.route])
    begin = [block for block in found if any("ros2 launch" in line for line in block)]
    assert begin
    assert len(found) <= 2
    for block in [*begin, *(other for other in found if other not in begin)]:
        for command in block:
            terminals.type(command)
        stack.spin(1.0)
        if stack.route != "effort":  # where a scale of 0.2 holds no arm, as the page says
            assert np.abs(stack.position[-1] - pose).max() < 0.1
    if stack.route == "effort":
        assert stack.said["gravity_compensation"] == "disabled"
    assert np.abs(np.diff(stack.position[-100:], axis=0)).max() < 1e-3, "it rests in the end"
