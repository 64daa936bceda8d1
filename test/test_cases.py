"""Test small inputs that once failed."""

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import planar_arm
import pytest
from bag_files import START, joint_state, wrench, write_bag
from command_line import run, run_refused
from hinge_markers import place_markers, record_rotation, swing_angle
from servo_arms import ONE

from dynid_ros.control.contact import load_contact_monitor
from dynid_ros.export.export import export
from dynid_ros.identification import LinkIdentification
from dynid_ros.mocap import SingleJoint
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import describe_parameters
from dynid_ros.model.friction import FrictionModel, JointFriction

CASES = Path(__file__).with_name("cases")


@pytest.mark.parametrize("name", ["injection.urdf", "mjcf_newline_link.urdf"])
def test_names_with_line_breaks_are_refused(name, capsys):
    error = run_refused(capsys, "check", "--urdf", CASES / name, "--recording", "run.csv")
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
def test_impossible_robot_is_an_error(command, old, new, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (CASES / "heldlist.yaml").read_text()
    assert old in text
    changed = text.replace(old, new)
    path = tmp_path / "identified.yaml"
    path.write_text(changed if "held" in new + old or not old else changed.replace(HELD, ""))
    assert "identified.yaml: " in run_refused(capsys, *command, "--model", path)


@pytest.mark.parametrize("kind", ["<U0", "<U1", "|S0", "|V0", "<f8"])
def test_truncated_archive_is_an_error(kind, capsys, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": (10**12,)})
    damaged = tmp_path / "run.npz"
    with zipfile.ZipFile(CASES / "npz_zero_itemsize.npz") as case, zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("time.npy", header.getvalue())
        archive.writestr("position.npy", case.read("position.npy"))
    for path in (CASES / "npz_zero_itemsize.npz", damaged):
        assert "NPZ archive" in run_refused(capsys, "check", "--urdf", CASES / "arm.urdf", "--recording", path)


@pytest.fixture(scope="module", name="fusion_arm")
def fixture_fusion_arm(tmp_path_factory):
    """Return a folder with URDF and identified links of an arm with joint names as written by Fusion 360."""
    folder = tmp_path_factory.mktemp("fusion")
    text = planar_arm.urdf(joints=("Revolute 1", "Revolute 2", "Revolute 12"))
    (folder / "arm.urdf").write_text(text)
    robot = RobotModel.from_urdf(text)
    rng = np.random.default_rng(0)
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
    assert describe_parameters(robot, names)["unit"] == ["N m s/rad", "N m s/rad", "kg m²"]
    slider = RobotModel.from_urdf(planar_arm.urdf().replace("revolute", "prismatic"))
    names = ("viscous_negative joint_2", "coupling_viscous joint_2 joint_3", "coupling_inertia joint_2 joint_3")
    assert describe_parameters(slider, names)["unit"] == ["N s/m", "N s/m", "kg"]


BENCH = CASES / "bench5.urdf"
JOINTS = ("yaw", "shoulder", "elbow", "wrist", "roll")
CHECK = ("check",)
LINKS = ("identify", "links", "--output", "out")


def answer(capsys, folder, monkeypatch, urdf, recording, *command):
    """Return the exit code and the output of a command about a recording."""
    monkeypatch.chdir(folder)
    code, out, err = run(capsys, *command, "--urdf", urdf, "--recording", recording)
    assert "Traceback" not in err
    return code, out + err


@pytest.mark.parametrize(
    ("columns", "factor", "offset", "command", "code", "words"),
    [
        ("_torque", 1e-308, 0.0, CHECK, 1, "practically zero"),
        ("roll_torque", 1e-20, 0.0, CHECK, 0, "joint 'roll': its torque is practically zero"),
        ("roll_torque", 1e-20, 0.0, LINKS, 2, r"joint\(s\) roll"),
        ("roll_torque", 1033.0, 0.0, CHECK, 1, "joint 'roll': its torque reaches"),
        ("roll_torque", 1033.0, 0.0, LINKS, 2, "joint 'roll': its torque reaches"),
        ("elbow_position", 1.0, np.radians(5.0), CHECK, 0, "encoder zero that is 5° off: .*elbow"),
    ],
)
def test_fault_of_a_driver_is_reported(columns, factor, offset, command, code, words, capsys, tmp_path, monkeypatch):
    names = (CASES / "run.csv").read_text().splitlines()[0].split(",")
    table = np.loadtxt(CASES / "run.csv", delimiter=",", skiprows=1)
    changed = [name.endswith(columns) for name in names]
    table[:, changed] = factor * table[:, changed] + offset
    np.savetxt(tmp_path / "run.csv", table, delimiter=",", header=",".join(names), comments="")
    actual_code, output = answer(capsys, tmp_path, monkeypatch, BENCH, "run.csv", *command)
    assert actual_code == code
    assert re.search(words, output)


def test_load_change_in_a_recording_for_links_is_refused(capsys, tmp_path, monkeypatch):
    code, output = answer(capsys, tmp_path, monkeypatch, BENCH, CASES / "load_taken_up.csv", *LINKS)
    assert code == 2
    assert re.search(r"load_taken_up.csv: at about t = 11.* kg more", output)
    assert not list(tmp_path.rglob("*.*"))


def test_check_reports_a_load_change(capsys, tmp_path, monkeypatch):
    code, output = answer(capsys, tmp_path, monkeypatch, BENCH, CASES / "load_taken_up.csv", *CHECK)
    assert code == 1
    assert re.search(r"load_taken_up.csv: at about t = 11.* kg more.* its load changed", output)
    assert "warm" not in output


def test_reception_times_replace_a_constant_stamp(capsys, tmp_path, monkeypatch):
    table = np.loadtxt(CASES / "run.csv", delimiter=",", skiprows=1)
    parts = (np.split(row[1:], 3) for row in table)
    states = [
        ("/joint_states", START + round(1e9 * row[0]), joint_state(START, JOINTS, *part))
        for row, part in zip(table, parts, strict=True)
    ]
    write_bag(tmp_path / "bag", states)
    code, output = answer(capsys, tmp_path, monkeypatch, BENCH, "bag", *CHECK)
    assert code == 0
    assert "the times at which the bag received the messages are used" in output


# effort limits and angles as manufacturers write them


def excite(capsys, folder, pattern, replacement):
    (folder / "arm.urdf").write_text(re.sub(pattern, replacement, BENCH.read_text()))
    options = ("--acceleration-limits", 3, "--output", folder / "motion")
    return run(capsys, "excite", "--urdf", folder / "arm.urdf", *options)


def test_placeholder_effort_limit_is_reported(capsys, tmp_path):
    code, _, output = excite(capsys, tmp_path, 'effort="[0-9]+"', 'effort="1"')
    assert code == 2
    assert re.search(
        r"joint 'shoulder' needs up to 3\d N m for its own weight, its URDF limit is 1 .*placeholder", output
    )
    assert "--torque-limits" in output


@pytest.mark.slow  # a search of 15 s
def test_motion_for_an_arm_with_rounded_right_angles(capsys, tmp_path):
    code, output, _ = excite(capsys, tmp_path, "1.5707963268", "1.571")
    assert code == 0
    assert "\nenough: no parameter" in output
    assert float(re.search(r"rank 47 of 47, condition number ([0-9.]+)", output)[1]) < 20


def test_rounded_right_angle_is_a_right_angle():
    friction = FrictionModel(JointFriction(coulomb=True, viscous=True, offset=True))
    text = BENCH.read_text()
    ranks = [
        RobotModel.from_urdf(variant).base_parameters(friction).rank
        for variant in (text, text.replace("1.5707963268", "1.571"))
    ]
    assert ranks == [44, 44]


def test_urdf_with_blanks_in_joint_names_is_read():
    assert RobotModel.from_urdf(CASES / "blank_in_joint_names.urdf").joint_names == ("joint 1", "joint 2", "joint 3")


# Rests in many poses: gravity on a tilted base, a low sampling rate, wrist sensors.


def stepped_motion(rate, joints=(1, 2, 3, 4), steps=5):
    """Return times (N,), positions (N, 5) and approach directions (N, 5) of joints that rotate singly in steps."""
    middle = np.array([0.3, -0.6, 0.4, 0.2, 0.5])
    reach = np.array([1.5, 1.0, 1.2, 1.2, 1.5])
    stops = []
    for joint in joints:
        for side in (1, -1):
            for step in np.linspace(-side, side, steps):
                stops.append((side, middle + step * reach * (np.arange(5) == joint)))
    rest = round(0.8 * rate)
    move = round(1.2 * rate)
    s = np.arange(1, move + 1)[:, None] / move
    way = s**3 * (10 - 15 * s + 6 * s**2)
    aside = 64 * (s * (1 - s)) ** 3
    position = []
    direction = []
    pose = stops[0][1] - 0.1
    for side, goal in stops:
        position += [pose + way * (goal - pose) - side * 0.1 * aside, np.tile(goal, (rest, 1))]
        direction.append(np.full((move + rest, 5), side))
        pose = goal
    position = np.concatenate(position)
    return np.arange(len(position)) / rate, position, np.concatenate(direction)


def write_rests(path, rate, tilt=0.0, joints=(1, 2, 3, 4)):
    gravity = 9.80665 * np.array([-np.sin(tilt), 0.0, -np.cos(tilt)])
    robot = RobotModel.from_urdf(BENCH, gravity=gravity)
    rng = np.random.default_rng(0)
    time, position, direction = stepped_motion(rate, joints)
    velocity = np.gradient(position, 1 / rate, axis=0)
    torque = robot.inverse_dynamics(position, velocity, np.gradient(velocity, 1 / rate, axis=0))
    torque += np.array([0.4, 3.5, 1.0, 0.15, 0.2]) * direction + rng.normal(0, 0.01, torque.shape)
    names = [f"{joint}_{part}" for part in ("position", "torque") for joint in JOINTS]
    table = np.column_stack([time, position + rng.normal(0, 2e-5, position.shape), torque])
    np.savetxt(path, table, delimiter=",", header=",".join(["t", *names]), comments="")


def test_unobservable_tilt_is_reported(capsys, tmp_path, monkeypatch):
    write_rests(tmp_path / "run.csv", 50, tilt=np.radians(5.0))
    code, output = answer(capsys, tmp_path, monkeypatch, BENCH, "run.csv", "identify", "gravity", "--output", "out")
    assert code == 0
    assert re.search("a tilt of the base by .* would not show", output)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [25, 33, 50])
def test_low_sampling_rate_is_no_fault(rate, capsys, tmp_path, monkeypatch):
    write_rests(tmp_path / "run.csv", rate, joints=(0, 1, 2, 3, 4))
    code, output = answer(capsys, tmp_path, monkeypatch, BENCH, "run.csv", *CHECK)
    assert code == 0
    assert "no fault found" in output


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("left-handed", "force x has the other sign and torque x has the other sign"),
        ("zeroed", r"the bias changed at about t = 4\d\.\d s"),
    ],
)
def test_implausible_wrist_sensor_is_refused(fault, words, capsys, tmp_path, monkeypatch):
    robot = RobotModel.from_urdf(BENCH)
    rng = np.random.default_rng(0)
    time, position, _ = stepped_motion(20, steps=6)
    rotation = np.array([pose[:3, :3] for pose in robot.forward_kinematics(position)[:, -1]])
    force = 1.2 * np.einsum("nji,j->ni", rotation, robot.gravity)
    moment = np.cross([0.012, -0.02, 0.08], force)
    readings = np.hstack([force, moment]) + np.array([4.0, -6.0, 9.0, 0.3, -0.2, 0.1])
    readings += rng.normal(0, [0.05] * 3 + [0.003] * 3, readings.shape)
    if fault == "left-handed":
        readings[:, [0, 3]] *= -1
    else:
        half = len(time) // 2
        readings[half:] -= readings[half]
    position += rng.normal(0, 1e-5, position.shape)
    messages = []
    for t, q, w in zip(time, position, readings, strict=True):
        at = round(1e9 * t)
        messages.append(("/joint_states", START + at, joint_state(START + at, JOINTS, q)))
        messages.append(("/wrench", START + at, wrench(START + at, w[:3], w[3:], "tip")))
    write_bag(tmp_path / "bag", messages)
    command = ("identify", "load", "--tip", "tip", "--source", "wrench", "--static", "--output", "out")
    code, output = answer(capsys, tmp_path, monkeypatch, BENCH, "bag", *command)
    assert code == 2
    assert re.search(words, output)
    assert not list((tmp_path / "out").glob("*"))


