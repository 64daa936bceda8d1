"""A little of `python -m benchmarks.fuzz` with every run of the tests."""

import importlib
import warnings

import pytest

pytest.importorskip("hypothesis")

from fuzzing import models, recordings
from fuzzing.outcome import Nonsense, Tally, unclear
from fuzzing.target import fuzz

from dynid_ros.errors import DynidError

INPUTS = {
    "identified.yaml": 40,
    "bag folder": 10,
    "bag messages": 8,
    "MCAP": 40,
    "SQLite bag": 40,
    "meshes": 60,
    "motions": 30,
    "parameters": 20,
    "designs": 5,
    "simulated arm": 30,
}
SEED = 20


def judged(target, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fuzz(target, INPUTS.get(target.name, 75), SEED, folder)


@pytest.fixture(scope="module")
def bag_targets(tmp_path_factory):
    return {target.name: target for target in recordings.targets(tmp_path_factory.mktemp("bags"))}


@pytest.mark.parametrize("target", models.TARGETS, ids=lambda target: target.name)
def test_files_of_arms(target, tmp_path):
    for seed in target.seeds[: 1 if target.name == "identified.yaml" else None]:
        target.read(seed, tmp_path)  # what the fuzzer starts from is good
    tally = judged(target, tmp_path)
    assert not tally.failures, tally.told()
    assert tally.accepted
    assert tally.refused


@pytest.mark.parametrize("name", ["CSV", "NPZ", "cameras", "MCAP", "SQLite bag", "bag folder", "bag messages"])
def test_recordings(name, bag_targets, tmp_path):
    tally = judged(bag_targets[name], tmp_path)
    assert not tally.failures, tally.told()
    assert tally.accepted
    assert tally.refused


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("messages", "joint states"),
        ("messages", "descriptions"),
        ("node_parameters", "parameters"),
        ("node_parameters", "designs"),
        ("simulated", "simulated arm"),
    ],
)
def test_nodes(module, name, tmp_path):
    pytest.importorskip("rclpy")
    targets = importlib.import_module(f"fuzzing.{module}").TARGETS
    tally = judged(next(target for target in targets if target.name == name), tmp_path)
    assert not tally.failures, tally.told()
    assert tally.accepted
    assert tally.refused


def failing(data):
    if data == "crash":
        raise KeyError(data)
    if data == "hang":
        while True:
            pass
    if data == "memory":
        bytearray(400_000_000)
    if data == "nonsense":
        raise Nonsense("a mass of -1")
    if data == "refused":
        raise DynidError("mass of link 'a' is -1; expected zero or more")
    if data == "silent":
        raise DynidError("")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("crash", "KeyError at"),
        ("hang", "TooSlow at"),
        ("memory", "memory: "),
        ("nonsense", "Nonsense at"),
        ("silent", "unclear line: says nothing"),
    ],
)
def test_the_fuzzer_notices(data, kind, monkeypatch):
    monkeypatch.setattr("fuzzing.outcome.PATIENCE", 0.5)
    if data == "memory":
        bytearray(600_000_000)  # the process was once larger than the input makes it
    tally = Tally()
    tally.add(failing, data)
    tally.add(failing, "refused")
    tally.add(failing, "fine")
    assert (tally.accepted, tally.refused) == (1 + (data == "memory"), 1)
    assert [found[: len(kind)] for found in tally.failures] == [kind]
    assert kind in tally.told()


def test_lines_that_are_clear():
    assert not unclear("URDF 'arm.urdf': it has no links; give one")
    assert unclear("'NoneType' object has no attribute 'get'")
    assert unclear("a b c \x1b[2J d")
    assert unclear("word " * 1000)
