"""Test detection of encoder zeros that differ from the URDF."""

from dataclasses import replace

import numpy as np
import pytest
from gate_recordings import sound_case

from dynid_ros.model.dynamics import inverse_dynamics_function
from dynid_ros.recording import check


@pytest.fixture(scope="module")
def sound():
    return sound_case(np.random.default_rng([99, 0]), "develop", "stops", "kinova", "coulomb")


def shift_encoder(case, joint, degrees):
    position = case.recording.position.copy()
    position[:, joint] += np.radians(degrees)
    return replace(case.recording, position=position)


def test_accepts_the_zeros_of_a_sound_recording(sound):
    """Shifted origins generate no code."""
    undecided = []
    inverse_dynamics_function.cache_clear()
    assert check(sound.recording, sound.robot, True, undecided) == []
    assert inverse_dynamics_function.cache_info().misses < sound.robot.n_joints
    (line,) = (line for line in undecided if "encoder zero" in line)
    assert f"{sound.robot.joint_names[0]} (never shows)" in line  # its axis is vertical


def test_reports_joint_and_size_of_an_offset(sound):
    (finding,) = check(shift_encoder(sound, 3, -12.0), sound.robot, motion=True)
    assert (finding.kind, finding.severity) == ("encoder zero", "warning")
    assert finding.where.endswith(f"joint '{sound.robot.joint_names[3]}'")
    assert float(finding.message.split("zero is ")[1].split(" ")[0]) == pytest.approx(-12.0, abs=1.0)


def test_joints_with_parallel_axes_share_an_offset(sound):
    """The parameters of the link in between absorb the offset, so either encoder may be wrong."""
    (finding,) = check(shift_encoder(sound, 2, 5.0), sound.robot, motion=True)
    assert all(f"'{sound.robot.joint_names[j]}'" in finding.where for j in (1, 2))
    assert "by +5.0 ± " in finding.message