def test_repeated_poses_of_a_tracker_are_missing():
    """Repeat the last pose exactly, as a tracker does during occlusions of 0.3 s every 2 s."""
    take = record_rotation(swing_angle(110.0, 1500), place_markers(), np.random.default_rng(0), 2e-4)
    markers = take.markers.copy()
    hidden = np.zeros(1500, bool)
    for start in range(300, 1500, 500):
        hidden[start : start + 75] = True
        markers[hidden[: start + 75].nonzero()[0][-75:]] = markers[start - 1]
    result = SingleJoint(towards=(0.5, -0.5, 0.6)).fit(take.time, markers, reference=slice(0, 100))
    error = np.degrees(result.angle - take.angle)
    error -= np.nanmean(error[:100])
    assert np.isnan(result.angle[hidden]).mean() > 0.9
    assert np.sqrt(np.nanmean(error**2)) < 0.2


FINGER = """<link name="finger"><inertial><origin xyz="0 0 0.02"/><mass value="0.03"/>
<inertia ixx="1e-6" iyy="1e-6" izz="5e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="link_3"/><child link="finger"/><axis xyz="1 0 0"/>
<limit lower="0" upper="0.04" effort="10" velocity="0.1"/></joint></robot>"""


@pytest.mark.parametrize("carrier", ["link_3", "base_link"], ids=["hand", "other arm"])
def test_impossible_inertia_of_a_finger_is_repaired(fusion_arm, capsys, tmp_path, carrier):
    finger = FINGER.replace("link_3", carrier)
    (tmp_path / "arm.urdf").write_text((fusion_arm / "arm.urdf").read_text().replace("</robot>", finger))
    options = ("--tip", "link_3", "--model", fusion_arm / "identified.yaml", "--output", tmp_path / "arm.xml")
    code, out, err = run(capsys, "export", "--to", "mjcf", "--urdf", tmp_path / "arm.urdf", *options)
    assert code == 0, err
    assert "finger: inertia that no body of 0.03 kg has" in out + err


