"""Test insufficient recordings: exit code 1, results with identified values only, and a recommendation."""

import json

import link_experiment
import numpy as np
import planar_arm
import pytest
import weighed_loads
from command_line import URDF, run
from gravity_experiment import planned_recording

from dynid_ros.identified.identified_file import load_identified

PLANAR, TRUTH = link_experiment.build_planar()


def test_links_of_a_short_recording(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "identified.urdf").write_text("of an earlier run")
    link_experiment.record(PLANAR, TRUTH).slice(slice(0, 200)).write_npz("run.npz")
    link_experiment.record(PLANAR, TRUTH, seed=1).write_npz("other.npz")
    inputs = ("--urdf", "arm.urdf", "--recording", "run.npz", "--validate", "other.npz")
    code, out, err = run(capsys, "identify", "links", *inputs, "--output", "out", "--json", "--verbose")
    assert code == 1, err
    answer = json.loads(out)
    assert answer["exit_code"] == 1
    assert "base parameters are not determined" in answer["missing"][0]
    assert "record half a minute or more in which all joints move at once" in answer["missing"][0]
    assert "not enough: run.npz: " in err
    assert "links" not in answer
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiment.yaml",
        "identified.yaml",
        "report.html",
    ]
    document = load_identified("out/identified.yaml")
    assert not {"links", "base_covariance"} & set(document)
    assert document["validation"] == []
    assert any(line.startswith("no validation of torque: not predicted") for line in err.splitlines())
    for joint in PLANAR.joint_names:
        friction = document["friction"][joint]
        values = [friction[term] for term in friction["terms"] if friction[term] is not None]
        assert np.abs(values).max(initial=0.0) < 20
    assert None in [document["friction"][joint]["viscous"] for joint in PLANAR.joint_names]
    code, _, err = run(capsys, "validate", "--model", "out/identified.yaml", *inputs[:2], "--recording", "other.npz")
    assert code == 2


def test_links_with_a_held_joint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    link_experiment.record(PLANAR, TRUTH, still=(2,)).write_npz("run.npz")
    inputs = ("--urdf", "arm.urdf", "--recording", "run.npz", "--friction", "coulomb,viscous,offset")
    code, out, _ = run(capsys, "identify", "links", *inputs, "--output", "out")
    assert code == 1
    assert "joint_3 above all: `dynid excite` plans it" in out
    assert "identified.urdf" not in out
    friction = load_identified("out/identified.yaml")["friction"]
    assert friction["joint_1"]["viscous"] == pytest.approx(link_experiment.VISCOUS, rel=0.3)
    assert friction["joint_3"]["viscous"] is None


def test_gravity_without_rotation_of_some_joints(tmp_path, capsys):
    whole = planned_recording()
    whole.slice(slice(0, whole.n_samples // 4)).write_npz(tmp_path / "run.npz")
    inputs = ("--urdf", URDF, "--recording", tmp_path / "run.npz", "--output", tmp_path)
    code, out, err = run(capsys, "identify", "gravity", *inputs, "--json")
    assert code == 1, err
    answer = json.loads(out)
    section = load_identified(tmp_path / "identified.yaml")["gravity"]
    unknown = [joint for joint, entry in section.items() if not entry["observable"] and not entry.get("torque_free")]
    assert unknown
    assert [line.split(" is not known")[0] for line in answer["missing"]] == [f"gravity of {j}" for j in unknown]
    assert err.count("not enough: gravity of") == len(unknown)
    assert all(section[joint]["n_x"] is None for joint in unknown)


def test_unidentified_gravity_is_not_validated(tmp_path, capsys):
    whole = planned_recording()
    whole.slice(slice(0, whole.n_samples // 4)).write_npz(tmp_path / "run.npz")
    whole.write_npz(tmp_path / "other.npz")
    inputs = ("--urdf", URDF, "--recording", tmp_path / "run.npz", "--validate", tmp_path / "other.npz")
    code, out, _ = run(capsys, "identify", "gravity", *inputs, "--output", tmp_path, "--verbose")
    assert code == 1
    assert "nan" not in out
    (line,) = [line for line in out.splitlines() if line.startswith("no validation of")]
    assert "joint_2, joint_3, joint_4: not predicted, as gravity of joint_2 is not known" in line


def test_load_with_little_rotation(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dynid_ros.report.load.write_load_report", lambda path, *_: path)
    weighed_loads.arm().save(tmp_path / "arm.yaml")
    weighed_loads.record_rests(turning=(0,)).write_npz(tmp_path / "run.npz")
    (tmp_path / "arm.urdf").write_text(weighed_loads.experiment().robot.urdf)
    inputs = ("--urdf", tmp_path / "arm.urdf", "--recording", tmp_path / "run.npz", "--model", tmp_path / "arm.yaml")
    code, out, err = run(capsys, "identify", "load", *inputs, "--static", "--output", tmp_path / "out", "--json")
    assert code == 1, err
    answer = json.loads(out)
    assert "of the load are not determined; record a motion that turns it" in answer["missing"][0]
    assert None in answer["load"]["estimate"]["parameters"][:4]
