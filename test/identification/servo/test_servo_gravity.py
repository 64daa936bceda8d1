"""Gravity of an arm identified from its servos, for the compensation of their sag."""

import numpy as np
import pytest
from mit_arms import TWO, record_drives, two

from dynid_ros.control import load_held_arm
from dynid_ros.identification import ServoIdentification
from dynid_ros.recording import EffortConvention
from dynid_ros.recording.effort import with_impedance_torque


def test_servos_with_known_gains_determine_gravity(tmp_path):
    arm = two(seed=6)
    gains = {name: arm.per_joint(name) for name in ("stiffness", "damping")}
    recording = with_impedance_torque(record_drives(arm, 16.0), EffortConvention("impedance", **gains))
    result = ServoIdentification(arm.robot).fit(recording)
    path = result.save(tmp_path / "identified.yaml")
    held_arm = load_held_arm(path, TWO, gravity=arm.robot.gravity)
    assert held_arm.servo_stiffness == pytest.approx(dict(zip(arm.robot.joint_names, gains["stiffness"], strict=True)))
    position = np.random.default_rng(0).uniform(-1.4, 1.4, (50, 2))
    true = arm.robot.gravity_torque(position, arm.parameters)
    torque = np.array([held_arm.gravity(q) for q in position.tolist()])
    assert np.abs(torque - true).max() < 0.02 * np.abs(true).max()
    section = result.document()["gravity"]
    assert all(0 < entry["std"]["n_x"] < 0.02 for entry in section.values())
