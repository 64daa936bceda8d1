"""The node over DDS: a recording with commands in, the latched result out."""

import pytest
from command_line import run
from helpers.identification_bench import IdentificationBench
from mit_arms import TWO, recorded, two
from servo_arms import ONE, motion, one, record

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.nodes.link_identification import LinkIdentificationNode
from dynid_ros.nodes.servo_identification import ServoIdentificationNode


def test_without_and_with_a_mass(tmp_path, keep, capsys):
    arm = one(seed=8)
    told = motion(arm, 6.0, 50.0)
    plain, loaded = tmp_path / "plain.npz", tmp_path / "loaded.npz"
    record(arm, told).write_npz(plain)
    record(arm, told, mass=0.3, center=(0.2, 0.0, 0.0)).write_npz(loaded)
    (tmp_path / "arm.urdf").write_text(ONE, encoding="utf-8")
    given = {"robot_description": tmp_path / "arm.urdf", "recording": plain, "output": tmp_path / "out"}
    mass = {"reference_mass": 0.3, "reference_center": "[0.2, 0.0, 0.0]"}
    bench = keep(IdentificationBench(ServoIdentificationNode, **given, **mass))
    lacking = bench.identify()
    assert not lacking.success
    assert "no recording was made with it attached" in lacking.message
    bench.set_parameters(recording_with_mass=str(loaded))
    response = bench.identify()
    assert response.success, response.message
    found = bench.result()["servos"]["lift"]
    assert found["in_torque"]["gain"] > 10
    assert found == load_identified(tmp_path / "out" / "identified.yaml")["servos"]["lift"]
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_links_of_drives_in_mit_mode(tmp_path, keep, capsys):
    arm = two(seed=3)
    recording = tmp_path / "run.npz"
    recorded(arm, 12.0).write_npz(recording)
    (tmp_path / "arm.urdf").write_text(TWO, encoding="utf-8")
    given = {"robot_description": tmp_path / "arm.urdf", "recording": recording, "output": tmp_path / "out"}
    gains = {name: arm.per_joint(name).tolist() for name in ("stiffness", "damping")}
    bench = keep(
        IdentificationBench(
            LinkIdentificationNode, **given, **gains, effort_convention="impedance", command_delay=".nan"
        )
    )
    response = bench.identify()
    assert response.success, response.message
    friction = bench.result()["friction"]
    for name, viscous in zip(friction, arm.per_joint("viscous"), strict=True):
        assert friction[name]["viscous"] == pytest.approx(viscous, rel=0.05)
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]
