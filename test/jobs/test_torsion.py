"""Test torsion identification without a URDF, and validation from its file."""

import copy
import json

import numpy as np
import pa10
import pytest
import yaml
from bag_files import joint_state, write_bag
from command_line import run
from real_recordings import DATA, MISSING
from torsion_recordings import KUKA, flexible_joint, kuka_parts, kuka_recording

from dynid_ros.identification.flexible import TorsionIdentification
from dynid_ros.identification.flexible.torsion_choice import TorsionModels
from dynid_ros.identified.identified_file import load_identified

FIGURES = ("torsion_rms", "residual_rms", "offset", "centred_residual_rms", "plain_residual_rms")


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """Return a folder with two recordings of different motion."""
    folder = tmp_path_factory.mktemp("torsion")
    for seed in (0, 1):
        flexible_joint(3e4, delay=0.003, ripple=2e-4, amplitude=0.3, seed=seed).write_npz(folder / f"{seed}.npz")
    return folder


def identify(capsys, folder, *options):
    arguments = ("identify", "flexible", "--torsion", "--recording", folder / "0.npz", "--output", folder / "out")
    return run(capsys, *arguments, *options)


def validate(capsys, folder, *options, model="out/identified.yaml", recording="1.npz"):
    arguments = ("--model", folder / model, "--recording", folder / recording, "--output", folder / "predicted.csv")
    return run(capsys, "validate", *arguments, *options)


def test_file_predicts_another_recording(folder, capsys):
    code, out, err = identify(capsys, folder, "--validate", folder / "1.npz", "--json")
    assert code == 0, err
    document = json.loads(out)
    entry = document["torsion"]["joint"]
    assert entry["coefficients"].keys() == entry["std"].keys() == entry["part_rms"].keys()
    assert entry["coefficients"]["torque"] == pytest.approx(1 / 3e4, rel=0.02)
    assert 0 < entry["std"]["torque"] < 0.02 / 3e4
    assert set(entry["terms"]) == set(entry["sets"][0]["terms"])
    assert entry["ripples"][0]["per_turn"] == pytest.approx(400, abs=0.5)
    (direct,) = document["torsion_validation"]
    code, out, err = validate(capsys, folder, "--json")
    assert code == 0, err
    validated = json.loads(out)
    assert [validated[name]["joint"] for name in FIGURES] == [direct[name]["joint"] for name in FIGURES]
    table = np.genfromtxt(folder / "predicted.csv", delimiter=",", names=True)
    assert table.dtype.names == ("t", "joint_measured", "joint_predicted")
    error = table["joint_measured"] - table["joint_predicted"]
    assert np.sqrt(np.mean(error**2)) == pytest.approx(validated["residual_rms"]["joint"], rel=0.02)
    assert validated["residual_rms"]["joint"] < 0.05 * validated["torsion_rms"]["joint"]
    code, out, _ = validate(capsys, folder)
    assert code == 0
    assert "joint " in out


def test_file_contains_joints_without_kinematics(folder, capsys):
    assert identify(capsys, folder)[0] == 0
    document = load_identified(folder / "out" / "identified.yaml")
    assert document["format"] == "dynid/1"
    assert document["robot"]["joints"] == ["joint"]
    assert document["robot"]["urdf_sha256"] is None
    code, _, err = run(capsys, "report", "--model", document.path, "--output", folder / "page.html")
    assert code == 0, err
    assert "without URDF" in (folder / "page.html").read_text()
    assert "without URDF" in (folder / "out" / "report.html").read_text()
    (folder / "one.urdf").write_text(pa10.single_joint_urdf(1).replace("joint_1", "joint"))
    urdf = ("--urdf", folder / "one.urdf")
    code, _, err = run(capsys, "report", "--model", document.path, *urdf, "--output", folder / "page.html")
    assert code == 2
    assert "was identified without a URDF: leave the URDF out" in err
    assert validate(capsys, folder, *urdf)[0] == 0


def test_link_states_come_from_a_topic(folder, capsys):
    recording = flexible_joint(3e4, seed=2)
    nanoseconds = np.round(1e9 * recording.time).astype(int) + 1_000_000_000
    messages = []
    for i, stamp in enumerate(nanoseconds.tolist()):
        motor = recording.position[i], recording.velocity[i], recording.torque[i]
        messages.append(("/joint_states", stamp, joint_state(stamp, recording.joint_names, *motor)))
        messages.append(("/links", stamp, joint_state(stamp, recording.joint_names, recording.link_position[i])))
    write_bag(folder / "bag", messages)
    assert identify(capsys, folder)[0] == 0
    code, _, err = validate(capsys, folder, "--link-states-topic", "links", recording="bag")
    assert code == 0, err


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda entry: entry.pop("coefficients"), "coefficients"),
        (lambda entry: entry["coefficients"].update(magnets=1.0), "magnets"),
        (lambda entry: entry["coefficients"].update(torque="much"), "torque"),
        (lambda entry: entry.update(fastest=0.0), "fastest"),
        (lambda entry: entry.update(zero=None), "zero"),
        (lambda entry: entry.update(ripples=[{"per_turn": 4.0}]), "amplitude"),
        (lambda entry: entry.update(ripples="none"), "ripples"),
    ],
)
def test_malformed_file_is_refused(change, field, folder, capsys):
    assert identify(capsys, folder)[0] == 0
    document = copy.deepcopy(dict(load_identified(folder / "out" / "identified.yaml")))
    change(document["torsion"]["joint"])
    (folder / "broken.yaml").write_text(yaml.safe_dump(document))
    code, _, err = validate(capsys, folder, model="broken.yaml")
    assert code == 2
    assert field in err
    assert "joint 'joint'" in err
    assert err.count("\n") == 1


def test_missing_links_and_urdf_are_refused(folder, capsys):
    assert identify(capsys, folder)[0] == 0
    recording = flexible_joint(3e4, seed=5)
    np.savez(folder / "motor.npz", joint_names=["joint"], time=recording.time, position=recording.position,
             torque=recording.torque)  # fmt: skip
    code, _, err = validate(capsys, folder, recording="motor.npz")
    assert code == 2
    assert "no link position of joint to compare with" in err
    code, _, err = run(capsys, "identify", "flexible", "--recording", folder / "0.npz", "--output", folder / "new")
    assert code == 2
    assert "--urdf is missing" in err
    assert not (folder / "new").exists()
    (folder / "links.yaml").write_text(yaml.safe_dump({"format": "dynid/1", "robot": {"joints": []}, "links": {}}))
    code, _, err = validate(capsys, folder, model="links.yaml")
    assert code == 2
    assert "--urdf is missing" in err


@pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)
def test_file_of_a_real_arm_predicts_like_its_fit(tmp_path, capsys):
    kuka = kuka_recording(KUKA)
    _, fitted, held_out = kuka_parts(kuka)[2]
    for name, part in (("0", fitted), ("1", held_out)):
        kuka.slice(part).write_npz(tmp_path / f"{name}.npz")
    assert identify(capsys, tmp_path)[0] == 0
    models = TorsionModels.of_document(load_identified(tmp_path / "out" / "identified.yaml"))
    result = TorsionIdentification().fit(kuka.slice(fitted))
    np.testing.assert_allclose(models.predict(kuka.slice(held_out)), result.predict(kuka.slice(held_out)), rtol=1e-12)
    code, out, err = validate(capsys, tmp_path, "--json")
    assert code == 0, err
    rms = json.loads(out)["centred_residual_rms"]
    assert max(rms[f"axis_{i}"] for i in (1, 2, 3)) < np.deg2rad(5.3e-3)
    assert rms["axis_4"] is None
