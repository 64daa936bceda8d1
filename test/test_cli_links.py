"""Test `dynid identify links`, `validate` and `judge`."""

import json
from dataclasses import replace

import link_experiment
import numpy as np
import planar_arm
import pytest
from command_line import run, run_refused

from dynid_ros.errors import DynidError
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel

PLANAR, _ = link_experiment.build_planar()
QUICK = ("--friction", "coulomb,viscous,offset", "--prior-weight", "1")


def planar_recording(seed=0):
    return link_experiment.record(PLANAR, 1.3 * PLANAR.parameters, seed)


@pytest.fixture(name="links")
def fixture_links(tmp_path, monkeypatch):
    """Return arguments of a quick identification in a new folder with recordings run.npz and other.npz."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    planar_recording().write_npz("run.npz")
    planar_recording(1).write_npz("other.npz")
    return ("identify", "links", "--urdf", "arm.urdf", "--recording", "run.npz", *QUICK, "--output", "out")


def test_identify_links_then_validate_with_one_recording_of_the_same_robot(links, tmp_path, capsys):
    code, out, err = run(capsys, *links, "--validate", "other.npz")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 25
    for words in (
        "planar: links identified from run (10 s)",
        "Unseen torque (other) is predicted within",
        "wrote out/identified.yaml, out/identified.urdf, out/rep",
    ):
        assert words in out
    assert RobotModel.from_urdf("out/identified.urdf").parameters == pytest.approx(
        np.ravel([list(flat(link)) for link in load_identified("out/identified.yaml")["links"].values()]), abs=1e-12
    )
    code, out, err = run(
        capsys,
        *("validate", "--model", "out/identified.yaml", "--urdf", "arm.urdf", "--recording", "other.npz"),
        *("--output", "pred.csv", "--json"),
    )
    assert code == 0
    assert "Validation on other.npz" in err
    agreement = json.loads(out)
    assert agreement["recording"] == "other.npz"
    assert min(agreement["r2"].values()) > 0.99
    lines = (tmp_path / "pred.csv").read_text().splitlines()
    assert len(lines) == 1001
    assert lines[0].startswith("t,joint_1_measured,joint_1_predicted,joint_2_measured,")
    again = ("validate", "--model", "out/identified.yaml", "--recording", "other.npz", "--output", "again.csv")
    assert "takes one recording" in run_refused(capsys, *again, "--urdf", "arm.urdf", "--recording", "run.npz")
    (tmp_path / "longer.urdf").write_text(planar_arm.urdf(length=0.5))
    assert "other axes or placements" in run_refused(capsys, *again, "--urdf", "longer.urdf")
    assert not (tmp_path / "again.csv").exists()


def flat(link):
    return [link["mass"], *link["mass_moment"], *link["inertia"]]


def test_settings_of_links_reach_the_fit(links, capsys):
    settings = (
        "--estimator",
        "weighted",
        "--equations",
        "integral",
        "--friction",
        "offset,smoothing=0.1",
        "--coupled",
        "joint_2",
        "joint_3",
    )
    signals = ("--cutoff", "8", "--motion-cutoff", "20", "--torque-gain-error", "0.5")
    code, out, _ = run(capsys, *links, *settings, *signals, "--json")
    assert code == 0
    document = json.loads(out)
    options = {"estimator": "weighted", "equations": "integral", "friction": "given", "torque_gain_error": 0.5}
    assert document["source"]["settings"].items() >= options.items()
    assert (document["signals"]["cutoff"], document["signals"]["motion_cutoff"]) == (8, 20)
    assert document["friction"]["joint_1"]["terms"] == ["offset"]
    assert document["friction"]["joint_1"]["smoothing"] == 0.1
    assert document["friction"]["coupled"][0]["joints"] == ["joint_2", "joint_3"]


def test_impossible_inertias_are_repaired_and_reported(links, tmp_path, capsys):
    text = planar_arm.urdf().replace('<mass value="3.0"/>', '<mass value="0"/>')
    last = text.rindex('izz="0.01"')
    (tmp_path / "arm.urdf").write_text(text[:last] + text[last:].replace('izz="0.01"', 'izz="9"'))
    code, out, _ = run(capsys, *links, "--verbose")
    assert code == 0
    assert "prior of link_2: mass 0 kg" in out
    assert "prior of link_3: inertia that no body of 2 kg has" in out
    assert RobotModel.from_urdf("out/identified.urdf").parameters[10] > 0


def with_torque(samples, joint, value):
    def changed(recording):
        torque = recording.torque.copy()
        torque[samples, joint] = value
        return replace(recording, torque=torque)

    return changed


EVERY = slice(None)


def of_joints(*names):
    return lambda recording: replace(recording, joint_names=names)


def columns_swapped(recording):
    return replace(recording, position=recording.position[:, [0, 2, 1]], velocity=recording.velocity[:, [0, 2, 1]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_joints("a", "b", "c"), "run.npz lacks joint(s) joint_1, joint_2, joint_3; it has a, b, c"),
        (columns_swapped, "joints 'joint_2' and 'joint_3': their positions are swapped"),
        (lambda recording: recording.slice(slice(0, 5)), "run.npz: only 5 samples"),
        (lambda recording: recording.slice(slice(0, 40)), "run.npz: no spectrum of 40 positions"),
        (lambda recording: recording.slice(slice(300, 370)), "samples after filtering for 18 unknowns of one joint"),
        (with_torque(7, 1, 1e9), "joint 'joint_2': its torque is 1e+09 at t = 0.070 s"),
        (with_torque(EVERY, EVERY, np.nan), "run.npz: no torque was recorded for any joint"),
        (with_torque(EVERY, 2, np.nan), "joint 'joint_3': no torque was recorded for it"),
    ],
)
def test_unsuitable_recordings_are_refused(change, words, links, tmp_path, capsys):
    change(planar_recording()).write_npz("run.npz")
    assert words in run_refused(capsys, *links)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("--coupled joint_1 joint_9", "planar has no joint joint_9; its joints: joint_1, joint_2, joint_3"),
        ("--coupled joint_1", "--coupled: expected 2 arguments; see dynid identify links --help"),
        ("--cutoff 60", "cutoff is 60 Hz; expected one above 0 and up to 40 Hz"),
        ("--cutoff low", "invalid float value: 'low'"),
        ("--friction columb", "friction: 'columb' is no term"),
        ("--estimator best", "'best'"),
        ("--validate nowhere.npz", "nowhere.npz does not exist"),
        ("--effort-convention motor_current --motor-gains 1 2", "2"),
        ("--output arm.urdf", "cannot write arm.urdf"),
    ],
)
def test_invalid_settings_are_refused(settings, words, links, tmp_path, capsys):
    assert words in run_refused(capsys, *links, *settings.split())


def test_judge_recordings(links, capsys):
    code, out, _ = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "run.npz", "other.npz")
    assert (code, out.splitlines()[0].startswith("enough")) == (0, True)
    link_experiment.record(PLANAR, PLANAR.parameters, still=(2,)).write_npz("still.npz")
    code, out, _ = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "still.npz")
    assert (code, out.splitlines()[0]) == (1, "not enough")
    assert "viscous joint_3" in out
    code, out, _ = run(capsys, "check", "--urdf", "arm.urdf", "--recording", "still.npz", "--motion")
    assert code == 1
    assert "viscous joint_3" in out
    both = ("--recording", "run.npz", "--recording", "other.npz")
    code, out, _ = run(capsys, "check", "--urdf", "arm.urdf", *both, "--motion")
    assert (code, out.splitlines()[-1].startswith("not")) == (0, False)


def test_check_without_a_judgement_of_the_motion(links, monkeypatch, capsys):
    def unjudged(*_):
        raise DynidError("too few samples")

    monkeypatch.setattr("dynid_ros.commands.check.judge", unjudged)
    code, out, _ = run(capsys, "check", "--urdf", "arm.urdf", "--recording", "run.npz", "--motion")
    assert (code, "the motion was not judged: too few samples" in out) == (1, True)
