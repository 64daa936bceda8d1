"""Test `dynid identify servos`: tables, archives, report and errors."""

from dataclasses import replace

import numpy as np
import pytest
from command_line import run, run_refused
from html_page import Page, assert_self_contained
from mit_arms import TWO, record_drives, two
from servo_arms import ONE, motion, one, record

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.recording import CommandSeries

CENTER = (0.2, 0.0, 0.0)


@pytest.fixture(name="files", scope="module")
def fixture_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servos")
    arm = one(seed=8)
    commands = motion(arm, 8.0, 50.0)
    plain = record(arm, commands)
    plain.write_npz(folder / "plain.npz")
    record(arm, commands, mass=0.3, center=CENTER).write_npz(folder / "loaded.npz")
    record(arm, motion(arm, 5.0, 50.0)).write_npz(folder / "other.npz")
    replace(plain, command=None).write_csv(folder / "silent.csv")
    at_samples = np.interp(plain.time, commands.time, commands.position[:, 0])[:, None]
    replace(plain, command=CommandSeries(plain.time, at_samples)).write_csv(folder / "table.csv")
    (folder / "arm.urdf").write_text(ONE, encoding="utf-8")
    return folder


def test_identification_with_a_mass_and_a_validation(files, tmp_path, capsys):
    code, out, err = run(
        capsys,
        *("identify", "servos", "--urdf", files / "arm.urdf", "--recording", files / "plain.npz"),
        *("--recording-with-mass", files / "loaded.npz", "--reference-mass", 0.3, "--reference-center", *CENTER),
        *("--validate", files / "other.npz", "--output", tmp_path / "out"),
    )
    assert code == 0, err
    assert "N m/rad" in out
    assert "unseen following error (other) is predicted within" in out
    document = load_identified(tmp_path / "out" / "identified.yaml")
    assert document["servos"]["lift"]["in_torque"]["gain"] > 10
    assert document["source"]["settings"]["reference_center"] == list(CENTER)
    page = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert "friction of 1 servo were identified" in page.text


@pytest.mark.parametrize(
    ("recording", "more", "message"),
    [
        ("silent.csv", (), "no commands of joint(s) lift"),
        ("plain.npz", ("--reference-mass", 0, "--reference-center", 0, 0, 0), "reference_mass is 0 kg"),
        ("plain.npz", ("--recording-with-mass", "plain.npz"), "recordings with a mass, but no reference_mass"),
        ("plain.npz", ("--validate", "plain.npz"), "it is to be fitted and to be validated on"),
        ("plain.npz", ("--command-topic", "told"), "are for bags, not for tables"),
    ],
)
def test_bad_input_is_an_error_of_one_line(files, tmp_path, capsys, recording, more, message):
    more = [files / word if str(word).endswith(".npz") else word for word in more]
    arguments = ("--urdf", files / "arm.urdf", "--recording", files / recording, "--output", tmp_path / "out", *more)
    assert message in run_refused(capsys, "identify", "servos", *arguments)
    assert not (tmp_path / "out").exists()


def test_links_of_drives_in_mit_mode(tmp_path, capsys):
    arm = two(seed=3)
    (tmp_path / "arm.urdf").write_text(TWO, encoding="utf-8")
    record_drives(arm, 16.0).write_npz(tmp_path / "run.npz")
    arguments = ("--urdf", tmp_path / "arm.urdf", "--recording", tmp_path / "run.npz", "--output", tmp_path / "out")
    stiffness = [f"{name}={gain}" for name, gain in zip(("lift", "bend"), arm.per_joint("stiffness"), strict=True)]
    gains = ("--effort-convention", "impedance", "--stiffness", *stiffness, "--damping", *arm.per_joint("damping"))
    code, out, err = run(capsys, "identify", "links", *arguments, *gains, "--verbose")
    assert code == 0, err
    assert f"which act after {1e3 * arm.servos.delay:.2g}" in out
    friction = load_identified(tmp_path / "out" / "identified.yaml")["friction"]
    for name, viscous, dry in zip(friction, arm.per_joint("viscous"), arm.per_joint("friction"), strict=True):
        assert friction[name]["viscous"] == pytest.approx(viscous, rel=0.05)
        assert friction[name]["coulomb"] == pytest.approx(dry, rel=0.05)
    assert "the stiffness of the drive" in run_refused(capsys, "identify", "links", *arguments, *gains[:2])
