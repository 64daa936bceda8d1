"""Test the link identification node over DDS: recordings in, latched result and files out."""

import link_experiment
import pytest
from command_line import run
from helpers.identification_bench import make_starter
from helpers.node_threads import assert_refused, assert_success

from dynid_ros.errors import DynidError
from dynid_ros.nodes.link_identification import LinkIdentificationNode

ROBOT, _ = link_experiment.build_planar()
TRUTH = 1.3 * ROBOT.parameters


@pytest.fixture(name="bags", scope="module")
def fixture_bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    paths = [folder / f"run_{seed}.npz" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        link_experiment.record(ROBOT, TRUTH, seed).write_npz(path)
    return paths


@pytest.fixture(name="start")
def fixture_start(tmp_path, urdf_file, keep):
    """Return a function that starts the node with parameters."""
    return make_starter(
        keep,
        LinkIdentificationNode,
        robot_description=urdf_file,
        effort_convention="torque",
        output=tmp_path / "out",
        friction="coulomb,viscous,offset,smoothing=0.05",
        prior_weight=1.0,
    )


def test_result_is_latched_and_written(start, bags, tmp_path, capsys):
    bench = start(recording=bags[0], validation_recording=bags[1])
    assert_success(bench.identify(), "Unseen torque (")
    document = bench.result()
    out = tmp_path / "out"
    files = {"identified": "identified.yaml", "urdf": "identified.urdf", "report": "report.html"}
    assert {name: document[name] for name in files} == {name: str(out / file) for name, file in files.items()}
    assert document["residual_rms"].keys() == set(ROBOT.joint_names)
    assert (document["warnings"], document["missing"]) == (0, [])
    assert document["source"]["recordings"] == [str(bags[0])]
    assert document["source"]["settings"]["prior_weight"] == 1.0
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]
    assert document["friction"]["joint_2"]["coulomb"] == pytest.approx(link_experiment.COULOMB, rel=0.1)
    assert sorted(path.name for path in out.iterdir()) == [
        "experiment.yaml",
        "identified.urdf",
        "identified.yaml",
        "report.html",
    ]


def test_short_recording_makes_the_identification_fail(start, tmp_path):
    link_experiment.record(ROBOT, TRUTH).slice(slice(0, 200)).write_npz(tmp_path / "short.npz")
    bench = start(recording=tmp_path / "short.npz")
    assert_refused(bench.identify(), "base parameters are not determined", "record half a minute or more")
    document = bench.result()
    assert "links" not in document
    assert any("base parameters are not determined" in text for text in document["missing"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiment.yaml",
        "identified.yaml",
        "report.html",
    ]


def test_recordings_can_be_changed_while_the_node_runs(start, bags):
    bench = start()
    assert_refused(bench.identify(), "No recording")
    bench.announce_bag(bags[0])
    response = bench.identify_until_success()
    assert response.success, response.message
    assert "unseen" not in response.message.lower()
    bench.set_parameters(recording=str(bags[1]), validation_recording=str(bags[0]))
    assert_success(bench.identify(), "Unseen torque (")
    with pytest.raises(DynidError, match="node link_identification refused parameter estimator"):
        bench.set_parameters(estimator="ordinary")


def test_settings_reach_the_identification(start):
    bench = start(
        estimator="weighted", torque_gain_error=0.02, cutoff=6.0, motion_cutoff=20.0, friction="none", coupled="['a,b']"
    )
    identification = bench.node.estimator
    assert identification.estimator == "weighted"
    assert identification.torque_gain_error == 0.02
    assert (identification.cutoff, identification.motion_cutoff) == (6.0, 20.0)
    assert identification.friction.terms == ()
    assert identification.coupled == (("a", "b"),)
