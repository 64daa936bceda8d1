"""The node over DDS: a recording with commands in, the latched result out."""

import pytest

rclpy = pytest.importorskip("rclpy")

from helpers.identification_bench import IdentificationBench  # noqa: E402
from servo_arms import ONE, motion, one, record  # noqa: E402

from dynid_ros.identified.identified_file import load_identified  # noqa: E402
from dynid_ros.nodes.servo_identification import ServoIdentificationNode  # noqa: E402


def test_without_and_with_a_mass(tmp_path, keep):
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
