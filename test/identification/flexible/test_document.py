"""Flexible joints in `identified.yaml`, and their springs in gravity compensation."""

import numpy as np
import pytest
import yaml

from dynid_ros.control import JointSprings
from dynid_ros.identified.identified_file import check_same_robot, load_identified


@pytest.fixture(scope="module")
def saved(by_camera, tmp_path_factory):
    return by_camera.result.save(tmp_path_factory.mktemp("flexible") / "identified.yaml")


def test_file_is_plain_yaml_of_the_robot(saved, by_camera):
    document = yaml.safe_load(saved.read_text(encoding="utf-8"))
    assert load_identified(saved) == document
    check_same_robot(document, by_camera.experiment.robot)
    assert document["source"]["recordings"] == ["experiment"]


def test_file_contains_the_estimates(saved, by_camera):
    result = by_camera.result
    document = load_identified(saved)
    entry = document["flexible_joints"]["joint_2"]
    assert entry["spring"] == "linear"
    names = {
        "stiffness": "stiffness",
        "motor_inertia": "motor_inertia",
        "motor_viscous": "motor_viscous",
        "link_coulomb": "coulomb",
        "link_viscous": "viscous",
    }
    for label, name in names.items():
        term = result.term(name)
        assert entry[label] == pytest.approx(term.values[0])
        assert entry["std"][label] == pytest.approx(term.standard_errors[0])
        assert entry["decided"][label] is True
    low, high = entry["stiffness_interval"]
    assert low < entry["stiffness"] < high
    assert entry["resonance"] == pytest.approx(result.resonances[0])
    values = [line["value"] for line in document["base_parameters"]]
    np.testing.assert_allclose(values, result.parameters[: len(values)])
    assert document["condition_number"] == pytest.approx(result.condition_number)


def test_file_contains_sums_and_clock_offsets(saved, by_camera):
    document = load_identified(saved)
    sums = {entry["expression"]: entry["value"] for entry in document["flexible_sums"]}
    assert sums == {entry.expression: pytest.approx(entry.value) for entry in by_camera.result.sums}
    (run,) = document["flexible_recordings"]
    assert run["clock_offset"] == pytest.approx(0.005, abs=2e-4)
    assert run["zero"]["joint_2"] == pytest.approx(by_camera.result.runs[0].zero[0])


def test_gravity_compensation_uses_the_springs(saved, by_camera):
    springs = JointSprings.from_document(load_identified(saved), by_camera.experiment.robot.joint_names)
    places = []

    def gravity(links):
        places[:] = links
        return [30.0]

    springs.settled([0.5], gravity)
    assert 0.5 - places[0] == pytest.approx(30.0 / by_camera.result.stiffness[0], abs=1e-6)
