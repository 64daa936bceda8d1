"""Test `--json` of each command: one document on stdout, also for errors, and equal exit codes."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pa10
import planar_arm
import pytest
import servo_arms
import torque_sensor_bench as bench
import weighed_loads
from command_line import URDF, commands, run
from gravity_experiment import planned_recording
from test_cli_links import QUICK, planar_recording
from torsion_recordings import flexible_joint

from dynid_ros.commands import demo
from dynid_ros.commands.options import as_json, schema

GRAVITY = [str(value) for value in bench.GRAVITY]


COMMANDS = commands()
COMMANDS.pop("node")  # a node runs until it is stopped, and publishes its output


@pytest.fixture(name="files", scope="module")
def fixture_files(tmp_path_factory):
    """Return a folder with arms, recordings and models, and the files of a load experiment."""
    folder = tmp_path_factory.mktemp("json")
    planned_recording().write_npz(folder / "rests.npz")
    good = planned_recording()
    np.savez(
        folder / "amps.npz",
        time=good.time,
        position=good.position,
        torque=good.torque / 12,
        joint_names=good.joint_names,
    )
    (folder / "planar.urdf").write_text(planar_arm.urdf())
    (folder / "servo.urdf").write_text(servo_arms.ONE)
    arm = servo_arms.one(seed=8)
    servo_arms.record(arm, servo_arms.motion(arm, 8.0, 50.0)).write_npz(folder / "servo.npz")
    one = {"urdf": "planar.urdf", "identification": "links", "recordings": ["motion_0.npz"]}
    one |= {"friction": "coulomb,viscous,offset", "prior_weight": 1}
    (folder / "fleet.yaml").write_text(json.dumps({"arms": {"one": one}}))
    for seed in (0, 1):
        planar_recording(seed).write_npz(folder / f"motion_{seed}.npz")
    truth = bench.Truth.draw(np.random.default_rng(0), bench.aslant_robot())
    rng = np.random.default_rng(2)
    for name, loaded in (("plain", False), ("mass", True)):
        bench.recording(truth, rng, loaded=loaded).write_npz(folder / f"{name}.npz")
    flexible_joint(2e5).write_npz(folder / "spring.npz")
    (folder / "spring.urdf").write_text(pa10.single_joint_urdf(1).replace("joint_1", "joint"))
    load_files = weighed_loads.files(folder)
    return folder, load_files


def inputs(files):
    """Return arguments of a quick run of each command, and the keys of its document."""
    folder, load_files = files
    planar = ("--urdf", folder / "planar.urdf")
    rests = ("--urdf", URDF, "--recording", folder / "rests.npz")
    out = ("--output", folder / "out")
    return {
        "check": ([*planar, "--recording", folder / "motion_0.npz", "--motion"], {"samples", "findings", "motion"}),
        "excite": (
            [*planar, "--acceleration-limits", "4", "--motion", "poses", "--count", "3", *out],
            {"motion", "target", "plan", "quality", "not_checked", "warnings"},
        ),
        "identify gravity": ([*rests, *out], {"gravity", "friction", "condition_number", "validation", "warnings"}),
        "identify links": (
            [*planar, "--recording", folder / "motion_0.npz", *QUICK, *out],
            {"links", "friction", "base_parameters", "validation", "warnings"},
        ),
        "identify load": (
            [
                "--urdf",
                load_files.urdf,
                "--model",
                load_files.model,
                "--recording",
                load_files.resting,
                "--static",
                *out,
            ],
            {"load", "drivers", "warnings"},
        ),
        "identify flexible": (
            ["--urdf", folder / "spring.urdf", "--recording", folder / "spring.npz", "--torsion", *out],
            {"torsion", "warnings"},
        ),
        "identify servos": (
            ["--urdf", folder / "servo.urdf", "--recording", folder / "servo.npz", *out],
            {"servos", "warnings"},
        ),
        "fleet": (["--workers", "1", *out, folder / "fleet.yaml"], set()),
        "identify torque-sensors": (
            [
                *("--urdf", URDF, "--gravity", *GRAVITY, "--recording", folder / "plain.npz"),
                *("--recording-with-mass", folder / "mass.npz", "--reference-mass", str(bench.MASS), *out),
            ],
            {"torque_sensors", "warnings"},
        ),
        "validate": (
            [
                *(*planar, "--model", folder / "links.yaml", "--recording", folder / "motion_1.npz"),
                *("--output", folder / "predicted.csv"),
            ],
            {"recording", "rms", "relative_rms", "r2", "remarks"},
        ),
        "export": (
            [*planar, "--model", folder / "links.yaml", "--to", "urdf", "--output", folder / "exported.urdf"],
            {"target", "holds", "remarks"},
        ),
        "view": ([*planar, "--recording", folder / "motion_1.npz", "--output", folder / "motion.rrd"], {"recording"}),
        "report": (["--model", folder / "links.yaml", "--output", folder / "page.html"], set()),
        "run": (["--check", folder / "predicted.experiment.yaml"], {"repeated", "differences"}),
        "guide": ([*planar, *out], {"output"}),
        "rehearse": ([*planar, *out], set()),
        "demo": (["--output", folder / "demo"], {"passed", "acts"}),
    }


@pytest.fixture(name="quick")
def fixture_quick(monkeypatch, tmp_path):
    """Skip pictures, the demo and processes."""
    for page in ("load", "links", "gravity", "torque_sensors", "motion"):
        name = {"torque_sensors": "result", "links": "link", "motion": "design"}.get(page, page)
        monkeypatch.setattr(f"dynid_ros.report.{page}.write_{name}_report", lambda path, *_: path)
    monkeypatch.setattr(demo, "run_demo", played)
    monkeypatch.setattr("dynid_ros.commands.fleet.Processes", ThreadPoolExecutor)


def played(output, _parameters, _acts, _domain):
    """Print, start a process that prints, and write results, like the demo."""
    print("act one")
    subprocess.run([sys.executable, "-c", "print('of a node')"], check=True)
    acts = output / "acts"
    acts.mkdir(parents=True)
    act = {"title": "Gravity", "passed": False, "sentences": ["FAILED"], "seconds": 1.0, "pictures": {"a": "<svg>"}}
    (acts / "gravity.json").write_text(json.dumps(act))
    (output / "report.html").write_text("<html>")
    return 1


def strict(text):
    """Return a JSON document, parsed strictly by the RFC."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def documented(schema):
    """Return the keys of a document in docs/files.md."""
    text = (Path(__file__).parents[1] / "docs" / "files.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([^`]+)`(?:[^|]*) \| (.*) \|$", text, re.MULTILINE))
    sections = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", rows[schema]))
    return (
        named | {"schema", "command", "exit_code", "files"} | (sections if "identified.yaml" in rows[schema] else set())
    )


