"""The one page of the demo."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from dynid_ros.demo.page import Act, Found, before_after_plot, write_demonstration_report
from dynid_ros.report.page import Tile

VOID = {"meta", "br", "img", "input", "link"}


class Balanced(HTMLParser):
    """Every tag is closed in its order; nothing is fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.ids, self.links = [], [], set(), set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [attrs[name] for name in ("src",) if name in attrs]
        self.ids |= {attrs["id"]} if tag == "section" and "id" in attrs else set()
        self.links |= {attrs["href"]} if tag == "a" else set()

    def handle_startendtag(self, tag, attrs):
        del tag, attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(name="acts")
def fixture_acts():
    picture = before_after_plot(["a", "b"], np.array([10.0, 5.0]), np.array([0.1, 0.2]), "error (%)")
    good = Act(
        "A load: weighed",
        ("The arm moves & learns.",),
        True,
        ("PASSED: the load is known.", "Mass off by 0.5 %"),
        (Tile("Mass", "2.01 kg", "2 kg in truth"),),
        (Found("Mass", "kg", 2.0, 2.01, 0.02), Found("Gain", "", 1.0, np.nan, np.nan)),
        {"Orange: before": picture},
        (("the identification's report", "load/report.html"),),
        31.4,
    )
    bad = replace(
        good,
        title="Springs",
        passed=False,
        sentences=("FAILED: not found.",),
        rows=tuple(Found(f"k {i}", "", 1.0, 2.0, 0.1) for i in range(20)),
    )
    return {"load": good, "springs": bad}


def page(tmp_path, *arguments):
    text = write_demonstration_report(tmp_path / "report.html", *arguments).read_text()
    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    assert not parser.fetched
    return text, parser


def test_each_act_has_its_verdict_numbers_and_picture(tmp_path, acts):
    text, parser = page(tmp_path, acts)
    assert parser.ids == {"load", "springs"}
    assert {"#load", "#springs", "load/report.html"} <= parser.links
    assert "1 of 2 acts passed; failed: Springs" in text
    assert text.count("✓ passed") == text.count("✗ failed") == 2
    assert "The arm moves &amp; learns." in text
    assert "<li>Mass off by 0.5 %</li>" in text
    assert "2.01 kg" in text
    assert "holds the truth" in text
    assert "misses the truth" in text
    assert "not determined by the data" in text
    assert "Took 31\N{NO-BREAK SPACE}s" in text
    assert 'aria-label="error (%)"' in text


def test_long_tables_are_closed_at_first(tmp_path, acts):
    text, _ = page(tmp_path, acts)
    assert text.count("<details open>") == text.count("<details>") == 1
    assert "0 of 20 intervals hold it" in text


def test_all_is_well_only_if_all_came_to_their_end(tmp_path, acts):
    good = {"load": acts["load"]}
    assert "The act passed." in page(tmp_path, good)[0]
    assert "All 2 acts passed." in page(tmp_path, {**good, "other": acts["load"]})[0]
    text, _ = page(tmp_path, good, ("links",))
    assert "1 of 2 acts passed; not played to their end: links" in text


def test_same_input_same_file(tmp_path, acts):
    assert page(tmp_path, acts)[0] == page(tmp_path, acts)[0]
