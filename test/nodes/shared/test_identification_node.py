"""Test how the parameters of a node become options of `dynid identify` in its run file."""

from types import SimpleNamespace

import planar_arm

from dynid_ros.jobs.run_file import read_run_file
from dynid_ros.nodes.shared.identification_node import parameters_of_kind, write_node_run


def read_options(tmp_path, kind, **values):
    """Return the options in the run file of a node with these parameters."""
    table = parameters_of_kind(kind)
    settings = {parameter.name: parameter.default for parameter in table} | {"output": str(tmp_path)} | values
    recordings = {"recordings": ["a.npz", "b.npz"]}
    context = {"urdf": planar_arm.urdf(), "recordings": recordings, "results": [], "more": {}}
    run_file = read_run_file(write_node_run(kind, table, SimpleNamespace(**settings), **context))
    assert run_file.command == f"identify {kind}"
    return {name: value for name, value in run_file.options.items() if name not in ("recording", "output")}


def test_urdf_from_a_topic_is_saved_with_the_results(tmp_path):
    assert read_options(tmp_path, "gravity") == {"urdf": str(tmp_path / "experiment.urdf")}
    assert (tmp_path / "experiment.urdf").read_text() == planar_arm.urdf()


def test_changed_parameters_become_options(tmp_path):
    arm = {
        "robot_description": "arm.urdf",
        "tip_link": "tool",
        "held_joints": "a=1, b=-0.5",
        "payload": [1.0, 0, 0, 0.1],
    }
    effort = {"effort_convention": "motor_current", "motor_gains": [2.0, 3.0], "torque_topic": "/torque"}
    method = {"friction": "coulomb", "prior_weight": 3.0}
    assert read_options(tmp_path, "links", **arm, **effort, **method) == {
        "urdf": "arm.urdf",
        "tip": "tool",
        "hold": ["a=1", "b=-0.5"],
        "payload": [1.0, 0, 0, 0.1],
        **effort,
        **method,
    }
    assert read_options(tmp_path, "load", model_file="m.yaml", robot_description="arm.urdf") == {
        "urdf": "arm.urdf",
        "model": "m.yaml",
    }
