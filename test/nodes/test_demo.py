"""The whole demo, with short motions: every node a process, over DDS."""

import os
import subprocess
import sys

import pytest
import yaml

from dynid_ros.share import share_path

pytest.importorskip("rclpy")
pytest.importorskip("mujoco")


@pytest.mark.timeout(360)
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
    command = [sys.executable, "-m", "dynid_ros.cli", "demo", "--output", output, "--parameters", file]
    environment = os.environ | {"ROS_DOMAIN_ID": str(os.getpid() % 100 + 1)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=340, env=environment, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "PASSED: the arm floats" in ended.stdout
    assert "PASSED: the links are found" in ended.stdout
    for file in ("report.html", "drop.png", "links/identified.yaml", "links/identified.urdf", "links/report.html"):
        assert (output / file).exists(), file
    assert "hold the true value" in (output / "links/report.html").read_text()
    assert not [
        line for log in (output / "logs").iterdir() for line in log.read_text().splitlines() if "Traceback" in line
    ]
