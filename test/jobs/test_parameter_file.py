"""Parameter file of the launch files: merged, never at the cost of what somebody wrote into it."""

import numpy as np
import pytest
import yaml

from dynid_ros.errors import DynidError
from dynid_ros.jobs.parameter_file import update_parameter_file


def test_answers_are_added_to_those_of_other_commands(tmp_path):
    path = tmp_path / "arm.yaml"
    update_parameter_file(path, {"tip_link": "tool0", "acceleration_limits": np.array([2.0, np.nan]), "group": None})
    update_parameter_file(path, {"effort_convention": "torque", "tip_link": "flange"})
    values = yaml.safe_load(path.read_text())["/**"]["ros__parameters"]
    assert values.pop("acceleration_limits") == [2.0, pytest.approx(np.nan, nan_ok=True)]
    assert values == {"tip_link": "flange", "effort_convention": "torque"}


def test_other_sections_stay_and_comments_are_not_lost(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text("/**/excitation:\n  ros__parameters: {speed_fraction: 0.05}\n")
    update_parameter_file(path, {"tip_link": "tool0"})
    assert yaml.safe_load(path.read_text())["/**/excitation"] == {"ros__parameters": {"speed_fraction": 0.05}}
    path.write_text("# mine\n" + path.read_text())
    with pytest.raises(DynidError, match="comments"):
        update_parameter_file(path, {"tip_link": "tool0"})


@pytest.mark.parametrize("text", ["[1, 2]", "a: 1", "/**: {ros__parameters: 3}", "{", "x: !!python/name:os.system {}"])
def test_a_file_that_holds_no_parameters_is_refused(text, tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    with pytest.raises(DynidError, match=r"arm\.yaml"):
        update_parameter_file(path, {"tip_link": "tool0"})
    assert path.read_text() == text
