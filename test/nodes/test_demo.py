"""The whole demo, with short motions: every node a process, over DDS."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from dynid_ros.share import share_path

pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

FILES = (
    "report.html",
    "drop.png",
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


def run(output, *arguments, timeout=880):
    command = [sys.executable, "-m", "dynid_ros.cli", "demo", "--output", output, *arguments]
    environment = os.environ | {"ROS_DOMAIN_ID": str(os.getpid() % 100 + 1)}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("acts", "said"),
    [
        (["links", "load"], r"act load needs .*/identified.yaml, which act gravity writes"),
        (["lode"], r"there is no act 'lode'; the acts are gravity, links, load, torque_sensors, flexible_joint"),
    ],
)
def test_acts_that_cannot_be_played_are_refused(tmp_path, acts, said):
    ended = run(tmp_path, "--acts", *acts, timeout=110)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert re.search(f"error: {said}", ended.stdout + ended.stderr)


@pytest.mark.timeout(900)
def test_demo_passes(tmp_path):
    parameters = yaml.safe_load(share_path("config/demo.yaml").read_text())
    parameters["excitation"]["ros__parameters"] |= {
        "steps": 5,
        "speed_fraction": 1.0,
        "travel_speed_fraction": 1.0,
    }
    parameters["demo"]["ros__parameters"]["drop_time"] = 2.0
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(parameters))
    output = tmp_path / "out"
    ended = run(output, "--parameters", file)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "PASSED: the arm floats" in ended.stdout
    assert "PASSED: the links are found" in ended.stdout
    assert "PASSED: the load is known" in ended.stdout
    assert "Put down: noticed" in ended.stdout
    assert "live: " in ended.stdout
    assert "PASSED: the torque sensors are calibrated" in ended.stdout
    assert "PASSED: the springs are found" in ended.stdout
    for file in FILES:
        assert (output / file).exists(), file
    assert "hold the true value" in (output / "links/report.html").read_text()
    main = (output / "report.html").read_text()
    for act in ("load", "torque_sensors", "flexible_joint"):
        assert f'href="{act}/demonstration.html"' in main
        assert "interval holds the truth" in (output / act / "demonstration.html").read_text()
    assert not [
        line for log in (output / "logs").iterdir() for line in log.read_text().splitlines() if "Traceback" in line
    ]
