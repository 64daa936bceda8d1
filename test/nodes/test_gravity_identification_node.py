"""Test the gravity identification node over DDS: recordings in, latched result and files out."""

import pytest
from command_line import run
from gravity_experiment import planned_recording
from helpers.identification_bench import make_starter
from helpers.node_threads import assert_refused, assert_success

from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.gravity_identification import GravityIdentificationNode


@pytest.fixture(name="bag")
def fixture_bag(tmp_path):
    path = tmp_path / "run.npz"
    planned_recording().write_npz(path)
    return path


@pytest.fixture(name="start")
def fixture_start(tmp_path, keep):
    """Return a function that starts the node with parameters."""
    return make_starter(
        keep,
        GravityIdentificationNode,
        robot_description=share_path("config/demo_arm.urdf"),
        effort_convention="torque",
        output=tmp_path / "out",
    )


def test_result_is_latched_and_written(start, bag, tmp_path, capsys):
    bench = start(recording=bag)
    assert_success(bench.identify(), "Gravity of all joints that it loads is observable")
    assert bench.result()["gravity"]["joint_2"]["observable"]
    assert (tmp_path / "out" / "identified.yaml").exists()
    assert (tmp_path / "out" / "report.html").exists()
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_unrotated_joints_make_the_identification_fail(start, tmp_path):
    whole = planned_recording()
    whole.slice(slice(0, whole.n_samples // 4)).write_npz(tmp_path / "short.npz")
    bench = start(recording=tmp_path / "short.npz")
    assert_refused(bench.identify(), "not enough: gravity of joint_", f"what is known is in {tmp_path / 'out'}")
    assert False in [entry["observable"] for entry in bench.result()["gravity"].values()]
    assert (tmp_path / "out" / "identified.yaml").exists()


def test_bag_of_the_recorder_is_identified(start, bag):
    bench = start()
    assert_refused(bench.identify(), "No recording")
    bench.announce_bag(bag)
    assert_success(bench.identify_until_success())
