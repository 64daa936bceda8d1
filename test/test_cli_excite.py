"""Test `dynid excite`, and `judge` of its motion."""

import subprocess
import sys

import numpy as np
import planar_arm
import pytest
from command_line import run, run_refused

from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.trajectory import move


@pytest.fixture(name="excite")
def fixture_excite(tmp_path, monkeypatch):
    """Return arguments of a quick design in a new folder with a table in table.yaml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    (tmp_path / "table.yaml").write_text("- {name: table, size: [0.4, 0.8, 0.2], position: [0.7, 0, 0.1]}")
    fourier = ("--base-frequency", "0.2", "--harmonics", "2", "--starts", "0", "--workers", "1")
    return ("excite", "--urdf", "arm.urdf", "--acceleration-limits", "4", *fourier, "--output", "out")


def test_excite_then_judge(excite, tmp_path, capsys):
    narrow = ("--position-lower", "-1,-2,-1.5", "--position-upper", "joint_1=0.5", "--torque-limits", "40,40,joint_3")
    assert "'joint_3' is not a number" in run_refused(capsys, *excite, *narrow)
    limits = (*narrow[:-1], "joint_2=40", "--jerk-limits", "50", "--position-margin", "0.1")
    room = ("--obstacles", "table.yaml", "--box", "-2", "-2", "-inf", "2", "2", "inf", "--floor-height", "0.05")
    code, out, err = run(capsys, *excite, *limits, *room)
    assert (code, err) == (0 if "\nenough" in out else 1, "")
    assert "No obstacles" not in out
    assert out.endswith("wrote out/trajectory.yaml, out/trajectory.csv, out/plan.yaml, out/report.html\n")
    position = Trajectory.read("out/trajectory.yaml").position
    assert np.all((position >= [-0.9, -1.9, -1.4]) & (position <= [0.4, 2.4, 2.4]))
    page = (tmp_path / "out/report.html").read_text()
    for words in ("table", "(-2, -2, -inf) to (2, 2, inf) m", "position_margin: 0.1", "joint_2"):
        assert words in page
    code, out, err = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "out/trajectory.yaml", "--noise", "0.1")
    assert (code, err) == (0 if out.startswith("enough") else 1, "")
    assert "determines 25 of 25" in out
    code, out, _ = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "out/trajectory.yaml", "--target", "load")
    assert "of 10 combinations" in out


def test_insufficient_motion_ends_with_exit_code_1(excite, capsys):
    code, out, err = run(capsys, *excite, "--base-frequency", "0.02", "--design-time", "0")
    assert (code, out.splitlines()[1], err) == (1, "not enough", "")


def test_plan_reports_friction(excite, capsys):
    check = ("check", "--urdf", "arm.urdf", "--motion", "out/trajectory.yaml")
    terms = ("--friction", "coulomb,viscous,offset,sliding_length=0.001")
    assert run(capsys, *excite, *terms, "--design-time", "0")[0] == 0
    code, out, err = run(capsys, *check, *terms)
    assert (code, err) == (0 if out.startswith("enough") else 1, "")
    assert "friction of" not in out
    move(("joint_1", "joint_2", "joint_3"), np.full(3, -1.0), np.full(3, 1.0), 4.0).sample(50.0).save(
        "out/trajectory.yaml"
    )
    text = "friction of joint_1, joint_2, joint_3: a sliding length shows where the joint reverses, and it never does"
    for command in (check, ("excite", "--urdf", "arm.urdf", "--judge", "out/trajectory.yaml")):
        code, out, _ = run(capsys, *command, *terms, "--verbose")
        assert code == 1
        assert text in out
    assert text in run(capsys, *check, "--verbose")[1]
    assert "give it or recordings" in run_refused(capsys, *check, "--recording", "run.npz")
    assert "give --recording, or a planned motion" in run_refused(capsys, *check[:3])
    assert "it needs --motion" in run_refused(capsys, *check[:3], *terms, "--recording", "run.npz")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("--acceleration-limits 4,4", "acceleration_limits: 2 values; give one for all joints or one for each of"),
        ("--acceleration-limits elbow=4", "names an unknown joint; expected joint=value of joint_1, joint_2, joint_3"),
        ("--acceleration-limits joint_1=4", "acceleration_limits of joint 'joint_2' is not in the robot's description"),
        ("--acceleration-limits 1e308", "the acceleration limit of joint 'joint_1' is 1e+308"),
        ("--harmonics few", "invalid int value: 'few'"),
        ("--motion poses", "motion poses has no setting base_frequency, which is one of fourier"),
        ("--criterion best", "'best'"),
        ("--floor-height 5", "floor"),
        ("--obstacles nowhere.yaml", "nowhere.yaml"),
        ("--box 1 1 1 0 0 0", "the lower one below on each axis"),
        ("--recorded nowhere.npz", "nowhere.npz does not exist"),
        ("--judge nowhere.yaml", "cannot read trajectory 'nowhere.yaml'"),
        ("--judge arm.urdf", "arm.urdf"),
        ("--output arm.urdf", "cannot write arm.urdf"),
        ("--noise 0", "noise"),
        ("--friction auto", "--friction is auto; give the terms"),
        ("--friction glue", "friction: 'glue' is no term"),
        ("--friction harmonic=1", "no motion within limits and workspace shows it: friction of joint_1"),
    ],
)
def test_invalid_settings_are_refused(settings, words, excite, tmp_path, capsys):
    assert words in run_refused(capsys, *excite, *settings.split())
    assert not (tmp_path / "out").exists()


LIMITS_FILE = "joint_limits: {{joint_1: {{max_acceleration: 3}}, joint_2: {{max_acceleration: 3}}, joint_3: {}}}"


def test_acceleration_limits_from_a_moveit_file(excite, tmp_path, capsys):
    k = excite.index("--acceleration-limits")
    without = (*excite[:k], *excite[k + 2 :], "--joint-limits", "joint_limits.yaml", "--design-time", "0")
    (tmp_path / "joint_limits.yaml").write_text(LIMITS_FILE.format("{max_acceleration: 3, max_jerk: 40}"))
    assert run(capsys, *without)[0] in (0, 1)
    motion = Trajectory.read("out/trajectory.yaml")
    largest = np.abs(motion.at(np.arange(0.0, motion.duration, 0.002))[2]).max(axis=0)
    assert np.all((largest > 0.3) & (largest <= 3.0))
    assert run(capsys, *without, "--acceleration-limits", "joint_2=1.0")[0] in (0, 1)
    motion = Trajectory.read("out/trajectory.yaml")
    assert np.abs(motion.at(np.arange(0.0, motion.duration, 0.002))[2]).max(axis=0)[1] <= 1.0
    (tmp_path / "joint_limits.yaml").write_text(LIMITS_FILE.format("{max_jerk: 40}"))
    assert "acceleration_limits of joint 'joint_3'" in run_refused(capsys, *without)
    (tmp_path / "joint_limits.yaml").write_text(LIMITS_FILE.format("{max_acceleration: much}"))
    line = run_refused(capsys, *without)
    assert "joint_limits.yaml" in line
    assert "joint 'joint_3'" in line


SRDF = '<robot name="planar"><group name="upper"><chain base_link="link_1" tip_link="link_3"/></group></robot>'


def test_group_of_an_srdf_selects_the_arm(excite, tmp_path, capsys):
    (tmp_path / "arm.srdf").write_text(SRDF)
    group = ("--srdf", "arm.srdf", "--group", "upper")
    assert run(capsys, *excite, *group, "--design-time", "0", "--floor-height", "-2")[0] == 0
    assert Trajectory.read("out/trajectory.yaml").joint_names == ("joint_2", "joint_3")
    assert "leave out" in run_refused(capsys, *excite, *group, "--tip", "link_2")
    assert "no group 'lower'" in run_refused(capsys, *excite, *group[:3], "lower")
    assert "needs the SRDF" in run_refused(capsys, *excite, *group[2:])
    check = ("check", "--urdf", "arm.urdf", "--motion", "out/trajectory.yaml")
    assert run(capsys, *check, *group)[0] in (0, 1)
    assert "--srdf is for --group" in run_refused(capsys, *check, *group[:2])


@pytest.mark.parametrize("missing", ["--acceleration-limits", "--output"])
def test_missing_inputs_are_refused(missing, excite, capsys):
    k = excite.index(missing)
    assert f"{missing} is missing" in run_refused(capsys, *excite[:k], *excite[k + 2 :])


def test_missing_meshes_are_refused(excite, tmp_path, capsys):
    mesh = '<collision><geometry><mesh filename="package://arm/link.stl"/></geometry></collision></link>'
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf().replace("</link>", mesh, 2))
    assert "--mesh-directory, --skip-meshes" in run_refused(capsys, *excite)
    code, out, _ = run(capsys, *excite, "--skip-meshes", "--verbose")
    assert code in (0, 1)
    assert "The shapes of" in out


def long_urdf(n_joints):
    """Return the URDF of a chain of rods of 0.1 m with joints about z and y alternately."""
    rod = (
        '<link name="link_{0}"><inertial><origin xyz="0.05 0 0"/><mass value="0.3"/>'
        '<inertia ixx="1e-4" iyy="4e-4" izz="4e-4" ixy="0" ixz="0" iyz="0"/></inertial><collision>'
        '<origin xyz="0.05 0 0" rpy="0 1.5708 0"/><geometry><cylinder radius="0.02" length="0.08"/></geometry>'
        "</collision></link>"
    )
    joint = (
        '<joint name="joint_{0}" type="revolute"><parent link="link_{1}"/><child link="link_{0}"/>'
        '<origin xyz="0.1 0 0"/><axis xyz="0 {2} {3}"/>'
        '<limit lower="-0.5" upper="0.5" velocity="2" effort="500"/></joint>'
    )
    links = [rod.format(i) for i in range(n_joints + 1)]
    joints = [joint.format(i, i - 1, (i + 1) % 2, i % 2) for i in range(1, n_joints + 1)]
    return f'<robot name="long">{"".join(links + joints)}</robot>'


MAX_MEMORY_KB = 1_500_000

# A process inherits the peak memory of its parent, so that a small process starts the command.
PEAK_MEMORY = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
assert done.returncode in (0, 1), "without a search the motion may not be enough"
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_of_thirty_joints_is_bounded(tmp_path):
    (tmp_path / "arm.urdf").write_text(long_urdf(30))
    options = ("--acceleration-limits", "2", "--floor-height", "-inf", "--design-time", "0", "--workers", "1")
    command = ("-m", "dynid_ros", "excite", "--urdf", tmp_path / "arm.urdf", *options, "--output", tmp_path / "out")
    launched = (sys.executable, "-c", PEAK_MEMORY, sys.executable, *map(str, command))
    done = subprocess.run(launched, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "trajectory.yaml").exists()
    assert int(done.stdout.splitlines()[-1]) < MAX_MEMORY_KB
