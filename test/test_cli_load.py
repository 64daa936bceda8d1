"""Test `dynid identify load`: files, exit codes and errors."""

import json

import numpy as np
import pytest
import weighed_loads as known
import wrench_experiments
from command_line import run
from real_recordings import DATA, MISSING, UR10E_GAINS

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import with_payload
from dynid_ros.recording import Recording

LOAD = known.experiment().load
UR10E = DATA / "ur10e"
MASS = 2.805
"""Mass in kg by the authors' script."""


@pytest.fixture(name="weigh", scope="module")
def fixture_weigh(tmp_path_factory):
    """Return a function that runs the command with the files of the demo arm."""
    folder = tmp_path_factory.mktemp("load")
    files = known.files(folder)

    def weigh(capsys, *options, recording="loaded", model=True):
        inputs = ["--urdf", files.urdf, "--recording", getattr(files, recording)]
        inputs += ["--model", files.model] if model else []
        return run(capsys, "identify", "load", *inputs, "--output", folder / "out", *options)

    weigh.files = files
    weigh.folder = folder
    return weigh


@pytest.fixture(name="no_report")
def fixture_no_report(monkeypatch):
    """Skip the report."""
    monkeypatch.setattr("dynid_ros.report.load.write_load_report", lambda path, *_: path)


def test_load_is_identified(weigh, capsys):
    code, out, err = weigh(capsys, "--json", "--tip", "link_6", "--verbose")
    assert code == 0
    assert "The load at link_6 weighs" in err
    assert f"wrote settings for drivers into {weigh.folder / 'out' / 'drivers'}" in err
    load = load_identified(weigh.folder / "out" / "identified.yaml")["load"]
    assert load.items() >= json.loads(out)["load"].items()
    assert load["frame"] == "link_6"
    assert load["mass"] == pytest.approx(LOAD[0], rel=0.03)


def test_gravity_compensated_driver_needs_no_model(weigh, capsys, no_report, tmp_path):
    """Subtract the torques of the arm with its declared payload from the recorded torques."""
    loaded = Recording.read(weigh.files.loaded)
    robot = RobotModel.from_urdf(weigh.files.urdf)
    rate = np.gradient(loaded.position, loaded.time, axis=0)
    motion = loaded.position, rate, np.gradient(rate, loaded.time, axis=0)
    declared = 0.7 * LOAD[0], *LOAD[1:4] / LOAD[0]
    loaded_arm = with_payload(robot, declared)
    np.savez(
        tmp_path / "left.npz",
        time=loaded.time,
        position=loaded.position,
        torque=loaded.torque - loaded_arm.inverse_dynamics(*motion),
        joint_names=list(loaded.joint_names),
    )
    files = "--urdf", weigh.files.urdf, "--recording", tmp_path / "left.npz", "--output", tmp_path / "out"
    compensated = "--effort-convention", "gravity_compensated"
    code, out, _ = run(capsys, "identify", "load", *files, *compensated, "--payload", *declared, "--json")
    assert code == 0
    assert json.loads(out)["load"]["mass"] == pytest.approx(LOAD[0], rel=0.05)
    code, _, err = run(capsys, "identify", "load", *files, *compensated, "--model", weigh.files.model)
    assert code == 2
    assert "the driver has subtracted the torques of the arm" in err


def test_static_load_with_a_tare(weigh, capsys, no_report):
    assert weigh(capsys, "--static", "--output", weigh.folder / "tare", recording="resting")[0] == 0
    tare = weigh.folder / "tare" / "identified.yaml"
    code, out, _ = weigh(capsys, "--static", "--tare", tare, recording="resting")
    assert code == 0
    assert "no load is shown" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give the identified.yaml of its links (--model"),
        (("--model", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("--model", "{model}", "--unloaded", "{unloaded}"), "--model and --unloaded both give"),
        (("--model", "{model}", "--tip", "link_5"), "arm.yaml is of robot 'demo_arm' with joints"),
        (("--model", "{model}", "--tip", "hand"), "hand"),
        (("--model", "{model}", "--tare", "{model}"), "no section 'load'"),
        (("--unloaded", "{loaded}x"), "does not exist"),
    ],
)
def test_bad_input_is_an_error_of_one_line(weigh, capsys, options, words):
    paths = {name: str(path) for name, path in vars(weigh.files).items()}
    code, out, err = weigh(capsys, *(option.format(**paths) for option in options), model=False)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err


