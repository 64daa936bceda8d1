"""Test that invalid input of `dynid guide` gives one line."""

import sys

import pytest
from command_line import URDF, run_refused


def test_missing_urdf_is_one_line(capsys, tmp_path):
    assert "no-such.urdf" in run_refused(capsys, "guide", "--urdf", tmp_path / "no-such.urdf")


@pytest.mark.parametrize("option", ["--params-file", "--recording"])
def test_missing_file_is_named(capsys, tmp_path, option):
    assert "there is no such file" in run_refused(
        capsys, "guide", "--urdf", URDF, "--tip", "tool", option, tmp_path / "no"
    )


def test_simulated_recording_is_refused(capsys, tmp_path):
    assert "--simulated" in run_refused(capsys, "guide", "--urdf", URDF, "--simulated", "--recording", tmp_path)


def test_missing_viser_names_the_package_to_install(capsys, tmp_path, monkeypatch):
    for name in [module for module in sys.modules if module.startswith("dynid_ros.guide.")]:
        monkeypatch.delitem(sys.modules, name)  # another test of this process may have imported it
    monkeypatch.setitem(sys.modules, "viser", None)
    text = run_refused(capsys, "guide", "--urdf", URDF, "--tip", "tool", "--recording", tmp_path)
    assert "pip install viser yourdfpy" in text
