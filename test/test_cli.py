"""`dynid` as a user calls it: files in, files out, exit codes, one line for bad input."""

import json
from dataclasses import replace

import link_experiment
import numpy as np
import planar_arm
import pytest
from gravity_experiment import demo_recording

from dynid_ros.cli import main
from dynid_ros.identification.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.share import share_path
from dynid_ros.trajectories import Trajectory

URDF = str(share_path("config/demo_arm.urdf"))
PLANAR, _ = link_experiment.planar()
QUICK = ("--friction", "coulomb,viscous,offset", "--prior-weight", "1")


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture(name="bag", params=["npz", "csv"])
def fixture_bag(request, tmp_path):
    path = tmp_path / f"run.{request.param}"
    getattr(demo_recording(), f"write_{request.param}")(path)
    return path


def test_identify_gravity_then_report(bag, tmp_path, capsys):
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


def test_check_is_content_with_a_sound_recording(bag, capsys):
    code, out, _ = run(capsys, "check", "--urdf", URDF, "--recording", bag)
    assert code == 0
    assert "nothing to complain of" in out


def test_check_finds_current_taken_for_torque(tmp_path, capsys):
    good = demo_recording()
    path = tmp_path / "current.npz"
    np.savez(path, time=good.time, position=good.position, torque=good.torque / 12, joint_names=good.joint_names)
    code, out, _ = run(capsys, "check", "--urdf", URDF, "--recording", path)
    assert code == 1
    assert "motor_current" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--urdf", "nowhere.urdf", "--recording", "run.npz"], "nowhere.urdf"),
        (["--urdf", URDF, "--recording", "nowhere"], "nowhere does not exist"),
        (["--urdf", URDF, "--tip", "hand", "--recording", "run.npz"], "tip link 'hand'"),
        (["--urdf", URDF, "--recording", "run.npz", "--effort-convention", "motor_current"], "gains"),
        (["--urdf", URDF, "--recording", "run.npz", "--effort-convention", "gravity_compensated"], "gravity"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo_recording().write_npz("run.npz")
    code, _, err = run(capsys, "identify", "gravity", *arguments, "--output", "out")
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_model_of_another_robot_is_refused(tmp_path, capsys):
    demo_recording().write_npz(tmp_path / "run.npz")
    run(capsys, "identify", "gravity", "--urdf", URDF, "--recording", tmp_path / "run.npz", "--output", tmp_path)
    other = tmp_path / "other.urdf"
    other.write_text(share_path("config/demo_arm.urdf").read_text().replace("0 0 0.2", "0 0 0.3"))
    shifted = other.read_text() != share_path("config/demo_arm.urdf").read_text()
    assert shifted
    code, _, err = run(
        capsys,
        *("report", "--urdf", other, "--model", tmp_path / "identified.yaml"),
        *("--recording", tmp_path / "run.npz", "--output", tmp_path / "r.html"),
    )
    assert code == 2
    assert "another robot" in err


def planar_recording(seed=0):
    return link_experiment.record(PLANAR, 1.3 * PLANAR.parameters, seed)


@pytest.fixture(name="links")
def fixture_links(tmp_path, monkeypatch):
    """Arguments of a quick identification of links in a folder of its own, with recordings run.npz and other.npz."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    planar_recording().write_npz("run.npz")
    planar_recording(1).write_npz("other.npz")
    return ("identify", "links", "--urdf", "arm.urdf", "--recording", "run.npz", *QUICK, "--output", "out")


def test_identify_links_then_validate(links, tmp_path, capsys):
    code, out, err = run(capsys, *links, "--validate", "other.npz")
    assert (code, err) == (0, "")
    for words in (
        "Links of planar",
        "Validation on other.npz",
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
    given = {"estimator": "weighted", "equations": "integral", "friction": "given", "torque_gain_error": 0.5}
    assert document["source"]["settings"].items() >= given.items()
    assert (document["signals"]["cutoff"], document["signals"]["motion_cutoff"]) == (8, 20)
    assert document["friction"]["joint_1"]["terms"] == ["offset"]
    assert document["friction"]["joint_1"]["smoothing"] == 0.1
    assert document["friction"]["coupled"][0]["joints"] == ["joint_2", "joint_3"]


def test_urdf_with_impossible_inertias_is_repaired_and_said(links, tmp_path, capsys):
    text = planar_arm.urdf().replace('<mass value="3.0"/>', '<mass value="0"/>')
    last = text.rindex('izz="0.01"')
    (tmp_path / "arm.urdf").write_text(text[:last] + text[last:].replace('izz="0.01"', 'izz="9"'))
    code, out, _ = run(capsys, *links)
    assert code == 0
    assert "prior of link_2: mass 0 kg" in out
    assert "prior of link_3: inertia that no body of 2 kg has" in out
    assert RobotModel.from_urdf("out/identified.urdf").parameters[10] > 0


def at_rest(recording):
    noise = np.random.default_rng(0).normal(0, 1e-5, recording.position.shape)
    return replace(recording, position=recording.position[0] + noise, velocity=0 * noise)


def with_torque(samples, joint, value):
    def changed(recording):
        torque = recording.torque.copy()
        torque[samples, joint] = value
        return replace(recording, torque=torque)

    return changed


def of_joints(*names):
    return lambda recording: replace(recording, joint_names=names)


def columns_swapped(recording):
    return replace(recording, position=recording.position[:, [0, 2, 1]], velocity=recording.velocity[:, [0, 2, 1]])


EVERY = slice(None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_joints("a", "b", "c"), "run.npz lacks joint(s) joint_1, joint_2, joint_3; it has a, b, c"),
        (columns_swapped, "joints 'joint_2' and 'joint_3': their positions are swapped"),
        (at_rest, "run.npz: all joints are at rest"),
        (lambda recording: recording.slice(slice(0, 5)), "run.npz: only 5 samples"),
        (lambda recording: recording.slice(slice(0, 40)), "run.npz: no spectrum of 40 positions"),
        (lambda recording: recording.slice(slice(300, 370)), "samples after filtering for 18 unknowns of one joint"),
        (with_torque(7, 1, 1e9), "joint 'joint_2': its torque is 1e+09 at t = 0.070 s"),
        (with_torque(EVERY, EVERY, np.nan), "run.npz: no torque was recorded for any joint"),
        (with_torque(EVERY, 2, np.nan), "joint 'joint_3': no torque was recorded for it"),
    ],
)
def test_recordings_that_no_link_is_identified_from(change, words, links, tmp_path, capsys):
    change(planar_recording()).write_npz("run.npz")
    assert words in refused(capsys, *links)


def test_values_that_are_not_finite(links, capsys):
    recording = planar_recording()
    position = recording.position.copy()
    position[7, 1] = np.inf
    np.savez("run.npz", joint_names=PLANAR.joint_names, time=recording.time, position=position, torque=recording.torque)
    assert "run.npz: position of joint 'joint_2' is inf at sample 7, t = 0.07 s" in refused(capsys, *links)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("--coupled joint_1 joint_9", "planar has no joint joint_9; its joints: joint_1, joint_2, joint_3"),
        ("--coupled joint_1 joint_1", "coupled joints"),
        ("--coupled joint_1", "--coupled: expected 2 arguments; see dynid identify links --help"),
        ("--cutoff 60", "cutoff is 60 Hz; expected one above 0 and up to 40 Hz"),
        ("--cutoff 0", "cutoff is 0"),
        ("--cutoff low", "invalid float value: 'low'"),
        ("--motion-cutoff 45", "motion_cutoff is 45 Hz"),
        ("--prior-weight 0", "prior_weight is 0"),
        ("--prior-weight -3", "prior_weight is -3"),
        ("--prior-weight nan", "prior_weight is nan"),
        ("--torque-gain-error -1", "torque_gain_error is -1"),
        ("--friction columb", "friction: 'columb' is no term"),
        ("--estimator best", "'best'"),
        ("--validate nowhere.npz", "nowhere.npz does not exist"),
        ("--effort-convention motor_current --motor-gains 1 2", "2"),
        ("--output arm.urdf", "cannot write arm.urdf"),
    ],
)
def test_settings_that_make_no_sense(settings, words, links, tmp_path, capsys):
    assert words in refused(capsys, *links, *settings.split())


def refused(capsys, *arguments):
    """The one line of a command that ends with exit code 2 and leaves nothing."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("dynid: error: ")
    assert len(err.strip().splitlines()) == 1
    return err


def test_validate_takes_one_recording_of_the_same_robot(links, tmp_path, capsys):
    assert run(capsys, *links)[0] == 0
    validate = ("validate", "--model", "out/identified.yaml", "--recording", "other.npz", "--output", "pred.csv")
    assert "takes one recording" in refused(capsys, *validate, "--urdf", "arm.urdf", "--recording", "run.npz")
    (tmp_path / "longer.urdf").write_text(planar_arm.urdf(length=0.5))
    assert "other axes or placements" in refused(capsys, *validate, "--urdf", "longer.urdf")
    assert not (tmp_path / "pred.csv").exists()


@pytest.fixture(name="excite")
def fixture_excite(tmp_path, monkeypatch):
    """Arguments of a quick design in a folder of its own, with a table in table.yaml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    (tmp_path / "table.yaml").write_text("- {name: table, size: [0.4, 0.8, 0.2], position: [0.7, 0, 0.1]}")
    fourier = ("--base-frequency", "0.2", "--harmonics", "2", "--starts", "0", "--workers", "1")
    return ("excite", "--urdf", "arm.urdf", "--acceleration-limits", "4", *fourier, "--output", "out")


def test_excite_then_judge(excite, tmp_path, capsys):
    narrow = ("--position-lower", "-1,-2,-1.5", "--position-upper", "joint_1=0.5", "--torque-limits", "40,40,joint_3")
    assert "'joint_3' is no number" in refused(capsys, *excite, *narrow)
    limits = (*narrow[:-1], "joint_2=40", "--jerk-limits", "50", "--position-margin", "0.1")
    room = ("--obstacles", "table.yaml", "--box", "-2", "-2", "-inf", "2", "2", "inf", "--floor-height", "0.05")
    code, out, err = run(capsys, *excite, *limits, *room)
    assert (code, err) == (0, "")
    assert "No obstacles" not in out
    assert out.endswith("wrote out/trajectory.yaml, out/trajectory.csv, out/plan.yaml, out/report.html\n")
    position = Trajectory.read("out/trajectory.yaml").position
    assert np.all((position >= [-0.9, -1.9, -1.4]) & (position <= [0.4, 2.4, 2.4]))
    page = (tmp_path / "out/report.html").read_text()
    for words in ("table", "(-2, -2, -inf) to (2, 2, inf) m", "position_margin: 0.1", "joint_2"):
        assert words in page
    code, out, err = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "out/trajectory.yaml", "--noise", "0.1")
    assert (code, err) == (0 if out.startswith("enough") else 1, "")
    assert "rank 25 of 25" in out
    code, out, _ = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "out/trajectory.yaml", "--target", "load")
    assert "of 10," in out


def test_judge_recordings(links, capsys):
    code, out, _ = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "run.npz", "other.npz")
    assert (code, out.splitlines()[0].startswith("enough")) == (0, True)
    link_experiment.record(PLANAR, PLANAR.parameters, still=(2,)).write_npz("still.npz")
    code, out, _ = run(capsys, "excite", "--urdf", "arm.urdf", "--judge", "still.npz")
    assert (code, out.splitlines()[0]) == (1, "not enough")
    assert "viscous joint_3" in out
    code, out, _ = run(capsys, "check", "--urdf", "arm.urdf", "--recording", "still.npz", "--motion")
    assert code == 0
    assert "viscous joint_3" in out


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("--acceleration-limits 4,4", "acceleration_limits: 2 values; give one for all joints or one for each of"),
        ("--acceleration-limits elbow=4", "names no joint; expected joint=value of joint_1, joint_2, joint_3"),
        ("--acceleration-limits joint_1=4", "acceleration_limits of joint 'joint_2' is not in the robot's description"),
        ("--velocity-limits 9", "velocity_limits of joint 'joint_1' is 9, wider than the URDF's 3"),
        ("--harmonics 1", "harmonics is 1; it must be at least 2"),
        ("--harmonics few", "invalid int value: 'few'"),
        ("--motion poses", "motion poses has no setting base_frequency, which is one of fourier"),
        ("--motion dance", "'dance'"),
        ("--criterion best", "'best'"),
        ("--floor-height 5", "floor"),
        ("--clearance -1", "clearance is -1 m"),
        ("--obstacles nowhere.yaml", "nowhere.yaml"),
        ("--box 1 1 1 0 0 0", "the lower one below on each axis"),
        ("--recorded nowhere.npz", "nowhere.npz does not exist"),
        ("--judge nowhere.yaml", "cannot read trajectory 'nowhere.yaml'"),
        ("--judge arm.urdf", "arm.urdf"),
        ("--output arm.urdf", "cannot write into arm.urdf"),
        ("--noise 0", "noise"),
    ],
)
def test_designs_that_make_no_sense(settings, words, excite, tmp_path, capsys):
    assert words in refused(capsys, *excite, *settings.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["--acceleration-limits", "--output"])
def test_what_a_design_needs(missing, excite, capsys):
    k = excite.index(missing)
    assert f"{missing} is missing" in refused(capsys, *excite[:k], *excite[k + 2 :])


def test_meshes_that_are_not_there(excite, tmp_path, capsys):
    mesh = '<collision><geometry><mesh filename="package://arm/link.stl"/></geometry></collision></link>'
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf().replace("</link>", mesh, 2))
    assert "--mesh-directory, --skip-meshes" in refused(capsys, *excite)
    code, out, _ = run(capsys, *excite, "--skip-meshes")
    assert code == 0
    assert "No shape is known of" in out
