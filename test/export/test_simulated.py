"""Test `dynid validate --simulate`: the error of MuJoCo's motion before and after identification."""

import json
import sys

import link_experiment
import mit_arms
import numpy as np
import planar_arm
import pytest
import servo_arms
import yaml
from command_line import run, run_refused

from dynid_ros.export.simulated import simulate_recording
from dynid_ros.identification import LinkIdentification, ServoIdentification
from dynid_ros.identification.servo.command_delay import with_estimated_delay
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import EffortConvention, Recording
from dynid_ros.recording.effort import with_impedance_torque

PLANAR, TRUTH = link_experiment.build_planar()
FRICTION = JointFriction(smoothing=0.05)


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """Return a folder with an arm, its identified links, and a held-out recording."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "arm.urdf").write_text(planar_arm.urdf())
    link_experiment.record(PLANAR, TRUTH, 1).write_npz(folder / "other.npz")
    result = LinkIdentification(PLANAR, FRICTION).fit(link_experiment.record(PLANAR, TRUTH))
    result.save(folder / "identified.yaml")
    return folder


@pytest.fixture(name="arguments")
def fixture_arguments(folder, monkeypatch):
    """Return the arguments of a validation."""
    monkeypatch.chdir(folder)
    model = ("--model", "identified.yaml", "--urdf", "arm.urdf", "--recording", "other.npz")
    return ("validate", *model, "--output", "predicted.csv", "--simulate")


def test_exported_model_is_more_accurate_than_the_urdf(arguments, capsys):
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "In MuJoCo on other.npz, " in out
    code, out, _ = run(capsys, *arguments, "--json")
    result = json.loads(out)["simulation"]
    assert code == 0
    torque, position = ({name: np.array([*by.values()]) for name, by in result[key].items()} for key in KEYS)
    assert (torque["exported"] < 0.5 * torque["URDF"]).all()
    # MJCF cannot represent the true offset of 0.2 N m and the smooth reversal.
    assert (torque["exported"] < 0.35).all()
    assert (torque["identified"] < torque["exported"]).all()
    moved = np.array([*result["moved_rms"].values()])
    assert (position["exported"] < 0.4 * position["URDF"]).all()
    # The missing offset moves the light last link further.
    assert (position["exported"] < np.array([0.1, 0.1, 0.5]) * moved).all()
    assert result["windows"] >= 40


KEYS = ("torque_rms", "position_rms")


def test_missing_mujoco_names_the_package_to_install(arguments, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "dynid_ros.export.simulated", raising=False)
    monkeypatch.delitem(sys.modules, "dynid_ros.simulation.mjcf", raising=False)
    monkeypatch.delitem(sys.modules, "dynid_ros.export.mjcf_file", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "--simulate needs mujoco, which is not installed: pip install mujoco" in err


def test_held_joints_are_refused(arguments, capsys):
    err = run_refused(capsys, *arguments, "--hold", "joint_3=0.3")
    assert "cannot be replayed" in err or "joint_3" in err


@pytest.fixture(name="servo", scope="module")
def fixture_servo(tmp_path_factory):
    """Return a folder with a lever on a servo, its identification, and a held-out recording."""
    folder = tmp_path_factory.mktemp("servo")
    arm = servo_arms.one(3)
    (folder / "arm.urdf").write_text(servo_arms.ONE)
    center = (0.2, 0.0, 0.0)
    plain = servo_arms.record(arm, servo_arms.motion(arm, 20.0, 50.0))
    loaded = servo_arms.record(arm, servo_arms.motion(arm, 20.0, 50.0), mass=0.2, center=center)
    identification = ServoIdentification(arm.robot, reference_mass=0.2, reference_center=center)
    identification.fit(plain, with_mass=[loaded]).save(folder / "identified.yaml")
    servo_arms.record(arm, servo_arms.motion(arm, 10.0, 50.0)).write_npz(folder / "other.npz")
    return folder


def test_servos_follow_commands_in_closed_loop(servo, capsys, monkeypatch):
    monkeypatch.chdir(servo)
    model = ("--model", "identified.yaml", "--urdf", "arm.urdf", "--recording", "other.npz")
    code, out, err = run(capsys, "validate", *model, "--output", "positions.csv", "--simulate", "--json")
    assert code == 0, err
    result = json.loads(out)["simulation"]
    assert result["in_closed_loop"]
    assert result["horizon"] * result["windows"] > 4.0
    # The resolution of the encoder is 0.44 mrad RMS.
    assert result["position_rms"]["exported"]["lift"] < 7e-4
    assert result["position_rms"]["URDF"]["lift"] > 20 * result["position_rms"]["exported"]["lift"]
    table = np.genfromtxt("positions.csv", delimiter=",", names=True)
    error = table["lift_measured"] - table["lift_predicted"]
    assert np.nanstd(error) == pytest.approx(result["position_rms"]["exported"]["lift"], rel=0.1)


def test_servos_without_a_torque_gain_are_refused(servo, arguments, capsys):
    document = (servo / "identified.yaml").read_text()
    (servo / "unknown.yaml").write_text(document.replace("in_torque", "in_counts"))
    err = run_refused(capsys, *arguments, "--servos", servo / "unknown.yaml")
    assert "unknown.yaml" in err


def test_recorded_torque_drives_an_arm_without_commands(folder, tmp_path):
    document = yaml.safe_load((folder / "identified.yaml").read_text())
    document["servos"] = {name: {"in_torque": {"gain": 90.0, "delay": 0.02}} for name in PLANAR.joint_names}
    (tmp_path / "servos.yaml").write_text(yaml.safe_dump(document))
    recording = Recording.read(folder / "other.npz")
    motors, servos = (
        simulate_recording(folder / "identified.yaml", PLANAR, recording, file)
        for file in (None, tmp_path / "servos.yaml")
    )
    assert not servos.in_closed_loop
    np.testing.assert_allclose(servos.position["exported"], motors.position["exported"])


@pytest.mark.slow
def test_impedance_drives_follow_commands(tmp_path):
    arm = mit_arms.two(6)
    gains = {name: arm.per_joint(name) for name in ("stiffness", "damping")}
    recording = mit_arms.record_drives(arm, 12.0)
    ServoIdentification(arm.robot, **gains).fit(recording).save(tmp_path / "servos.yaml")
    torques = with_impedance_torque(recording, EffortConvention("impedance", **gains))
    links = LinkIdentification(arm.robot, JointFriction(rotor_inertia=True))
    links.fit(*with_estimated_delay([torques], arm.robot)).save(tmp_path / "links.yaml")
    held_out = mit_arms.record_drives(arm, 8.0)
    result = simulate_recording(tmp_path / "links.yaml", arm.robot, held_out, tmp_path / "servos.yaml")
    assert result.in_closed_loop
    assert result.duration > 6.0
    assert (result.position["exported"] < 2e-4).all()
    assert (result.position["exported"] < 0.1 * result.position["URDF"]).all()
