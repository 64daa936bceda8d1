"""Test `dynid fleet`: independence of jobs, and resumption after interruptions."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import link_experiment
import numpy as np
import planar_arm
import pytest
import yaml
from command_line import run, run_refused
from dask_cluster import dask_cluster

from dynid_ros.files import locked_folder

ROBOT, TRUTH = link_experiment.build_planar()
DEFAULTS = {"urdf": "arms/arm.urdf", "identification": "links", "friction": "coulomb,viscous,offset", "prior_weight": 1}


def write(folder, arms, **others):
    (folder / "fleet.yaml").write_text(yaml.safe_dump({"defaults": DEFAULTS, "arms": arms, **others}))


def record(folder, name, truth=TRUTH, seed=0):
    link_experiment.record(ROBOT, truth, seed=1, noise_seed=seed).write_npz(folder / name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a fleet file of two arms, one of them without a recording, with another current folder."""
    (tmp_path / "arms").mkdir()
    (tmp_path / "arms" / "arm.urdf").write_text(planar_arm.urdf())
    for number in (1, 2):
        record(tmp_path, f"run_{number}.npz", seed=number)
    runs = {f"2026-01-0{number}": {"recordings": [f"run_{number}.npz"]} for number in (1, 2)}
    write(tmp_path, {"one": {"runs": runs}, "two": {"recordings": ["none.npz"]}})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """Use threads and skip pictures; test_executors.py and slow tests use processes."""
    monkeypatch.setattr("dynid_ros.commands.fleet.Processes", ThreadPoolExecutor)
    monkeypatch.setattr("dynid_ros.report.links.write_link_report", lambda path, *_: path)


FLEET = ("fleet", "../fleet.yaml", "--output", "out", "--workers", "1")


def written(folder):
    """Return the modification time of each identified.yaml in a folder by name."""
    times = {}
    for where, subfolders, names in os.walk(folder):
        subfolders[:] = [each for each in subfolders if not each.startswith(".")]
        if "identified.yaml" in names:
            path = Path(where) / "identified.yaml"
            times[str(path.relative_to(folder))] = path.stat().st_mtime_ns
    return times


def test_missing_recording_does_not_affect_others_and_done_jobs_are_skipped(folder, quick, capsys):
    code, out, err = run(capsys, *FLEET, "--json", "--verbose")
    answer = json.loads(out)
    assert (code, answer["exit_code"]) == (2, 2)
    assert f"not done: two: {folder}/none.npz does not exist; give a rosbag2 folder" in err.replace("\n", " ")
    assert [(job["arm"], job["run"], bool(job["error"])) for job in answer["jobs"]] == [
        ("one", "2026-01-01", False),
        ("one", "2026-01-02", False),
        ("two", "", True),
    ]
    first = written(Path("out"))
    assert sorted(first) == ["one/2026-01-01/identified.yaml", "one/2026-01-02/identified.yaml"]
    assert {each["runs"] for each in answer["drift"]} == {2}
    assert yaml.safe_load(Path("out/fleet.yaml").read_text())["drift"] == answer["drift"]
    lines = Path("out/table.csv").read_text().splitlines()
    assert lines[0] == "arm,run,identification,parameter,value,standard_error,z,outlier"
    assert lines[1].startswith("one,2026-01-01,links,base ")
    done = "out/one/2026-01-01/experiment.yaml"
    assert "files are the same" in run(capsys, "run", done, "--check")[1]
    # add the missing recording, and change another one
    record(folder, "none.npz")
    record(folder, "run_2.npz", seed=7)
    code, out, _ = run(capsys, *FLEET)
    assert code == 0
    assert out.startswith("3 jobs of 2 arms: 2 done now, 1 done before, 0 not done\n")
    again = written(Path("out"))
    assert {name for name in first if again[name] == first[name]} == {"one/2026-01-01/identified.yaml"}
    assert not list(Path("out").rglob(".*"))


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ({"one": {"recordings": ["a.npz"], "frictionn": "auto"}}, "fleet.yaml: one: unknown key 'frictionn'; expected"),
        ({"one": {"recordings": ["a.npz"], "prior_weight": "big"}}, "fleet.yaml: one: argument --prior-weight: "),
        ({"one": {"recordings": ["a.npz"], "identification": "knots"}}, "fleet.yaml: one: identification is 'knots'; "),
        ({"one": {}}, "fleet.yaml: one: the following arguments are required: --recording"),
        ({"one": {"runs": {"a": {"recordings": ["x"], "speed": 3}}}}, "fleet.yaml: one: a: unknown key 'speed'"),
        ({"../one": {"recordings": ["a.npz"]}}, "fleet.yaml: ../one: '../one' is the name of a folder too"),
        ({"one": ["a.npz"]}, "fleet.yaml: one: expected keys with values, not "),
        ({}, "fleet.yaml: there are no arms"),
    ],
)
def test_invalid_fleet_file_is_an_error_with_file_and_key(folder, capsys, arms, words):
    write(folder, arms)
    assert words in run_refused(capsys, *FLEET)


@pytest.mark.parametrize(
    "arms",
    [
        {"line\nbreak": {"recordings": ["a.npz"]}},
        {"zero\0": {"recordings": ["a.npz"]}},
        {"table.csv": {"recordings": ["a.npz"]}},
        {1: {"recordings": ["a.npz"]}, "1": {"recordings": ["b.npz"]}},
        {"one": {"runs": {1: {"recordings": ["a.npz"]}, "1": {"recordings": ["b.npz"]}}}},
        {"one": {"runs": {"": {"recordings": ["a.npz"]}, "1": {"recordings": ["b.npz"]}}}},
    ],
)
def test_invalid_folder_names_are_an_error(folder, capsys, arms):
    write(folder, arms)
    assert "fleet.yaml: " in run_refused(capsys, *FLEET)


