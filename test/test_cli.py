"""Test `dynid`: files, exit codes and errors."""

import os
import subprocess
import sys

import pytest
from command_line import URDF, run
from gravity_experiment import planned_recording

from dynid_ros.files import write_atomically
from dynid_ros.files.bounded import share_path
from dynid_ros.identified.identified_file import load_identified


@pytest.fixture(name="bag", params=["npz", pytest.param("csv", marks=pytest.mark.slow)])
def fixture_bag(request, tmp_path):
    path = tmp_path / f"run.{request.param}"
    getattr(planned_recording(), f"write_{request.param}")(path)
    return path


def test_identify_gravity_then_report_of_the_same_robot(bag, tmp_path, capsys):
    output = tmp_path / "out"
    code, out, _ = run(capsys, "identify", "gravity", "--urdf", URDF, "--recording", bag, "--output", output)
    assert code == 0
    assert "joint_2" in out
    assert load_identified(output / "identified.yaml")["gravity"]["joint_2"]["observable"]
    model = output / "identified.yaml"
    code, out, _ = run(
        capsys, "report", "--urdf", URDF, "--model", model, "--recording", bag, "--output", tmp_path / "r.html"
    )
    assert code == 0
    assert (tmp_path / "r.html").exists()
    other = tmp_path / "other.urdf"
    other.write_text(share_path("config/demo_arm.urdf").read_text().replace("0 0 0.2", "0 0 0.3"))
    code, _, err = run(
        capsys, "report", "--urdf", other, "--model", model, "--recording", bag, "--output", tmp_path / "other.html"
    )
    assert (code, "another robot" in err) == (2, True)
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--urdf", "nowhere.urdf", "--recording", "run.npz"], "nowhere.urdf"),
        (["--urdf", URDF, "--recording", "nowhere"], "nowhere does not exist"),
        (["--urdf", URDF, "--tip", "hand", "--recording", "run.npz"], "tip link 'hand'"),
        (["--urdf", URDF, "--recording", "run.npz", "--effort-convention", "motor_current"], "gains"),
        (["--urdf", URDF, "--recording", "run.npz", "--slow-velocity", "-1"], "slow_velocity is -1; expected"),
        (["--urdf", URDF, "--recording", "run.npz", "--slow-acceleration", "nan"], "slow_acceleration is nan"),
        (["--urdf", URDF, "--recording", "run.npz", "--effort-convention", "gravity_compensated"], "gravity"),
    ],
)
def test_bad_input_is_an_error_of_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planned_recording().write_npz("run.npz")
    code, _, err = run(capsys, "identify", "gravity", *arguments, "--output", "out")
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_dynid_without_arguments_lists_commands(capsys):
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert "identify" in out
    assert "node" in out


def test_abbreviated_option_is_refused(bag, tmp_path, capsys):
    output = ("--output", tmp_path / "out")
    code, out, err = run(capsys, "identify", "gravity", "--urdf", URDF, "--recordin", bag, *output)
    assert (code, out) == (2, "")
    assert "--recording" in err
    code, _, err = run(capsys, "identify", "gravity", "--urdf", URDF, "--recording", bag, "--sample", "slow", *output)
    assert (code, "unrecognized arguments: --sample slow" in err) == (2, True)


def test_unwritable_output_is_an_error_before_computation(bag, tmp_path, monkeypatch, capsys):
    def fit(*_):
        raise AssertionError("the work began")

    monkeypatch.setattr("dynid_ros.identification.GravityIdentification.fit", fit)
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", "/dev/null", "/proc/out"):
        code, _, err = run(capsys, "identify", "gravity", "--urdf", URDF, "--recording", bag, "--output", output)
        assert (code, f"cannot write {output}" in err) == (2, True)


def test_full_disk_keeps_the_old_result(bag, small_disk, monkeypatch, capsys):
    arguments = ("identify", "gravity", "--urdf", URDF, "--recording", bag, "--output", small_disk)

    def page(path, *_):
        return write_atomically(path, "x" * 1_000_000)

    monkeypatch.setattr("dynid_ros.report.gravity.write_gravity_report", page)
    before = {name: f"{name} of before".encode() for name in ("identified.yaml", "report.html")}
    for name, content in before.items():
        (small_disk / name).write_bytes(content)
    code, _, err = run(capsys, *arguments, "--samples", "both")
    assert code == 2
    assert "No space left" in err
    assert {path.name: path.read_bytes() for path in small_disk.iterdir()} == before


def test_automatic_tip_is_reported(bag, tmp_path, capsys):
    hand = (
        '<link name="palm"/><link name="left"/>'
        '<joint name="mount" type="fixed"><parent link="tool"/><child link="palm"/></joint>'
        '<joint name="slide" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>'
        '<limit lower="0" upper="0.04" velocity="1" effort="1"/></joint></robot>'
    )
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(share_path("config/demo_arm.urdf").read_text().replace("</robot>", hand))
    code, out, err = run(capsys, "check", "--urdf", urdf, "--recording", bag)
    assert (code, "no fault found" in out) == (0, True)
    assert "the arm ends at link 'link_6', its flange" in err
    assert "slide" in err


def test_node_without_ros_is_an_error():
    program = "import sys; sys.modules['rclpy'] = None; from dynid_ros.cli import main; main(['node', 'recorder'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dynid: error: node recorder needs ROS 2 (source it")
    assert len(done.stderr.splitlines()) == 1


def test_unknown_node_is_refused(capsys):
    code, _, err = run(capsys, "node", "recorder2", "--ros-args")
    assert (code, "'recorder'" in err) == (2, True)


def loaded(module, *words):
    """Return exit code and output of `dynid` in a new process, and whether it imported a module."""
    program = (
        f"import atexit, sys; atexit.register(lambda: print({module!r} in sys.modules))\n"
        f"from dynid_ros.cli import main; main({[*words]!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    *output, last = done.stdout.splitlines()
    return done.returncode, output, {"True": True, "False": False}[last]


@pytest.mark.parametrize(("words", "code"), [("--help", 0), ("--version", 0), ("--check", 2), ("inspect", 2)])
def test_help_and_errors_do_not_import_numpy(words, code):
    assert (code, False) == loaded("numpy", words)[::2]


@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.slow)])
def test_closed_pipe_ends_a_command_without_traceback(unbuffered, bag):
    reading, writing = os.pipe()
    os.close(reading)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    words = ["check", "--urdf", str(URDF), "--recording", str(bag)] if unbuffered else ["--help"]
    command = [sys.executable, "-m", "dynid_ros", *words]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["scipy.signal", "scipy.stats"])
def test_check_does_not_import_slow_modules(module, bag):
    code, _, imported = loaded(module, "check", "--urdf", str(URDF), "--recording", str(bag))
    assert (code, imported) == (0, False)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("dynid ex", "export"),
        ("dynid identify li", "links"),
        ("dynid export --to is", "isaac"),
        ("dynid fleet --sch", "--scheduler"),
    ],
)
def test_shell_completes_commands_and_options(line, word, tmp_path):
    pytest.importorskip("argcomplete")
    variables = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    answer = tmp_path / "answer"
    variables |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "COMP_TYPE": "9"}
    subprocess.run([sys.executable, "-m", "dynid_ros"], env=os.environ | variables, check=True, capture_output=True)
    assert word in answer.read_text().replace(" ", "").split("\n")
