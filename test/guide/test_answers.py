"""Test the node parameters that follow from the answers of the guide, and their refusals."""

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.guide.answers import EXPERIMENTS, Answers


@pytest.fixture
def answers(tmp_path):
    output = tmp_path / "guide"
    output.mkdir()
    return Answers(tmp_path / "arm.urdf", output, tip="tool")


def write_model(answers, kind):
    folder = answers.output / kind
    folder.mkdir()
    (folder / "identified.yaml").write_text("format: dynid/1\n")
    return folder / "identified.yaml"


def test_excitation_gets_robot_and_limits(answers):
    answers.acceleration_limit = 3.0
    values = answers.parameters("excitation")
    assert values["robot_description"] == answers.urdf
    assert values["tip_link"] == "tool"
    assert values["acceleration_limits"] == [3.0]


def test_missing_limit_keeps_that_of_the_parameter_file(answers):
    answers.acceleration_limit = 0.0
    assert {"acceleration_limits", "floor_height"}.isdisjoint(answers.parameters("excitation"))


@pytest.mark.parametrize("experiment", [name for name in EXPERIMENTS if name != "load"])
def test_identification_writes_below_the_folder(answers, experiment):
    answers.effort_convention = "motor_current"
    answers.motor_gains = "1, 2.5"
    values = answers.parameters(EXPERIMENTS[experiment].node)
    assert values["output"].parent == answers.output
    assert values["effort_convention"] == "motor_current"
    assert values["motor_gains"] == [1.0, 2.5]


def test_gains_must_be_numbers(answers):
    answers.motor_gains = "1 x"
    with pytest.raises(DynidError, match="motor gains '1 x'"):
        answers.parameters("gravity_identification")


def test_compensation_needs_a_model(answers):
    with pytest.raises(DynidError, match="identify gravity or links first"):
        answers.parameters("gravity_compensation")
    file = write_model(answers, "gravity")
    assert answers.parameters("gravity_compensation")["model_file"] == file


def test_compensation_ignores_effort_that_is_no_torque(answers):
    write_model(answers, "gravity")
    answers.effort_convention = "motor_current"
    assert answers.parameters("gravity_compensation")["effort_convention"] == ""


def test_files_outside_the_folder_are_refused(answers, tmp_path):
    (tmp_path / "table.yaml").write_text("[]\n")
    answers.obstacles = "../table.yaml"
    with pytest.raises(DynidError, match="copy the file into that folder"):
        answers.parameters("excitation")
    answers.obstacles = "none.yaml"
    with pytest.raises(DynidError, match="no such file"):
        answers.parameters("excitation")
    (answers.output / "table.yaml").write_text("[]\n")
    answers.obstacles = "table.yaml"
    assert answers.parameters("excitation")["obstacles_file"] == answers.output / "table.yaml"
