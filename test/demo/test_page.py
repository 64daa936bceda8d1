"""What an act has shown: numbers beside the truth, kept in a file."""

import json

import numpy as np
import pytest

from dynid_ros.demo.page import Act, Found
from dynid_ros.errors import DynidError
from dynid_ros.report.page import Tile


@pytest.mark.parametrize(
    ("value", "half", "covered", "cells"),
    [
        (2.01, 0.02, True, ("2.0000", "2.0100", "0.020", "0.010")),
        (1.95, 0.02, False, ("2.0000", "1.9500", "0.020", "−0.050")),
        (np.nan, np.nan, False, ("2.00", "–", "–", "–")),
    ],
)
def test_a_number_beside_the_truth(value, half, covered, cells):
    row = Found("Mass", "kg", 2.0, value, half)
    assert row.covered is covered
    assert row.cells == cells


class Weighed:
    """A verdict."""

    passed = True
    rows = (Found("Mass", "kg", 2.0, np.float64(2.01), 0.02), Found("Gain", "", 1.0, np.nan, np.nan))
    pictures = {"Mass": "<svg></svg>"}  # noqa: RUF012 - as a test writes it

    def sentences(self):
        return ["PASSED: all < good.", "Mass off by 0.5 %"]

    def tiles(self):
        return [Tile("Mass", "2.01 kg", "2 kg in truth")]


def test_an_act_is_kept_and_read_again(tmp_path):
    act = Act.of("A load", ["It is weighed."], Weighed(), [("report", "load/report.html")]).took(12.0)
    again = Act.load(act.save(tmp_path / "new" / "load.json"))
    assert act.passed
    assert act.covered == 1
    assert len(act.decided) == 1
    assert again.text() == act.text() == "PASSED: all < good.\nMass off by 0.5 %"
    assert again.seconds == 12.0
    assert again.tiles == act.tiles
    assert again.pages == (("report", "load/report.html"),)
    assert again.rows[0] == act.rows[0]
    assert np.isnan(again.rows[1].value)


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"title": "A load"})])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "load.json"
    path.write_text(text)
    with pytest.raises(DynidError, match=r"load.json: not an act .* play that act again"):
        Act.load(path)
