"""`dynid validate --simulate`: how far MuJoCo is from a recording, before and after."""

import json
import sys

import link_experiment
import numpy as np
import planar_arm
import pytest
from command_line import refused, run

from dynid_ros.identification import LinkIdentification
from dynid_ros.model.friction import JointFriction

pytest.importorskip("mujoco")

PLANAR, TRUTH = link_experiment.planar()
FRICTION = JointFriction(smoothing=0.05)


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """An arm, its links, and a motion that was not fitted."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "arm.urdf").write_text(planar_arm.urdf())
    link_experiment.record(PLANAR, TRUTH, 1).write_npz(folder / "other.npz")
    found = LinkIdentification(PLANAR, FRICTION).fit(link_experiment.record(PLANAR, TRUTH))
    found.save(folder / "identified.yaml")
    return folder


@pytest.fixture(name="arguments")
def fixture_arguments(folder, monkeypatch):
    """Of a validation."""
    monkeypatch.chdir(folder)
    model = ("--model", "identified.yaml", "--urdf", "arm.urdf", "--recording", "other.npz")
    return ("validate", *model, "--output", "predicted.csv", "--simulate")


def test_exported_model_is_nearer_than_the_urdf(arguments, capsys):
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "In MuJoCo on other.npz, " in out
    code, out, _ = run(capsys, *arguments, "--json")
    found = json.loads(out)["simulation"]
    assert code == 0
    torque, position = ({name: np.array([*by.values()]) for name, by in found[key].items()} for key in KEYS)
    assert (torque["exported"] < 0.5 * torque["URDF"]).all()
    # The true offset of 0.2 N m and the smooth reversal are what MJCF cannot hold.
    assert (torque["exported"] < 0.35).all()
    assert (torque["identified"] < torque["exported"]).all()
    moved = np.array([*found["moved_rms"].values()])
    assert (position["exported"] < 0.4 * position["URDF"]).all()
    # The last link is light, so that the missing offset takes it further.
    assert (position["exported"] < np.array([0.1, 0.1, 0.5]) * moved).all()
    assert found["windows"] >= 40


KEYS = ("torque_rms", "position_rms")


def test_without_mujoco_it_says_so(arguments, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "dynid_ros.export.simulated", raising=False)
    monkeypatch.delitem(sys.modules, "dynid_ros.simulation.mjcf", raising=False)
    monkeypatch.delitem(sys.modules, "dynid_ros.export.mjcf_file", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "--simulate needs mujoco, which is not installed: pip install mujoco" in err


def test_held_joints_are_refused(arguments, capsys):
    err = refused(capsys, *arguments, "--hold", "joint_3=0.3")
    assert "cannot be replayed" in err or "joint_3" in err
