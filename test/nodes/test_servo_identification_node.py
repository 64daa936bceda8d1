"""Test the servo and link identification nodes with recordings that contain commands."""

import pytest
from command_line import run
from helpers.identification_bench import IdentificationBench
from helpers.node_threads import assert_refused, assert_success
from mit_arms import TWO, record_drives, two
from servo_arms import ONE, motion, one, record

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.nodes.link_identification import LinkIdentificationNode
from dynid_ros.nodes.servo_identification import ServoIdentificationNode


def test_reference_mass_gives_servo_torque_gains(tmp_path, keep, capsys):
    arm = one(seed=8)
    command = motion(arm, 6.0, 50.0)
    plain = tmp_path / "plain.npz"
    loaded = tmp_path / "loaded.npz"
    record(arm, command).write_npz(plain)
    record(arm, command, mass=0.3, center=(0.2, 0.0, 0.0)).write_npz(loaded)
    (tmp_path / "arm.urdf").write_text(ONE, encoding="utf-8")
    parameters = {"robot_description": tmp_path / "arm.urdf", "recording": plain, "output": tmp_path / "out"}
    mass = {"reference_mass": 0.3, "reference_center": "[0.2, 0.0, 0.0]"}
    bench = keep(IdentificationBench(ServoIdentificationNode, **parameters, **mass))
    assert_refused(bench.identify(), "no recording was made with it attached")
    bench.set_parameters(recording_with_mass=str(loaded))
    assert_success(bench.identify())
    servo = bench.result()["servos"]["lift"]
    assert servo["in_torque"]["gain"] > 10
    assert servo == load_identified(tmp_path / "out" / "identified.yaml")["servos"]["lift"]
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_links_of_drives_with_impedance_commands(tmp_path, keep, capsys):
    arm = two(seed=3)
    recording = tmp_path / "run.npz"
    record_drives(arm, 12.0).write_npz(recording)
    (tmp_path / "arm.urdf").write_text(TWO, encoding="utf-8")
    parameters = {"robot_description": tmp_path / "arm.urdf", "recording": recording, "output": tmp_path / "out"}
    gains = {name: arm.per_joint(name).tolist() for name in ("stiffness", "damping")}
    bench = keep(
        IdentificationBench(
            LinkIdentificationNode, **parameters, **gains, effort_convention="impedance", command_delay=".nan"
        )
    )
    assert_success(bench.identify())
    friction = bench.result()["friction"]
    for name, viscous in zip(friction, arm.per_joint("viscous"), strict=True):
        assert friction[name]["viscous"] == pytest.approx(viscous, rel=0.05)
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]
