"""The node over DDS: a recording in, the latched result and the files out; bad settings and calls answered clearly."""

import pytest
from command_line import run
from gravity_experiment import planned_recording
from helpers.identification_bench import starter

from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.gravity_identification import GravityIdentificationNode


@pytest.fixture(name="bag")
def fixture_bag(tmp_path):
    path = tmp_path / "run.npz"
    planned_recording().write_npz(path)
    return path


@pytest.fixture(name="start")
def fixture_start(tmp_path, keep):
    """Function that makes the node with parameters and spins it."""
    return starter(
        keep,
        GravityIdentificationNode,
        robot_description=share_path("config/demo_arm.urdf"),
        effort_convention="torque",
        output=tmp_path / "out",
    )


def test_result_is_latched_and_written(start, bag, tmp_path, capsys):
    bench = start(recording=bag)
    response = bench.identify()
    assert response.success, response.message
    assert "Gravity of all joints that it loads is observable" in response.message
    assert bench.result()["gravity"]["joint_2"]["observable"]
    assert (tmp_path / "out" / "identified.yaml").exists()
    assert (tmp_path / "out" / "report.html").exists()
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_joints_that_never_turned_are_no_success(start, tmp_path):
    whole = planned_recording()
    whole.slice(slice(0, whole.n_samples // 4)).write_npz(tmp_path / "short.npz")
    bench = start(recording=tmp_path / "short.npz")
    response = bench.identify()
    assert not response.success
    assert "not enough: gravity of joint_" in response.message
    assert f"what is known is in {tmp_path / 'out'}" in response.message
    assert False in [entry["observable"] for entry in bench.result()["gravity"].values()]
    assert (tmp_path / "out" / "identified.yaml").exists()


def test_the_recorders_bag_is_taken(start, bag):
    bench = start()
    before = bench.identify()
    assert not before.success
    assert "No recording" in before.message
    bench.announce_bag(bag)
    after = bench.identify_until_success()
    assert after.success, after.message
