"""Small inputs that once failed, each with its right answer."""

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import planar_arm
import pytest
from command_line import refused, run

from dynid_ros.control.contact import load_contact_monitor
from dynid_ros.export.export import export
from dynid_ros.identification import LinkIdentification
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import described
from dynid_ros.model.friction import JointFriction

CASES = Path(__file__).with_name("cases")


@pytest.mark.parametrize("name", ["injection.urdf", "mjcf_newline_link.urdf"])
def test_names_with_line_breaks_are_refused(name, capsys):
    error = refused(capsys, "check", "--urdf", CASES / name, "--recording", "run.csv")
    assert "control character" in error


HELD = "  held:\n  - 1\n"
COMMANDS = (
    ("report", "--output", "report.html"),
    ("export", "--to", "urdf", "--urdf", CASES / "arm.urdf", "--output", "new.urdf"),
    ("validate", "--urdf", CASES / "arm.urdf", "--recording", "run.csv", "--output", "predicted.csv"),
    ("identify", "load", "--urdf", CASES / "arm.urdf", "--recording", "run.csv", "--output", "load"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (HELD, "  held: {j1: [1]}\n"),
        (HELD, "  held: {1: 1.0}\n"),
        (HELD, "  held: {j1: .inf}\n"),
        ("  name: arm\n", "  name: [1]\n"),
        ("  base: l0\n", "  base: [l0]\n"),
        ("  tip: l3\n", "  tip: {l3: 1}\n"),
        ("  - j1\n", "  - [j1]\n"),
        ("  - j1\n", '  - "j\\n1"\n'),
    ],
)
def test_a_robot_that_cannot_be_is_one_line(command, old, new, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (CASES / "heldlist.yaml").read_text()
    assert old in text
    changed = text.replace(old, new)
    path = tmp_path / "identified.yaml"
    path.write_text(changed if "held" in new + old or not old else changed.replace(HELD, ""))
    assert "identified.yaml: " in refused(capsys, *command, "--model", path)


@pytest.mark.parametrize("kind", ["<U0", "<U1", "|S0", "|V0", "<f8"])
def test_an_archive_that_promises_more_than_it_holds_is_one_line(kind, capsys, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": (10**12,)})
    damaged = tmp_path / "run.npz"
    with zipfile.ZipFile(CASES / "npz_zero_itemsize.npz") as case, zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("time.npy", header.getvalue())
        archive.writestr("position.npy", case.read("position.npy"))
    for path in (CASES / "npz_zero_itemsize.npz", damaged):
        assert "NPZ archive" in refused(capsys, "check", "--urdf", CASES / "arm.urdf", "--recording", path)


@pytest.fixture(scope="module", name="fusion_arm")
def fixture_fusion_arm(tmp_path_factory):
    """Folder with the URDF and the identified links of an arm whose joints are named as Fusion 360 names them."""
    folder = tmp_path_factory.mktemp("fusion")
    text = planar_arm.urdf(joints=("Revolute 1", "Revolute 2", "Revolute 12"))
    (folder / "arm.urdf").write_text(text)
    robot, rng = RobotModel.from_urdf(text), np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-2, 2, (3, 2000, 3))
    torque = robot.inverse_dynamics(q, qd, qdd) + [1.0, 0.8, 0.3] * np.sign(qd) + [0.5, 0.4, 0.2] * qd
    torque += rng.normal(0.0, 0.01, torque.shape)
    result = LinkIdentification(robot, JointFriction()).fit_samples(q, qd, qdd, torque)
    result.save(folder / "identified.yaml")
    assert "Revolute 2" in result.summary()
    return folder


@pytest.mark.parametrize(("target", "ending"), [("urdf", "urdf"), ("mjcf", "xml"), ("sdf", "sdf"), ("isaac", "py")])
def test_friction_of_joints_with_blanks_is_exported(fusion_arm, target, ending):
    path = fusion_arm / f"out.{ending}"
    export(fusion_arm / "identified.yaml", RobotModel.from_urdf(fusion_arm / "arm.urdf"), target, path)
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", path.read_text())]
    for expected in (1.0, 0.8, 0.3, 0.5, 0.4, 0.2):
        assert np.min(np.abs(np.array(numbers) - expected)) < 0.02


def test_contacts_of_joints_with_blanks_are_monitored(fusion_arm):
    assert load_contact_monitor(fusion_arm / "identified.yaml", fusion_arm / "arm.urdf", false_alarms_per_hour=2)


def test_units_of_directional_and_coupled_terms():
    robot = RobotModel.from_urdf(planar_arm.urdf(joints=("Revolute 1", "Revolute 2", "Revolute 12")))
    names = ("viscous_positive Revolute 2", "coupling_viscous Revolute 2 Revolute 12", "coupling_inertia a b")
    assert described(robot, names)["unit"] == ["N m s/rad", "N m s/rad", "kg m²"]
    slider = RobotModel.from_urdf(planar_arm.urdf().replace("revolute", "prismatic"))
    names = ("viscous_negative joint_2", "coupling_viscous joint_2 joint_3", "coupling_inertia joint_2 joint_3")
    assert described(slider, names)["unit"] == ["N s/m", "N s/m", "kg"]


def test_a_load_taken_up_in_a_recording_for_links_is_refused(capsys, tmp_path):
    recording, output = CASES / "load_taken_up.csv", tmp_path / "links"
    command = ("identify", "links", "--urdf", CASES / "bench5.urdf", "--recording", recording, "--output", output)
    error = refused(capsys, *command)
    assert "load_taken_up.csv" in error
    assert "t = 11" in error
    assert "kg more" in error
    assert not output.exists() or not any(output.iterdir())


@pytest.fixture(scope="module")
def planar_run(tmp_path_factory):
    """Folder with the URDF of a planar arm, and times (N,), positions and torques (N, 3) of a motion."""
    folder = tmp_path_factory.mktemp("planar")
    (folder / "arm.urdf").write_text(planar_arm.urdf())
    robot, rng = RobotModel.from_urdf(planar_arm.urdf()), np.random.default_rng(0)
    time = np.arange(0.0, 15.0, 0.01)
    speed = np.array([0.7, 1.7, 2.9])
    phase = np.outer(time, speed)
    torque = robot.inverse_dynamics(np.sin(phase), speed * np.cos(phase), -(speed**2) * np.sin(phase))
    torque += 0.5 * np.sign(np.cos(phase)) + rng.normal(0, 0.05, phase.shape)
    return folder, time, np.sin(phase) + rng.normal(0, 1e-5, phase.shape), torque


def write_run(planar_run, torque):
    folder, time, position, _ = planar_run
    names = [f"{joint}_{quantity}" for quantity in ("position", "torque") for joint in planar_arm.JOINTS]
    columns = np.column_stack([time, position, torque])
    np.savetxt(folder / "run.csv", columns, delimiter=",", header=",".join(["t", *names]), comments="")
    return "--urdf", folder / "arm.urdf", "--recording", folder / "run.csv"


def test_efforts_that_are_denormal_numbers_are_no_torque(planar_run, capsys):
    code, out, _ = run(capsys, "check", *write_run(planar_run, 1e-308 * planar_run[3]))
    assert code == 1
    assert "practically zero" in out


def test_a_tiny_effort_of_one_joint_is_refused_by_name(planar_run, capsys, tmp_path):
    torque = planar_run[3] * [1.0, 1.0, 1e-20]
    error = refused(capsys, "identify", "links", *write_run(planar_run, torque), "--output", tmp_path / "links")
    assert "joint(s) joint_3" in error


def test_one_joint_in_raw_counts_is_named(planar_run, capsys):
    code, out, _ = run(capsys, "check", *write_run(planar_run, planar_run[3] * [1.0, 1.0, 1033.0]))
    assert code == 1
    assert "joint 'joint_3'" in out