def test_foreign_folder_is_kept(folder, capsys):
    write(folder, {"arms": {"recordings": ["run_1.npz"]}})
    assert "choose another --output" in run_refused(capsys, "fleet", "../fleet.yaml", "--output", "..")
    assert (folder / "arms" / "arm.urdf").exists()


def test_inputs_in_the_folder_of_a_job_are_kept(folder, capsys):
    job = folder / "elsewhere" / "out" / "one"
    job.mkdir(parents=True)
    (job / "job.yaml").write_text("{}")
    (job / "run.npz").write_bytes((folder / "run_1.npz").read_bytes())
    write(folder, {"one": {"recordings": ["elsewhere/out/one/run.npz"]}})
    assert "would be replaced" in run_refused(capsys, *FLEET)
    assert (job / "run.npz").exists()


def test_file_at_the_path_of_a_folder_is_kept(folder, capsys):
    (folder / "one").write_text("mine")
    write(folder, {"one": {"recordings": ["run_1.npz"]}})
    assert "choose another --output" in run_refused(capsys, "fleet", "../fleet.yaml", "--output", "..")
    assert (folder / "one").read_text() == "mine"


def test_second_fleet_in_a_folder_is_refused(folder, quick, capsys):
    with locked_folder(folder / "elsewhere" / "out"):
        assert "another process writes there" in run_refused(capsys, *FLEET)
    assert run(capsys, *FLEET)[0] == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda job: (job / "job.yaml").write_text((job / "job.yaml").read_text().partition("missing")[0]),
        lambda job: (job / "job.yaml").write_text((job / "job.yaml").read_text().replace("missing: []", "missing: 1")),
        lambda job: (job / "job.yaml").write_text("- edited"),
        lambda job: (job / "identified.yaml").unlink(),
        lambda job: (job / "identified.yaml").write_text("robot: [1"),
    ],
)
def test_job_with_changed_files_is_repeated(folder, quick, capsys, damage):
    write(folder, {"one": {"recordings": ["run_1.npz"]}})
    assert run(capsys, *FLEET)[0] == 0
    damage(Path("out/one"))
    code, out, _ = run(capsys, *FLEET)
    assert (code, out.splitlines()[0]) == (0, "1 jobs of 1 arms: 1 done now, 0 done before, 0 not done")


def test_unknown_sections_and_missing_files_are_errors(folder, capsys):
    write(folder, {"one": {"recordings": ["a.npz"]}}, robots={})
    assert "fleet.yaml: unknown key 'robots'; expected defaults and arms" in run_refused(capsys, *FLEET)
    (folder / "fleet.yaml").write_text("arms: [\n")
    assert "fleet.yaml: line 2:" in run_refused(capsys, *FLEET)
    (folder / "fleet.yaml").unlink()
    assert "fleet.yaml: No such file" in run_refused(capsys, *FLEET)


@pytest.mark.slow
def test_interruption_loses_only_running_jobs(folder, capsys):
    arms = {f"arm_{k}": {"recordings": [f"a{k}.npz"]} for k in range(8)}
    for k in range(8):
        record(folder, f"a{k}.npz", seed=k)
    write(folder, arms)
    words = [sys.executable, "-m", "dynid_ros.cli", *FLEET]
    for end in (signal.SIGINT, signal.SIGKILL):
        before = len(written(Path("out")))
        process = subprocess.Popen(words, env=os.environ, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120.0
        while len(written(Path("out"))) < before + 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(end)
        assert process.wait(60.0) == (130 if end == signal.SIGINT else -signal.SIGKILL)
    done = written(Path("out"))
    assert 4 <= len(done) < 8
    assert all((Path("out") / name).with_name("job.yaml").exists() for name in done)
    code, out, _ = run(capsys, *FLEET)
    assert code == 0
    now = int(out.split(": ")[1].split(" done now")[0])
    assert now == 8 - len(done)
    assert {name: time for name, time in written(Path("out")).items() if name in done} == done
    assert not list(Path("out").rglob(".*"))


@pytest.mark.slow
def test_cluster_repeats_the_job_of_a_killed_worker(folder, capsys, tmp_path):
    pytest.importorskip("distributed")
    arms = {f"arm_{k}": {"recordings": [f"a{k}.npz"]} for k in range(8)}
    for k in range(8):
        record(folder, f"a{k}.npz", TRUTH * (1 + 0.01 * k), seed=k)
    write(folder, arms)
    with dask_cluster(tmp_path, 2) as dask:
        words = [sys.executable, "-m", "dynid_ros.cli", *FLEET[:-2], "--scheduler", dask.address]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120.0
        while not written(Path("out")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        dask.workers[0].kill()
        out, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    assert out.startswith("8 jobs of 8 arms: 8 done now, 0 done before, 0 not done")
    run(capsys, "fleet", "../fleet.yaml", "--output", "here", "--workers", "2")
    for name in written(Path("out")):
        here, there = (yaml.safe_load((Path(where) / name).read_text()) for where in ("here", "out"))
        values = [[each["value"] for each in of["base_parameters"]] for of in (here, there)]
        np.testing.assert_array_equal(*values)
