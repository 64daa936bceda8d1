"""Test acts with their checks, their files, and the page of the demo."""

import json

import numpy as np
import pytest
from html_page import Page, assert_readable

from dynid_ros.demo.page import Act, write_demo_report
from dynid_ros.errors import DynidError
from dynid_ros.rehearsal.truth_comparison import Check, Comparison
from dynid_ros.report.drawing import before_after_plot


@pytest.fixture(name="acts")
def fixture_acts():
    picture = before_after_plot(["a", "b"], np.array([10.0, 5.0]), np.array([0.1, 0.2]), "error (%)")
    good = Act(
        "A load: weighed",
        ("The arm moves & learns.",),
        [Check("Mass, relative error", 0.5, 1.0, "%")],
        [Comparison("Mass", "kg", 2.0, np.float64(2.01), 0.02), Comparison("Gain", "", 1.0, np.nan, np.nan)],
        {"Orange: before": picture},
        [("the report", "load/report.html")],
        31.4,
    )
    many = [Comparison(f"k {i}", "", 1.0, 2.0, 0.1) for i in range(20)]
    return {"load": good, "springs": Act("Springs", ("Hm.",), [Check("Stiffness", 9.0, 5.0, "%")], many)}


def test_act_is_saved_and_loaded(tmp_path, acts):
    act = acts["load"]
    path = act.save(tmp_path / "new" / "load.json")
    loaded = Act.load(path)
    assert loaded.sentences == act.sentences == ["PASSED: A load: weighed", "Mass, relative error: 0.5 % (at most 1 %)"]
    assert loaded.seconds == 31.4
    assert loaded.comparisons[0] == act.comparisons[0]
    assert np.isnan(loaded.comparisons[1].value)
    content = json.loads(path.read_text())
    assert {"title", "passed", "sentences", "seconds"} <= set(content)


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"title": "A load"})])
def test_other_file_is_refused(tmp_path, text):
    path = tmp_path / "load.json"
    path.write_text(text)
    with pytest.raises(DynidError, match=r"load\.json"):
        Act.load(path)


def read_page(tmp_path, *arguments):
    path = write_demo_report(tmp_path / "report.html", *arguments)
    return path.read_text(), Page(path.read_text())


def test_page_shows_verdict_numbers_and_picture_of_each_act(tmp_path, acts):
    text, parsed = read_page(tmp_path, acts)
    assert_readable(parsed)
    assert {"#load", "#springs", "load/report.html"} <= {value for name, value in parsed.attributes if name == "href"}
    assert "1 of 2 acts passed; failed: Springs." in parsed.text
    assert text.count("✓ passed") == text.count("✗ failed") == 2
    for words in ("The arm moves & learns.", "contains the truth", "misses the truth", "undetermined"):
        assert words in parsed.text
    assert text.count("<details open>") == text.count("<details>") == 1, "long tables are collapsed at first"
    assert "0 of 20 intervals contain it" in parsed.text
    assert text == read_page(tmp_path, acts)[0]


def test_page_counts_passed_and_unfinished_acts(tmp_path, acts):
    good = {"load": acts["load"]}
    assert "The act passed." in read_page(tmp_path, good)[0]
    assert "All 2 acts passed." in read_page(tmp_path, {**good, "other": acts["load"]})[0]
    assert "1 of 2 acts passed; not played to the end: links." in read_page(tmp_path, good, ("links",))[0]