def test_schemas_are_documented():
    for command in (*COMMANDS, "excite judge"):
        assert documented(schema(command)), command
    assert schema("error") == "dynid-error/1"


def test_all_commands_have_the_option_and_are_tested(files):
    assert set(COMMANDS) == set(inputs(files))
    for name, parser in COMMANDS.items():
        assert "--json" in parser._option_string_actions, name


OF_LINKS = ("export", "validate", "report")
"""Commands that read links.yaml."""
LONG_COMMANDS = ("demo", "guide", "rehearse")
"""Commands with other tests, or that run until they are stopped."""


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in LONG_COMMANDS])
def test_command_prints_one_document(command, files, quick, capfd):
    arguments, keys = inputs(files)[command]
    if command == "view":
        pytest.importorskip("rerun")
    if command in (*OF_LINKS, "run"):
        run_links(files, capfd)
    if command == "run":
        assert run(capfd, "validate", *inputs(files)["validate"][0])[0] == 0
    code, out, err = run(capfd, *command.split(), *arguments, "--json")
    assert code == 0, err
    document = strict(out)
    assert document["schema"] == f"dynid-{command.replace(' ', '-')}/1"
    assert document["command"] == command
    assert document["exit_code"] == 0
    assert keys <= set(document) <= documented(document["schema"])
    assert err.strip(), "the text for people is on stderr"
    assert "\r" not in err, "no progress line where there is no terminal"
    for path in document["files"].values():
        assert "/" in path


