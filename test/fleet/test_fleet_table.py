"""What a file has with a standard error."""

import numpy as np
import pytest

from dynid_ros.fleet.fleet_table import known_parameters


def test_parameters_are_those_with_a_standard_error():
    document = {
        "robot": {"std": {"mass": 1.0}, "mass": 1.0},
        "base_parameters": [
            {"expression": "Izz1", "value": 2.0, "std": 0.1},
            {"expression": "m1", "value": None, "std": None},
        ],
        "links": {
            "a": {"mass": 3.0, "mass_moment": [1.0, 2.0, 3.0], "std": {"mass": None, "mass_moment": [0.1, None, 0.3]}}
        },
    }
    assert list(known_parameters(document)) == [
        ("base Izz1", 2.0, 0.1),
        ("links a mass_moment[0]", 1.0, 0.1),
        ("links a mass_moment[2]", 3.0, 0.3),
    ]


@pytest.mark.parametrize(
    "section",
    [
        {"base_parameters": 1},
        {"base_parameters": [1, {"value": 1.0, "std": 0.1}]},
        {"gravity": {"j": {"n_x": [[1.0], [2.0, 3.0]], "std": {"n_x": [[0.1], [0.2]]}}}},
        {"gravity": {"j": {"n_x": "much", "std": {"n_x": 0.1, "n_y": 0.1}}}},
        {3: {"std": {"a": 1.0}, "a": 1.0}},
    ],
)
def test_files_that_somebody_changed_are_read_as_far_as_they_go(section):
    for name, value, std in known_parameters(section):
        assert isinstance(name, str)
        assert std > 0.0
        assert np.isfinite(value)
