"""The examples work on bags of a small arm whose links are not those of its URDF."""

import runpy
import sys
from pathlib import Path

import link_experiment
import numpy as np
import planar_arm
import pytest
from bag_files import START, joint_state, write_bag

from dynid_ros.model import RobotModel

EXAMPLES = Path(__file__).parents[2] / "examples"
ROBOT, TRUTH = link_experiment.planar()


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(planar_arm.urdf())
    return urdf, bag(tmp_path / "run1", seed=0), bag(tmp_path / "run2", seed=1), tmp_path


def bag(path, seed):
    recording = link_experiment.record(ROBOT, TRUTH, seed)
    stamps = START + np.round(1e9 * recording.time).astype(int)
    rows = zip(stamps.tolist(), recording.position, recording.velocity, recording.torque, strict=True)
    return write_bag(
        path, [("/joint_states", row[0], joint_state(row[0], ROBOT.joint_names, *row[1:])) for row in rows]
    )


def run(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    return runpy.run_path(str(EXAMPLES / name))


def test_identify_from_bag(files, monkeypatch):
    urdf, first, _, folder = files
    run(monkeypatch, "identify_from_bag.py", urdf, first, folder / "results", "link_3")
    assert (folder / "results" / "identified.yaml").is_file()
    identified = RobotModel.from_urdf(folder / "results" / "identified.urdf")
    q = np.random.default_rng(2).uniform(-2, 2, (100, 3))
    qd, qdd = np.zeros_like(q), np.ones_like(q)
    wanted = ROBOT.inverse_dynamics(q, qd, qdd, TRUTH)
    assert np.std(identified.inverse_dynamics(q, qd, qdd) - wanted) < 0.02 * np.std(wanted)
    assert np.std(ROBOT.inverse_dynamics(q, qd, qdd) - wanted) > 0.2 * np.std(wanted)


def test_walkthrough(files, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    urdf, first, second, _ = files
    left = run(monkeypatch, "walkthrough.py", urdf, first, second)
    plt.close("all")
    assert (left["links"].validate(left["second"]).relative_rms < 0.05).all()
    assert "joint_3" in capsys.readouterr().out
