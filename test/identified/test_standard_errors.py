"""What a file has with a standard error."""

from dynid_ros.identified.standard_errors import known_parameters


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