def run_links(files, capfd):
    """Write links.yaml if it does not exist."""
    folder, _ = files
    if (folder / "links.yaml").exists():
        return
    arguments, _ = inputs(files)["identify links"]
    assert run(capfd, "identify", "links", *arguments)[0] == 0
    (folder / "out" / "identified.yaml").rename(folder / "links.yaml")


def test_document_of_a_demo_with_printing_processes(files, quick, capfd):
    code, out, err = run(capfd, "demo", *inputs(files)["demo"][0], "--json")
    document = strict(out)
    assert (code, document["exit_code"], document["passed"]) == (1, 1, False)
    assert document["acts"] == {
        "gravity": {"title": "Gravity", "passed": False, "sentences": ["FAILED"], "seconds": 1.0}
    }
    assert "act one" in err
    assert "of a node" in err
    assert "report" in document["files"]


def test_document_contains_findings(files, capfd):
    code, out, err = run(capfd, "check", "--urdf", URDF, "--recording", files[0] / "amps.npz", "--json", "--verbose")
    document = strict(out)
    assert (code, document["exit_code"]) == (1, 1)
    (finding,) = [finding for finding in document["findings"] if finding["kind"] == "motor current"]
    assert set(finding) == {"severity", "kind", "where", "message", "fix"}
    assert finding["message"] in err


def test_document_of_a_judged_motion(files, capfd):
    arguments = ["--urdf", files[0] / "planar.urdf", "--judge", files[0] / "motion_0.npz", "--json"]
    code, out, _ = run(capfd, "excite", *arguments)
    document = strict(out)
    assert (document["exit_code"], document["schema"]) == (code, "dynid-excite-judge/1")
    assert set(document) <= documented(document["schema"])
    code, out, _ = run(capfd, "excite", *arguments, "--target", "gravity")
    document = strict(out)
    assert (code, document["exit_code"], document["schema"]) == (2, 2, "dynid-error/1")
    assert "no dwells" in document["error"]


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_errors(command, capfd):
    code, out, err = run(capfd, *command.split(), "--json", "--nonsense")
    document = strict(out)
    assert (code, document["exit_code"], document["kind"]) == (2, 2, "UsageError")
    assert (document["schema"], document["command"]) == ("dynid-error/1", command)
    assert document["error"] in err
    assert f"dynid {command} --help" in document["error"] or "dynid --help" in document["error"]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("demo", "report", "fleet", "run")])
def test_bad_input(command, files, quick, capfd):
    if command in OF_LINKS:
        run_links(files, capfd)
    arguments = list(map(str, inputs(files)[command][0]))
    arguments[arguments.index("--urdf") + 1] = "nowhere.urdf"
    code, out, err = run(capfd, *command.split(), *arguments, "--json")
    document = strict(out)
    assert (code, document["exit_code"], document["kind"]) == (2, 2, "ModelError")
    assert "nowhere.urdf" in document["error"]
    assert len(err.strip().splitlines()) == 1


def test_document_of_an_unexpected_error(files, capfd, monkeypatch):
    def broken(_options):
        raise ZeroDivisionError("of a rate")

    monkeypatch.setattr("dynid_ros.commands.check._check", broken)
    code, out, err = run(capfd, "check", "--urdf", URDF, "--recording", files[0] / "rests.npz", "--json")
    assert (code, strict(out)["kind"]) == (1, "ZeroDivisionError")
    assert "Traceback" in err


def test_values_without_json_equivalent_are_null():
    document = as_json({"a": np.inf, "b": np.array([1.0, np.nan]), 3: np.float64(2.5), "d": (np.int64(1), None, True)})
    assert strict(document) == {"a": None, "b": [1.0, None], "3": 2.5, "d": [1, None, True]}


def test_document_of_a_separate_process(files):
    command = [sys.executable, "-m", "dynid_ros.cli", "check", "--urdf", URDF, "--recording", "nowhere", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 2
    assert "nowhere" in strict(done.stdout)["error"]
