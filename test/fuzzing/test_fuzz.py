"""Run a small share of `python -m benchmarks.fuzz`, and test the fuzzer itself."""

import importlib
import warnings

import pytest

pytest.importorskip("hypothesis")

from fuzzing import models, recordings
from fuzzing.outcome import Nonsense, Tally, find_message_problem
from fuzzing.target import fuzz

from dynid_ros.errors import DynidError

INPUT_COUNTS = {
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


def assert_sound(target, folder):
    """Check that the target accepts and refuses some inputs, and fails on none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = fuzz(target, INPUT_COUNTS.get(target.name, 75), SEED, folder)
    assert not tally.failures, tally.describe_failures()
    assert tally.accepted
    assert tally.refused


@pytest.fixture(scope="module")
def bag_targets(tmp_path_factory):
    return {target.name: target for target in recordings.list_targets(tmp_path_factory.mktemp("bags"))}


@pytest.mark.parametrize("target", models.TARGETS, ids=lambda target: target.name)
def test_readers_of_arm_files_accept_no_nonsense(target, tmp_path):
    for seed in target.seeds[: 1 if target.name == "identified.yaml" else None]:
        target.read(seed, tmp_path)  # the seeds must be valid
    assert_sound(target, tmp_path)


@pytest.mark.parametrize("name", ["CSV", "NPZ", "cameras", "MCAP", "SQLite bag", "bag folder", "bag messages"])
def test_readers_of_recordings_accept_no_nonsense(name, bag_targets, tmp_path):
    assert_sound(bag_targets[name], tmp_path)


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
def test_nodes_accept_no_nonsense(module, name, tmp_path):
    pytest.importorskip("rclpy")
    targets = importlib.import_module(f"fuzzing.{module}").TARGETS
    assert_sound(next(target for target in targets if target.name == name), tmp_path)


def read_faulty(data):
    """Fail in the way that `data` names."""
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
def test_fuzzer_reports_each_kind_of_failure(data, kind, monkeypatch):
    monkeypatch.setattr("fuzzing.outcome.MAX_PROCESSOR_TIME_S", 0.5)
    if data == "memory":
        bytearray(600_000_000)  # an earlier peak must not hide the growth
    tally = Tally()
    for value in (data, "refused", "valid"):
        tally.add(read_faulty, value)
    assert (tally.accepted, tally.refused) == (1 + (data == "memory"), 1)
    assert [failure[: len(kind)] for failure in tally.failures] == [kind]
    assert kind in tally.describe_failures()


def test_error_messages_must_be_one_clear_line():
    assert not find_message_problem("URDF 'arm.urdf': it has no links; give one")
    assert find_message_problem("'NoneType' object has no attribute 'get'")
    assert find_message_problem("a b c \x1b[2J d")
    assert find_message_problem("word " * 1000)