def test_saturating_servos_are_reported(capsys, tmp_path, monkeypatch):
    """Simulate at 1 kHz a lever that needs 3 N m on a servo with 1.5 N m."""
    text = ONE.replace('mass value="0.4"', 'mass value="1.0"').replace('xyz="0.12 0.01 0"', 'xyz="0.3 0 0"')
    (tmp_path / "arm.urdf").write_text(text)
    time = np.arange(0.0, 20.0, 0.001)
    commands = 0.7 + 0.5 * np.sin(1.3 * time) + 0.4 * np.sin(3.1 * time)
    q = 0.0
    v = 0.0
    path = []
    for goal in commands:
        effort = np.clip(20.0 * (goal - q), -1.5, 1.5) + 9.80665 * 0.3 * np.cos(q) - 1.0 * v
        v += 0.001 * effort / 0.12
        q += 0.001 * v
        path.append(q)
    rows = slice(None, None, 20)
    table = np.column_stack([time, np.round(np.array(path) * 4096 / 2 / np.pi) * 2 * np.pi / 4096, commands])[rows]
    np.savetxt(tmp_path / "run.csv", table, delimiter=",", header="t,lift_position,lift_command", comments="")
    command = ("identify", "servos", "--output", "out")
    code, output = answer(capsys, tmp_path, monkeypatch, "arm.urdf", "run.csv", *command)
    assert code == 2
    assert re.search("lift by up to .* the torque ends", output)