@pytest.fixture(name="wrenches", scope="module")
def fixture_wrenches(tmp_path_factory):
    """Return options for a recording of a wrist sensor, and the load."""
    folder = tmp_path_factory.mktemp("wrench")
    motion = wrench_experiments.carried_motion("demo", 10.0, 0)
    motion.record(wrench_experiments.FT_300, np.random.default_rng(0)).write_npz(folder / "run.npz")
    (folder / "arm.urdf").write_text(motion.robot.urdf)
    inputs = ("--urdf", folder / "arm.urdf", "--recording", folder / "run.npz", "--source", "wrench")
    return ("identify", "load", *inputs, "--output", folder / "out"), motion.load


def test_wrist_sensor_identifies_a_load_without_a_model(wrenches, capsys, no_report):
    options, truth = wrenches
    code, out, err = run(capsys, *options, "--json")
    assert code == 0, err
    load = json.loads(out)["load"]
    low, high = load["interval"]["mass"]
    assert low < truth[0] < high
    assert load["center"] == pytest.approx(truth[1:4] / truth[0], abs=0.002)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--wrench-acts-on", "load"), "set the other convention"),
        (("--wrench-frame", "base"), "axes"),
        (("--wrench-topic", "/x"), "no wrench topic /x; it has /wrench"),
        (("--unloaded", "x.npz"), "are for joint torques"),
        (("--source", "torque", "--unloaded", "x.npz", "--wrench-topic", "/x"), "are for --source wrench"),
        (("--static",), "no rest of at least"),
    ],
)
def test_bad_input_of_a_wrist_sensor_is_an_error(wrenches, capsys, options, words):
    code, out, err = run(capsys, *wrenches[0], *options)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err


real = pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)


def ur10e(*names):
    return [UR10E / "develop" / f"{name}.npz" for name in names]


def of_ur10e(capsys, what, *options):
    arm = ["--urdf", UR10E / "ur10e.urdf", "--base", "base_link", "--tip", "wrist_3_link"]
    effort = ["--effort-convention", "motor_current", "--motor-gains", *UR10E_GAINS]
    return run(capsys, "identify", what, *arm, *effort, *options)


@pytest.mark.slow
@real
def test_ur10e_identifies_its_load(tmp_path, capsys, no_report):
    (empty,) = ur10e("20_02_19_14harm50sec")
    (loaded,) = ur10e("20_02_19_14harm50secLoad")
    code, _, err = of_ur10e(capsys, "load", "--recording", loaded, "--unloaded", empty, "--output", tmp_path)
    assert code == 0, err
    load = load_identified(tmp_path / "identified.yaml")["load"]
    low, high = load["interval"]["mass"]
    assert low < MASS < high
    assert high - low < 0.1 * MASS
    assert load["mass"] == pytest.approx(MASS, rel=0.015)


@pytest.mark.slow
@real
def test_ur10e_without_a_load(tmp_path, capsys, no_report):
    first, second, empty = ur10e("20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_19_14harm50sec")
    both = ("--recording", first, "--recording", second)
    code, _, err = of_ur10e(capsys, "links", *both, "--output", tmp_path / "arm")
    assert code == 0, err
    model = tmp_path / "arm" / "identified.yaml"
    code, out, err = of_ur10e(capsys, "load", "--recording", empty, "--model", model, "--output", tmp_path / "load")
    assert code == 0, err
    assert "no load is shown: the interval of the mass holds zero" in out
    low, high = load_identified(tmp_path / "load" / "identified.yaml")["load"]["interval"]["mass"]
    assert -0.1 < low < 0 < high < 0.1
