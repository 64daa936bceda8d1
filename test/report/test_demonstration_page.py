"""The page of what was identified beside the truth."""

from xml.etree import ElementTree

import numpy as np
import planar_arm
import pytest

from dynid_ros.model import RobotModel
from dynid_ros.report.demonstration_page import Found, write_demonstration_page
from dynid_ros.report.live_plot import live_plot
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


@pytest.fixture(name="page")
def fixture_page(tmp_path):
    time = np.linspace(0, 10, 20)
    picture = live_plot(time, 2 + 0 * time, np.stack([1.9 + 0 * time, 2.1 + 0 * time], axis=1), 2.0 * (time < 8))
    robot = RobotModel.from_urdf(planar_arm.urdf())
    rows = [Found("Mass", "kg", 2.0, 2.01, 0.02), Found("Gain", "", 1.0, np.nan, np.nan)]
    path = write_demonstration_page(
        tmp_path / "new" / "demonstration.html",
        robot,
        "Load",
        sentences=["PASSED: all < good.", "Mass off by 0.5 %"],
        tiles=[Tile("Mass", "2.01 kg", "2 kg in truth")],
        rows=rows,
        pictures={"Mass": picture},
    )
    return path.read_text()


def test_verdict_numbers_and_picture_are_there(page):
    assert "<b>PASSED: all &lt; good.</b>" in page
    assert "<p>Mass off by 0.5 %</p>" in page
    assert "interval holds the truth" in page
    assert "not decided" in page
    assert 'href="report.html"' in page
    assert "while it happened" in page.lower()


def test_picture_is_well_formed_and_follows_the_theme(page):
    picture = page[page.index("<figure>") : page.index("</figure>")]
    svg = picture[picture.index("<svg") : picture.index("</svg>") + len("</svg>")]
    ElementTree.fromstring(svg)
    for color in ("band", "truth", "identified"):
        assert f"var(--{color})" in svg
