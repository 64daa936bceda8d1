"""Pictures as SVG: where their curves are, in what order, and that they are valid."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dynid_ros.report.axes import LIGHT, Figure

COLOR = LIGHT["identified"]


@pytest.fixture(name="figure")
def fixture_figure():
    return Figure(200, 100)


@pytest.fixture(name="axes")
def fixture_axes(figure):
    axes = figure.add_axes((0.25, 0.2, 0.5, 0.5))  # from 50 to 150 and from 30 to 80
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 5)
    return axes


def drawn(figure):
    """Return the paths inside the axes."""
    return re.findall(r'<g clip-path.*?d="([^"]*)"', figure.markup("picture")) or re.findall(
        r' d="([^"]*)"', figure.markup("picture").partition("<g clip-path")[2]
    )


def test_line_passes_through_its_points_and_is_interrupted(figure, axes):
    axes.plot([0, 5, 7, 10], [0, 2.5, np.nan, 5], color=COLOR)
    assert drawn(figure) == ["M50 80L100 55M150 30"]


def test_first_end_of_a_vertical_axis_is_below(figure, axes):
    axes.set_ylim(1.5, -0.5)
    axes.plot([0, 10], [0, 1], color=COLOR)
    assert drawn(figure) == ["M50 42.5L150 67.5"]


def test_artists_in_front_come_last(figure, axes):
    axes.plot([0, 1], [0, 1], color=COLOR, zorder=3)
    axes.plot([2, 3], [0, 1], color=COLOR)
    axes.fill_between(np.array([4.0, 5.0]), np.zeros(2), np.ones(2), color=COLOR)
    starts = re.findall(r' d="(M\d+)', figure.markup("picture").partition("<g clip-path")[2])
    assert starts == ["M90", "M70", "M50"]


def test_steps_hold_a_value_before_or_after_its_place(figure, axes):
    axes.step([0, 10], [0, 5], where="post", color=COLOR, linewidth=1.0)
    assert drawn(figure) == ["M50 80L150 80L150 30"]


def test_units_are_as_long_in_both_directions(figure, axes):
    axes.set_ylim(0, 10)
    axes.set_aspect("equal")
    axes.plot([0, 10], [0, 10], color=COLOR)
    assert drawn(figure) == ["M75 80L125 30"]


def test_picture_is_valid_and_its_colours_follow_the_page(figure, axes):
    axes.errorbar(np.array([3.0, np.nan]), np.arange(2), xerr=np.array([1.0, np.nan]), color=COLOR, markersize=4)
    axes.arrow(3.0, 4.0, COLOR, 1.0)
    axes.axhline(1.0, COLOR, 1.0)
    axes.axvspan(1.0, 2.0, LIGHT["band"])
    axes.barh(np.arange(2), np.array([1.0, 2.0]), 0.5, COLOR)
    axes.text(0.5, 0.5, "a < b & $c$", within="xy", color=LIGHT["muted"])
    axes.xaxis.label = "<time>"
    markup = figure.markup('a "name"')
    assert ET.fromstring(markup).get("aria-label") == 'a "name"'
    assert "#" not in markup.replace("url(#", "")
    assert "nan" not in markup
    assert figure.markup('a "name"') == markup
    assert len(set(re.findall(r'id="([^"]*)"', markup + figure.markup("another")))) == 2
